/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tunnel_answers.c - what waits for somebody's answer: held meanwhile, and
 * no longer than that.
 */
#include "tests/proxy/tunnel_case.h"

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
	const struct tunnel_limits limits = { .classify_ms = 500,
					      .answer_ms = 2500 };
	struct world *w = *state;
	int64_t start_ms;

	w->say_incomplete = SNIFF_BAD;
	w->say_answer = TUNNEL_CLASSIFY;
	start_ms = now_ms();
	await(w, "hello", &limits);
	until_closed(w);
	assert_in_range(now_ms() - start_ms, 2480, 3900);
	assert_false(w->ended);
	assert_string_equal(w->how, "refused");
	close_fd(&w->client);
	close_fd(&w->server);

	await(w, "helloa", &limits);
	start_ms = now_ms();
	expect(w, w->server, w->client, "again");
	until_closed(w);
	assert_in_range(now_ms() - start_ms, 480, 2480);
	expect_reset(w->server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers),
		TEST(test_answers_refused),
		TEST(test_end_while_awaiting),
		TEST(test_much_while_awaiting),
		TEST(test_answer_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
