/* SPDX-License-Identifier: Apache-2.0
 *
 * owned.h - network namespaces of sandboxes that belong to somebody: who owns
 * the user namespace above one has all rights in it, without asking us.
 */
#ifndef LAUNCH_OWNED_H
#define LAUNCH_OWNED_H

#include <sys/types.h>

#include "launch/netns.h"

/* For root: a network namespace as a sandbox's, with lo up, in a user namespace
 * that @uid owns and in which @uid and @gid are 0; @ret_user is that. For @uid
 * 0 in our own, and @ret_user is -1. 0 or -errno. */
int owned_create(uid_t uid, gid_t gid, int *ret_user, struct netns *ret);

/* Kills every process in the network namespace @ns, but not ourselves, until
 * there is none. 0; -EBUSY if there still are some after a while; -errno. */
int sandbox_kill_all(int ns);

#endif
