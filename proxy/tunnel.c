/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel.c - bytes between two sockets.
 *
 * A tunnel is two sides and two relays; relay[i] takes from side[i] and gives
 * to the other. After each event the same questions are asked, in settle():
 * is an end to be passed on, is all over, who waits for what, when do we have
 * to look at the clock again? Events are level-triggered and their mask is a
 * pure function of the state.
 *
 * The idle time is a note of when bytes last moved. The timer is only set when
 * it would ring too late; when it rings too early it is set again. So a byte
 * costs no timer.
 *
 * #syscalls recvfrom sendto splice shutdown close setsockopt
 */
#include "proxy/tunnel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sock.h"
#include "base/zalloc.h"
#include "proxy/pipes.h"
#include "proxy/tunnel_impl.h"

#define IDLE_MS	       (3600 * 1000)
#define ANSWER_MS      (60 * 1000)
#define PROGRESS_MS    (30 * 1000)
#define PROGRESS_BYTES (10 * 1000 * 1000)
/* A test may be in a hurry. */
#ifndef CLASSIFY_MS
#define CLASSIFY_MS (10 * 1000)
#endif

/* Often asked, and a tick is exact enough. */
static int64_t tick_ms(void)
{
	return (int64_t)clock_ms(CLOCK_MONOTONIC_COARSE);
}

void tunnel_meter(struct tunnel *t, const struct meters *meters)
{
	t->relay[CLIENT].meters = t->relay[SERVER].meters = meters;
	t->relay[CLIENT].way = UP;
	t->relay[SERVER].way = DOWN;
}

/* Where more can be held, or nothing is. */
static bool has_room(const struct tunnel *t)
{
	return !t->hold || t->hold->len < SNIFF_MAX;
}

/* What side @i waits for. */
static short side_mask(const struct tunnel *t, int i)
{
	const struct relay *out = &t->relay[i], *in = &t->relay[!i];
	short mask = 0;

	if (t->paused)
		return 0;
	if (!out->eof && !out->dead && !relay_in_flight(out) &&
	    (i == SERVER || has_room(t)))
		mask |= EV_READ;
	if (!in->dead && relay_in_flight(in))
		mask |= EV_WRITE;
	return mask;
}

/* When something has to happen though no byte comes. */
static int64_t next_alarm(const struct tunnel *t)
{
	int64_t at = t->active_ms + t->idle_ms;

	if (t->paused)
		return tunnel_hold_alarm(t);
	if (t->unreported_ms && t->unreported_ms + PROGRESS_MS < at)
		at = t->unreported_ms + PROGRESS_MS;
	return tunnel_hold_alarm(t) < at ? tunnel_hold_alarm(t) : at;
}

static void set_alarm(struct tunnel *t, int64_t now, int64_t at)
{
	/* The clock we read is coarse: rather late than twice. */
	t->alarm_ms = at;
	wheel_set(t->wheel, &t->timer, (unsigned)(at > now ? at - now : 0) + 4);
}

/* Tells of progress. False if that ended the tunnel. */
static bool report(struct tunnel *t, int64_t now)
{
	uint64_t up = t->relay[CLIENT].bytes, down = t->relay[SERVER].bytes;

	if (up + down == t->reported)
		return true;
	if (!t->unreported_ms)
		t->unreported_ms = now;
	if (up + down - t->reported < PROGRESS_BYTES &&
	    now - t->unreported_ms < PROGRESS_MS)
		return true;
	if (t->ops->progress) {
		t->inside++;
		t->paused = !t->ops->progress(t->arg, up, down);
		t->inside--;
	}
	if (t->aborted) {
		free(t);
		return false;
	}
	if (!t->paused) {
		t->reported = up + down;
		t->unreported_ms = 0;
	}
	return true;
}

/* After every event: what follows from the state. May free @t. */
static void settle(struct tunnel *t, int64_t now)
{
	if (t->spent) {
		tunnel_finish(t, tunnel_spent, true, true);
		return;
	}
	if (t->hold && t->hold->awaiting && t->relay[SERVER].dead) {
		/* No answer gets to the client: it has nothing more to say. */
		relay_drop(&t->relay[CLIENT]);
		t->relay[CLIENT].dead = true;
	}
	if (t->relay[CLIENT].dead)
		hold_free(STEAL(t->hold)); /* there is nobody to give it to */
	if (relay_over(&t->relay[CLIENT]) && !t->hold &&
	    relay_over(&t->relay[SERVER])) {
		bool reset = t->how != NULL;

		tunnel_finish(t, reset ? t->how : "eof", reset, reset);
		return;
	}
	for (int i = CLIENT; i <= SERVER; i++) {
		struct relay *r = &t->relay[i];

		if (r->shut || !r->eof || !relay_over(r) ||
		    (i == CLIENT && t->hold))
			continue;
		if (!r->dead)
			shutdown(tunnel_fd(t, !i), SHUT_WR);
		r->shut = true;
	}
	if (watch_for(t->side[CLIENT].watch, side_mask(t, CLIENT)) ||
	    watch_for(t->side[SERVER].watch, side_mask(t, SERVER))) {
		tunnel_finish(t, "error", true, true);
		return;
	}
	int64_t at = next_alarm(t);
	if (at < t->alarm_ms)
		set_alarm(t, now, at);
}

/* Moves what can be moved from side @from. False if the tunnel is gone. */
static bool pump(struct tunnel *t, int from, int64_t now)
{
	struct relay *r = &t->relay[from];
	const int to = tunnel_fd(t, !from);
	enum relay_result result;
	int error = 0;

	/* What a client with held bytes says is not read here. */
	if (from == CLIENT && t->hold)
		result = relay_flush(r, to, &error);
	else
		result = relay_pump(r, tunnel_fd(t, from), to, &error);
	switch (result) {
	case RELAY_IDLE:
	case RELAY_BLOCKED:
		break;
	case RELAY_READ_ERROR:
		/* It takes nothing any more either. */
		t->relay[!from].dead = true;
		r->eof = true;
		if (!t->how)
			t->how = tunnel_lost(from, error);
		break;
	case RELAY_WRITE_ERROR:
		tunnel_write_failed(t, !from, error);
		break;
	case RELAY_SPENT:
		t->spent = true;
		break;
	}
	if (from == SERVER && t->hold && t->hold->awaiting)
		return tunnel_answered(t, now);
	return true;
}

/* False if the tunnel is gone. */
static bool take(struct tunnel *t, int i, int64_t now)
{
	if (i == CLIENT && t->hold)
		return tunnel_held_readable(t, now);
	return pump(t, i, now);
}

static void on_event(void *arg, int fd, short what)
{
	struct side *s = arg;
	struct tunnel *t = s->tunnel;
	int i = s == &t->side[SERVER];
	int64_t now = tick_ms();

	(void)fd;
	t->active_ms = now;
	if ((what & EV_WRITE) && !pump(t, !i, now))
		return;
	if ((what & EV_READ) && !take(t, i, now))
		return;
	if (report(t, now))
		settle(t, now);
}

static void on_timer(struct timer *timer)
{
	struct tunnel *t = CONTAINER_OF(timer, struct tunnel, timer);
	int64_t now = tick_ms();

	if (t->hold && !tunnel_hold_timer(t, now))
		return;
	if (!t->paused && now - t->active_ms >= t->idle_ms) {
		tunnel_finish(t, "idle timeout", true, true);
		return;
	}
	if (!report(t, now))
		return;
	t->alarm_ms = INT64_MAX;
	settle(t, now);
}

void tunnel_resume(struct tunnel *t)
{
	int64_t now = tick_ms();

	t->paused = false;
	t->active_ms = now;
	if (report(t, now))
		settle(t, now);
}

static int hold_first(struct tunnel *t, const uint8_t *first, size_t len,
		      const struct tunnel_limits *limits)
{
	const int err = hold_new(first, len, t->active_ms, &t->hold);

	if (err)
		return err;
	t->hold->classify_ms = limits && limits->classify_ms
				       ? limits->classify_ms
				       : CLASSIFY_MS;
	t->hold->answer_ms =
		limits && limits->answer_ms ? limits->answer_ms : ANSWER_MS;
	t->hold->unclear_ms = limits ? limits->unclear_ms : 0;
	return 0;
}

/* The bytes that were read before there was a tunnel. */
static int take_first(struct tunnel *t, const uint8_t *first, size_t len,
		      const struct tunnel_limits *limits)
{
	int err;

	if (t->ops->classify)
		return hold_first(t, first, len, limits);
	if (!len)
		return 0;
	err = relay_give(&t->relay[CLIENT], tunnel_fd(t, SERVER), first, len);
	if (!err || err == -EAGAIN)
		return 0;
	if (!tunnel_is_reset(-err))
		return err;
	/* closed() must come from the loop: the server's end will bring it. */
	tunnel_write_failed(t, SERVER, -err);
	return 0;
}

static int setup(struct tunnel *t, const uint8_t *first, size_t len,
		 const struct tunnel_limits *limits)
{
	int err = take_first(t, first, len, limits);
	int64_t at;

	if (err)
		return err;
	if (watch_for(t->side[CLIENT].watch, side_mask(t, CLIENT)) ||
	    watch_for(t->side[SERVER].watch, side_mask(t, SERVER)))
		return -ENOMEM;
	/* With traffic this is when we have to look first. */
	at = t->active_ms + PROGRESS_MS;
	set_alarm(t, t->active_ms, next_alarm(t) < at ? next_alarm(t) : at);
	if (t->hold && t->hold->len)
		wheel_soon(t->wheel, &t->timer);
	return 0;
}

int tunnel_new(struct wheel *wheel, struct watch *client, struct watch *server,
	       const uint8_t *first, size_t len,
	       const struct tunnel_limits *limits, const struct tunnel_ops *ops,
	       void *arg, struct tunnel **ret_tunnel)
{
	struct watch *const watch[2] = { client, server };
	struct tunnel *t = client && server ? zalloc(sizeof(*t)) : NULL;
	int err;

	if (!t) {
		watch_close(&client);
		watch_close(&server);
		return -ENOMEM;
	}
	t->ops = ops;
	t->arg = arg;
	t->active_ms = tick_ms();
	t->idle_ms = limits && limits->idle_ms ? limits->idle_ms : IDLE_MS;
	tunnel_meter(t, limits ? limits->meters : NULL);
	t->wheel = wheel;
	t->timer.ring = on_timer;
	for (int i = CLIENT; i <= SERVER; i++) {
		t->side[i].tunnel = t;
		t->side[i].watch = watch[i];
		watch_tell(watch[i], on_event, &t->side[i]);
	}
	err = setup(t, first, len, limits);
	if (err) {
		tunnel_release(t);
		free(t);
		return err;
	}
	*ret_tunnel = t;
	return 0;
}

void tunnel_pool_free(void)
{
	pipes_free();
}
