/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.c - the life of a client connection that speaks plain HTTP/1. What
 * is read, what is written and how long is waited are functions of the phase.
 */
#include "proxy/exchange.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sock.h"
#include "base/zalloc.h"
#include "proxy/exchange_impl.h"
#include "proxy/tunnel.h"
#include "proxy/watch.h"

/* A test may be in a hurry. */
#ifndef HEAD_MS
#define HEAD_MS 10000
#endif
#define IDLE_MS	     60000
#define RESPONSE_MS  60000
#define BODY_MS	     300000
#define LINGER_MS    5000
#define LINGER_BYTES (1024 * 1024)

#define PROGRESS_BYTES (10 * 1000 * 1000)
#define PROGRESS_MS    30000

void exchange_phase(struct exchange *x, enum exchange_phase phase)
{
	x->phase = phase;
	x->since = clock_ms(CLOCK_MONOTONIC);
}

void exchange_end_flow(struct exchange *x, const char *how)
{
	struct flow *flow = STEAL(x->flow);

	watch_close(&x->result.server); /* dialled, but not yet taken up */
	side_close(&x->side[SERVER]);
	if (flow)
		flow_close(flow, x->up, x->down, how);
	x->up = x->down = 0;
	x->prepaid = 0;
	x->paused = false;
}

void exchange_cut(struct exchange *x, const char *how)
{
	side_reset(&x->side[SERVER]);
	exchange_end_flow(x, how);
	side_reset(&x->side[CLIENT]);
	exchange_phase(x, EXCHANGE_OVER);
}

static void on_accepted(void *arg)
{
	struct exchange *x = arg;

	x->paused = false;
	x->since = clock_ms(CLOCK_MONOTONIC);
	exchange_run(x);
}

void exchange_progress(struct exchange *x)
{
	uint64_t sum = x->up + x->down, now = clock_ms(CLOCK_MONOTONIC);

	if (!x->flow || sum == x->told ||
	    (sum - x->told < PROGRESS_BYTES && now - x->told_at < PROGRESS_MS))
		return;
	x->paused = !flow_progress(x->flow, x->up, x->down, on_accepted, x);
	if (x->paused)
		return;
	x->told = sum;
	x->told_at = now;
}

static uint64_t either(unsigned ms, unsigned otherwise)
{
	return ms ? ms : otherwise;
}

/* How long the present phase may last without getting on; 0: for ever, since
 * somebody else limits it. */
static uint64_t limit_ms(const struct exchange *x)
{
	const struct exchange_config *c = &x->config;

	if (x->paused || x->room.seq)
		return 0;
	switch (x->phase) {
	case EXCHANGE_HEAD:
		return buf_len(&x->side[CLIENT].in)
			       ? either(c->head_ms, HEAD_MS)
			       : either(c->idle_ms, IDLE_MS);
	case EXCHANGE_RELAY:
		return x->up_done && !x->answered
			       ? either(c->response_ms, RESPONSE_MS)
			       : either(c->body_ms, BODY_MS);
	case EXCHANGE_SWITCH:
		return either(c->body_ms, BODY_MS);
	case EXCHANGE_LINGER:
		return LINGER_MS;
	default:
		return 0;
	}
}

static void time_out(struct exchange *x)
{
	switch (x->phase) {
	case EXCHANGE_HEAD:
		if (!buf_len(&x->side[CLIENT].in))
			exchange_phase(x, EXCHANGE_OVER);
		else if (exchange_room_to_ask(x))
			exchange_late(x);
		break;
	case EXCHANGE_RELAY:
		if (x->answered)
			exchange_cut(x, "idle timeout");
		else if (x->up_done)
			exchange_fail(x, REASON_TIMEOUT, 504,
				      "the server did not answer in time");
		else
			exchange_fail(x, REASON_TIMEOUT, 408,
				      "the request did not come in time");
		break;
	default:
		exchange_cut(x, "idle timeout");
	}
}

static void on_timer(struct timer *timer)
{
	struct exchange *x = CONTAINER_OF(timer, struct exchange, timer);
	uint64_t limit = limit_ms(x);

	if (limit && clock_ms(CLOCK_MONOTONIC) - x->since >= limit)
		time_out(x);
	exchange_progress(x);
	exchange_run(x);
}

/* The client is not to blame for the wait. */
static void on_room(struct wait *wait, int status)
{
	struct exchange *x = CONTAINER_OF(wait, struct exchange, room);

	(void)status;
	if (x->phase == EXCHANGE_HEAD)
		x->since = clock_ms(CLOCK_MONOTONIC);
	exchange_run(x);
}

static void set_timer(struct exchange *x)
{
	uint64_t limit = limit_ms(x), now = clock_ms(CLOCK_MONOTONIC), ms;

	if (!limit) {
		wheel_cancel(&x->timer);
		return;
	}
	ms = now - x->since >= limit ? 0 : limit - (now - x->since);
	if (x->flow && ms > PROGRESS_MS)
		ms = PROGRESS_MS;
	wheel_set(x->config.wheel, &x->timer, (unsigned)ms);
}

static void set_events(struct exchange *x)
{
	struct side *client = &x->side[CLIENT], *server = &x->side[SERVER];
	bool open = x->phase != EXCHANGE_SWITCH && !x->paused;

	side_arm(client,
		 open && !client->eof &&
			 (x->phase == EXCHANGE_LINGER ||
			  buf_room(&client->in) > 0),
		 buf_len(&client->out) > 0);
	if (server->watch)
		side_arm(server,
			 x->phase == EXCHANGE_RELAY && open && !server->eof &&
				 buf_room(&server->in) > 0,
			 !server->broken && buf_len(&server->out) > 0);
	set_timer(x);
}

static bool step_linger(struct exchange *x)
{
	struct side *client = &x->side[CLIENT];

	if (buf_len(&client->out))
		return false;
	if (!x->shut) {
		shutdown(side_fd(client), SHUT_WR);
		x->shut = true;
	}
	if (client->eof || x->lingered > LINGER_BYTES)
		exchange_phase(x, EXCHANGE_OVER);
	return false;
}

static bool step(struct exchange *x)
{
	if (x->spent)
		exchange_over_budget(x);
	if (x->side[CLIENT].broken && x->phase != EXCHANGE_OVER)
		exchange_cut(x, "reset by client");
	switch (x->phase) {
	case EXCHANGE_HEAD:
		return exchange_step_head(x);
	case EXCHANGE_DECIDE:
		return exchange_step_decide(x);
	case EXCHANGE_RELAY:
		return exchange_step_relay(x);
	case EXCHANGE_SWITCH:
		return exchange_step_switch(x);
	case EXCHANGE_LINGER:
		return step_linger(x);
	default:
		return false;
	}
}

void exchange_drop_buffers(struct exchange *x)
{
	free(x->side[CLIENT].in.data);
	for (int i = CLIENT; i <= SERVER; i++) {
		x->side[i].in = (struct buf){ .data = NULL };
		x->side[i].out = (struct buf){ .data = NULL };
	}
}

void exchange_free(struct exchange *x)
{
	services_room_cancel(x->config.services, &x->room);
	exchange_end_flow(x, "aborted");
	side_close(&x->side[CLIENT]);
	exchange_drop_buffers(x);
	wheel_cancel(&x->timer);
	free(x);
}

void exchange_run(struct exchange *x)
{
	bool moved;

	if (x->running)
		return;
	x->running = true;
	do {
		moved = step(x);
		if (x->phase != EXCHANGE_TUNNEL) {
			moved |= side_flush(&x->side[SERVER]);
			moved |= side_flush(&x->side[CLIENT]);
		}
	} while (moved || x->spent);
	x->running = false;
	if (x->phase == EXCHANGE_OVER) {
		x->config.closed(x->config.arg);
		exchange_free(x);
		return;
	}
	exchange_progress(x);
	if (x->phase != EXCHANGE_TUNNEL)
		set_events(x);
}

/* One allocation for four buffers; their pages come when they are used. */
static int give_buffers(struct exchange *x)
{
	char *data = malloc(4 * EXCHANGE_BUF);

	if (!data)
		return -ENOMEM;
	x->side[CLIENT].in.data = data;
	x->side[CLIENT].out.data = data + EXCHANGE_BUF;
	x->side[SERVER].in.data = data + 2 * EXCHANGE_BUF;
	x->side[SERVER].out.data = data + 3 * EXCHANGE_BUF;
	return 0;
}

static int prepare(struct exchange *x, const void *first, size_t len)
{
	int err;

	err = give_buffers(x);
	if (!err && len > EXCHANGE_BUF)
		err = -EMSGSIZE;
	if (err)
		return err;
	buf_put(&x->side[CLIENT].in, first, len);
	exchange_phase(x, EXCHANGE_HEAD);
	/* The first step is the loop's, not the caller's. */
	wheel_soon(x->config.wheel, &x->timer);
	return 0;
}

int exchange_start(const struct exchange_config *config, struct watch *client,
		   const void *first, size_t len,
		   struct exchange **ret_exchange)
{
	struct exchange *x = zalloc(sizeof(*x));
	int err;

	if (!x) {
		watch_close(&client);
		return -ENOMEM;
	}
	x->config = *config;
	x->room.done = on_room;
	x->timer.ring = on_timer;
	if (config->host) {
		snprintf(x->fixed_host, sizeof(x->fixed_host), "%s",
			 config->host);
		x->config.host = x->fixed_host;
	}
	side_open(&x->side[CLIENT], x, client);
	side_open(&x->side[SERVER], x, NULL);
	err = prepare(x, first, len);
	if (err) {
		exchange_free(x);
		return err;
	}
	*ret_exchange = x;
	return 0;
}

void exchange_abort(struct exchange *x)
{
	uint64_t up = 0, down = 0;

	if (!x)
		return;
	if (x->tunnel) {
		tunnel_abort(x->tunnel, &up, &down);
		x->up += up;
		x->down += down;
	}
	exchange_cut(x, "aborted");
	exchange_free(x);
}
