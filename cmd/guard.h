/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - `sallyport guard`: what its files share.
 *
 *	guard.c		the commands `down` and `status`
 *	guard_up.c	`up`: the process that stays
 *	guard_detach.c	and in the background
 *	guard_check.c	what has to be so before
 *	guard_inbound.c	where the gate listens
 *	guard_names.c	whom the gate asks for names
 *	guard_state.c	what is remembered of one that is up
 *	guard_gateway.c	the rules, as the warden sees them
 */
#ifndef CMD_GUARD_H
#define CMD_GUARD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "firewall/guard.h"

struct policy;
struct warden;
struct upstream_instead;

/* Of the guard of this network namespace: there may be several that share the
 * files of one machine. */
struct guard_state {
	pid_t pid; /* of the process that stays */
	char session[64], dir[PATH_MAX], policy[128];
	char proxy[64];	  /* ADDR:PORT */
	char ruleset[65]; /* as read back at the start */
	struct guard_spec spec;
};

/* guard_state.c. The lock is held as long as there is a guard's process: it is
 * the file descriptor returned, close-on-exec. -EWOULDBLOCK if another one has
 * it, or -errno. */
int guard_lock(void);
/* 0, -ENOENT, -EBADMSG or -errno. */
int guard_state_read(struct guard_state *ret);
/* The same from its text. */
int guard_state_parse(const char *text, size_t len, struct guard_state *ret);
int guard_state_write(const struct guard_state *state);
void guard_state_forget(void);
/* Where a guard in the background writes what it has to say. @buf: PATH_MAX. */
const char *guard_messages_path(char *buf);

/* guard_check.c. The uids of gate and ledger: those of launch/isolate.h, or,
 * where this user namespace does not have them, the last ones that it has.
 * -ENOENT if there are too few. */
int guard_uids(uid_t *ret_gate, uid_t *ret_ledger);
/* A process of this network namespace that has @uid (any of its four), or 0. */
pid_t guard_uid_user(uid_t uid);
/* One that could open a packet socket, or 0. */
pid_t guard_raw_user(void);

/* guard_names.c. Loopback addresses of name servers, into @spec, and where one
 * of them asks from in here, whom, into @instead, unless that says something
 * already. 0, or -errno and a sentence in @reterr (-EADDRINUSE: one of them is
 * a process in here, which would ask us in turn). */
int guard_find_resolvers(const struct policy *policy, struct guard_spec *spec,
			 struct upstream_instead *instead, char *reterr,
			 size_t cap);

/* guard_inbound.c. Where a socket is bound; 0 if nowhere. */
uint16_t guard_port_of(int fd);
/* The resolver's sockets on ::1, at the ports that it has on 127.0.0.1; sets
 * .dns6 of @spec if there are any now. */
void guard_bind_names6(struct warden *warden, struct guard_spec *spec);
/* Listeners of the gate's uid for the @n ports at @port (at most
 * GUARD_INBOUND_MAX): into @spec, and @ret_fd, the caller's. 0 or -errno. */
int guard_inbound_listen(const uint16_t *port, size_t n,
			 struct guard_spec *spec, int *ret_fd);
/* Publishes what came of it, @fd taken. With a gateway; 0 or -errno. */
int guard_inbound_forward(struct warden *warden, const struct guard_spec *spec,
			  const int *fd);

/* guard_detach.c. Calls @stay in a child of a session of its own, which has
 * none of our fds but @lock and @ready, to which it writes a byte when it
 * serves. Returns 0 then, or what it ended with. */
typedef int guard_stay_fn(void *arg, int ready);
int guard_detach(int lock, guard_stay_fn *stay, void *arg);

/* guard_up.c */
int guard_up(int argc, char **argv);

#endif
