/* SPDX-License-Identifier: Apache-2.0
 *
 * test_recheck_http.c - another policy while HTTP is spoken: between two
 * requests and within one.
 */
#include "tests/proxy/recheck_case.h"

#define POST                                                   \
	"POST http://ok.test/up HTTP/1.1\r\nHost: ok.test\r\n" \
	"Content-Length: 10\r\n\r\nhello"

/* In the middle of a request, and of its answer. */
static void test_request(void **state)
{
	struct world *w = doors_world(80, OK);
	static const char *const answer[] = {
		"", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answer); i++) {
		int client, server, end;
		char buf[512];

		world_policy(w, OK);
		client = dial_to(PROXY, PROXY_PORT);
		say_text(client, POST);
		server = origin_expect(w);
		say_text(server, answer[i]);
		turn_for(w, 30);
		take_away(w, RULE("    ports: [80]\n    methods: [GET]\n"));
		hear(w, client, buf, sizeof(buf), &end);
		assert_int_equal(end, -ECONNRESET);
		hear(w, server, buf, sizeof(buf), &end);
		assert_int_equal(end, -ECONNRESET);
		part(w, client, server);

		/* the path may go on */
		world_policy(w, OK);
		client = dial_to(PROXY, PROXY_PORT);
		say_text(client, POST);
		server = origin_expect(w);
		w->notes = 0;
		world_policy(w, RULE("    ports: [80]\n    paths: [/up]\n"));
		recheck(w);
		assert_int_equal(w->notes, 0);
		say_text(client, "there");
		say_text(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
				 "ok");
		hear(w, client, buf, 15, &end);
		assert_memory_equal(buf, "HTTP/1.1 200 OK", 15);
		part(w, client, server);
		assert_note(w, EVENT_FLOW_CLOSE, true, REASON_RULE);
	}
	world_free(w);
}

/* An idle connection is not cut; its next request is judged anew. */
static void test_idle(void **state)
{
	struct world *w = doors_world(80, OK);
	int client = dial_to(LEASE, 80), server, end;
	char buf[512];

	(void)state;
	say_text(client, "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n");
	server = origin_expect(w);
	say_text(server, "HTTP/1.1 204 No\r\n\r\n");
	assert_int_equal(hear(w, client, buf, 15, &end), 15);
	turn_for(w, 30);
	recv(client, buf, sizeof(buf), MSG_DONTWAIT);
	close(server);
	w->notes = 0;
	world_policy(w, OTHER);
	recheck(w);
	turn_for(w, 30);
	assert_int_equal(w->notes, 0);
	say_text(client, "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n");
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_note(w, EVENT_HTTP_REQUEST, false, REASON_NOT_IN_POLICY);
	assert_origin_quiet(w);
	part(w, client, -1);

	/* CONNECT was for a host that is not allowed any more */
	world_policy(w, OK);
	client = enter(w, DOOR_CONNECT, 80);
	take_away(w, OTHER);
	assert_both_reset(w, client, -1);
	world_free(w);
}

static int websocket(struct world *w, int client)
{
	char buf[512];
	int server, end;

	say_text(client, "GET http://ok.test/ws HTTP/1.1\r\nHost: ok.test\r\n"
			 "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			 "Sec-WebSocket-Version: 13\r\n"
			 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
	server = origin_expect(w);
	say_text(server, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n"
			 "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n"
			 "\r\n");
	assert_int_equal(hear(w, client, buf, 12, &end), 12);
	turn_for(w, 30);
	while (recv(client, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	while (recv(server, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	say_text(client, "frame");
	assert_heard(w, server, "frame", 5);
	return server;
}

static void test_websocket(void **state)
{
	struct world *w = doors_world(80, OK);
	int client = dial_to(PROXY, PROXY_PORT), server = websocket(w, client);

	(void)state;
	w->notes = 0;
	world_policy(w, WILD);
	recheck(w);
	assert_int_equal(w->notes, 0);
	say_text(client, "more");
	assert_heard(w, server, "more", 4);
	world_policy(w, OK);
	w->limit[DOWN][0] = 4;
	recheck(w);
	say_text(server, "12345");
	assert_heard(w, client, "1234", 4);
	assert_both_reset(w, client, server);
	assert_note(w, EVENT_FLOW_CLOSE, false, REASON_LIMIT_BYTES);
	w->limit[DOWN][0] = 0;

	client = dial_to(PROXY, PROXY_PORT);
	server = websocket(w, client);
	/* where each request is judged there is no websocket */
	take_away(w, RULE("    ports: [80]\n    paths: [/ws]\n"));
	assert_true(note_find(w, EVENT_FLOW_CLOSE)->up > 9);
	assert_both_reset(w, client, server);
	world_free(w);
}

/* The policy is the same; time went by. */
static void test_expiry(void **state)
{
	struct world *w = doors_world(8443, OK);
	char yaml[300], date[40];
	time_t then = time(NULL) + 2;
	struct tm tm;
	int client, server;

	(void)state;
	gmtime_r(&then, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(yaml, sizeof(yaml),
		 RULE("    ports: [8443]\n    expires: %s\n"), date);
	world_policy(w, yaml);
	client = enter(w, DOOR_SOCKS, 8443);
	server = origin_expect(w);
	w->notes = 0;
	recheck(w);
	assert_int_equal(w->notes, 0);
	turn_for(w, 2100);
	take_away(w, NULL);
	assert_both_reset(w, client, server);
	world_free(w);
}

/* A budget that the new policy brings holds for what goes on. */
static void test_budget(void **state)
{
	struct world *w = doors_world(8443, OK);
	int client = enter(w, DOOR_CONNECT, 8443), server = origin_expect(w);

	(void)state;
	say_text(client, "\x05hi");
	assert_heard(w, server, "\x05hi", 3);
	w->limit[UP][0] = 4;
	world_policy(w, WILD);
	recheck(w);
	say_text(client, "1234");
	assert_heard(w, server, "1234", 4);
	assert_int_equal(w->used[UP][0], 4);
	say_text(client, "5");
	assert_both_reset(w, client, server);
	assert_note(w, EVENT_FLOW_CLOSE, false, REASON_LIMIT_BYTES);

	w->limit[UP][0] = 0;
	client = enter(w, DOOR_CONNECT, 8443);
	server = origin_expect(w);
	w->meters_status = REASON_LIMIT_BYTES;
	recheck(w);
	assert_note(w, EVENT_FLOW_CLOSE, false, REASON_LIMIT_BYTES);
	assert_both_reset(w, client, server);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),	  cmocka_unit_test(test_idle),
		cmocka_unit_test(test_websocket), cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
