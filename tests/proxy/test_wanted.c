/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rule's `protocol` wants of a connection, through every door: `tls` and
 * `http` on ports that are for something else, and `any`.
 */
#include "tests/proxy/doors.h"

#define RULE(ports, protocol)                                      \
	"version: 1\nallow:\n  - host: ok.test\n    ports: " ports \
	"\n    protocol: " protocol "\n"
#define GET "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"

/* TLS on 80: nothing else, and only by the right name. */
static void test_tls_on_80(void **state)
{
	struct world *w = doors_world(80, RULE("[80]", "tls"));
	uint8_t hello[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client = enter(w, doors[i], 80), server;
		size_t len = say_hello(client, "ok.test", hello, sizeof(hello));

		server = origin_expect(w);
		assert_heard(w, server, hello, len);
		part(w, client, server);

		for (int j = 0; j < 3; j++) {
			client = enter(w, doors[i], 80);
			if (j == 0)
				say_hello(client, "evil.test", hello, 512);
			else if (j == 1)
				say_hello(client, NULL, hello, 512);
			else
				say_text(client, GET);
			assert_over(w, client);
			assert_refused(w,
				       j == 0	? REASON_NAME_MISMATCH
				       : j == 1 ? REASON_NO_NAME
						: REASON_PROTOCOL,
				       "ok.test");
			server = origin_accept(w, 60);
			/* A direct connection is looked at before the SYN. */
			assert_int_equal(server >= 0,
					 doors[i] != DOOR_TRANSPARENT);
			if (server >= 0)
				assert_origin_silent(w, server);
			part(w, client, server);
		}
	}
	world_free(w);
}

/* A whole URL to a host whose rule wants TLS. */
static void test_request_where_tls(void **state)
{
	struct world *w = doors_world(80, RULE("[80, 443]", "tls"));
	static const char *const text[] = {
		"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
		"GET http://ok.test:443/ HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		int client = dial_to(PROXY, PROXY_PORT);

		say_text(client, text[i]);
		assert_memory_equal(hear_all(w, client), "HTTP/1.1 400", 12);
		assert_note(w, EVENT_HTTP_REQUEST, false, REASON_PROTOCOL);
		assert_origin_quiet(w);
		part(w, client, -1);
	}
	world_free(w);
}

/* HTTP on a port of its own: nobody is dialled before there is a request. */
static void test_http_elsewhere(void **state)
{
	struct world *w = doors_world(8080, RULE("[8080]", "http"));
	static const char want[] = "GET / HTTP/1.1\r\nHost: ok.test:8080\r\n";
	uint8_t hello[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client = enter(w, doors[i], 8080), server;

		assert_origin_quiet(w);
		say_text(client,
			 "GET / HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n");
		server = origin_expect(w);
		assert_heard(w, server, want, sizeof(want) - 1);
		part(w, client, server);

		client = enter(w, doors[i], 8080);
		say_hello(client, "ok.test", hello, sizeof(hello));
		assert_over(w, client);
		assert_note(w, EVENT_FLOW_OPEN, false, REASON_PROTOCOL);
		assert_origin_quiet(w);
		part(w, client, -1);

		client = enter(w, doors[i], 8080);
		say_text(client, "EHLO me\r\n");
		assert_over(w, client);
		assert_note(w, EVENT_FLOW_OPEN, false, REASON_PROTOCOL);
		assert_origin_quiet(w);
		part(w, client, -1);
	}
	world_free(w);
}

/* The server speaks first, on 443 and on 80 too. */
static void test_any_server_first(void **state)
{
	static const uint16_t ports[] = { 443, 80, 25 };

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(ports); p++) {
		struct world *w =
			doors_world(ports[p], RULE("[25, 80, 443]", "any"));

		for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
			int client = enter(w, doors[i], ports[p]);
			int server = origin_expect(w);

			say_text(server, "220 hello\r\n");
			assert_heard(w, client, "220 hello\r\n", 11);
			say_text(client, "EHLO me\r\n");
			assert_heard(w, server, "EHLO me\r\n", 9);
			part(w, client, server);
		}
		world_free(w);
	}
}

/* What cannot be told apart waits a moment, not ten seconds. */
static void test_any_unclear(void **state)
{
	static const char *const text[] = { "G", "\x16", "\r\n", "\x80\x2e" };
	struct world *w = doors_world(443, RULE("[443]", "any"));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		int client = enter(w, doors[i % 3], 443), server;
		int64_t start = now_ms();
		char byte;

		say_text(client, text[i]);
		server = origin_expect(w);
		turn_for(w, 200);
		/* As long as the moment is not over. */
		if (now_ms() - start < 800)
			assert_int_equal(
				recv(server, &byte, 1, MSG_DONTWAIT | MSG_PEEK),
				-1);
		start = now_ms();
		assert_heard(w, server, text[i], strlen(text[i]));
		assert_in_range(now_ms() - start, 0, 1000);
		say_text(client, "more");
		assert_heard(w, server, "more", 4);
		part(w, client, server);
	}
	world_free(w);
}

/* What is TLS has to be whole, and to name the host, if it names one. */
static void test_any_tls(void **state)
{
	struct world *w = doors_world(443, RULE("[443]", "any"));
	uint8_t hello[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client = enter(w, doors[i], 443);
		int server = origin_expect(w);
		size_t len = say_hello(client, NULL, hello, sizeof(hello));

		assert_heard(w, server, hello, len);
		part(w, client, server);

		client = enter(w, doors[i], 443);
		server = origin_expect(w);
		len = say_hello(client, "ok.test", hello, sizeof(hello));
		assert_heard(w, server, hello, len);
		part(w, client, server);

		client = enter(w, doors[i], 443);
		server = origin_expect(w);
		say_hello(client, "evil.test", hello, sizeof(hello));
		assert_origin_silent(w, server);
		assert_refused(w, REASON_NAME_MISMATCH, "ok.test");
		part(w, client, server);
	}
	world_free(w);
}

/* Half a hello does not pass because time did. */
static void test_any_half_hello(void **state)
{
	struct world *w = doors_world(443, RULE("[443]", "any"));
	const struct hello_spec spec = { .name = "evil.test" };
	uint8_t hello[512];
	size_t len = hello_make(&spec, hello, sizeof(hello));
	int client = enter(w, DOOR_CONNECT, 443), server = origin_expect(w);

	(void)state;
	say(client, hello, 20);
	turn_for(w, 1500);
	assert_int_equal(recv(server, hello, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	say(client, hello + 20, len - 20);
	assert_origin_silent(w, server);
	assert_refused(w, REASON_NAME_MISMATCH, "ok.test");
	part(w, client, server);

	/* nor for ever */
	client = enter(w, DOOR_CONNECT, 443);
	server = origin_expect(w);
	say(client, hello, 20);
	turn_for(w, 8500);
	assert_origin_silent(w, server);
	assert_refused(w, REASON_TIMEOUT, "ok.test");
	part(w, client, server);
	world_free(w);
}

/* HTTP is judged request by request; HTTP/2 would not be. */
static void test_any_http(void **state)
{
	struct world *w = doors_world(443, RULE("[443]", "any"));
	static const char want[] = "GET / HTTP/1.1\r\nHost: ok.test:443\r\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client = enter(w, doors[i], 443);
		int unused = origin_expect(w), server;

		say_text(client, "GET / HTTP/1.1\r\nHost: ok.test:443\r\n\r\n");
		server = origin_expect(w);
		assert_origin_silent(w, unused);
		assert_heard(w, server, want, sizeof(want) - 1);
		close(unused);
		part(w, client, server);

		client = enter(w, doors[i], 443);
		server = origin_expect(w);
		say_text(client,
			 "GET / HTTP/1.1\r\nHost: evil.test:443\r\n\r\n");
		assert_origin_silent(w, server);
		assert_over(w, client);
		assert_note(w, EVENT_HTTP_REQUEST, false, REASON_NAME_MISMATCH);
		part(w, client, server);

		client = enter(w, doors[i], 443);
		server = origin_expect(w);
		say_text(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
		assert_origin_silent(w, server);
		assert_refused(w, REASON_PROTOCOL, "ok.test");
		part(w, client, server);
	}
	world_free(w);
}

/* Under `serve` only the first message says which rule it is. */
static void test_serve(void **state)
{
	struct world *w = doors_world(443, "version: 1\n"
					   "allow:\n"
					   "  - host: ok.test\n"
					   "    ports: [80, 443]\n"
					   "    protocol: tls\n"
					   "  - host: web.test\n"
					   "    ports: [80, 443]\n"
					   "    protocol: http\n");
	uint8_t hello[512];
	int client, server;
	size_t len;

	(void)state;
	world_listen(w, LISTENER_TLS, UNLEASED, 7443);
	world_listen(w, LISTENER_HTTP, UNLEASED, 7080);
	client = dial_to(UNLEASED, 7443);
	len = say_hello(client, "ok.test", hello, sizeof(hello));
	server = origin_expect(w);
	assert_heard(w, server, hello, len);
	part(w, client, server);

	client = dial_to(UNLEASED, 7443);
	say_hello(client, "web.test", hello, sizeof(hello));
	assert_over(w, client);
	assert_refused(w, REASON_PROTOCOL, "web.test");
	assert_origin_quiet(w);
	part(w, client, -1);

	client = dial_to(UNLEASED, 7080);
	say_text(client, GET);
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 400", 12);
	assert_note(w, EVENT_HTTP_REQUEST, false, REASON_PROTOCOL);
	assert_origin_quiet(w);
	part(w, client, -1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tls_on_80),
		cmocka_unit_test(test_request_where_tls),
		cmocka_unit_test(test_http_elsewhere),
		cmocka_unit_test(test_any_server_first),
		cmocka_unit_test(test_any_unclear),
		cmocka_unit_test(test_any_tls),
		cmocka_unit_test(test_any_half_hello),
		cmocka_unit_test(test_any_http),
		cmocka_unit_test(test_serve),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
