/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_namespace.h - the namespaces of a sandbox of the daemon, as a path says
 * where they are: nothing is entered that is not what it should be.
 */
#ifndef CMD_EXEC_NAMESPACE_H
#define CMD_EXEC_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct exec_namespace {
	int net;
	int user; /* that owns it, if it is one to be entered first; or -1 */
};

/* Opens the network namespace at @path, which belongs to a sandbox of the user
 * @owner. It is one (a file of nsfs), neither ours nor that of pid 1; its user
 * namespace is our own for root's, and else one that @owner made. Only root
 * (@root) may have one of somebody else. 0, or -errno and a sentence. */
int exec_namespace_open(const char *path, uid_t owner, bool root,
			struct exec_namespace *ret, char *reterr, size_t cap);

/* Moves this single-threaded process into the user namespace, as its uid 0; our
 * own uid outside it has to be its only one. @ret_gid: the only group. Without
 * one to be entered: does nothing. 0, or -errno and a sentence: then nothing
 * must be run. */
int exec_namespace_enter(const struct exec_namespace *ns, gid_t *ret_gid,
			 char *reterr, size_t cap);

void exec_namespace_close(struct exec_namespace *ns);

#endif
