/* SPDX-License-Identifier: Apache-2.0
 *
 * rights.h - the few things for which a daemon needs more than its sockets.
 *
 * Where rights_ask() was called they are done by `sallyport builder`, another
 * service (deploy/systemd): the daemon, which reads what users and engines
 * send, then has no capability, and sees a file system that is read-only.
 * Otherwise they are done here.
 *
 * A builder believes nothing that it is told: it acts below one directory, on
 * names of sandboxes, and never on the namespace that it is in.
 */
#ifndef CMD_RIGHTS_H
#define CMD_RIGHTS_H

#include <stddef.h>
#include <sys/types.h>

struct ip;

/* From now on the builder that listens at @path. 0 or -errno. */
int rights_ask(const char *path);

/* A keeper with @sock as its CHILD_SOCKET and @errors as its stderr. It dies
 * with us, and with the builder. 0 or -errno. */
int rights_keeper(int sock, int errors, pid_t *ret_pid, int *ret_pidfd);

/* Starts to make a namespace for the sandbox @name of @uid, pinned at
 * @run/netns/@name; where @uid is not 0, with the user namespace above it at
 * @run/user/@name. A process of its own does it, as whose user namespace it is
 * may keep it waiting: for 10 s at most. @ret_sock can be read when it is done,
 * or dead. 0 or -errno. */
int rights_namespace(const char *run, const char *name, uid_t uid, gid_t gid,
		     pid_t *ret_pid, int *ret_sock);
/* The same without a name: nobody can enter it until there is one. */
int rights_spare(uid_t uid, gid_t gid, pid_t *ret_pid, int *ret_sock);
/* What either came to. 0; -EAGAIN: it is still at it; or -errno: what was
 * pinned by then is the caller's to drop. @ret_ns is not opened by its name, so
 * that it keeps nobody from taking that away. @ret_user: of one without a name,
 * the user namespace above it, or -1 where @uid was 0. May be NULL for one that
 * has a name. */
int rights_made(int sock, int *ret_ns, int *ret_user);
/* Pins @ns, a network or a user namespace that is not our own, where
 * rights_namespace() would have it. 0, -EEXIST if something is there, or
 * -errno. */
int rights_pin(const char *run, const char *name, int ns);

/* Starts to kill what runs in the namespace pinned as @name; whoever does it
 * ends when there is nobody left, or says on stderr that somebody does not die.
 * 0, -ENOENT if there is no such namespace, or -errno. */
int rights_kill(const char *run, const char *name, pid_t *ret_pid,
		int *ret_pidfd);
/* The same, and waits for it. */
void rights_kill_now(const char *run, const char *name);

/* Takes both pins of @name away; absent is no error. */
int rights_drop(const char *run, const char *name);

/* docker_lock() in @ns, which must not be our own. */
int rights_lock(int ns, const struct ip *gateway, char *reterr, size_t cap);

/* Kills who is in @ns, which must not be our own, and waits for that. 0;
 * -EBUSY: somebody does not die; or -errno. */
int rights_end(int ns);

/* What our link is called in @ns. 0 or -errno. */
int rights_link(int ns, char (*ret_name)[16]);

#endif
