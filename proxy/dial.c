/* SPDX-License-Identifier: Apache-2.0
 *
 * dial.c - one TCP connection to one of several addresses.
 *
 * Attempts start 250 ms apart, or at once when the one before has failed; all
 * that were started run on until one connects. One timer serves for both the
 * next start and the end of our patience.
 *
 * #syscalls socket setsockopt connect getsockopt close
 */
#include "proxy/dial.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/wheel.h"
#include "base/zalloc.h"
#include "proxy/watch.h"

#define DIAL_MAX       8
#define DIAL_SPACED_MS 250

struct attempt {
	struct dial *dial;
	struct watch *watch; /* NULL: not started, or failed */
	struct ip ip;
};

struct dial {
	struct wheel *wheel;
	struct timer timer;
	dial_done *done;
	void *arg;
	int64_t deadline_ms;
	int error; /* of the last failure */
	uint16_t port;
	uint8_t count, next;   /* addresses, and the next one to try */
	uint8_t waiting;       /* attempts under way */
	const struct ip *last; /* the last one that failed or was started */
	struct attempt attempt[];
};

static void close_attempt(struct attempt *a)
{
	if (!a->watch)
		return;
	watch_close(&a->watch);
	a->dial->waiting--;
}

static void dial_free(struct dial *dial)
{
	wheel_cancel(&dial->timer);
	for (size_t i = 0; i < dial->count; i++)
		close_attempt(&dial->attempt[i]);
	free(dial);
}

void dial_cancel(struct dial *dial)
{
	if (dial)
		dial_free(dial);
}

/* The end. @server is the callee's. */
static void finish(struct dial *dial, struct watch *server, int error,
		   const struct ip *ip)
{
	dial->done(dial->arg, server, error, ip);
	dial_free(dial);
}

static void win(struct attempt *a)
{
	struct dial *dial = a->dial;
	struct watch *watch = STEAL(a->watch);

	watch_for(watch, 0);
	dial->waiting--;
	/* Before done(), so that the losers are gone when it looks. */
	for (size_t i = 0; i < dial->count; i++)
		close_attempt(&dial->attempt[i]);
	finish(dial, watch, 0, &a->ip);
}

static void on_writable(void *arg, int fd, short what);

/* Starts @a. Returns 0 or -errno. */
static int connect_to(struct attempt *a)
{
	union sockaddr_any sa;
	socklen_t len = ip_to_sockaddr(&a->ip, a->dial->port, &sa);
	const int on = 1;

	if (!len)
		return -EAFNOSUPPORT;
	AUTO_FD int fd = socket(sa.sa.sa_family,
				SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* A connect that succeeds at once is writable at once: one path. */
	if (connect(fd, &sa.sa, len) < 0 && errno != EINPROGRESS &&
	    errno != EINTR)
		return -errno;
	AUTO_WATCH struct watch *watch =
		watch_new(wheel_base(a->dial->wheel), steal_fd(&fd));
	if (!watch)
		return -ENOMEM;
	watch_tell(watch, on_writable, a);
	if (watch_for(watch, EV_WRITE))
		return -ENOMEM;
	a->watch = STEAL(watch);
	a->dial->waiting++;
	return 0;
}

/* Starts the next address that can be started, if any. */
static void start_next(struct dial *dial)
{
	while (dial->next < dial->count) {
		struct attempt *a = &dial->attempt[dial->next++];
		int err = connect_to(a);

		dial->last = &a->ip;
		if (!err)
			return;
		dial->error = -err;
	}
}

/* Sleeps until the next start or the end, whichever is first; no time at all
 * if nothing is under way. */
static void wait_more(struct dial *dial)
{
	int64_t left = dial->deadline_ms - now_ms();

	if (dial->next < dial->count && left > DIAL_SPACED_MS)
		left = DIAL_SPACED_MS;
	if (dial->waiting && left > 0)
		wheel_set(dial->wheel, &dial->timer, (unsigned)left);
	else
		wheel_soon(dial->wheel, &dial->timer);
}

static void on_writable(void *arg, int fd, short what)
{
	struct attempt *a = arg;
	struct dial *dial = a->dial;
	socklen_t len = sizeof(int);
	int error = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!error) {
		win(a);
		return;
	}
	close_attempt(a);
	dial->error = error;
	dial->last = &a->ip;
	start_next(dial);
	if (dial->waiting)
		wait_more(dial);
	else
		finish(dial, NULL, dial->error, dial->last);
}

static void on_timer(struct timer *timer)
{
	struct dial *dial = CONTAINER_OF(timer, struct dial, timer);

	if (dial->waiting && now_ms() >= dial->deadline_ms) {
		finish(dial, NULL, ETIMEDOUT, dial->last);
		return;
	}
	start_next(dial);
	if (dial->waiting)
		wait_more(dial);
	else
		finish(dial, NULL, dial->error, dial->last);
}

static bool known(const struct dial *dial, const struct ip *ip)
{
	for (size_t i = 0; i < dial->count; i++)
		if (ip_equal(&dial->attempt[i].ip, ip))
			return true;
	return false;
}

/* The next address of family @len from @at on that is not yet a candidate. */
static const struct ip *pick(const struct dial *dial, const struct ip *ip,
			     size_t n, size_t *at, uint8_t len)
{
	while (*at < n) {
		const struct ip *candidate = &ip[(*at)++];

		if (candidate->len == len && !known(dial, candidate))
			return candidate;
	}
	return NULL;
}

/* RFC 8305 section 4: families take turns, IPv6 first. */
static void interleave(struct dial *dial, const struct ip *ip, size_t n)
{
	size_t at[2] = { 0, 0 };
	const struct ip *found = NULL;

	for (unsigned turn = 0, missed = 0; missed < 2; turn ^= 1) {
		if (dial->count == DIAL_MAX)
			return;
		found = pick(dial, ip, n, &at[turn], turn ? 4 : 16);
		missed = found ? 0 : missed + 1;
		if (!found)
			continue;
		struct attempt *a = &dial->attempt[dial->count++];
		a->dial = dial;
		a->ip = *found;
	}
}

struct dial *dial_start(struct wheel *wheel, const struct ip *ip, size_t n,
			uint16_t port, unsigned timeout_ms, dial_done *done,
			void *arg)
{
	size_t slots = n < DIAL_MAX ? n : DIAL_MAX;
	struct dial *dial =
		zalloc(sizeof(*dial) + slots * sizeof(dial->attempt[0]));

	if (!dial)
		return NULL;
	dial->wheel = wheel;
	dial->port = port;
	dial->done = done;
	dial->arg = arg;
	dial->error = EADDRNOTAVAIL; /* what it is without any address */
	dial->deadline_ms = now_ms() + timeout_ms;
	dial->timer.ring = on_timer;
	interleave(dial, ip, n);
	start_next(dial);
	/* If all failed at once, the timer brings that news from the loop. */
	wait_more(dial);
	return dial;
}
