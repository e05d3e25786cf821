/* SPDX-License-Identifier: Apache-2.0
 *
 * test_recheck.c - another policy: what it does not allow any more is cut
 * before the call returns, wherever it stands; the rest goes on by it.
 */
#include "tests/proxy/recheck_case.h"

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
	for (int64_t end = now_ms() + 2500; now_ms() < end;) {
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
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
