/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_throttle.c - nothing new begins while the ledger is behind.
 *
 * What is allowed waits for its record, and so does each question to DNS. A
 * refusal waits for nobody, and what ends can't wait. So a sandbox could have
 * more under way than anybody wants to keep, if it were not for this: whoever
 * is about to take a connection, or to read a first message, a request or
 * questions, asks for room before, when nothing is known yet that would have to
 * be recorded. From BEHIND records under way on there is none, until ABREAST.
 *
 * What has begun by then adds a bounded number of records, for which the line
 * to the ledger has a place: nothing is lost, whatever a sandbox does. After
 * the last that found room
 *	a connection adds four: its dial, its end, a refusal of what was said on
 *		it, and one of progress (flow_progress() waits for the last one)
 *	a question adds one, its answer, and one more each time the policy is
 *		replaced (which waits for a record itself, of the warden's)
 *	packets and refusals by rate are counted, not told; at the end of the
 *		gate they add one for each kind
 *	an answer that was repeated adds one, which says how often
 *
 * A dead ledger has nothing under way: everybody gets room, and is refused.
 */
#include <assert.h>
#include <errno.h>
#include <event2/event.h>

#include "audit/client.h"
#include "base/cleanup.h"
#include "cmd/gate.h"
#include "dns/server.h"

#define BEHIND	1024
#define ABREAST (BEHIND / 4)
#define LOOK_MS 5

/* Kinds of packets, reasons of each listener, tenants of the resolver, and what
 * one turn of the loop takes before it asks again. */
#define COUNTED	     4096
#define RELOADS	     16
#define A_CONNECTION 4
#define SERVERS	     ARRAY_SIZE(((struct gate *)NULL)->dns)

static_assert(BEHIND + COUNTED + SERVERS * DNS_SERVER_REPEATS_MAX +
			      DNS_SERVER_QUERIES_MAX * (1 + RELOADS) +
			      A_CONNECTION * LIMIT_CONNECTIONS_MAX *
				      GATE_SANDBOXES_MAX <=
		      CLIENT_QUEUE_MAX,
	      "what has begun must never overflow the queue");

static void look_again(struct gate *gate)
{
	const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };

	event_add(gate->throttle, &soon);
}

bool gate_is_behind(struct gate *gate)
{
	if (!gate->behind && audit_client_pending(gate->audit) >= BEHIND) {
		gate->behind = true;
		look_again(gate);
	}
	return gate->behind;
}

/* As many as there is room for; each looks for itself again. */
static void wake(struct gate *gate)
{
	size_t pending = audit_client_pending(gate->audit);
	size_t room = pending < BEHIND ? BEHIND - pending : 0;
	struct wait *wait;

	while (room-- && (wait = TAILQ_FIRST(&gate->waiting_room))) {
		gate_room_cancel(gate, wait);
		wait->done(wait, 0);
	}
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct gate *gate = arg;

	(void)fd;
	(void)what;
	if (audit_client_pending(gate->audit) <= ABREAST)
		gate->behind = false;
	if (!gate->behind)
		wake(gate);
	if (gate->behind || !TAILQ_EMPTY(&gate->waiting_room))
		look_again(gate);
}

bool gate_room(void *ctx, struct wait *wait)
{
	struct gate *gate = ctx;

	if (!gate_is_behind(gate)) {
		gate_room_cancel(gate, wait);
		return true;
	}
	if (!wait->seq) {
		wait->seq = 1;
		TAILQ_INSERT_TAIL(&gate->waiting_room, wait, entry);
	}
	return false;
}

void gate_room_cancel(void *ctx, struct wait *wait)
{
	struct gate *gate = ctx;

	if (!wait->seq)
		return;
	TAILQ_REMOVE(&gate->waiting_room, wait, entry);
	wait->seq = 0;
}

int gate_throttle_new(struct gate *gate)
{
	TAILQ_INIT(&gate->waiting_room);
	gate->throttle = evtimer_new(gate->base, on_time, gate);
	return gate->throttle ? 0 : -ENOMEM;
}

void gate_throttle_free(struct gate *gate)
{
	if (gate->throttle)
		event_free(gate->throttle);
	gate->throttle = NULL;
}
