/* SPDX-License-Identifier: Apache-2.0
 *
 * userns.h - user namespaces: entering one as an ordinary user, and making one
 * with a given map as root.
 */
#ifndef LAUNCH_USERNS_H
#define LAUNCH_USERNS_H

#include <stddef.h>
#include <sys/types.h>

/* For an ordinary user: moves this single-threaded process into an own user
 * namespace, in which its uid and gid are 0. 0, or -errno and a sentence that
 * names the sysctl or package which helps. */
int userns_enter(char *reterr, size_t cap);

/* For root: a user namespace in which @inside_uid is our @uid, and @inside_gid
 * our @gid, and nobody else is mapped. Returns its fd or -errno. */
int userns_make(uid_t inside_uid, uid_t uid, gid_t inside_gid, gid_t gid);

/* Writes the maps of a namespace just entered (or, with @pid, of that process):
 * one id each. 0 or -errno. @pid 0: ourselves. */
int userns_map(pid_t pid, uid_t inside_uid, uid_t uid, gid_t inside_gid,
	       gid_t gid);

#endif
