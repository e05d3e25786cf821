/* SPDX-License-Identifier: Apache-2.0
 *
 * test_room.c - while there is no room for records nothing is taken from a
 * client that could need one; when there is, it goes on as if nothing had been.
 */
#include "tests/proxy/doors.h"

#define POLICY                                                       \
	"version: 1\nallow:\n  - host: ok.test\n    ports: [8080]\n" \
	"    methods: [GET]\n"
#define NO_TUNNEL \
	"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"
#define NO_REQUEST   "GET / HTTP/1.1\r\nHost: evil.test:8080\r\n\r\n"
#define SOME_REQUEST "GET / HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n"
#define RESPONSE     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static bool full;
static struct wait_list line = TAILQ_HEAD_INITIALIZER(line);

static void leave(void *ctx, struct wait *wait)
{
	(void)ctx;
	if (wait->seq)
		TAILQ_REMOVE(&line, wait, entry);
	wait->seq = 0;
}

static bool room(void *ctx, struct wait *wait)
{
	if (!full) {
		leave(ctx, wait);
		return true;
	}
	if (!wait->seq)
		TAILQ_INSERT_TAIL(&line, wait, entry);
	wait->seq = 1;
	return false;
}

static unsigned waiting(void)
{
	struct wait *wait;
	unsigned n = 0;

	TAILQ_FOREACH (wait, &line, entry)
		n++;
	return n;
}

/* Wakes those who wait now, once each. */
static void wake(void)
{
	for (unsigned n = waiting(); n; n--) {
		struct wait *wait = TAILQ_FIRST(&line);

		leave(NULL, wait);
		wait->done(wait, 0);
	}
}

static struct world *crowded(void)
{
	struct world *w = doors_world(8080, POLICY);

	w->services.room = room;
	w->services.room_cancel = leave;
	full = false;
	return w;
}

/* Nothing is recorded, nor answered, also if it was woken in vain. */
static void assert_waits(struct world *w, int client, size_t notes)
{
	char byte;

	turn_for(w, 60);
	assert_int_equal(waiting(), 1);
	wake();
	turn_for(w, 60);
	assert_int_equal(waiting(), 1);
	assert_int_equal(w->notes, notes);
	assert_int_equal(recv(client, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	full = false;
	wake();
}

static void assert_403(struct world *w, int client, enum event_kind kind)
{
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_int_equal(notes_of(w, kind), 1);
	assert_int_equal(waiting(), 0);
}

static void test_accept(void **state)
{
	struct world *w = crowded();
	int client;

	(void)state;
	full = true;
	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, NO_TUNNEL);
	turn_for(w, 60);
	assert_int_equal(w->sandbox.connections, 0);
	assert_waits(w, client, 0);
	assert_403(w, client, EVENT_FLOW_OPEN);
	part(w, client, -1);
	world_free(w);
}

static void test_first_message(void **state)
{
	struct world *w = crowded();
	int client = dial_to(PROXY, PROXY_PORT);

	(void)state;
	say(client, NO_TUNNEL, 10);
	turn_for(w, 30);
	full = true;
	say_text(client, &NO_TUNNEL[10]);
	assert_waits(w, client, 0);
	assert_403(w, client, EVENT_FLOW_OPEN);
	part(w, client, -1);
	world_free(w);
}

/* Kept alive: the first request is answered, the next one is not read. */
static void test_next_request(void **state)
{
	struct world *w = crowded();
	int client = dial_to(LEASE, 8080), server;
	size_t notes;

	(void)state;
	say_text(client, SOME_REQUEST);
	server = origin_expect(w);
	assert_heard(w, server, "GET / HTTP/1.1\r\n", 16);
	say_text(server, RESPONSE);
	assert_heard(w, client, "HTTP/1.1 200 OK\r\n", 17);
	close(server);
	turn_for(w, 60);
	while (recv(client, (char[512]){ 0 }, 512, MSG_DONTWAIT) > 0)
		;
	notes = w->notes;
	full = true;
	say_text(client, NO_REQUEST);
	assert_waits(w, client, notes);
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_int_equal(w->note[notes].kind, EVENT_HTTP_REQUEST);
	assert_false(w->note[notes].allow);
	part(w, client, -1);
	world_free(w);
}

/* Whoever is gone by then is forgotten. */
static void test_nobody_left(void **state)
{
	struct world *w = crowded();
	int first = dial_to(PROXY, PROXY_PORT), second = dial_to(LEASE, 8080);

	(void)state;
	turn_for(w, 30);
	full = true;
	say_text(first, NO_TUNNEL);
	say_text(second, NO_REQUEST);
	turn_for(w, 60);
	assert_int_equal(waiting(), 2);
	for (size_t i = 0; i < w->listeners; i++)
		listener_end_sandbox(w->listener[i], &w->sandbox);
	assert_int_equal(waiting(), 0);
	close(first);
	close(second);
	assert_int_equal(w->notes, 0);
	first = dial_to(PROXY, PROXY_PORT);
	turn_for(w, 30);
	assert_int_equal(waiting(), 1); /* the listener itself */
	close(first);
	world_free(w);
	assert_int_equal(waiting(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_first_message),
		cmocka_unit_test(test_next_request),
		cmocka_unit_test(test_nobody_left),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
