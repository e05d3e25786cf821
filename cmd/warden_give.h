/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_give.h - what the children are given before they serve, and what else
 * the warden's files share. For cmd/warden*.c only.
 */
#ifndef CMD_WARDEN_GIVE_H
#define CMD_WARDEN_GIVE_H

#include "cmd/privsep.h"

struct bundle;
struct child;
struct event;
struct tally;
struct warden;
struct warden_end;

/* Each as soon as it is there: it isolates itself while others do other things.
 * 0 or -errno. */
int warden_isolate_ledger(struct warden *warden);
int warden_isolate_gate(struct warden *warden);

/* The ledger: whose log it is, its files, the key, and our own line to it. 0 or
 * -errno. */
int warden_give_ledger(struct warden *warden);

/* The files of the log of all sessions, if there is to be one; again (@ongoing)
 * before the end. 0 or -errno. */
int warden_give_host_log(struct warden *warden, bool ongoing);

/* The gate, also one that was started again: a line to the ledger, policy,
 * sandbox, sockets, name servers and prefixes. 0 or -errno. */
int warden_give_gate(struct warden *warden);

/* Waits until @child says @type, and nothing else. 0 or -errno. */
int warden_await(const struct child *child, enum msg_type type);

/* A sealed memfd with a copy of @data, or -errno. */
int warden_memfd(const char *name, const void *data, size_t len);

/* A gate that does not read is no gate: its death is seen, and another one
 * started. */
void warden_tell_gate(struct warden *warden, enum msg_type type,
		      const void *payload);

/* warden_forward.c: what is published, to a new gate; and sockets for the
 * connections to it, when the gate asks for some: -EBADMSG if nothing is. */
int warden_give_forwards(struct warden *warden);
int warden_give_dials(struct warden *warden);
void warden_close_forwards(struct warden *warden);

/* Does what the gate asks for, its @msg; -EBADMSG if that is nothing we know.
 * What is to be let through may wait: what the gate is told of for
 * warden_answer_asked(), the rest for warden_flush_flows(), which does both. */
int warden_take_message(struct warden *warden, struct msg *msg);
void warden_answer_asked(struct warden *warden);
void warden_flush_flows(struct warden *warden);
/* The rest of it. */
void warden_on_flows_time(int fd, short what, void *warden);

/* warden_log.c: does what the ledger asks for. 0, also where that can't be;
 * -errno where it makes no sense. */
int warden_take_ledger(struct warden *warden);
/* Waits for the gate's end; its sock is closed, or is closed now. */
void warden_end_gate(struct warden *warden);
/* Ends the gate, and tells the ledger how the session ended: before the last
 * record. Fills in @end->held. 0 or -errno. */
int warden_tell_end(struct warden *warden, struct warden_end *end);
/* Takes its last words, after MSG_LEDGER_FINISH; fills in @end->receipt. 0 or
 * -errno. */
int warden_take_tally(struct warden *warden, struct warden_end *end,
		      struct tally *ret_tally);

/* warden_end.c: frees it, if there is one. */
void warden_drop_event(struct event **event);
/* At once, and without another one: no more flows, nothing leaves. */
void warden_stop_gate(struct warden *warden);
/* The next one, where there is none. 0, or -errno: as warden_restart_gate(). */
int warden_start_gate(struct warden *warden);

/* The session can't go on: recorded, and told to its owner. */
void warden_failed(struct warden *warden, const char *why);

/* Replaces a gate that is dead or dying. 0, or -errno: the session has failed,
 * and was told so. */
int warden_restart_gate(struct warden *warden);

#endif
