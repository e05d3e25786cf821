/* SPDX-License-Identifier: Apache-2.0
 *
 * client.h - the gate's (and the warden's) end of the line to the ledger.
 *
 * Every event gets a number; the ledger acknowledges numbers once write(2)
 * returned. Who waits is told then. If the ledger is gone, or so slow that
 * CLIENT_QUEUE_MAX events are under way, waiters get -EIO.
 *
 * What one turn of the loop submits goes out together, at the end of that turn.
 */
#ifndef AUDIT_CLIENT_H
#define AUDIT_CLIENT_H

#include "policy/event.h"

struct event_base;
struct audit_client;

/* More than whatever began before anybody looked at audit_client_pending() can
 * add: see cmd/gate_throttle.c. They only take memory while there are so many.
 */
#define CLIENT_QUEUE_MAX 300000

/* Of libevent: what is sent waits until nothing of a lower number is ready, if
 * the base has so many priorities. */
#define AUDIT_CLIENT_PRIORITY 2

/* So long may go on what was under way when the ledger died; then it is cut.
 * Nothing begins meanwhile. */
#define LEDGER_GRACE_S 5

/* @sock: SOCK_SEQPACKET to the ledger, taken. @gone is called once, from the
 * loop, when the ledger is lost and everyone who waited was told (may be NULL;
 * may free the client). 0 or -errno. */
int audit_client_new(struct event_base *base, int sock, void (*gone)(void *arg),
		     void *arg, struct audit_client **ret_client);
/* What was submitted is still sent, as far as the socket has room; who waits is
 * forgotten. Not from within a wait's done(). */
void audit_client_free(struct audit_client *client);

/* @wait may be NULL. See services.record. done() is only called from the loop,
 * and may submit and cancel. Events that are lost because too many are under
 * way are counted; a finding says how many as soon as there is room. */
void audit_client_submit(struct audit_client *client,
			 const struct audit_event *event, struct wait *wait);
void audit_client_cancel(struct audit_client *client, struct wait *wait);

/* Events submitted and not yet acknowledged: 0 once everything is written, or
 * the ledger is gone. */
size_t audit_client_pending(const struct audit_client *client);

/* For a process without a loop: submits and blocks until acknowledged (at most
 * 10 s). @sock stays the caller's; @seq grows from call to call, starting above
 * 0. 0 or -EIO. */
int audit_submit_sync(int sock, const struct audit_event *event, uint64_t seq);

#endif
