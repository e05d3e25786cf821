/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon.h - one service, many sandboxes: what its files share.
 *
 *	daemon.c	  life: configuration, signals
 *	daemon_options.c  its command line, and one instance
 *	daemon_notify.c	  systemd: sockets from it, words to it
 *	daemon_config.c	  /etc/sallyport/daemon.yaml
 *	daemon_sandbox.c  the sandboxes: what may be asked of them
 *	daemon_make.c	  their namespaces
 *	daemon_policy.c	  their policies, put together beside the loop
 *	daemon_start.c	  their keepers come and go
 *	daemon_command.c  a command is recorded; a sandbox for one `run`
 *	daemon_end.c	  their end, and ours
 *	daemon_keeper.c	  a keeper as a process
 *	daemon_state.c	  what outlives the daemon, on the disk
 *	daemon_keep.c	  gets it there, beside the loop
 *	daemon_work.c	  threads for that
 *	daemon_api.c	  the control socket: who may do what
 *	daemon_request.c, daemon_read.c, daemon_reply.c  its JSON
 *	daemon_metrics.c  /metrics
 *	docker*.c	  the plugin socket
 *
 * The daemon itself never meets a byte of a sandbox: each has a keeper, a
 * process that is its warden, with a gate, a ledger and a gateway namespace of
 * its own (cmd/keeper.c). So sandboxes share nothing, and what is taken over in
 * one reaches none of the others. A keeper dies with the daemon, and the link
 * of its sandbox with it; the sandbox's own namespace is pinned and stays.
 */
#ifndef CMD_DAEMON_H
#define CMD_DAEMON_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "cmd/privsep.h"
#include "policy/bundle.h"

struct daemon;
struct daemon_config;
struct event_base;

#define DAEMON_NAME_MAX 64
/* Before the names of the plugin's, and nobody else's. */
#define DAEMON_DOCKER_PREFIX "docker-"
/* Below these a sandbox has a directory, a namespace, of its name. */
#define DAEMON_STATE_DIR "/var/lib/sallyport"
#define DAEMON_RUN_DIR	 "/run/sallyport"
#define DAEMON_SOCKET	 DAEMON_RUN_DIR "/control.sock"
#define DAEMON_NETNS_DIR DAEMON_RUN_DIR "/netns"
#define DAEMON_USER_DIR	 DAEMON_RUN_DIR "/user"

enum daemon_state {
	SANDBOX_STARTING, /* its keeper is not ready */
	SANDBOX_READY,
	SANDBOX_ENDING,
	SANDBOX_FAILED, /* it has no keeper: it reaches nothing */
};

/* What a sandbox is asked to be. */
struct daemon_spec {
	char name[DAEMON_NAME_MAX];
	uid_t uid; /* whose it is */
	gid_t gid;
	enum keep_link link;
	bool docker;	       /* made by the plugin: only it may end it */
	struct ip ip, gateway; /* .len 0: as the daemon likes */
	uint8_t bits;
	char ifname[16];       /* KEEP_LINK_JOIN */
	int64_t ends_s;	       /* wall clock, epoch; 0: none */
	pid_t holder;	       /* process that it does not outlive; 0: none */
	uint64_t holder_id;    /* of that, once held; 0: not known */
	char command[128];     /* what it is for, for people; or "" */
	char policy_text[512]; /* for people */
	char policy_name[64];  /* of the configuration, or "": contents came */
};

#define DAEMON_PUBLISH_MAX 16
/* As of what SIGKILL ended. */
#define DAEMON_STATUS_KILLED (128 + 9)

struct daemon_publish {
	struct endpoint at; /* where it listens */
	uint16_t inside;    /* the port of the sandbox */
};

struct daemon_sandbox {
	struct daemon_spec spec;
	enum daemon_state state;
	char why[512]; /* SANDBOX_FAILED */
	struct msg_keep_ready facts;
	struct msg_keep_counts counts; /* as of the last answer */
	struct msg_keep_ended ended;   /* for the .done of daemon_remove() */
	char netns[PATH_MAX];	       /* path, or "" while there is none */
	char userns[PATH_MAX];	       /* the same, of one that is not root's */
	int64_t made_s;
	bool second; /* daemon_state.c's own: which of two files is in force */
	int summary; /* before .ended: what it came to, JSON; or -1 */
	int status;  /* for daemon_remove(): the exit status that is told */
	struct daemon_publish publish[DAEMON_PUBLISH_MAX];
	size_t publishes;
	struct daemon_sandbox *next;
};

/* What was asked for has come to an end. @err 0 or -errno, @why for people.
 * Called once, from the loop, never before the call that asked has returned. */
typedef void daemon_done_fn(void *arg, struct daemon_sandbox *sandbox, int err,
			    const char *why);

/* A sandbox of @spec under @bundle (stays the caller's). 0, and @done when it
 * serves or has failed (then it is gone); or -errno and @reterr: -EEXIST,
 * -ENOSPC (limits.max_sandboxes), -EINVAL (name, policy), -ESRCH (there is no
 * process spec->holder). The ceiling is added
 * here, unless the policy is the operator's own (spec->policy_name). */
int daemon_create(struct daemon *daemon, const struct daemon_spec *spec,
		  const struct bundle *bundle, daemon_done_fn *done, void *arg,
		  char *reterr, size_t cap);
/* Another policy; @policy_name as in struct daemon_spec. As daemon_create();
 * -EBUSY while it is not ready. */
int daemon_policy(struct daemon *daemon, struct daemon_sandbox *sandbox,
		  const struct bundle *bundle, const char *policy_text,
		  const char *policy_name, daemon_done_fn *done, void *arg,
		  char *reterr, size_t cap);
/* Its keeper learns which namespace the link is in now (KEEP_LINK_JOIN); @ns is
 * the caller's; @path is kept for a restart. */
int daemon_joined(struct daemon *daemon, struct daemon_sandbox *sandbox, int ns,
		  const char *path, daemon_done_fn *done, void *arg);
/* Writes a finding into the log of a sandbox that serves; otherwise nothing.
 * @broken: its boundary did not hold, which its receipt will say. */
void daemon_finding(struct daemon *daemon, struct daemon_sandbox *sandbox,
		    bool broken, const char *text);
/* Connections to @fd (listening, taken) go to @port inside. */
int daemon_forward(struct daemon *daemon, struct daemon_sandbox *sandbox,
		   int fd, const struct endpoint *at, uint16_t port,
		   daemon_done_fn *done, void *arg);
/* A record of @command (for people) that @uid is about to run in it; @done when
 * it is accepted. -EBUSY while it is not ready. */
int daemon_exec(struct daemon_sandbox *sandbox, uid_t uid, const char *command,
		daemon_done_fn *done, void *arg);
/* Has a report of `prove` by attacks->user[0] written down, for the receipt,
 * too. 0; -EBUSY or -ENOMEM. */
int daemon_attacks(struct daemon_sandbox *sandbox,
		   const struct attacks *attacks, daemon_done_fn *done,
		   void *arg);
/* Ends what runs inside, the session, and the namespace. For @done (may be
 * NULL) it can be read a last time; nobody finds it any more. -EALREADY. */
int daemon_remove(struct daemon *daemon, struct daemon_sandbox *sandbox,
		  enum ended_by ended, daemon_done_fn *done, void *arg);

/* "[a-z0-9][a-z0-9_.-]{0,62}" */
bool daemon_name_ok(const char *name);
struct daemon_sandbox *daemon_find(struct daemon *daemon, const char *name);
struct daemon_sandbox *daemon_first(struct daemon *daemon);
size_t daemon_count(const struct daemon *daemon);
/* So many more are ready, and nobody has asked for them yet. */
size_t daemon_spares_ready(const struct daemon *daemon);
/* No more than what is asked for already. */
bool daemon_stopping(const struct daemon *daemon);
const struct daemon_config *daemon_config(const struct daemon *daemon);
/* The `sandbox:` of the ceiling that it is below, JSON; NULL: none. What the
 * operator wrote himself is below no ceiling. */
const char *daemon_ceiling_sandbox(const struct daemon_sandbox *sandbox);
struct event_base *daemon_base(const struct daemon *daemon);
/* Where what outlives us is kept. */
const char *daemon_state_dir(const struct daemon *daemon);

#endif
