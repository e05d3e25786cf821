/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tunnel_held.c - the first bytes are held until they are judged.
 */
#include "tests/proxy/tunnel_case.h"

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
	start_ms = now_ms();
	while (!w->closed && now_ms() - start_ms < 3000) {
		send(w->client, "x", 1, MSG_NOSIGNAL);
		turn(w, 50);
	}
	assert_true(w->closed);
	assert_in_range(now_ms() - start_ms, 280, 1500);
	assert_string_equal(w->how, "refused");
	assert_int_equal(w->asked_incomplete, 1);
	expect_reset(w->server);
}

static void detach(void *arg, struct tunnel *tunnel, const char *held)
{
	struct world *w = arg;
	struct watch *client;
	int fd;

	assert_int_equal(tunnel_detach(tunnel, &client), 0);
	fd = watch_end(client);
	assert_int_equal(send(fd, held, strlen(held), 0), strlen(held));
	close(fd);
	w->closed = true;
}

static enum sniff classify_detach(void *arg, const uint8_t *data, size_t len)
{
	struct world *w = arg;
	char held[64] = "";
	struct watch *client;

	if (w->done_at) {
		assert_int_equal(tunnel_detach(w->tunnel, &client), -EBUSY);
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

static void test_first_too_long(void **state)
{
	struct world *w = *state;
	static uint8_t much[SNIFF_MAX + 1];
	int c, s;

	pair(&w->client, &c, 0);
	pair(&w->server, &s, 0);
	assert_int_equal(tunnel_new(w->wheel, watch_new(w->base, c),
				    watch_new(w->base, s), much, sizeof(much),
				    NULL, &holding, w, &w->tunnel),
			 -EMSGSIZE);
	expect_end(w->client);
	expect_end(w->server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_server_speaks_first),
		TEST(test_first_bytes_are_held),
		TEST(test_refused),
		TEST(test_held_without_end),
		TEST(test_longest_first_message),
		TEST(test_half_closed_while_held),
		TEST(test_half_closed_in_silence),
		TEST(test_classify_timeout),
		TEST(test_detach),
		TEST(test_early_answer),
		TEST(test_first_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
