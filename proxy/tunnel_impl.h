/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel_impl.h - a tunnel from inside: tunnel.c, tunnel_end.c and
 * tunnel_hold.c only.
 */
#ifndef PROXY_TUNNEL_IMPL_H
#define PROXY_TUNNEL_IMPL_H

#include <event2/event.h>

#include "base/wheel.h"
#include "proxy/hold.h"
#include "proxy/relay.h"
#include "proxy/tunnel.h"
#include "proxy/watch.h"

enum { CLIENT, SERVER };

struct side {
	struct tunnel *tunnel;
	struct watch *watch;
};

struct tunnel {
	const struct tunnel_ops *ops;
	void *arg;
	struct hold *hold; /* NULL: nothing is held */
	const char *how;   /* what went wrong first */
	unsigned idle_ms;
	unsigned inside;       /* calls of ops under way: must not be freed */
	int64_t active_ms;     /* when bytes last moved */
	int64_t unreported_ms; /* since when there is progress to report */
	int64_t alarm_ms;      /* when the timer rings */
	uint64_t reported;     /* bytes, both ways */
	bool aborted;	       /* by one of them */
	bool paused;	       /* by progress() */
	bool spent;	       /* there was more than the budget had */
	struct wheel *wheel;
	struct timer timer;
	struct side side[2];
	struct relay relay[2];
};

/* -1 once it is closed. */
static inline int tunnel_fd(const struct tunnel *t, int side)
{
	return watch_fd(t->side[side].watch);
}

/* tunnel_end.c */

/* Lets go of everything but the struct itself. */
void tunnel_release(struct tunnel *t);
/* The end, by itself. Calls closed() and frees. */
void tunnel_finish(struct tunnel *t, const char *how, bool reset_client,
		   bool reset_server);
/* Is @error, an errno, what a peer that went away leaves? */
bool tunnel_is_reset(int error);
/* How it ended, if @error was seen on @side. */
const char *tunnel_lost(int side, int error);
/* Nothing more can be written to side @i. What it said before it went away is
 * still to be read. */
void tunnel_write_failed(struct tunnel *t, int i, int error);

/* When the timer has to look at the hold; INT64_MAX: not. */
int64_t tunnel_hold_alarm(const struct tunnel *t);

/* tunnel_hold.c: all are false if the tunnel is gone after it. */

/* Asks what the held bytes are; @last: there will be no more of them. */
bool tunnel_judge(struct tunnel *t, bool last);
/* The client wrote, or ended, before it is clear what it speaks. */
bool tunnel_held_readable(struct tunnel *t, int64_t now_ms);
/* The server wrote, or ended, while its answer is awaited. */
bool tunnel_answered(struct tunnel *t, int64_t now_ms);
/* The timer rang. */
bool tunnel_hold_timer(struct tunnel *t, int64_t now_ms);

#endif
