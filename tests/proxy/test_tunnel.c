/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tunnel.c - what is said at one end of a tunnel is heard at the other,
 * however much it is, and what a tunnel costs.
 */
#include "tests/proxy/tunnel_case.h"

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

static int64_t cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
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
	const struct tunnel_limits limits = { .idle_ms = 1500 };
	int64_t start_ms;

	begin(w, &plain, NULL, &limits, 0);
	for (int i = 0; i < 5; i++) {
		turn(w, 400);
		expect(w, w->client, w->server, "tick");
	}
	assert_false(w->closed);
	start_ms = now_ms();
	until_closed(w);
	assert_in_range(now_ms() - start_ms, 1400, 2700);
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

#define MANY 64

static void test_many_at_once(void **state)
{
	struct world *w = *state;
	static struct world one[MANY];
	static struct talker c[MANY], s[MANY];
	size_t taken, pooled;
	bool all;
	int64_t end = now_ms() + 60000;

	memset(one, 0, sizeof(one));
	for (unsigned i = 0; i < MANY; i++) {
		one[i].base = w->base;
		one[i].wheel = w->wheel;
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
	} while (!all && now_ms() < end);
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
		one[i].wheel = w->wheel;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sigpipe), /* first: it is about the first pipe */
		TEST(test_few_bytes),
		TEST(test_server_ends_first),
		TEST(test_half_close_with_much),
		TEST(test_bulk_is_spliced),
		TEST(test_slow_reader),
		TEST(test_abort_with_bytes_in_flight),
		TEST(test_abort_from_within),
		TEST(test_progress_pauses),
		TEST(test_resets),
		TEST(test_idle_timeout),
		TEST(test_idle_while_blocked),
		TEST(test_many_at_once),
		TEST(test_without_pipes),
		TEST(test_idle_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
