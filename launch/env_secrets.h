/* SPDX-License-Identifier: Apache-2.0
 *
 * env_secrets.h - variables that hold secrets of our user, by their names. The
 * list is in env_secrets.c; README and sallyport(1) repeat it.
 */
#ifndef LAUNCH_ENV_SECRETS_H
#define LAUNCH_ENV_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

/* Is the variable @name, of @len bytes, one of the list? */
bool env_is_secret(const char *name, size_t len);

/* @from without secrets, but with the @n variables in @pass: "NAME" as it is in
 * @from, "NAME=VALUE" in its place. @left gets the names that were left out,
 * "A, B, C", cut. An array of pointers into @from and @pass, which the caller
 * frees; NULL without memory. */
char **env_without_secrets(char *const *from, const char *const *pass, size_t n,
			   char *left, size_t cap);

#endif
