/* SPDX-License-Identifier: Apache-2.0
 *
 * Too many connections a second, or at once: turned away in the form of the
 * door, and a flood of them does not fill the log.
 */
#include "tests/proxy/doors.h"

#define POLICY                       \
	"version: 1\n"               \
	"limits: {connections: 2}\n" \
	"allow:\n"                   \
	"  - host: ok.test\n"        \
	"    ports: [80, 443]\n"

static void test_turned_away(void **state)
{
	struct world *w = doors_world(443, POLICY);
	int client;

	(void)state;
	w->rate = 0;
	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, "CONNECT ok.test:443 HTTP/1.1\r\n");
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 429", 12);
	assert_refused(w, REASON_LIMIT_RATE, "");
	part(w, client, -1);

	client = dial_to(PROXY, PROXY_PORT);
	say(client, "\x05\x01\x00", 3);
	assert_memory_equal(hear_all(w, client), "\x05\xff", 3);
	part(w, client, -1);

	client = dial_to(LEASE, 443);
	assert_reset(w, client);
	part(w, client, -1);
	assert_origin_quiet(w);

	w->rate = 1;
	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, "CONNECT ok.test:443 HTTP/1.1\r\n"
			 "Host: ok.test:443\r\n\r\n");
	part(w, client, origin_expect(w));
	assert_int_equal(w->rate, 0);
	world_free(w);
}

/* Until this is over nothing but the first is told. */
#define SECOND_MS 1000

/* How many refusals of that kind: the first is told alone. */
static unsigned told(const struct world *w, enum reason reason)
{
	unsigned n = 0;

	for (size_t i = 0; i < w->notes; i++)
		if (w->note[i].reason == reason)
			n += w->note[i].count ? w->note[i].count : 1;
	return n;
}

/* The first at once, the rest in one record a second later. */
static void test_folded(void **state)
{
	struct world *w = doors_world(443, POLICY);
	int64_t began = now_ms();

	(void)state;
	w->rate = 0;
	for (int i = 0; i < 20; i++) {
		int client = dial_to(LEASE, 443);

		assert_reset(w, client);
		close(client);
	}
	if (now_ms() - began < SECOND_MS) {
		assert_int_equal(w->notes, 1);
		turn_for(w, 1100);
		assert_int_equal(w->notes, 2);
		assert_int_equal(w->note[1].count, 19);
	}
	turn_for(w, 1100);
	assert_refused(w, REASON_LIMIT_RATE, "");
	assert_int_equal(told(w, REASON_LIMIT_RATE), 20);
	assert_int_equal(w->note[1].door, DOOR_TRANSPARENT);
	turn_for(w, 1100);
	assert_int_equal(told(w, REASON_LIMIT_RATE), 20); /* no more */
	w->notes = 0;
	began = now_ms();

	for (int i = 0; i < 3; i++) {
		int client = dial_to(LEASE, 443);

		assert_reset(w, client);
		close(client);
	}
	if (now_ms() - began < SECOND_MS)
		assert_int_equal(w->notes, 1);
	assert_int_equal(w->note[0].count, 0);
	listener_end_sandbox(w->listener[1], &w->sandbox);
	if (now_ms() - began < SECOND_MS)
		assert_int_equal(w->notes, 2);
	assert_int_equal(told(w, REASON_LIMIT_RATE), 3);
	world_free(w);
}

/* Reasons are counted apart. */
static void test_at_once_folded(void **state)
{
	struct world *w = doors_world(443, POLICY);
	int held[2], client;
	int64_t began;
	bool quick;

	(void)state;
	for (int i = 0; i < 2; i++)
		held[i] = dial_to(LEASE, 443);
	turn_for(w, 20);
	assert_int_equal(w->sandbox.connections, 2);
	began = now_ms();
	for (int i = 0; i < 9; i++) {
		client = dial_to(LEASE, 443);
		assert_reset(w, client);
		close(client);
	}
	if (now_ms() - began < SECOND_MS)
		assert_int_equal(w->notes, 1);
	close(held[0]);
	turn_for(w, 20);
	w->rate = 0;
	client = dial_to(LEASE, 443);
	assert_reset(w, client);
	quick = now_ms() - began < SECOND_MS;
	if (quick) {
		assert_int_equal(w->notes, 2);
		assert_refused(w, REASON_LIMIT_RATE, "");
	}
	turn_for(w, 1100);
	assert_int_equal(told(w, REASON_LIMIT_RATE), 1);
	assert_int_equal(told(w, REASON_LIMIT_CONNECTIONS), 9);
	if (quick) {
		assert_int_equal(w->notes, 3);
		assert_refused(w, REASON_LIMIT_CONNECTIONS, "");
		assert_int_equal(w->note[2].count, 8);
	}
	close(held[1]);
	part(w, client, -1);
	world_free(w);
}

/* What is counted is told when the listener goes. */
static void test_told_at_the_end(void **state)
{
	struct world *w = doors_world(443, POLICY);
	const int64_t began = now_ms();
	int client;

	(void)state;
	w->rate = 0;
	for (int i = 0; i < 3; i++) {
		client = dial_to(LEASE, 443);
		assert_reset(w, client);
		close(client);
	}
	listener_free(w->listener[1]);
	w->listeners = 1;
	if (now_ms() - began < SECOND_MS) {
		assert_int_equal(w->notes, 2);
		assert_int_equal(w->note[1].count, 2);
	}
	assert_int_equal(told(w, REASON_LIMIT_RATE), 3);
	world_free(w);
}

#define GET "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"
#define OK  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

/* Each request is a new connection to a server; the first one was counted when
 * its client was accepted. What is refused counts nothing. */
static void test_requests(void **state)
{
	struct world *w = doors_world(80, POLICY);
	int client = dial_to(PROXY, PROXY_PORT), server, end;
	char buf[512];

	(void)state;
	w->rate = 2;
	for (int i = 0; i < 2; i++) {
		say_text(client, GET);
		server = origin_expect(w);
		say_text(server, OK);
		assert_true(hear(w, client, buf, 30, &end) == 30);
		turn_for(w, 20);
		recv(client, buf, sizeof(buf), MSG_DONTWAIT);
		close(server);
	}
	assert_int_equal(w->rate, 0);
	say_text(client, GET);
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 429", 12);
	assert_note(w, EVENT_HTTP_REQUEST, false, REASON_LIMIT_RATE);
	assert_origin_quiet(w);
	part(w, client, -1);

	w->rate = 2;
	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, "GET http://evil.test/ HTTP/1.1\r\n"
			 "Host: evil.test\r\n\r\n");
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_int_equal(w->rate, 1);
	part(w, client, -1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turned_away),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_at_once_folded),
		cmocka_unit_test(test_told_at_the_end),
		cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
