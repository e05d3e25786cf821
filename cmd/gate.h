/* SPDX-License-Identifier: Apache-2.0
 *
 * gate.h - the process that meets hostile bytes: its state, shared by the files
 * cmd/gate*.c only.
 *
 *	gate.c		what the warden says; life and death
 *	gate_build.c	from a bundle to a policy
 *	gate_policy.c	another policy, and rules that expire
 *	gate_publish.c	what the kernel lets in, after such a change
 *	gate_services.c	the callbacks that dns/ and proxy/ are given
 *	gate_throttle.c nothing new begins while the ledger is behind
 *	gate_packets.c	dropped packets, from NFLOG to records
 *	gate_forward.c	published ports: connections that come in
 */
#ifndef CMD_GATE_H
#define CMD_GATE_H

#include <event2/event.h>

#include "cmd/privsep.h"
#include "dns/lease.h"
#include "policy/services.h"

struct audit_client;
struct resolver;
struct dns_server;
struct listener;
struct packets;
struct forward;
struct gate_build;
struct policy_error;

#define GATE_SANDBOXES_MAX 1 /* one a session; a daemon raises it */
#define GATE_LISTENERS_MAX 4
#define GATE_FORWARDS_MAX  32
#define GATE_DIALS_MAX	   16
#define GATE_DIALS_LOW	   4 /* more are asked for */

/* What the gate knows of a sandbox beyond what dns/ and proxy/ see. */
struct gate_sandbox {
	struct sandbox pub;
	/* Names asked for, and their leases; under `serve` only counted. */
	struct lease_table *names;
	struct counters *counters;
	/* Leases that the kernel has let in already, one bit each. */
	uint64_t published[(LEASE_MAX + 63) / 64];
};

/* Sockets to connect to the sandbox with. */
struct gate_dials {
	int fd[GATE_DIALS_MAX];
	size_t n;
	bool wanted; /* the warden was asked for more */
	bool lost;   /* of those that came: there was no descriptor left */
	struct wait_list waiting;
};

struct gate {
	struct event_base *base;
	int control; /* to the warden */
	struct event *control_event;
	bool going, serving, ending;

	struct services services;
	struct policy *policy;
	struct gate_build *build; /* of the next one, or NULL */
	struct event *expiry;	  /* the next rule expires */
	int64_t checked_s;	  /* all that goes on was allowed then */
	struct gate_sandbox *sandbox[GATE_SANDBOXES_MAX];
	size_t sandboxes;
	struct audit_client *audit;
	struct resolver *resolver;
	/* IPv4, or what there is; and IPv6 beside it. */
	struct gate_dns {
		struct dns_server *server;
		int udp, tcp; /* until there are both */
	} dns[2];
	struct listener *listener[GATE_LISTENERS_MAX];
	size_t listeners;
	struct packets *packets;
	struct forward *forward[GATE_FORWARDS_MAX];
	size_t forwards;
	struct gate_dials dials;
	struct event *throttle; /* looks whether the ledger is abreast */
	bool behind;		/* it is not: nothing new begins */
	struct wait_list waiting_room;

	struct cidr uplink[MSG_UPLINK_MAX], client[MSG_UPLINK_MAX];
	size_t uplinks, clients;
	struct endpoint self[GATE_SOCKET_COUNT + GATE_FORWARDS_MAX];
	size_t selves;
	uint64_t next_flow, next_publish;
	struct wait_list publishing;
};

/* Builds what is in the first @len bytes of @file. 0, -EINVAL and @reterr, or
 * -errno. */
int gate_build(int file, uint64_t len, struct policy **ret_policy,
	       struct policy_error *reterr);
/* @policy is the callee's; NULL where @err. */
typedef void gate_built_fn(struct gate *gate, int err, struct policy *policy,
			   const struct policy_error *error);
/* The same while the loop goes on, one at a time; @file is taken. 0, and @done
 * is called from the loop, or -errno. */
int gate_build_start(struct gate *gate, int file, uint64_t len,
		     gate_built_fn *done);
/* From here on @done is not called any more. */
void gate_build_unwatch(struct gate *gate);
/* Waits until it is built. */
void gate_build_free(struct gate *gate);

/* What the warden gave; @fd is taken. The first policy, or dies. While it
 * serves: all of it is in force, and what goes on and is no longer allowed is
 * cut; or nothing is changed. The warden is told which. */
void gate_policy_take(struct gate *gate, const struct msg_gate_policy *msg,
		      int fd);
/* From here on expired rules are noticed. 0 or -errno. */
int gate_policy_watch(struct gate *gate);
void gate_policy_unwatch(struct gate *gate);

/* Has the kernel let in what gate->policy allows at @now_s, and nothing that
 * only @old allowed at @since_s; @old NULL: it is not known what the kernel
 * has. */
int gate_publish_changes(struct gate *gate, const struct policy *old,
			 int64_t since_s, int64_t now_s);
/* Real addresses that a literal range of @old covered: the warden is about to
 * close those ranges, and leaves open what it knows of. */
int gate_publish_uncovered(struct gate *gate, const struct policy *old,
			   int64_t now_s);

/* services.room: may something begin that has to be recorded? */
bool gate_room(void *ctx, struct wait *wait);
void gate_room_cancel(void *ctx, struct wait *wait);
/* The same for what can't wait, but can be counted instead. */
bool gate_is_behind(struct gate *gate);
/* 0 or -ENOMEM. */
int gate_throttle_new(struct gate *gate);
void gate_throttle_free(struct gate *gate);

/* Fills gate->services. */
void gate_services_init(struct gate *gate);
/* The warden's answer to a publication. */
void gate_published(struct gate *gate, const struct msg_published *msg);

struct gate_sandbox *gate_sandbox_by_ifindex(struct gate *gate,
					     uint32_t ifindex);

/* Publishes a port: connections to @fd (listening; taken) go to the sandbox. 0
 * or -errno. */
int gate_forward_take(struct gate *gate, const struct msg_keep_forward *msg,
		      int fd);
/* The warden's answers; @fd is taken. */
void gate_dial_take(struct gate *gate, int fd);
void gate_dials_done(struct gate *gate, int status);
/* From now on the warden may be asked for something. 0 or -errno. */
int gate_forwards_serve(struct gate *gate);
/* Ends the connections that came in. */
void gate_forwards_end(struct gate *gate);
void gate_forwards_free(struct gate *gate);

/* Reads dropped packets from @fd (taken), records them: the first of a kind at
 * once, then a count a second. */
int packets_new(struct gate *gate, int fd, struct packets **ret_packets);
/* Reads what is left, writes what was counted. NULL is fine. */
void packets_free(struct packets *packets);

#endif
