/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tunnel.c - tunnels between real TCP sockets. The tunnel runs in the
 * main thread's loop; what is at its two ends runs in threads where much is
 * sent, else by hand.
 */
#include "proxy/tunnel.h"

#include <malloc.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "proxy/pipes.h"
#include "proxy/relay.h"
#include "tests/proxy/net.h"

#define MIB (1024 * 1024)

struct world {
	struct event_base *base;
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
static enum sniff let_some_through(struct world *w, const uint8_t *data,
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

static enum tunnel_answer on_answer(void *arg, const uint8_t *data, size_t len)
{
	struct world *w = arg;

	assert_true(len > 0);
	assert_non_null(data);
	w->answers++;
	w->answer_len += len;
	return w->say_answer;
}

static enum sniff on_classify(void *arg, const uint8_t *data, size_t len)
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

static enum sniff on_incomplete(void *arg, const uint8_t *data, size_t len,
				bool ended)
{
	struct world *w = arg;

	(void)data;
	assert_true(len > 0 || w->awaits);
	w->asked_incomplete++;
	w->ended = ended;
	return w->say_incomplete;
}

static bool on_progress(void *arg, uint64_t up, uint64_t down)
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

static void on_closed(void *arg, uint64_t up, uint64_t down, const char *how)
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

static void patience(int fd)
{
	const struct timeval tv = { .tv_sec = 20 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

/* A TCP connection: @ret_far blocks, @ret_near does not. @buf limits the
 * kernel's buffers, 0: as they are. */
static void pair(int *ret_far, int *ret_near, int buf)
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

static void begin(struct world *w, const struct tunnel_ops *ops,
		  const char *first, const struct tunnel_limits *limits,
		  int buf)
{
	int c, s;

	pair(&w->client, &c, buf);
	pair(&w->server, &s, buf);
	w->closed = false;
	w->reports = 0;
	w->reported = 0;
	assert_int_equal(tunnel_new(w->base, c, s, (const uint8_t *)first,
				    first ? strlen(first) : 0, limits, ops, w,
				    &w->tunnel),
			 0);
	assert_false(w->closed);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->base = event_base_new();
	w->client = w->server = -1;
	w->fds = open_fds();
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	size_t taken, pooled;

	close_fd(&w->client);
	close_fd(&w->server);
	pipes_count(&taken, &pooled);
	assert_int_equal(taken, 0);
	tunnel_pool_free();
	assert_int_equal(open_fds(), w->fds);
	event_base_free(w->base);
	free(w);
	return 0;
}

static void turn(struct world *w, int ms)
{
	const bool never = false;

	loop_until(w->base, &never, ms);
}

static void until_closed(struct world *w)
{
	loop_until(w->base, &w->closed, 20000);
	assert_true(w->closed);
}

/* Sends @text on @from; @to must get exactly that. */
static void expect(struct world *w, int from, int to, const char *text)
{
	char buf[64];
	size_t len = strlen(text);

	if (from >= 0)
		assert_int_equal(send(from, text, len, MSG_NOSIGNAL), len);
	turn(w, 40);
	assert_int_equal(recv(to, buf, sizeof(buf), MSG_DONTWAIT), len);
	assert_memory_equal(buf, text, len);
}

static void expect_nothing(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void expect_end(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
}

static void expect_reset(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
}

static void reset(int *fd)
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

static uint8_t pattern(unsigned seed, uint64_t i)
{
	return (uint8_t)(seed + i * 31 + (i >> 13));
}

static bool say(struct talker *t)
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

static bool hear(struct talker *t)
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

static void *hear_thread(void *arg)
{
	return hear(arg) ? arg : NULL;
}

static void *talk(void *arg)
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

static void start(struct talker *t)
{
	assert_int_equal(pthread_create(&t->thread, NULL, talk, t), 0);
}

static void finish(struct talker *t, uint64_t expected)
{
	pthread_join(t->thread, NULL);
	assert_true(t->ok);
	assert_int_equal(t->got, expected);
}

static void test_few_bytes(void **state)
{
	struct world *w = *state;

	begin(w, &plain, NULL, NULL, 0);
	expect(w, w->client, w->server, "hello");
	expect(w, w->server, w->client, "good day");
	shutdown(w->client, SHUT_WR);
	turn(w, 40);
	expect_end(w->server);
	expect(w, w->server, w->client, "still here");
	assert_false(w->closed);
	close_fd(&w->server);
	until_closed(w);
	expect_end(w->client);
	assert_string_equal(w->how, "eof");
	assert_int_equal(w->up, 5);
	assert_int_equal(w->down, 18);
}

static void test_server_ends_first(void **state)
{
	struct world *w = *state;

	begin(w, &plain, "first", NULL, 0);
	expect(w, -1, w->server, "first");
	shutdown(w->server, SHUT_WR);
	turn(w, 40);
	expect_end(w->client);
	expect(w, w->client, w->server, "more");
	shutdown(w->client, SHUT_WR);
	until_closed(w);
	assert_string_equal(w->how, "eof");
	assert_int_equal(w->up, 9);
}

/* One says all and ends, then the other does. */
static void half_close(struct world *w, bool client_first)
{
	struct talker c = { .send = 24 * MIB,
			    .seed = 1,
			    .expect_seed = 2,
			    .wait_end = !client_first };
	struct talker s = { .send = 20 * MIB + 7,
			    .seed = 2,
			    .expect_seed = 1,
			    .wait_end = client_first };

	begin(w, &plain, NULL, NULL, 0);
	c.fd = w->client;
	s.fd = w->server;
	start(&c);
	start(&s);
	until_closed(w);
	finish(&c, s.send);
	finish(&s, c.send);
	assert_string_equal(w->how, "eof");
	assert_int_equal(w->up, c.send);
	assert_int_equal(w->down, s.send);
	close_fd(&w->client);
	close_fd(&w->server);
}

static void test_half_close_with_much(void **state)
{
	half_close(*state, true);
	half_close(*state, false);
}

static void test_bulk_is_spliced(void **state)
{
	struct world *w = *state;
	struct talker c = { .send = 1000, .seed = 1, .expect_seed = 2 };
	struct talker s = { .send = 64 * MIB, .seed = 2, .expect_seed = 1 };
	uint64_t before = relay_spliced();
	size_t taken, pooled;

	begin(w, &plain, NULL, NULL, 0);
	c.fd = w->client;
	s.fd = w->server;
	start(&c);
	start(&s);
	until_closed(w);
	finish(&c, s.send);
	finish(&s, c.send);
	assert_true(relay_spliced() - before > s.send * 9 / 10);
	pipes_count(&taken, &pooled);
	assert_int_equal(taken, 0);
	assert_in_range(pooled, 1, 2);
	assert_in_range(w->reports, 3, 6); /* every 10 MB */
}

/* Whoever can't tell of it lets nothing more through, however long that is, and
 * loses nothing. */
static void test_progress_pauses(void **state)
{
	const struct tunnel_limits limits = { .idle_ms = 200 };
	struct world *w = *state;
	struct talker c = { .send = 15 * MIB, .seed = 1, .expect_seed = 2 };
	struct talker s = { .send = 32 * MIB, .seed = 2, .expect_seed = 1 };
	uint64_t at;

	w->pause_on_report = true;
	begin(w, &plain, NULL, &limits, 0);
	c.fd = w->client;
	s.fd = w->server;
	start(&c);
	start(&s);
	turn(w, 500);
	at = w->paused_at;
	assert_in_range(at, 10 * 1000 * 1000, 12 * 1000 * 1000);
	for (int i = 0; i < 3; i++) {
		turn(w, 100);
		tunnel_resume(w->tunnel); /* told again, and still not taken */
		assert_int_equal(w->paused_at, at);
	}
	assert_false(w->closed);
	w->pause_on_report = false;
	tunnel_resume(w->tunnel);
	assert_int_equal(w->reported, at);
	until_closed(w);
	finish(&c, s.send);
	finish(&s, c.send);
	assert_string_equal(w->how, "eof");
	assert_in_range(w->reports, 3, 5);
}

static void test_server_speaks_first(void **state)
{
	struct world *w = *state;

	w->done_at = 9;
	begin(w, &holding, NULL, NULL, 0);
	expect(w, w->server, w->client, "220 ready");
	send(w->client, "HELO", 4, 0);
	turn(w, 40);
	expect_nothing(w->server);
	expect(w, w->server, w->client, "250-");
	expect_nothing(w->server);
	assert_int_equal(w->seen, 4);
	send(w->client, " me\r\n", 5, 0);
	expect(w, -1, w->server, "HELO me\r\n");
	assert_int_equal(w->asked, 2);
	expect(w, w->client, w->server, "QUIT");
	assert_int_equal(w->asked, 2);
	close_fd(&w->client);
	close_fd(&w->server);
	until_closed(w);
	assert_int_equal(w->asked_incomplete, 0);
	assert_int_equal(w->up, 13);
}

static void test_first_bytes_are_held(void **state)
{
	struct world *w = *state;

	w->done_at = 8;
	begin(w, &holding, "GET /", NULL, 0);
	assert_int_equal(w->asked, 0); /* never from within tunnel_new() */
	turn(w, 40);
	assert_int_equal(w->seen, 5);
	expect_nothing(w->server);
	send(w->client, " HT", 3, 0);
	expect(w, -1, w->server, "GET / HT");
	tunnel_abort(w->tunnel, NULL, NULL);
}

static void test_refused(void **state)
{
	struct world *w = *state;
	char buf[64];

	for (int early = 0; early < 2; early++) {
		w->say = SNIFF_BAD;
		w->seen = 0;
		w->alert = early ? "\x15\x03\x01" : NULL;
		begin(w, &holding, early ? "secret" : NULL, NULL, 0);
		if (!early)
			send(w->client, "secret", 6, 0);
		until_closed(w);
		assert_string_equal(w->how, "refused");
		assert_int_equal(w->up, 0);
		expect_reset(w->server); /* and not one byte before */
		if (early) {
			assert_int_equal(recv(w->client, buf, 64, 0), 3);
			assert_memory_equal(buf, w->alert, 3);
		}
		assert_int_equal(recv(w->client, buf, 64, 0), 0);
		close_fd(&w->client);
		close_fd(&w->server);
	}
}

/* More than a first message can be: it has to end. */
static void test_held_without_end(void **state)
{
	struct world *w = *state;
	char much[SNIFF_MAX];

	memset(much, 'x', sizeof(much));
	w->say = SNIFF_MORE;
	begin(w, &holding, NULL, NULL, 0);
	send(w->client, much, SNIFF_MAX - 1, 0);
	turn(w, 100);
	assert_int_equal(w->seen, SNIFF_MAX - 1);
	assert_false(w->closed);
	send(w->client, much, 1, 0);
	until_closed(w);
	assert_string_equal(w->how, "refused");
	expect_reset(w->server);
}

static void test_longest_first_message(void **state)
{
	struct world *w = *state;
	struct talker c = { .send = SNIFF_MAX + 5, .seed = 3 };
	struct talker s = { .expect_seed = 3 };

	w->done_at = SNIFF_MAX;
	begin(w, &holding, NULL, NULL, 0);
	c.fd = w->client;
	s.fd = w->server;
	start(&c);
	start(&s);
	until_closed(w);
	finish(&c, 0);
	finish(&s, SNIFF_MAX + 5);
	assert_int_equal(w->seen, SNIFF_MAX);
}

static void test_half_closed_while_held(void **state)
{
	struct world *w = *state;
	static const enum sniff answer[] = { SNIFF_BAD, SNIFF_MORE,
					     SNIFF_DONE };

	for (size_t i = 0; i < ARRAY_SIZE(answer); i++) {
		w->say = SNIFF_MORE;
		w->say_incomplete = answer[i];
		w->asked_incomplete = 0;
		w->seen = 0;
		begin(w, &holding, "par", NULL, 0);
		send(w->client, "tial", 4, 0);
		turn(w, 40);
		expect_nothing(w->server);
		shutdown(w->client, SHUT_WR);
		turn(w, 40);
		assert_int_equal(w->asked_incomplete, 1);
		if (answer[i] == SNIFF_DONE) {
			expect(w, -1, w->server, "partial");
			expect_end(w->server);
			close_fd(&w->server);
		} else {
			assert_true(w->closed);
			expect_reset(w->server);
			close_fd(&w->server);
		}
		until_closed(w);
		assert_string_equal(
			w->how, answer[i] == SNIFF_DONE ? "eof" : "refused");
		close_fd(&w->client);
	}
}

/* Silence is nothing to classify. */
static void test_half_closed_in_silence(void **state)
{
	struct world *w = *state;

	begin(w, &holding, NULL, NULL, 0);
	shutdown(w->client, SHUT_WR);
	turn(w, 40);
	expect_end(w->server);
	expect(w, w->server, w->client, "banner");
	close_fd(&w->server);
	until_closed(w);
	assert_string_equal(w->how, "eof");
	assert_int_equal(w->asked + w->asked_incomplete, 0);
}

/* Neither does a byte now and then win time. */
static void test_classify_timeout(void **state)
{
	struct world *w = *state;
	const struct tunnel_limits limits = { .classify_ms = 300 };
	int64_t start_ms;

	w->say = SNIFF_MORE;
	w->say_incomplete = SNIFF_BAD;
	begin(w, &holding, NULL, &limits, 0);
	turn(w, 500); /* without a byte there is no hurry */
	assert_false(w->closed);
	start_ms = clock_ms();
	while (!w->closed && clock_ms() - start_ms < 3000) {
		send(w->client, "x", 1, MSG_NOSIGNAL);
		turn(w, 50);
	}
	assert_true(w->closed);
	assert_in_range(clock_ms() - start_ms, 280, 1500);
	assert_string_equal(w->how, "refused");
	assert_int_equal(w->asked_incomplete, 1);
	expect_reset(w->server);
}

static void await(struct world *w, const char *first,
		  const struct tunnel_limits *limits)
{
	w->awaits = true;
	w->awaited = false;
	w->first = 5;
	w->answers = 0;
	w->answer_len = 0;
	w->asked_incomplete = 0;
	begin(w, &holding, first, limits, 0);
	expect(w, -1, w->server, "hello");
	assert_true(w->awaited);
}

/* What is behind the first part waits for the answer, and for what is made of
 * it; what the server says is never held. */
static void test_answers(void **state)
{
	struct world *w = *state;

	w->say_answer = TUNNEL_WATCH;
	await(w, "hello", NULL);
	expect(w, w->server, w->client, "wait");
	send(w->client, "early", 5, 0);
	expect(w, w->server, w->client, "wait");
	assert_int_equal(w->answers, 2);
	expect_nothing(w->server);
	w->say_answer = TUNNEL_RELEASE;
	expect(w, w->server, w->client, "go");
	expect(w, -1, w->server, "early");
	expect(w, w->client, w->server, "more");
	expect(w, w->server, w->client, "unseen");
	assert_int_equal(w->answer_len, 10);
	assert_int_equal(w->asked, 1);
	tunnel_abort(w->tunnel, NULL, NULL);
	close_fd(&w->client);
	close_fd(&w->server);

	w->say_answer = TUNNEL_CLASSIFY;
	await(w, "helloxxa", NULL);
	expect(w, w->server, w->client, "again");
	expect(w, -1, w->server, "xx");
	tunnel_abort(w->tunnel, NULL, NULL);
	close_fd(&w->client);
	close_fd(&w->server);

	await(w, "hello", NULL);
	expect(w, w->server, w->client, "again");
	expect(w, w->client, w->server, "xx");
	expect(w, w->client, w->server, "x");
	send(w->client, "x.rest", 6, 0);
	expect(w, -1, w->server, "x.rest");
	expect(w, w->client, w->server, "!");
	shutdown(w->client, SHUT_WR);
	close_fd(&w->server);
	until_closed(w);
	assert_int_equal(w->answers, 1);
}

/* Neither answer nor second part may be what lets bytes through. */
static void test_answers_refused(void **state)
{
	static const enum tunnel_answer answer[] = { TUNNEL_REFUSE,
						     TUNNEL_CLASSIFY };
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(answer); i++) {
		w->say_answer = answer[i];
		await(w, "hellox!secret", NULL);
		expect(w, w->server, w->client, "what?");
		until_closed(w);
		assert_string_equal(w->how, "refused");
		assert_int_equal(w->up, 5);
		expect_reset(w->server);
		close_fd(&w->client);
		close_fd(&w->server);
	}
}

/* The client ends before the answer: with nothing held, with something. */
static void test_end_while_awaiting(void **state)
{
	struct world *w = *state;

	w->say_answer = TUNNEL_CLASSIFY;
	await(w, "hello", NULL);
	shutdown(w->client, SHUT_WR);
	turn(w, 40);
	expect_end(w->server);
	expect(w, w->server, w->client, "late");
	close_fd(&w->server);
	until_closed(w);
	assert_string_equal(w->how, "eof");
	assert_int_equal(w->answers, 0);
	close_fd(&w->client);

	w->say_incomplete = SNIFF_BAD;
	await(w, "helloxa", NULL);
	shutdown(w->client, SHUT_WR);
	turn(w, 40);
	expect_nothing(w->server);
	assert_false(w->closed);
	expect(w, w->server, w->client, "again");
	until_closed(w);
	assert_true(w->ended);
	assert_int_equal(w->asked_incomplete, 1);
	assert_string_equal(w->how, "refused");
	close_fd(&w->client);
	close_fd(&w->server);

	/* A server that has said its last asks for nothing any more. */
	await(w, "hellosome", NULL);
	shutdown(w->server, SHUT_WR);
	expect(w, -1, w->server, "some");
	close_fd(&w->client);
	close_fd(&w->server);
	until_closed(w);
	assert_int_equal(w->answers, 0);

	/* A client that is gone gets none. */
	await(w, "hellosome", NULL);
	reset(&w->client);
	until_closed(w);
	assert_int_equal(w->up, 5);
	expect_reset(w->server);
}

/* More than can be held waits in the kernel. */
static void test_much_while_awaiting(void **state)
{
	struct world *w = *state;
	struct talker c = { .send = 4 * MIB, .seed = 3, .expect_seed = 4 };
	struct talker s = { .send = 4 * MIB, .seed = 4, .expect_seed = 3 };
	uint64_t before = relay_spliced();

	w->say_answer = TUNNEL_RELEASE;
	await(w, "hello", NULL);
	c.fd = w->client;
	start(&c);
	turn(w, 200);
	expect_nothing(w->server);
	assert_false(w->closed);
	s.fd = w->server;
	start(&s);
	until_closed(w);
	finish(&c, s.send);
	finish(&s, c.send);
	/* Once released it is as if nothing had ever been held. */
	assert_int_equal(w->answers, 1);
	assert_true(relay_spliced() - before > c.send + s.send / 2);
}

static void test_answer_timeout(void **state)
{
	const struct tunnel_limits limits = { .classify_ms = 200,
					      .answer_ms = 600 };
	struct world *w = *state;
	int64_t start_ms;

	w->say_incomplete = SNIFF_BAD;
	w->say_answer = TUNNEL_CLASSIFY;
	start_ms = clock_ms();
	await(w, "hello", &limits);
	until_closed(w);
	assert_in_range(clock_ms() - start_ms, 580, 2000);
	assert_false(w->ended);
	assert_string_equal(w->how, "refused");
	close_fd(&w->client);
	close_fd(&w->server);

	await(w, "helloa", &limits);
	start_ms = clock_ms();
	expect(w, w->server, w->client, "again");
	until_closed(w);
	assert_in_range(clock_ms() - start_ms, 180, 580);
	expect_reset(w->server);
}

static void detach(void *arg, struct tunnel *tunnel, const char *held)
{
	struct world *w = arg;
	int fd;

	assert_int_equal(tunnel_detach(tunnel, &fd), 0);
	assert_int_equal(send(fd, held, strlen(held), 0), strlen(held));
	close(fd);
	w->closed = true;
}

static enum sniff classify_detach(void *arg, const uint8_t *data, size_t len)
{
	struct world *w = arg;
	char held[64] = "";
	int fd;

	if (w->done_at) {
		assert_int_equal(tunnel_detach(w->tunnel, &fd), -EBUSY);
		return SNIFF_BAD;
	}
	memcpy(held, data, len);
	detach(w, w->tunnel, held);
	return SNIFF_DONE;
}

/* The client's socket lives on, the server's is reset. */
static void test_detach(void **state)
{
	static const struct tunnel_ops ops = { .classify = classify_detach,
					       .incomplete = on_incomplete,
					       .closed = on_closed };
	struct world *w = *state;

	for (int early = 0; early < 2; early++) {
		w->done_at = 0;
		begin(w, &ops, early ? "GET" : NULL, NULL, 0);
		if (!early)
			send(w->client, "GET", 3, 0);
		expect(w, -1, w->client, "GET");
		assert_true(w->closed);
		expect_end(w->client);
		expect_reset(w->server);
		close_fd(&w->client);
		close_fd(&w->server);
	}
	w->done_at = 1;
	begin(w, &ops, NULL, NULL, 0);
	expect(w, w->server, w->client, "220");
	send(w->client, "GET", 3, 0);
	until_closed(w);
	assert_string_equal(w->how, "refused");
}

static int64_t cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* Fills the tunnel from @from, whose other end does not read. Returns how much
 * that took. */
static uint64_t fill(struct world *w, int from)
{
	static uint8_t buf[64 * 1024];
	uint64_t sent = 0;
	int64_t moved = clock_ms();

	while (clock_ms() - moved < 300) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(buf); i++)
			buf[i] = pattern(5, sent + i);
		n = send(from, buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			sent += (uint64_t)n;
			moved = clock_ms();
			assert_true(sent < 64 * MIB);
		}
		turn(w, 1);
	}
	return sent;
}

static void slow_reader(struct world *w, bool up)
{
	int from, to;
	struct talker t = { .expect_seed = 5 };
	uint64_t sent;
	int64_t cpu;
	size_t taken, pooled;

	begin(w, &plain, NULL, NULL, 64 * 1024);
	from = up ? w->client : w->server;
	to = up ? w->server : w->client;
	sent = fill(w, from);
	/* Kernel buffers of two connections, one pipe, one copy buffer. */
	assert_true(sent < 24 * MIB);
	pipes_count(&taken, &pooled);
	assert_true(taken <= 1);
	/* It waits, it does not spin. */
	cpu = cpu_ms();
	turn(w, 300);
	assert_true(cpu_ms() - cpu < 60);
	/* The other direction is not in the way. */
	expect(w, to, from, "hurry");
	shutdown(from, SHUT_WR);
	t.fd = to;
	start(&t);
	until_closed(w);
	finish(&t, sent);
	assert_string_equal(w->how, "eof");
	assert_int_equal(up ? w->up : w->down, sent);
	close_fd(&w->client);
	close_fd(&w->server);
}

static void test_slow_reader(void **state)
{
	slow_reader(*state, true);
	slow_reader(*state, false);
}

static void test_abort_with_bytes_in_flight(void **state)
{
	struct world *w = *state;
	uint64_t up = 0, down = 77;
	size_t taken, pooled;

	begin(w, &plain, NULL, NULL, 64 * 1024);
	fill(w, w->client);
	pipes_count(&taken, &pooled);
	assert_int_equal(taken, 1);
	tunnel_abort(w->tunnel, &up, &down);
	assert_true(up > 0);
	assert_int_equal(down, 0);
	/* That pipe is gone: its bytes are for nobody else. */
	pipes_count(&taken, &pooled);
	assert_int_equal(taken + pooled, 0);
	turn(w, 40);
	assert_false(w->closed);
	expect_reset(w->client);
	tunnel_abort(NULL, NULL, NULL);
}

static void test_abort_from_within(void **state)
{
	struct world *w = *state;
	struct talker s = { .send = 64 * MIB };
	char buf[4096];

	w->abort_on_report = true;
	begin(w, &plain, NULL, NULL, 0);
	s.fd = w->server;
	start(&s);
	while (!w->closed) {
		turn(w, 1);
		while (recv(w->client, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
	}
	pthread_join(s.thread, NULL);
	assert_false(s.ok);
	assert_int_equal(w->reports, 1);
	assert_in_range(w->down, 10 * 1000 * 1000, 20 * 1000 * 1000);
}

static void test_resets(void **state)
{
	struct world *w = *state;

	begin(w, &plain, NULL, NULL, 0);
	expect(w, w->client, w->server, "hello");
	reset(&w->client);
	until_closed(w);
	assert_string_equal(w->how, "reset by client");
	expect_reset(w->server);
	close_fd(&w->server);

	begin(w, &plain, NULL, NULL, 0);
	expect(w, w->server, w->client, "hello");
	reset(&w->server);
	until_closed(w);
	assert_string_equal(w->how, "reset by server");
	expect_reset(w->client);
	close_fd(&w->client);

	w->say = SNIFF_MORE;
	w->seen = 0;
	begin(w, &holding, "x", NULL, 0);
	turn(w, 40);
	reset(&w->server);
	until_closed(w);
	assert_string_equal(w->how, "reset by server");
	close_fd(&w->client);

	begin(w, &holding, NULL, NULL, 0);
	reset(&w->client);
	until_closed(w);
	assert_string_equal(w->how, "reset by client");
}

/* A server that says no while the client still uploads, as nginx does. */
static void test_early_answer(void **state)
{
	struct world *w = *state;
	char buf[64];
	ssize_t n;

	signal(SIGPIPE, SIG_IGN); /* as our processes have it */
	begin(w, &plain, NULL, NULL, 0);
	fill(w, w->client);
	assert_int_equal(send(w->server, "413 too large", 13, 0), 13);
	turn(w, 20);
	close_fd(&w->server); /* with bytes unread: a reset */
	until_closed(w);
	assert_string_equal(w->how, "reset by server");
	n = recv(w->client, buf, sizeof(buf), 0);
	assert_int_equal(n, 13);
	assert_int_equal(w->down, 13);
}

/* Nobody but us knows that splice(2) signals. */
static void test_sigpipe(void **state)
{
	struct world *w = *state;

	signal(SIGPIPE, SIG_DFL);
	pipes_put(pipes_take()); /* the first one cares for it */
	begin(w, &plain, NULL, NULL, 0);
	fill(w, w->server);
	close_fd(&w->client);
	until_closed(w);
	assert_string_equal(w->how, "reset by client");
}

static void test_idle_timeout(void **state)
{
	struct world *w = *state;
	const struct tunnel_limits limits = { .idle_ms = 300 };
	int64_t start_ms;

	begin(w, &plain, NULL, &limits, 0);
	for (int i = 0; i < 5; i++) {
		turn(w, 100);
		expect(w, w->client, w->server, "tick");
	}
	assert_false(w->closed);
	start_ms = clock_ms();
	until_closed(w);
	assert_in_range(clock_ms() - start_ms, 200, 1500);
	assert_string_equal(w->how, "idle timeout");
	expect_reset(w->server);
	expect_reset(w->client);
}

/* Both peers vanish while much is in flight: idle ends that too. */
static void test_idle_while_blocked(void **state)
{
	struct world *w = *state;
	const struct tunnel_limits limits = { .idle_ms = 500 };

	begin(w, &plain, NULL, &limits, 64 * 1024);
	fill(w, w->server);
	until_closed(w);
	assert_string_equal(w->how, "idle timeout");
}

static void test_first_too_long(void **state)
{
	struct world *w = *state;
	static uint8_t much[SNIFF_MAX + 1];
	int c, s;

	pair(&w->client, &c, 0);
	pair(&w->server, &s, 0);
	assert_int_equal(tunnel_new(w->base, c, s, much, sizeof(much), NULL,
				    &holding, w, &w->tunnel),
			 -EMSGSIZE);
	expect_end(w->client);
	expect_end(w->server);
}

#define MANY 64

static void test_many_at_once(void **state)
{
	struct world *w = *state;
	static struct world one[MANY];
	static struct talker c[MANY], s[MANY];
	size_t taken, pooled;
	bool all;
	int64_t end = clock_ms() + 60000;

	memset(one, 0, sizeof(one));
	for (unsigned i = 0; i < MANY; i++) {
		one[i].base = w->base;
		begin(&one[i], &plain, NULL, NULL, 0);
		c[i] = (struct talker){ .fd = one[i].client,
					.send = MIB + i,
					.seed = i,
					.expect_seed = i + 100,
					.wait_end = i % 3 == 1 };
		s[i] = (struct talker){ .fd = one[i].server,
					.send = MIB / 2 + 3 * i,
					.seed = i + 100,
					.expect_seed = i,
					.wait_end = i % 3 == 2 };
		start(&c[i]);
		start(&s[i]);
	}
	do {
		turn(w, 20);
		all = true;
		for (int i = 0; i < MANY; i++)
			all &= one[i].closed;
	} while (!all && clock_ms() < end);
	assert_true(all);
	for (int i = 0; i < MANY; i++) {
		finish(&c[i], s[i].send);
		finish(&s[i], c[i].send);
		assert_string_equal(one[i].how, "eof");
		assert_int_equal(one[i].up, c[i].send);
		close(one[i].client);
		close(one[i].server);
	}
	pipes_count(&taken, &pooled);
	assert_int_equal(taken, 0);
	assert_true(pooled <= 32);
}

/* Where there is no pipe to be had, bytes are copied. */
static void test_without_pipes(void **state)
{
	struct world *w = *state;
	struct talker c = { .send = 4 * MIB, .seed = 1, .expect_seed = 2 };
	struct talker s = { .send = 4 * MIB, .seed = 2, .expect_seed = 1 };
	struct pipe_pair *hoard[PIPES_MAX];
	uint64_t before = relay_spliced();

	/* An ordinary user's share may be used up before. */
	for (int i = 0; i < PIPES_MAX; i++)
		hoard[i] = pipes_take();
	assert_non_null(hoard[0]);
	assert_null(pipes_take());
	begin(w, &plain, NULL, NULL, 0);
	c.fd = w->client;
	s.fd = w->server;
	start(&c);
	start(&s);
	until_closed(w);
	finish(&c, s.send);
	finish(&s, c.send);
	assert_int_equal(relay_spliced(), before);
	for (int i = 0; i < PIPES_MAX; i++)
		pipes_put(hoard[i]);
}

/* 1 KiB each is the budget; a sanitizer's malloc does not say. */
static void test_idle_memory(void **state)
{
	struct world *w = *state;
	static struct world one[MANY];
	size_t before;

	memset(one, 0, sizeof(one));
	w->say = SNIFF_DONE;
	before = mallinfo2().uordblks;
	for (int i = 0; i < MANY; i++) {
		one[i].base = w->base;
		begin(&one[i], &plain, NULL, NULL, 0);
		expect(&one[i], one[i].client, one[i].server, "x");
	}
	assert_true(mallinfo2().uordblks - before <= MANY * 900);
	for (int i = 0; i < MANY; i++) {
		tunnel_abort(one[i].tunnel, NULL, NULL);
		close(one[i].client);
		close(one[i].server);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sigpipe), /* first: it is about the first pipe */
		TEST(test_few_bytes),
		TEST(test_server_ends_first),
		TEST(test_half_close_with_much),
		TEST(test_bulk_is_spliced),
		TEST(test_server_speaks_first),
		TEST(test_first_bytes_are_held),
		TEST(test_refused),
		TEST(test_held_without_end),
		TEST(test_longest_first_message),
		TEST(test_half_closed_while_held),
		TEST(test_half_closed_in_silence),
		TEST(test_classify_timeout),
		TEST(test_answers),
		TEST(test_answers_refused),
		TEST(test_end_while_awaiting),
		TEST(test_much_while_awaiting),
		TEST(test_answer_timeout),
		TEST(test_detach),
		TEST(test_slow_reader),
		TEST(test_abort_with_bytes_in_flight),
		TEST(test_abort_from_within),
		TEST(test_progress_pauses),
		TEST(test_resets),
		TEST(test_early_answer),
		TEST(test_idle_timeout),
		TEST(test_idle_while_blocked),
		TEST(test_first_too_long),
		TEST(test_many_at_once),
		TEST(test_without_pipes),
		TEST(test_idle_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
