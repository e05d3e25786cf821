/* SPDX-License-Identifier: Apache-2.0
 *
 * warden.h - the process that holds the privileges and never parses a byte
 * from outside: it starts the gate and the ledger, gives them what they need,
 * answers the gate's requests, and starts a dead gate again.
 */
#ifndef CMD_WARDEN_H
#define CMD_WARDEN_H

#include <sys/types.h>

#include "cmd/gateway.h"
#include "cmd/privsep.h"
#include "cmd/upstream.h"
#include "cmd/warden_boundary.h"
#include "launch/child.h"
#include "policy/bundle.h"

struct event_base;
struct session;
struct event;
struct tally;

/* Crashes of the gate within a minute that end the session. */
#define WARDEN_CRASHES_MAX 3
/* How long a child may take to get ready, or the ledger to finish. */
#define WARDEN_CHILD_MS 10000
/* Published ports. */
#define WARDEN_FORWARDS_MAX 32
/* The one sandbox of a session. */
#define WARDEN_SANDBOX_ID 1

struct warden_forward {
	int fd; /* listens */
	struct endpoint at;
	uint16_t port; /* of the sandbox */
};

#define WARDEN_ASKED_MAX 64

struct warden {
	/* Set by the caller before warden_begin(). */
	bool root; /* children get uids of their own; else user namespaces */
	bool bare; /* as root: without other namespaces, as none can be made
		    * (isolate_has_own_root()) */
	uid_t gate_uid, ledger_uid; /* as root; 0: launch/isolate.h's */
	struct ip answer;
	/* Set by the caller before warden_start(). */
	const struct bundle *bundle; /* only read until it has started */
	struct policy *policy;	     /* a reference of its own from there on */
	struct session *session;     /* its key, and the files of its log */
	const char *command;	     /* NULL under `serve` */
	const char *files;	     /* what it sees of them: "private", "host";
					NULL: that is not ours to say */
	bool nest;		     /* it may make namespaces */
	const char *boundary;	     /* "netns", "external", "in-container" */
	struct gateway *gateway;     /* NULL under `serve` */
	struct endpoint bound[GATE_SOCKET_COUNT]; /* `serve`: its addresses */
	int socket[GATE_SOCKET_COUNT];		  /* for the gate; -1: none */
	struct msg_gate_uplink clients;
	struct upstream_instead instead;
	/* Of an earlier session of the same sandbox (cmd/sandbox_file.h), of
	 * the right size; taken. 0: a new one, in memory. */
	int lease_file;
	unsigned look_s; /* how often the boundary is looked at; 0: as usual */
	/* The ledger's answer to warden_ask_sums(), from the loop. */
	void (*sums)(void *arg, const struct msg_ledger_sums *sums);
	/* The session cannot go on: told once, from the loop. */
	void (*failed)(void *arg, const char *why);
	void *arg;

	/* Its own. */
	bool begun;
	struct child gate, ledger;
	int record_sock; /* our own line to the ledger */
	uint64_t record_seq;
	int policy_fd, lease_fd, watch_fd;
	uint64_t policy_len;
	const struct policy *coming; /* while the gate takes it, or NULL */
	unsigned starts;	     /* of the gate, with a session */
	time_t crash[WARDEN_CRASHES_MAX];
	struct event_base *base;
	struct event *gate_event, *gate_died, *ledger_event, *ledger_died,
		*uplink_event, *resolv_event, *flows_event;
	struct msg_gate_servers servers;
	struct boundary watched;
	unsigned reported; /* findings of warden_reported() */
	struct warden_forward forward[WARDEN_FORWARDS_MAX];
	size_t forwards;
	/* What the gate waits for, and is not done yet. */
	struct msg_publish asked[WARDEN_ASKED_MAX];
	size_t askeds;
};

/* What keeps gate, ledger and us apart, in a word of the receipt: "uid",
 * "uid-chroot" (.bare) or "namespace". Static. */
const char *warden_separation(const struct warden *warden);

/* Starts both children; they load, and give up what they do not need, while the
 * caller does other things. What the session is need not be known yet. 0 or
 * -errno. */
int warden_begin(struct warden *warden);

/* Takes what the session is; begins, if that was not done. 0 or -errno. */
int warden_start(struct warden *warden);

/* Gives them everything and waits until both serve. @sandbox may be NULL
 * (`serve`). 0 or -errno. */
int warden_ready(struct warden *warden);

/* Supervises from @base's loop on. */
int warden_attach(struct warden *warden, struct event_base *base);

/* Writes a record of our own, and waits until it is accepted. */
int warden_record(struct warden *warden, const struct audit_event *event);

/* Puts @policy, built from @bundle, in force: its record first, then the gate,
 * then the kernel. Both stay the caller's. 0, also where a gate that died of it
 * or did not answer was replaced by one with the new policy. Else -errno and a
 * sentence: the old one is in force, everywhere. Takes up to WARDEN_CHILD_MS
 * where the gate does. */
int warden_reload(struct warden *warden, const struct bundle *bundle,
		  struct policy *policy, char *reterr, size_t cap);

/* Asks the ledger what it came to so far; .sums is told. 0 or -errno. */
int warden_ask_sums(struct warden *warden);

/* Publishes a port of the sandbox: connections to @listener (listening at @at,
 * non-blocking; taken, also on error) go to @port inside, recorded, as long as
 * the session lasts. Once there is a gateway; before warden_ready(), or from
 * the loop. 0 or -errno (-ENOSPC: too many). */
int warden_forward(struct warden *warden, int listener,
		   const struct endpoint *at, uint16_t port);

/* What `prove` found, for the receipt. 0 or -errno. */
int warden_attacks(struct warden *warden, const struct attacks *attacks);
/* The same as the user @attacks->user[0] reports it: there is a record of that
 * first, and a finding of what got out, but for the first few only. 0 or
 * -errno. */
#define WARDEN_REPORT_FINDINGS_MAX 16
int warden_reported(struct warden *warden, const struct attacks *attacks);

/* A finding of our own, with a text for people. */
void warden_finding(struct warden *warden, const char *text);

/* What a session came to, beside its tally. */
struct warden_end {
	int status;	     /* in: exit status */
	enum ended_by ended; /* in */
	/* In, or NULL: called once the boundary was looked at for the last time
	 * and the gate has ended, while the ledger writes and signs. */
	void (*meanwhile)(void *arg);
	void *arg;
	/* Out: */
	enum boundary_held held;
	bool receipt; /* there is one */
	bool tallied; /* the tally is all of it, not what came before it died */
};

/* The gate is told to close all that it has, before anything of the end that
 * takes its time. @wait: for that, in bounded time; else warden_finish() does,
 * which also tells it where this was not called. */
void warden_shut(struct warden *warden, bool wait);

/* Ends the gate, then, after the facts of @end and the record @last, the
 * ledger; its tally. 0 or -errno: then records may be missing. */
int warden_finish(struct warden *warden, const struct audit_event *last,
		  struct warden_end *end, struct tally *ret_tally);

/* Did the boundary hold so far? After warden_finish() began: to the end. */
enum boundary_held warden_held(const struct warden *warden);

void warden_close(struct warden *warden);

#endif
