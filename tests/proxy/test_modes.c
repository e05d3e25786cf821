/* SPDX-License-Identifier: Apache-2.0
 *
 * `mode: observe`, `default: public` and `connect`: flows that no rule allows,
 * and one that goes where the rule says.
 */
#include "tests/proxy/doors.h"

#define OBSERVE                         \
	"version: 1\n"                  \
	"mode: observe\n"               \
	"allow:\n"                      \
	"  - host: some.test\n"         \
	"  - address: " LITERAL "/32\n" \
	"    ports: [443, 8443]\n"      \
	"deny:\n"                       \
	"  - ok.test\n"

/* ok.test is denied, and only observed. */
static void test_observe(void **state)
{
	static const uint16_t ports[] = { 443, 8443 };
	uint8_t hello[512];

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(ports); p++) {
		struct world *w = doors_world(ports[p], OBSERVE);

		for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
			int client = enter(w, doors[i], ports[p]), server;
			size_t len = say_hello(client, "ok.test", hello,
					       sizeof(hello));

			server = origin_expect(w);
			assert_heard(w, server, hello, len);
			assert_note(w, EVENT_FLOW_OPEN, true, REASON_OBSERVE);
			assert_int_equal(
				note_find(w, EVENT_FLOW_OPEN)->observed,
				REASON_DENY_RULE);
			part(w, client, server);
			assert_note(w, EVENT_FLOW_CLOSE, true, REASON_OBSERVE);

			/* that names agree is nothing to be observed only */
			client = enter(w, doors[i], ports[p]);
			say_hello(client, "evil.test", hello, sizeof(hello));
			assert_over(w, client);
			assert_refused(w, REASON_NAME_MISMATCH, "ok.test");
			server = origin_accept(w, 60);
			if (server >= 0)
				assert_origin_silent(w, server);
			part(w, client, server);
		}
		world_free(w);
	}
}

/* Nobody allowed it, and no rule has anything against it: rule NULL. */
static void test_observe_without_rule(void **state)
{
	struct world *w = doors_world(8443, OBSERVE);
	int client = dial_to(PROXY, PROXY_PORT), server;

	(void)state;
	say_text(client, "CONNECT else.test:8443 HTTP/1.1\r\n"
			 "Host: else.test:8443\r\n\r\n");
	server = origin_expect(w);
	assert_int_equal(note_find(w, EVENT_FLOW_OPEN)->observed,
			 REASON_NOT_IN_POLICY);
	assert_string_equal(note_find(w, EVENT_FLOW_OPEN)->rule_text, "");
	listener_recheck(w->listener[0], &w->sandbox);
	part(w, client, server);
	assert_note(w, EVENT_FLOW_CLOSE, true, REASON_OBSERVE);

	close_fd(&w->origin);
	w->origin = listen_at(ORIGIN, 80);
	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, "GET http://else.test/ HTTP/1.1\r\nHost: else.test\r\n"
			 "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
	server = origin_expect(w);
	assert_note(w, EVENT_HTTP_REQUEST, true, REASON_OBSERVE);
	listener_recheck(w->listener[0], &w->sandbox);
	part(w, client, server);
	world_free(w);
}

/* A name on a literal address: being observed is not a rule of its own. */
static void test_observe_name_on_address(void **state)
{
	struct world *w = doors_world(443, OBSERVE);
	uint8_t hello[512];
	int client;

	(void)state;
	world_listen(w, LISTENER_TRANSPARENT, LITERAL, 443);
	client = dial_to(LITERAL, 443);
	say_hello(client, "else.test", hello, sizeof(hello));
	assert_over(w, client);
	assert_refused(w, REASON_NAME_MISMATCH, "");
	part(w, client, -1);
	world_free(w);
}

/* A rule that is only not kept to lends nothing of what it says: where to
 * connect, or what to speak. */
static void test_observe_lends_nothing(void **state)
{
	struct world *w = doors_world(8443, "version: 1\n"
					    "mode: observe\n"
					    "allow:\n"
					    "  - host: ok.test\n"
					    "    ports: [8080]\n"
					    "    protocol: tls\n"
					    "    connect: 127.0.0.77:7777\n");
	int client = enter(w, DOOR_CONNECT, 8443), server = origin_expect(w);

	(void)state;
	assert_int_equal(note_find(w, EVENT_FLOW_OPEN)->observed, REASON_PORT);
	assert_string_equal(w->resolved, "ok.test");
	say_text(client, "SSH-2.0-x\r\n");
	assert_heard(w, server, "SSH-2.0-x\r\n", 11);
	part(w, client, server);
	world_free(w);
}

/* But one that has only another method or path in mind does. */
static void test_observe_requests(void **state)
{
	struct world *w = doors_world(8080, "version: 1\n"
					    "mode: observe\n"
					    "allow:\n"
					    "  - host: ok.test\n"
					    "    ports: [8080]\n"
					    "    methods: [GET]\n"
					    "    paths: [/a/**]\n");
	static const struct {
		const char *request;
		enum reason observed;
	} rows[] = {
		{ "DELETE /a/b", REASON_METHOD },
		{ "GET /b", REASON_PATH },
	};
	char text[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(doors); i++) {
		int client = enter(w, doors[i / 2], 8080), server;

		snprintf(text, sizeof(text),
			 "%s HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n",
			 rows[i % 2].request);
		say_text(client, text);
		server = origin_expect(w);
		assert_note(w, EVENT_HTTP_REQUEST, true, REASON_OBSERVE);
		assert_int_equal(note_find(w, EVENT_HTTP_REQUEST)->observed,
				 rows[i % 2].observed);
		listener_recheck(w->listener[0], &w->sandbox);
		listener_recheck(w->listener[1], &w->sandbox);
		part(w, client, server);
	}
	world_free(w);
}

#define PUBLIC                          \
	"version: 1\n"                  \
	"default: public\n"             \
	"allow:\n"                      \
	"  - address: " LITERAL "/32\n" \
	"    ports: [443]\n"            \
	"deny:\n"                       \
	"  - denied.test\n"

static void test_public(void **state)
{
	struct world *w = doors_world(443, PUBLIC);
	uint8_t hello[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client = enter(w, doors[i], 443), server;
		size_t len = say_hello(client, "ok.test", hello, sizeof(hello));

		server = origin_expect(w);
		assert_heard(w, server, hello, len);
		assert_note(w, EVENT_FLOW_OPEN, true, REASON_PUBLIC);
		listener_recheck(w->listener[0], &w->sandbox);
		listener_recheck(w->listener[1], &w->sandbox);
		part(w, client, server);
		assert_note(w, EVENT_FLOW_CLOSE, true, REASON_PUBLIC);

		/* it has to be TLS */
		client = enter(w, doors[i], 443);
		say_text(client, "GET / HTTP/1.1\r\nHost: ok.test:443\r\n\r\n");
		assert_over(w, client);
		assert_refused(w, REASON_PROTOCOL, "ok.test");
		server = origin_accept(w, 60);
		if (server >= 0)
			assert_origin_silent(w, server);
		part(w, client, server);
	}
	world_free(w);
}

/* A public name on a literal address has a rule: the default. */
static void test_public_name_on_address(void **state)
{
	static const char *const name[] = { "pub.test", "denied.test" };
	struct world *w = doors_world(443, PUBLIC);
	uint8_t hello[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		int client;

		if (!i)
			world_listen(w, LISTENER_TRANSPARENT, LITERAL, 443);
		client = dial_to(LITERAL, 443);
		w->notes = 0;
		say_hello(client, name[i], hello, sizeof(hello));
		turn_for(w, 50);
		assert_note(w, EVENT_FLOW_OPEN, !i,
			    i ? REASON_NAME_MISMATCH : REASON_RULE);
		close(client);
		turn_for(w, 50);
	}
	world_free(w);
}

#define CONNECT(at)                    \
	"version: 1\n"                 \
	"allow:\n"                     \
	"  - host: ok.test\n"          \
	"    ports: [80, 443, 8443]\n" \
	"    connect: " at "\n"

static const struct endpoint *own_port(void *ctx, size_t *ret_count)
{
	static struct endpoint self;

	(void)ctx;
	ip_parse(PROXY, &self.ip);
	self.port = PROXY_PORT;
	*ret_count = 1;
	return &self;
}

/* No look-up; the name is still what has to be said. */
static void test_connect(void **state)
{
	struct world *w = doors_world(443, CONNECT("127.0.0.77:7777"));
	uint8_t hello[512];
	struct ip ip;
	int client, server;

	(void)state;
	ip_parse("127.0.0.77", &ip);
	close_fd(&w->origin);
	w->origin = listen_at("127.0.0.77", 7777);
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		size_t len;

		client = enter(w, doors[i], 443);
		len = say_hello(client, "ok.test", hello, sizeof(hello));
		server = origin_expect(w);
		assert_heard(w, server, hello, len);
		assert_true(ip_equal(&note_find(w, EVENT_FLOW_DIAL)->ip, &ip));
		assert_string_equal(note_find(w, EVENT_FLOW_DIAL)->detail,
				    "127.0.0.77:7777");
		listener_recheck(w->listener[0], &w->sandbox);
		listener_recheck(w->listener[1], &w->sandbox);
		say_text(server, "still");
		assert_heard(w, client, "still", 5);
		part(w, client, server);

		client = enter(w, doors[i], 443);
		say_hello(client, "evil.test", hello, sizeof(hello));
		assert_over(w, client);
		assert_refused(w, REASON_NAME_MISMATCH, "ok.test");
		server = origin_accept(w, 60);
		part(w, client, server);
	}
	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, "GET http://ok.test:8443/x HTTP/1.1\r\n"
			 "Host: ok.test:8443\r\n\r\n");
	server = origin_expect(w);
	assert_heard(w, server, "GET /x HTTP/1.1\r\nHost: ok.test:8443\r\n",
		     37);
	part(w, client, server);
	assert_string_equal(w->resolved, "");
	world_free(w);
}

static void test_connect_to_self(void **state)
{
	struct world *w = doors_world(443, CONNECT(PROXY ":3128"));
	int client = dial_to(PROXY, PROXY_PORT);

	(void)state;
	w->services.self = own_port;
	say_text(client, "CONNECT ok.test:443 HTTP/1.1\r\n"
			 "Host: ok.test:443\r\n\r\n");
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_note(w, EVENT_FLOW_DIAL, false, REASON_SELF);
	part(w, client, -1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_observe),
		cmocka_unit_test(test_observe_without_rule),
		cmocka_unit_test(test_observe_name_on_address),
		cmocka_unit_test(test_observe_lends_nothing),
		cmocka_unit_test(test_observe_requests),
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_public_name_on_address),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_connect_to_self),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
