/* SPDX-License-Identifier: Apache-2.0
 *
 * Another policy: what it does not allow any more is cut before the call
 * returns, wherever it stands; the rest goes on by it.
 */
#include <time.h>

#include "tests/proxy/doors.h"

#define RULE(rest) "version: 1\nallow:\n  - host: ok.test\n" rest
#define OK	   RULE("    ports: [80, 443, 8443]\n")
#define OTHER	   "version: 1\nallow:\n  - host: other.test\n"
/* ok.test by another rule */
#define WILD \
	"version: 1\nallow:\n  - host: \"*.test\"\n    ports: [80, 443, 8443]\n"

static void recheck(struct world *w)
{
	for (size_t i = 0; i < w->listeners; i++)
		listener_recheck(w->listener[i], &w->sandbox);
}

/* All of it happened within the call. */
static void take_away(struct world *w, const char *yaml)
{
	const struct note *n;

	w->notes = 0;
	if (yaml)
		world_policy(w, yaml);
	recheck(w);
	assert_note(w, EVENT_FLOW_CLOSE, false, REASON_POLICY_REVOKED);
	n = note_find(w, EVENT_FLOW_CLOSE);
	assert_string_equal(n->rule_text, "ok.test");
	assert_string_equal(n->host, "ok.test");
}

static void assert_both_reset(struct world *w, int client, int server)
{
	assert_reset(w, client);
	if (server >= 0)
		assert_reset(w, server);
	part(w, client, server);
}

/* Nothing was said, so that all is held. */
static void test_held(void **state)
{
	struct world *w = doors_world(443, OK);

	(void)state;
	for (int i = 0; i < 2; i++) { /* the direct door dials later */
		int client, server;

		world_policy(w, OK);
		client = enter(w, doors[i], 443);
		server = origin_expect(w);
		take_away(w, OTHER);
		assert_both_reset(w, client, server);
	}
	world_free(w);
}

static void test_relaying(void **state)
{
	struct world *w = doors_world(8443, OK);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client, server;

		world_policy(w, OK);
		client = enter(w, doors[i], 8443);
		server = origin_expect(w);
		say_text(client, "\x05hi");
		assert_heard(w, server, "\x05hi", 3);
		say_text(server, "hello");
		assert_heard(w, client, "hello", 5);
		take_away(w, OTHER);
		assert_int_equal(note_find(w, EVENT_FLOW_CLOSE)->up, 3);
		assert_int_equal(note_find(w, EVENT_FLOW_CLOSE)->down, 5);
		assert_both_reset(w, client, server);
	}
	world_free(w);
}

/* It is not this sandbox, or the policy still allows it. */
static void test_stays(void **state)
{
	struct world *w = doors_world(8443, OK);
	struct sandbox stranger = w->sandbox;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client, server;

		world_policy(w, OK);
		client = enter(w, doors[i], 8443);
		server = origin_expect(w);
		say_text(client, "\x05hi");
		assert_heard(w, server, "\x05hi", 3);
		w->notes = 0;
		stranger.policy = NULL;
		listener_recheck(w->listener[0], &stranger);
		listener_recheck(w->listener[1], &stranger);
		world_policy(w, WILD);
		recheck(w);
		assert_int_equal(w->notes, 0);
		say_text(client, "more");
		assert_heard(w, server, "more", 4);
		say_text(server, "too");
		assert_heard(w, client, "too", 3);
		part(w, client, server);
		assert_note(w, EVENT_FLOW_CLOSE, true, REASON_RULE);
		assert_string_equal(note_find(w, EVENT_FLOW_CLOSE)->rule_text,
				    "*.test");
	}
	world_free(w);
}

/* The name is allowed, the address it has now is not. */
static void test_address(void **state)
{
	struct world *w = doors_world(8443, OK);
	int client = enter(w, DOOR_CONNECT, 8443), server = origin_expect(w);

	(void)state;
	take_away(w, OK "deny:\n  - address: " ORIGIN "/32\n");
	assert_both_reset(w, client, server);

	/* or it is where a rule sent it that is no more */
	world_policy(w,
		     RULE("    ports: [8443]\n    connect: " ORIGIN ":8443\n"));
	client = enter(w, DOOR_CONNECT, 8443);
	server = origin_expect(w);
	recheck(w);
	say_text(client, "\x05hi");
	assert_heard(w, server, "\x05hi", 3);
	take_away(w, RULE("    ports: [8443]\n    connect: 127.0.0.77:8443\n"));
	assert_both_reset(w, client, server);
	world_free(w);
}

/* The rule wants something else of it now. */
static void test_protocol(void **state)
{
	struct world *w = doors_world(8443, OK);
	uint8_t hello[512];
	int client = enter(w, DOOR_CONNECT, 8443), server = origin_expect(w);
	size_t len;

	(void)state;
	say_text(client, "\x05hi");
	assert_heard(w, server, "\x05hi", 3);
	take_away(w, RULE("    ports: [8443]\n    protocol: tls\n"));
	assert_both_reset(w, client, server);

	world_policy(w, RULE("    ports: [8443]\n    protocol: any\n"));
	client = enter(w, DOOR_CONNECT, 8443);
	server = origin_expect(w);
	len = say_hello(client, NULL, hello, sizeof(hello));
	assert_heard(w, server, hello, len);
	take_away(w, OK); /* without a name it would not have passed */
	assert_both_reset(w, client, server);

	client = enter(w, DOOR_CONNECT, 8443);
	server = origin_expect(w);
	len = say_hello(client, "ok.test", hello, sizeof(hello));
	assert_heard(w, server, hello, len);
	w->notes = 0;
	world_policy(w, RULE("    ports: [8443]\n    protocol: tls\n"));
	recheck(w);
	assert_int_equal(w->notes, 0);
	take_away(w, RULE("    ports: [8443]\n    methods: [GET]\n"));
	assert_both_reset(w, client, server);

	/* what is still held is judged by the new one */
	world_policy(w, OK);
	client = enter(w, DOOR_CONNECT, 8443);
	server = origin_expect(w);
	world_policy(w, RULE("    ports: [8443]\n    protocol: tls\n"));
	recheck(w);
	say_text(client, "\x05hi");
	assert_origin_silent(w, server);
	assert_refused(w, REASON_PROTOCOL, "ok.test");
	part(w, client, server);
	world_free(w);
}

/* Asked, and not yet answered: nobody is dialled any more. */
static void test_opening(void **state)
{
	struct world *w = doors_world(8443, OK);

	(void)state;
	for (int ledger = 0; ledger < 2; ledger++) {
		int client = dial_to(LEASE, 8443);

		world_policy(w, OK);
		w->ledger_silent = ledger;
		w->resolver_silent = !ledger;
		turn_for(w, 30);
		assert_int_equal(w->sandbox.connections, 1);
		w->cancelled = 0;
		take_away(w, OTHER);
		assert_int_equal(w->cancelled, 1);
		assert_reset(w, client);
		assert_origin_quiet(w);
		part(w, client, -1);
	}
	world_free(w);
}

/* Asked for its addresses, and then a rule says where it is instead. */
static void test_looking_up(void **state)
{
	struct world *w = doors_world(8443, OK);
	int client = dial_to(LEASE, 8443), elsewhere = w->origin, server;
	struct ip ip;

	(void)state;
	ip_parse("127.0.0.11", &ip);
	w->resolver_silent = true;
	turn_for(w, 30);
	world_policy(w, RULE("    ports: [8443]\n"
			     "    connect: 127.0.0.11:8444\n"));
	recheck(w);
	w->origin = listen_at("127.0.0.11", 8444);
	world_resolved(w, w->lookup);
	server = origin_expect(w);
	turn_for(w, 20);
	assert_note(w, EVENT_FLOW_DIAL, true, REASON_RULE);
	assert_true(ip_equal(&note_find(w, EVENT_FLOW_DIAL)->ip, &ip));
	close(elsewhere);
	part(w, client, server);
	world_free(w);
}

/* Takes SYNs, and answers none. */
static void fill(struct world *w, int full[4])
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(8443),
					.sin_addr.s_addr = inet_addr(ORIGIN) };

	assert_int_equal(listen(w->origin, 0), 0);
	for (int i = 0; i < 4; i++) {
		full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(full[i], (const void *)&to, sizeof(to));
	}
	turn_for(w, 20);
}

/* Of the addresses that are tried one is not allowed any more. */
static void test_dialling_another(void **state)
{
	struct world *w = doors_world(8443, OK);
	int full[4], client, server, first = w->origin;
	struct ip ip;

	(void)state;
	fill(w, full);
	ip_parse("127.0.0.11", &ip);
	w->origin = listen_at("127.0.0.11", 8443);
	w->answer[0] = ORIGIN;
	w->answer[1] = "127.0.0.11";
	client = dial_to(LEASE, 8443);
	turn_for(w, 60);
	w->notes = 0;
	world_policy(w, OK "deny:\n  - address: " ORIGIN "/32\n");
	recheck(w);
	server = origin_accept(w, 150); /* before it would be its turn */
	assert_true(server >= 0);
	turn_for(w, 20);
	assert_note(w, EVENT_FLOW_DIAL, true, REASON_RULE);
	assert_true(ip_equal(&note_find(w, EVENT_FLOW_DIAL)->ip, &ip));
	for (int i = 0; i < 4; i++)
		close(full[i]);
	close(first);
	part(w, client, server);
	world_free(w);
}

/* A SYN is out, and its answer must not come to anything. */
static void test_dialling(void **state)
{
	struct world *w = doors_world(8443, OK);
	int full[4], client, came = 0;

	(void)state;
	fill(w, full);
	client = dial_to(LEASE, 8443);
	turn_for(w, 100);
	assert_null(note_find(w, EVENT_FLOW_DIAL));
	take_away(w, OTHER);
	assert_reset(w, client);
	for (int i = 0; i < 4; i++)
		close(full[i]);
	for (int64_t end = clock_ms() + 2500; clock_ms() < end;) {
		int fd = accept4(w->origin, NULL, NULL, SOCK_NONBLOCK);
		char byte;

		turn(w);
		if (fd < 0)
			continue;
		/* one of ours would stay open */
		came += recv(fd, &byte, 1, 0) < 0 && errno == EAGAIN;
		close(fd);
	}
	assert_int_equal(came, 0);
	part(w, client, -1);
	world_free(w);
}

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
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_relaying),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_address),
		cmocka_unit_test(test_protocol),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_dialling),
		cmocka_unit_test(test_looking_up),
		cmocka_unit_test(test_dialling_another),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
