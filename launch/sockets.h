/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets.h - the unix sockets of this host that have a name in its files.
 */
#ifndef LAUNCH_SOCKETS_H
#define LAUNCH_SOCKETS_H

#include <stddef.h>

#define SOCKETS_MAX 1024

/* Canonical paths of the sockets bound in our network namespace that can be
 * found, each once, sorted. -E2BIG if there are more than SOCKETS_MAX. To be
 * freed by sockets_free(). 0 or -errno. */
int sockets_list(char ***ret_path, size_t *ret_n);
void sockets_free(char **path, size_t n);

#endif
