/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel_case.h - tunnels between real TCP sockets. The tunnel runs in the main
 * thread's loop; what is at its two ends runs in threads where much is sent,
 * else by hand.
 */
#ifndef TESTS_PROXY_TUNNEL_CASE_H
#define TESTS_PROXY_TUNNEL_CASE_H

#include "proxy/tunnel.h"

#include <malloc.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/wheel.h"
#include "proxy/pipes.h"
#include "proxy/relay.h"
#include "proxy/watch.h"
#include "tests/proxy/net.h"

#define MIB (1024 * 1024)

struct world {
	struct event_base *base;
	struct wheel *wheel;
	struct tunnel *tunnel;
	int client, server; /* the far ends */
	int fds;	    /* before there was anything */

	bool closed;
	uint64_t up, down;
	char how[32];

	/* What classify() and incomplete() shall say. */
	enum sniff say, say_incomplete;
	size_t done_at; /* classify(): DONE from this length on; 0: never */
	unsigned asked, asked_incomplete;
	bool ended;

	/* classify() passes @first bytes and awaits an answer once; then one
	 * byte at a time. */
	bool awaits, awaited;
	size_t first;
	enum tunnel_answer say_answer;
	unsigned answers;
	size_t answer_len;
	size_t seen; /* the most it was shown */
	const char *alert;

	unsigned reports;
	uint64_t reported;
	bool abort_on_report;
	bool pause_on_report;
	uint64_t paused_at;
};

/* "x" passes one by one, "." ends it, "!" is refused. */
static inline enum sniff let_some_through(struct world *w, const uint8_t *data,
					  size_t len)
{
	size_t n = 0;

	if (!w->awaited) {
		w->awaited = true;
		tunnel_await(w->tunnel, w->first);
		return SNIFF_MORE;
	}
	while (n < len && data[n] == 'x')
		n++;
	if (n < len && data[n] == '.')
		return SNIFF_DONE;
	if (n < len && data[n] == '!')
		return SNIFF_BAD;
	tunnel_pass(w->tunnel, n);
	return SNIFF_MORE;
}

static inline enum tunnel_answer on_answer(void *arg, const uint8_t *data,
					   size_t len)
{
	struct world *w = arg;

	assert_true(len > 0);
	assert_non_null(data);
	w->answers++;
	w->answer_len += len;
	return w->say_answer;
}

static inline enum sniff on_classify(void *arg, const uint8_t *data, size_t len)
{
	struct world *w = arg;

	w->asked++;
	if (w->awaits)
		return let_some_through(w, data, len);
	assert_true(len >= w->seen && len <= SNIFF_MAX);
	w->seen = len;
	if (w->done_at)
		return len >= w->done_at ? SNIFF_DONE : SNIFF_MORE;
	if (w->say == SNIFF_BAD && w->alert)
		tunnel_refuse_with(w->tunnel, w->alert, strlen(w->alert));
	return w->say;
}

static inline enum sniff on_incomplete(void *arg, const uint8_t *data,
				       size_t len, bool ended)
{
	struct world *w = arg;

	(void)data;
	assert_true(len > 0 || w->awaits);
	w->asked_incomplete++;
	w->ended = ended;
	return w->say_incomplete;
}

static inline bool on_progress(void *arg, uint64_t up, uint64_t down)
{
	struct world *w = arg;

	assert_true(up + down > w->reported);
	if (w->pause_on_report) {
		w->paused_at = up + down;
		return false;
	}
	w->reported = up + down;
	w->reports++;
	if (w->abort_on_report) {
		tunnel_abort(w->tunnel, &w->up, &w->down);
		w->closed = true;
	}
	return true;
}

static inline void on_closed(void *arg, uint64_t up, uint64_t down,
			     const char *how)
{
	struct world *w = arg;

	assert_false(w->closed);
	w->closed = true;
	w->up = up;
	w->down = down;
	snprintf(w->how, sizeof(w->how), "%s", how);
}

static const struct tunnel_ops plain = { .progress = on_progress,
					 .closed = on_closed };

static const struct tunnel_ops holding = { .classify = on_classify,
					   .incomplete = on_incomplete,
					   .answer = on_answer,
					   .progress = on_progress,
					   .closed = on_closed };

static inline void patience(int fd)
{
	const struct timeval tv = { .tv_sec = 20 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

/* A TCP connection: @ret_far blocks, @ret_near does not. @buf limits the
 * kernel's buffers, 0: as they are. */
static inline void pair(int *ret_far, int *ret_near, int buf)
{
	uint16_t port = 0;
	int l = listen_at("127.0.0.1", &port, 4);

	if (buf) {
		setsockopt(l, SOL_SOCKET, SO_RCVBUF, &buf, sizeof(buf));
		setsockopt(l, SOL_SOCKET, SO_SNDBUF, &buf, sizeof(buf));
	}
	*ret_far = connect_to_port("127.0.0.1", port, 0);
	patience(*ret_far);
	*ret_near = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(*ret_near >= 0);
	close(l);
}

static inline void begin(struct world *w, const struct tunnel_ops *ops,
			 const char *first, const struct tunnel_limits *limits,
			 int buf)
{
	int c, s;

	pair(&w->client, &c, buf);
	pair(&w->server, &s, buf);
	w->closed = false;
	w->reports = 0;
	w->reported = 0;
	assert_int_equal(tunnel_new(w->wheel, watch_new(w->base, c),
				    watch_new(w->base, s),
				    (const uint8_t *)first,
				    first ? strlen(first) : 0, limits, ops, w,
				    &w->tunnel),
			 0);
	assert_false(w->closed);
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->base = event_base_new();
	w->wheel = wheel_new(w->base);
	assert_non_null(w->wheel);
	w->client = w->server = -1;
	w->fds = open_fds();
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;
	size_t taken, pooled;

	close_fd(&w->client);
	close_fd(&w->server);
	pipes_count(&taken, &pooled);
	assert_int_equal(taken, 0);
	tunnel_pool_free();
	assert_int_equal(open_fds(), w->fds);
	wheel_free(w->wheel);
	event_base_free(w->base);
	free(w);
	return 0;
}

static inline void turn(struct world *w, int ms)
{
	const bool never = false;

	loop_until(w->base, &never, ms);
}

static inline void until_closed(struct world *w)
{
	loop_until(w->base, &w->closed, 20000);
	assert_true(w->closed);
}

/* Sends @text on @from; @to must get exactly that. */
static inline void expect(struct world *w, int from, int to, const char *text)
{
	char buf[64];
	size_t len = strlen(text);

	if (from >= 0)
		assert_int_equal(send(from, text, len, MSG_NOSIGNAL), len);
	turn(w, 40);
	assert_int_equal(recv(to, buf, sizeof(buf), MSG_DONTWAIT), len);
	assert_memory_equal(buf, text, len);
}

static inline void expect_nothing(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static inline void expect_end(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
}

static inline void expect_reset(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
}

static inline void reset(int *fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close_fd(fd);
}

/* Far ends with much to say. */
struct talker {
	pthread_t thread;
	int fd;
	uint64_t send, got;
	unsigned seed, expect_seed;
	bool wait_end; /* first hear the other out */
	bool ok;
};

static inline uint8_t pattern(unsigned seed, uint64_t i)
{
	return (uint8_t)(seed + i * 31 + (i >> 13));
}

static inline bool say(struct talker *t)
{
	static const size_t chunk = 256 * 1024;
	uint8_t *buf = malloc(chunk);
	uint64_t sent = 0;
	bool ok = true;

	while (ok && sent < t->send) {
		size_t n = chunk < t->send - sent ? chunk : t->send - sent;

		for (size_t i = 0; i < n; i++)
			buf[i] = pattern(t->seed, sent + i);
		for (size_t at = 0; ok && at < n;) {
			ssize_t m = send(t->fd, buf + at, n - at, MSG_NOSIGNAL);

			ok = m > 0;
			at += ok ? (size_t)m : 0;
		}
		sent += n;
	}
	free(buf);
	return ok && shutdown(t->fd, SHUT_WR) == 0;
}

static inline bool hear(struct talker *t)
{
	static const size_t chunk = 256 * 1024;
	uint8_t *buf = malloc(chunk);
	ssize_t n;
	bool ok = true;

	while ((n = recv(t->fd, buf, chunk, 0)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			ok &= buf[i] ==
			      pattern(t->expect_seed, t->got + (uint64_t)i);
		t->got += (uint64_t)n;
	}
	free(buf);
	return ok && n == 0;
}

static inline void *hear_thread(void *arg)
{
	return hear(arg) ? arg : NULL;
}

static inline void *talk(void *arg)
{
	struct talker *t = arg;
	pthread_t ear;
	void *heard;

	if (t->wait_end) {
		t->ok = hear(t) && say(t);
		return NULL;
	}
	pthread_create(&ear, NULL, hear_thread, t);
	t->ok = say(t);
	pthread_join(ear, &heard);
	t->ok = t->ok && heard;
	return NULL;
}

static inline void start(struct talker *t)
{
	assert_int_equal(pthread_create(&t->thread, NULL, talk, t), 0);
}

static inline void finish(struct talker *t, uint64_t expected)
{
	pthread_join(t->thread, NULL);
	assert_true(t->ok);
	assert_int_equal(t->got, expected);
}

/* Fills the tunnel from @from, whose other end does not read. Returns how much
 * that took. */
static inline uint64_t fill(struct world *w, int from)
{
	static uint8_t buf[64 * 1024];
	uint64_t sent = 0;
	int64_t moved = now_ms();

	while (now_ms() - moved < 300) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(buf); i++)
			buf[i] = pattern(5, sent + i);
		n = send(from, buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			sent += (uint64_t)n;
			moved = now_ms();
			assert_true(sent < 64 * MIB);
		}
		turn(w, 1);
	}
	return sent;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
