/* SPDX-License-Identifier: Apache-2.0
 *
 * child.h - our own children: the same binary, executed again with one socket.
 */
#ifndef LAUNCH_CHILD_H
#define LAUNCH_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* The child's end of the socket to its parent. */
#define CHILD_SOCKET 3

struct child {
	pid_t pid;
	int pidfd;
	int sock; /* SOCK_SEQPACKET, to the child's CHILD_SOCKET */
};

/* Starts /proc/self/exe as `sallyport @role` in own pid, mount, ipc and uts
 * namespaces, and with @nested also in an own user namespace below ours (where
 * its uid 0 is ours, without any capability outside). It has fds 0 (/dev/null),
 * 1 (/dev/null), 2 and CHILD_SOCKET, an empty environment but for a few
 * SALLYPORT_ and ASAN_ variables, and dies with its parent. 0 or -errno. */
int child_spawn(const char *role, bool nested, struct child *ret_child);
/* The same without namespaces of its own, for where they can't be made: root
 * without CAP_SYS_ADMIN, as in a container. */
int child_spawn_bare(const char *role, struct child *ret_child);
void child_close(struct child *child);

#endif
