/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_io.c - both sockets are one array and one code path. A side is read
 * only while its buffer has room, so a slow reader holds back a fast writer and
 * nothing grows.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sock.h"
#include "proxy/exchange_impl.h"
#include "proxy/watch.h"

size_t buf_len(const struct buf *b)
{
	return b->end - b->start;
}

size_t buf_room(struct buf *b)
{
	if (b->start == b->end)
		b->start = b->end = 0;
	if (b->start > EXCHANGE_BUF / 2) {
		memmove(b->data, b->data + b->start, buf_len(b));
		b->end -= b->start;
		b->start = 0;
	}
	return EXCHANGE_BUF - b->end;
}

void buf_put(struct buf *b, const void *data, size_t len)
{
	if (len > buf_room(b))
		abort(); /* every caller asked for the room first */
	if (len)
		memcpy(b->data + b->end, data, len);
	b->end += len;
}

void buf_drop(struct buf *b, size_t len)
{
	b->start += len;
}

void buf_clear(struct buf *b)
{
	b->start = b->end = 0;
}

/* Time counts anew when the side whose turn it is gets on. While a response is
 * awaited nothing that trickles in does that. */
static void touch(struct side *side, bool wrote)
{
	struct exchange *x = side->exchange;
	bool client = side == &x->side[CLIENT];

	if (x->phase == EXCHANGE_HEAD) {
		if (client && !wrote && buf_len(&side->in) == 0)
			x->since = clock_ms(CLOCK_MONOTONIC);
		return;
	}
	if (x->phase == EXCHANGE_LINGER)
		return;
	if (x->answered || wrote || (client && !x->up_done))
		x->since = clock_ms(CLOCK_MONOTONIC);
}

static void side_read(struct side *side)
{
	struct exchange *x = side->exchange;
	char drop[4096];
	bool linger = x->phase == EXCHANGE_LINGER;
	size_t room = linger ? sizeof(drop) : buf_room(&side->in);
	char *to = linger ? drop : side->in.data + side->in.end;
	bool counted = side == &x->side[SERVER] && !linger;
	size_t paid = counted ? exchange_room(x, DOWN, room) : room;
	ssize_t n;

	if (room == 0)
		return;
	/* Is there more than may be read? */
	if (paid == 0)
		n = recv(side_fd(side), drop, 1, MSG_PEEK);
	else
		n = recv(side_fd(side), to, paid, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		side->eof = true;
		side->broken = side->broken || n < 0;
		return;
	}
	if (paid == 0) {
		x->spent = true;
		return;
	}
	if (counted)
		exchange_spend(x, DOWN, (size_t)n);
	touch(side, false);
	if (linger) {
		x->lingered += (size_t)n;
		return;
	}
	side->in.end += (size_t)n;
	if (side == &x->side[SERVER])
		x->down += (uint64_t)n;
}

/* How much of what waits for the server is paid for. */
static size_t paid(struct exchange *x, size_t len)
{
	if (x->prepaid < len)
		x->prepaid += exchange_spend(x, UP, len - x->prepaid);
	x->spent = x->spent || x->prepaid == 0;
	return x->prepaid;
}

bool side_flush(struct side *side)
{
	struct exchange *x = side->exchange;
	bool up = side == &x->side[SERVER];
	size_t len = buf_len(&side->out);
	ssize_t n;

	if (!side->watch || side->broken || len == 0)
		return false;
	if (up)
		len = paid(x, len);
	if (len == 0)
		return false;
	n = send(side_fd(side), side->out.data + side->out.start, len,
		 MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		side->broken = true;
		buf_clear(&side->out);
		return true;
	}
	buf_drop(&side->out, (size_t)n);
	touch(side, true);
	if (up) {
		x->up += (uint64_t)n;
		x->prepaid -= (size_t)n;
	}
	return true;
}

static void on_event(void *arg, int fd, short what)
{
	struct side *side = arg;

	(void)fd;
	if (what & EV_READ)
		side_read(side);
	exchange_run(side->exchange);
}

/* Buffers stay with the exchange; only the socket comes and goes. */
void side_open(struct side *side, struct exchange *x, struct watch *watch)
{
	side->exchange = x;
	side->watch = watch;
	side->eof = side->broken = false;
	if (watch)
		watch_tell(watch, on_event, side);
}

int side_fd(const struct side *side)
{
	return watch_fd(side->watch);
}

void side_reset(const struct side *side)
{
	if (side->watch)
		sock_reset_on_close(side_fd(side));
}

void side_close(struct side *side)
{
	watch_close(&side->watch);
	buf_clear(&side->in);
	buf_clear(&side->out);
}

void side_arm(struct side *side, bool read, bool write)
{
	/* Without memory time ends it. */
	if (side->watch)
		watch_for(side->watch, (short)((read ? EV_READ : 0) |
					       (write ? EV_WRITE : 0)));
}
