/* SPDX-License-Identifier: Apache-2.0
 *
 * credentials.h - the files of a home that hold passwords, tokens and keys, and
 * what programs remember of their user. The list is in credentials.c; README
 * and sallyport(1) repeat it.
 */
#ifndef LAUNCH_CREDENTIALS_H
#define LAUNCH_CREDENTIALS_H

#include <stddef.h>

struct view;

/* The @n-th path of the list, below a home; NULL after the last one. */
const char *credentials_path(size_t n);

/* Masks over what is there, in our user's home (as root: in every home), and
 * where links and well-known variables (KUBECONFIG) lead; not over what our
 * user shows by its own name. 0, or -errno and a sentence. */
int credentials_hide(struct view *view, char *reterr, size_t cap);

#endif
