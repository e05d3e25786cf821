/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate.h - how a child of ours gives up everything, before it reads a byte
 * from outside.
 *
 *	1 files	   an empty, read-only root; where no mount namespace can be
 *		   made, an empty directory of root's by chroot(2), which the
 *		   fourth step makes as final: what would lead out of it
 *		   (chroot, fchdir, any open, mounts) ends the process or fails
 *	2 identity own uid and gid, no groups (as root)
 *	3 rights   no capability in any set, no_new_privs, not dumpable
 *	4 calls	   seccomp: only what the role needs
 */
#ifndef LAUNCH_ISOLATE_H
#define LAUNCH_ISOLATE_H

#include <stdbool.h>
#include <sys/types.h>

enum isolate_role {
	ISOLATE_GATE,	/* AF_INET/AF_INET6 stream and datagram sockets, epoll,
			   splice, getrandom, mmap of given fds ... */
	ISOLATE_LEDGER, /* no sockets made, no files opened: read, write,
			   fdatasync, sendmsg, recvmsg on what it has */
};

struct isolate_spec {
	enum isolate_role role;
	uid_t uid; /* 0: keep (nested user namespace) */
	gid_t gid;
};

/* Whether step 1 can be done in a mount namespace of one's own. Where an engine
 * forbids that (no CAP_SYS_ADMIN, a seccomp or AppArmor profile without
 * mount(2) or pivot_root(2)), child_spawn_bare() is what is left. Tried in a
 * child that ends. */
bool isolate_has_own_root(void);

/* All four, in this order, on the calling (single-threaded) process. 0, or
 * -errno and what failed in *@reterr (static text). A caller that gets an error
 * must exit. */
int isolate_self(const struct isolate_spec *spec, const char **reterr);

/* The seccomp program for sandboxed commands, as BPF in a memfd for bwrap
 * --seccomp: no process_vm_*, TIOCSTI, TIOCLINUX, kernel keyrings, module and
 * bpf loading, ... @nest: namespaces of its own are let be. Returns the fd or
 * -errno. */
int isolate_sandbox_filter(bool nest);

/* Uids that nobody uses (systemd's documentation: 1879048192-2147352575). */
#define ISOLATE_UID_GATE    1900000001u
#define ISOLATE_UID_LEDGER  1900000002u
#define ISOLATE_UID_SANDBOX 1900010000u /* + a number of the session */

#endif
