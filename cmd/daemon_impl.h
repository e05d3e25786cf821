/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_impl.h - what the files of the daemon share; nobody else's.
 */
#ifndef CMD_DAEMON_IMPL_H
#define CMD_DAEMON_IMPL_H

#include <event2/event.h>
#include <time.h>

#include "cmd/daemon.h"
#include "cmd/daemon_config.h"
#include "cmd/daemon_keeper.h"
#include "cmd/daemon_work.h"
#include "cmd/http_server.h"
#include "policy/digest.h"

/* Deaths of a keeper within a minute that make its sandbox fail. */
#define DAEMON_CRASHES_MAX 3

struct daemon_options {
	const char *config;
	bool config_named; /* then it must be there */
	const char *socket, *state, *run;
};

/* Sandboxes that are made before they are asked for: daemon_spare.c. */
struct spares {
	struct spare *first;
	size_t count;
	struct event *due; /* the next one is made */
};

struct daemon {
	struct daemon_options options;
	struct daemon_config *config;
	unsigned generation; /* of it: how often it was read */
	struct workers *workers;
	gid_t group; /* whose members may ask; 0: nobody but root */
	struct event_base *base;
	int lock, state_dir, signals;
	struct daemon_sandbox *first, **last;
	size_t count, starting; /* keepers that are not ready */
	uint64_t turn;		/* that came last: see turn.h */
	struct event *kick;	/* somebody wants to start, or is over */
	struct event *stats;	/* the next one is asked for its counts */
	struct daemon_sandbox *asked;
	struct http_server *control;
	struct spares spares;
	bool stopping, docker;
	bool passed; /* .control listens on a socket of systemd */
};

/* An answer that a keeper owes. */
struct waiter {
	daemon_done_fn *done;
	void *arg;
	enum msg_type type;
	/* MSG_KEEP_POLICY: of the new one; .staged: its bundle is, too. */
	char text[512], name[64], digest[DIGEST_HEX];
	bool staged;
	size_t bytes;		       /* of that */
	struct daemon_publish publish; /* MSG_KEEP_FORWARD */
	struct waiter *next;
};

/* Sealed, for a keeper; and the file of leases. -1: none. */
struct box_policy {
	int fd, leases;
	uint64_t len;
	size_t own_len; /* of it, what its user sent */
};

/* Is its keeper one that was there before? Until it serves, another one may
 * take its place. */
enum box_spare { SPARE_NONE, SPARE_WAITS, SPARE_TOLD };

struct box {
	struct daemon_sandbox sandbox; /* first: see box_of() */
	struct daemon *daemon;
	struct keeper *keeper;
	struct event *limit; /* of a start, of an end */
	struct event *wall;
	struct waiter *waiters, **last;
	daemon_done_fn *created, *removed;
	void *created_arg, *removed_arg;
	time_t crash[DAEMON_CRASHES_MAX];
	int err;       /* of its start */
	bool queued;   /* wants a keeper */
	uint64_t turn; /* when .queued: see turn.h */
	bool starting; /* has one that is not ready */
	enum box_spare spare;
	bool served; /* was ready, in this life or an earlier one */
	bool removing;
	bool leaving;		  /* removing, and all but its state is gone */
	bool changes;		  /* a policy of it is being put together */
	bool late;		  /* a reload waits for that one's end */
	unsigned works;		  /* of daemon_work.h, that have it */
	size_t bytes;		  /* of its policy, that its user sent */
	unsigned generation;	  /* of the configuration that its keeper has */
	struct box_policy policy; /* for the next keeper */
	/* Makes its namespace; the socket is -1 while there is none. */
	pid_t maker;
	int maker_sock;
	struct event *made;
	int ns; /* made, and for the next keeper; or -1 */
	/* Kills what runs inside: -1 while there is none. */
	pid_t killer;
	int killer_fd;
	struct event *killed;
	int holder; /* pidfd of spec.holder, or -1 */
	struct event *held;
};

static inline struct box *box_of(struct daemon_sandbox *sandbox)
{
	return (struct box *)(void *)sandbox;
}

/* --- daemon_sandbox.c */
/* In the list, with its events. NULL: no memory. */
struct box *box_new(struct daemon *daemon);
/* Out of the list and away. */
void box_free(struct box *box);
/* When ends_s comes, it ends. */
void box_set_wall(struct box *box);
/* Every answer that is owed to somebody who asked its keeper is @err. */
void box_drop_waiters(struct box *box, int err, const char *why);

/* --- daemon_start.c */
/* What is to be done is done in the loop. */
void daemon_kick(struct daemon *daemon);
/* So often each boundary is looked at, with as many as there are now. */
uint32_t daemon_look_s(const struct daemon *daemon);
void daemon_on_kick(evutil_socket_t fd, short what, void *arg);
/* What its keeper says. */
extern const struct keeper_calls box_keeper_calls;
/* It is as good as not asked for, or does not come back. */
void box_start_failed(struct box *box, int err, const char *why);
/* box_prepare(), box_make() came to @err, and @why if that is not empty. */
void box_prepared(struct box *box, int err, const char *why);

/* --- daemon_make.c */
/* It wants a keeper, and a namespace if it has none. */
void box_queue(struct box *box);
/* The next one whose namespace is to be made; NULL: none, or too many are. */
struct box *daemon_next_namespace(const struct daemon *daemon);
/* Starts to make those that are missing, a few at a time. */
void daemon_make_namespaces(struct daemon *daemon);
bool box_lacks_namespace(const struct box *box);
bool box_is_making(const struct box *box);
/* Waits for its end. */
void box_drop_maker(struct box *box);

/* --- daemon_spare.c */
/* @box, which lacks a namespace, has one and a keeper, if there is a spare one
 * of its user. */
bool box_take_spare(struct box *box);
/* Its user will want another one. */
void daemon_want_spares(struct daemon *daemon, const struct box *box);
void daemon_drop_spares(struct daemon *daemon);

/* --- daemon_policy.c: done beside the loop. 0 or -errno. */
/* Writes the state of a new one under @bundle (stays the caller's). */
int box_make(struct box *box, const struct bundle *bundle, char *reterr,
	     size_t cap);
/* .policy of one that is to get a keeper. */
int box_prepare(struct box *box);
void box_drop_policy(struct box_policy *policy);
/* Its policy, as the configuration is now, if that makes it another. */
void box_reload(struct box *box);
/* A change is over: now, if one was asked for meanwhile. */
void box_reload_late(struct box *box);
/* Is a change of its policy on its way? There is one at a time. */
bool box_changes_policy(const struct box *box);

/* --- daemon_keep.c */
/* Its state, on the disk; then @waiter (may be NULL) is told, and freed. */
void box_keep(struct box *box, struct waiter *waiter);
/* Its state goes; then box_gone(). */
void box_forget(struct box *box);

/* --- daemon_sandbox.c */
/* What can't be asked is answered by the death of its keeper. */
void box_ask(struct box *box, const void *payload, int fd,
	     const struct waiter *waiter);
struct waiter *box_wait(struct box *box, enum msg_type type,
			daemon_done_fn *done, void *arg);

/* --- daemon_command.c */
/* From now on it ends with the process spec.holder, if it has one. 0 or -errno:
 * -ESRCH, that is gone. */
int box_hold(struct box *box);
void box_let_go(struct box *box);

/* --- daemon_end.c */
/* Is it to be removed, and nothing of it goes on any more? */
bool box_is_over(const struct box *box);
/* Then: what is left of it goes. */
void box_finish(struct box *box);
/* Nothing is left. */
void box_gone(struct box *box);
/* Kills what runs inside, in a process of its own. */
void box_kill_inside(struct box *box);
void box_drop_killer(struct box *box);
/* What is left of a namespace of that name. */
void daemon_drop_pins(const struct daemon *daemon, const char *name);
/* Keepers end; the loop ends when they have. */
void daemon_stop(struct daemon *daemon);
void daemon_stop_if_over(struct daemon *daemon);

/* --- daemon_state.c: 0 or -errno. */
/* The directory of sandboxes, made if missing. */
int state_open(const char *dir, int *ret_fd);
int state_make(const struct daemon *daemon, const struct daemon_sandbox *s,
	       const struct bundle *bundle);
/* @staged: with the bundle of state_stage_bundle(), from now on; else with the
 * policy and its name that are there. All of it, or all stays as it was. */
int state_save(const struct daemon *daemon, const struct daemon_sandbox *s,
	       bool staged);
/* Fills @ret->spec and the rest that is kept. */
int state_load(const struct daemon *daemon, const char *name,
	       struct daemon_sandbox *ret);
void state_drop(const struct daemon *daemon, const char *name);
int state_leases(const struct daemon *daemon, const char *name);
int state_bundle(const struct daemon *daemon, const char *name,
		 struct bundle *ret);
/* A new one; it takes effect with state_save(). */
int state_stage_bundle(const struct daemon *daemon, const char *name,
		       const struct bundle *bundle);
/* Calls @fn for each that is there. */
void state_each(struct daemon *daemon,
		void (*fn)(struct daemon *daemon, const char *name));

/* --- daemon_api.c */
int daemon_api_open(struct daemon *daemon, int fd);

/* --- daemon_reload.c */
/* The configuration and its policies, read again, and put in force. 0, or
 * -errno and @reterr: the old one is. */
int daemon_reload(struct daemon *daemon, struct policy_error *reterr);
/* The group of the configuration, if there is one. */
void daemon_find_group(struct daemon *daemon);

/* --- daemon_restore.c */
/* Takes up what the disk says of an earlier daemon's sandboxes. */
void daemon_restore(struct daemon *daemon);

/* --- daemon_options.c: dies with a message. */
void daemon_options_parse(int argc, char **argv, struct daemon_options *ret);

#endif
