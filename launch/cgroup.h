/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup.h - a control group of our own, wherever one may be made: v2 where the
 * controller is there, else v1.
 */
#ifndef LAUNCH_CGROUP_H
#define LAUNCH_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A new group with @controller ("memory", "pids", "cpu"; NULL: any of v2), in
 * which @file of v2 or v1 is there. 0, its directory and its version; or
 * -errno. */
int cgroup_make(const char *controller, const char *file_v2,
		const char *file_v1, char **ret_dir, unsigned *ret_version);

/* Writes @text to a file of a group. 0 or -errno. */
int cgroup_write(const char *dir, const char *file, const char *text);

/* The number behind @key (NULL: the first number) in a file of a group; 0 if it
 * is not there. */
uint64_t cgroup_read(const char *dir, const char *file, const char *key);

/* A group in @dir, for the processes; it may be there. Who has namespaces of
 * his own can mount the groups from the one he is in on, and their files are
 * our user's, as he may be: those with the limits are then out of sight. 0 or
 * -errno. */
#define CGROUP_LEAF "inside"
int cgroup_make_leaf(const char *dir);

/* With all below it. Waits a little for its last process. */
void cgroup_remove(const char *dir);

#endif
