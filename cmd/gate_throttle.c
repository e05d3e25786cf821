/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_throttle.c - nothing new begins while the ledger is behind.
 *
 * What is allowed waits for its record, and so does each question to DNS. A
 * refusal waits for nobody, so a sandbox that collects them could have more
 * under way than the line to the ledger holds. Then it is the next client that
 * waits, before anything is known of it that would have to be recorded.
 */
#include <event2/event.h>

#include "audit/client.h"
#include "cmd/gate.h"
#include "proxy/listener.h"

/* What is left is for flows that go on, names and packets. */
#define BEHIND	(CLIENT_QUEUE_MAX / 4)
#define ABREAST (CLIENT_QUEUE_MAX / 16)
#define LOOK_MS 5

static void hold(struct gate *gate, bool on)
{
	for (size_t i = 0; i < gate->listeners; i++)
		listener_hold(gate->listener[i], on);
}

static void look_again(struct gate *gate)
{
	const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };

	event_add(gate->throttle, &soon);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct gate *gate = arg;

	(void)fd;
	(void)what;
	/* Without a ledger nothing is pending, and everything is refused. */
	if (audit_client_pending(gate->audit) > ABREAST)
		look_again(gate);
	else
		hold(gate, false);
}

void gate_throttle(struct gate *gate)
{
	if (audit_client_pending(gate->audit) < BEHIND)
		return;
	if (!gate->throttle)
		gate->throttle = evtimer_new(gate->base, on_time, gate);
	if (!gate->throttle || evtimer_pending(gate->throttle, NULL))
		return;
	hold(gate, true);
	look_again(gate);
}

void gate_throttle_free(struct gate *gate)
{
	if (gate->throttle)
		event_free(gate->throttle);
	gate->throttle = NULL;
}
