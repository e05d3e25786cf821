/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transparent.c - the transparent door: whatever is spoken, on any port.
 */
#include "tests/proxy/transparent_case.h"

/* Refused before any SYN: the origin never hears of it. */
static void check_tls_refused(struct world *w, const char *ip,
			      const uint8_t *bytes, size_t len,
			      enum reason reason, const char *host,
			      const char *sni)
{
	int client = dial_to(ip, 443);
	const char *alert;

	w->notes = 0;
	say(client, bytes, len);
	alert = hear_all(w, client);
	assert_memory_equal(alert, "\x15\x03\x03\0\x02\x02", 6);
	assert_int_equal((uint8_t)alert[6], reason_info(reason)->tls_alert);
	assert_origin_quiet(w);
	assert_int_equal(w->notes, 1);
	assert_refused(w, reason, host);
	assert_string_equal(w->note[0].sni, sni);
	close(client);
	turn_for(w, 10);
	assert_int_equal(w->sandbox.connections, 0);
}

static void test_tls(void **state)
{
	struct world *w = transparent_world(LEASE, 443, 443);
	uint8_t hello[256];
	size_t len = make_hello("ok.test", hello, sizeof(hello));
	const struct note *n;

	(void)state;
	for (int slowly = 0; slowly < 2; slowly++) {
		int client = dial_to(LEASE, 443), server;

		if (slowly)
			say_slowly(w, client, hello, len);
		else
			say(client, hello, len);
		server = origin_expect(w);
		assert_heard(w, server, hello, len);
		n = note_find(w, EVENT_FLOW_OPEN);
		assert_true(n->allow);
		assert_string_equal(n->host, "ok.test");
		assert_string_equal(n->sni, "ok.test");
		assert_string_equal(n->protocol, "tls");
		say(server, "\x16\x03\x03", 3);
		assert_heard(w, client, "\x16\x03\x03", 3);
		close(client);
		close(server);
		turn_for(w, 20);
		n = note_find(w, EVENT_FLOW_CLOSE);
		assert_int_equal(n->up, len);
		assert_int_equal(n->down, 3);
	}
	world_free(w);
}

static void test_tls_refused(void **state)
{
	struct world *w = transparent_world(LEASE, 443, 443);
	uint8_t hello[256];
	size_t len = make_hello("evil.test", hello, sizeof(hello));

	(void)state;
	check_tls_refused(w, LEASE, hello, len, REASON_NAME_MISMATCH, "ok.test",
			  "evil.test");
	len = make_hello("other.test", hello, sizeof(hello));
	check_tls_refused(w, LEASE, hello, len, REASON_NAME_MISMATCH, "ok.test",
			  "other.test");
	len = make_hello(NULL, hello, sizeof(hello));
	check_tls_refused(w, LEASE, hello, len, REASON_NO_NAME, "ok.test", "");
	check_tls_refused(w, LEASE, (const uint8_t *)"SSH-2.0-x\r\n", 11,
			  REASON_PROTOCOL, "ok.test", "");
	check_tls_refused(w, LEASE, (const uint8_t *)"\x16\x03\x01\0\0", 5,
			  REASON_MALFORMED, "ok.test", "");
	world_free(w);
}

/* ECH or GREASE: judged by the outer name, and the record says so (T8). */
static void test_ech(void **state)
{
	const struct hello_spec spec = { .name = "ok.test", .extra = 0xfe0d };
	struct world *w = transparent_world(LEASE, 443, 443);
	uint8_t hello[256];
	size_t len = hello_make(&spec, hello, sizeof(hello));
	int client = dial_to(LEASE, 443), server;

	(void)state;
	say(client, hello, len);
	server = origin_expect(w);
	assert_heard(w, server, hello, len);
	close(client);
	close(server);
	turn_for(w, 20);
	assert_true(note_find(w, EVENT_FLOW_CLOSE)->ech);
	world_free(w);
}

/* An address that is nobody's lease, and one that the policy has. */
static void test_addresses(void **state)
{
	struct world *w = transparent_world(UNLEASED, 443, 0);
	uint8_t hello[256];
	size_t len = make_hello(NULL, hello, sizeof(hello));
	int client;

	(void)state;
	w->origin = listen_at(LITERAL, 443);
	check_tls_refused(w, UNLEASED, hello, len, REASON_LITERAL_ADDRESS, "",
			  "");
	world_free(w);

	/* In the policy, but the name in TLS has no rule for this port. */
	w = transparent_world(LITERAL, 443, 0);
	w->origin = listen_at(ORIGIN, 443);
	len = make_hello("other.test", hello, sizeof(hello));
	check_tls_refused(w, LITERAL, hello, len, REASON_NAME_MISMATCH, "",
			  "other.test");
	world_free(w);

	w = transparent_world(UNLEASED, 8443, 8443);
	client = dial_to(UNLEASED, 8443);
	assert_reset(w, client);
	assert_refused(w, REASON_LITERAL_ADDRESS, "");
	assert_origin_quiet(w);
	close(client);
	world_free(w);
}

/* Port 22: the server speaks first, then the client. */
static void test_server_first(void **state)
{
	struct world *w = transparent_world(LEASE, 22, 22);
	int client = dial_to(LEASE, 22), server;

	(void)state;
	server = origin_expect(w);
	say(server, "SSH-2.0-server\r\n", 16);
	assert_heard(w, client, "SSH-2.0-server\r\n", 16);
	say(client, "SSH-2.0-client\r\n", 16);
	assert_heard(w, server, "SSH-2.0-client\r\n", 16);
	assert_string_equal(note_find(w, EVENT_FLOW_OPEN)->host, "ok.test");
	close(client);
	close(server);
	world_free(w);
}

/* A client that ends early, half a word said: it may pass, and so may one that
 * says nothing at all. */
static void test_half_close(void **state)
{
	static const char *const words[] = { "G", "" };
	struct world *w = transparent_world(LEASE, 22, 22);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		int client = dial_to(LEASE, 22), server = origin_expect(w);
		char buf[8];
		int end;

		say(client, words[i], strlen(words[i]));
		shutdown(client, SHUT_WR);
		assert_int_equal(hear(w, server, buf, sizeof(buf), &end),
				 strlen(words[i]));
		assert_int_equal(end, 1);
		close(client);
		close(server);
		turn_for(w, 10);
	}
	world_free(w);
}

/* Other ports: what is TLS there has to name the host too. */
static void test_other_port(void **state)
{
	static const struct {
		const char *text; /* NULL: a hello */
		const char *name;
		enum reason reason;
	} rows[] = {
		{ NULL, "ok.test", REASON_RULE },
		{ NULL, "evil.test", REASON_NAME_MISMATCH },
		{ NULL, NULL, REASON_NO_NAME },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NULL, REASON_PROTOCOL },
		{ "EHLO me\r\n", NULL, REASON_RULE },
		{ "\x05\x01", NULL, REASON_RULE },
	};
	struct world *w = transparent_world(LEASE, 8443, 8443);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t buf[256];
		size_t len;
		int client = dial_to(LEASE, 8443), server = origin_expect(w);

		print_message("row %zu\n", i);
		w->notes = 0;
		if (rows[i].text) {
			len = strlen(rows[i].text);
			memcpy(buf, rows[i].text, len);
		} else {
			len = make_hello(rows[i].name, buf, sizeof(buf));
		}
		say_slowly(w, client, buf, len);
		if (rows[i].reason == REASON_RULE) {
			assert_heard(w, server, buf, len);
		} else {
			const struct note *n;

			assert_origin_silent(w, server);
			n = note_find(w, EVENT_FLOW_OPEN);
			assert_non_null(n);
			assert_int_equal(n->reason, rows[i].reason);
			assert_false(n->allow);
		}
		close(client);
		close(server);
		turn_for(w, 10);
	}
	world_free(w);
}

/* HTTP on other ports: each request is judged alone, and gets an answer. */
static void test_other_port_http(void **state)
{
	static const struct {
		const char *text, *reason;
	} rows[] = {
		{ "GET / HTTP/1.1\r\nHost: evil.test:8443\r\n\r\n",
		  "name_mismatch" },
		{ "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n", "name_mismatch" },
		{ "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		  "name_mismatch" },
		{ "CONNECT ok.test:443 HTTP/1.1\r\nHost: "
		  "ok.test:443\r\n\r\n",
		  "protocol" },
		{ "GET / HTTP/1.1\r\n\r\n", "malformed" },
		{ "get / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "malformed" },
		{ "\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		  "name_mismatch" },
	};
	struct world *w = transparent_world(LEASE, 8443, 8443);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int client = dial_to(LEASE, 8443), server = origin_expect(w);
		const struct note *n;
		char want[80];

		print_message("row %zu\n", i);
		w->notes = 0;
		say_slowly(w, client, rows[i].text, strlen(rows[i].text));
		snprintf(want, sizeof(want), "X-Sallyport-Reason: %s\r\n",
			 rows[i].reason);
		assert_non_null(strstr(hear_all(w, client), want));
		assert_origin_silent(w, server);
		assert_origin_quiet(w);
		n = note_find(w, EVENT_FLOW_CLOSE);
		assert_non_null(n);
		assert_int_equal(n->up + n->down, 0);
		close(client);
		close(server);
		turn_for(w, 10);
	}
	assert_int_equal(w->sandbox.connections, 0);
	world_free(w);
}

/* The second request of a connection names another host. */
static void test_other_port_keep_alive(void **state)
{
	static const char first[] =
		"GET /a HTTP/1.1\r\nHost: ok.test:8443\r\n\r\n";
	static const char second[] =
		"GET /b HTTP/1.1\r\nHost: other.test:8443\r\n\r\n";
	struct world *w = transparent_world(LEASE, 8443, 8443);
	char got[4096];

	(void)state;
	for (int pipelined = 0; pipelined < 2; pipelined++) {
		int client = dial_to(LEASE, 8443), probe = origin_expect(w);
		int server, end;
		size_t len = 0;

		say(client, first, sizeof(first) - 1);
		if (pipelined)
			say(client, second, sizeof(second) - 1);
		assert_origin_silent(w, probe);
		server = origin_expect(w);
		assert_heard(w, server, "GET /a HTTP/1.1\r\n", 17);
		say(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		    40);
		do {
			len += hear(w, client, got + len, 1, &end);
			got[len] = '\0';
		} while (!end && !strstr(got, "\r\n\r\nhi"));
		assert_int_equal(strncmp(got, "HTTP/1.1 200", 12), 0);
		if (!pipelined)
			say(client, second, sizeof(second) - 1);
		assert_non_null(
			strstr(hear_all(w, client),
			       "X-Sallyport-Reason: name_mismatch\r\n"));
		assert_origin_quiet(w);
		assert_string_equal(note_find(w, EVENT_HTTP_REQUEST)->detail,
				    "Host says other.test:8443 on a connection "
				    "for another");
		close(client);
		close(server);
		close(probe);
		turn_for(w, 10);
	}
	world_free(w);
}

/* A server that has spoken is no HTTP server. */
static void test_server_first_http(void **state)
{
	struct world *w = transparent_world(LEASE, 8443, 8443);
	int client = dial_to(LEASE, 8443), server = origin_expect(w);

	(void)state;
	say(server, "220 hello\r\n", 11);
	assert_heard(w, client, "220 hello\r\n", 11);
	say(client, "GET / HTTP/1.1\r\nHost: ok.test:8443\r\n\r\n", 38);
	assert_origin_silent(w, server);
	assert_refused(w, REASON_PROTOCOL, "ok.test");
	close(client);
	close(server);
	world_free(w);
}

static void test_http(void **state)
{
	struct world *w = transparent_world(LEASE, 80, 80);
	int client = dial_to(LEASE, 80), server;

	(void)state;
	say(client, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n", 34);
	server = origin_expect(w);
	assert_heard(w, server, "GET /a HTTP/1.1\r\n", 17);
	close(client);
	close(server);
	client = dial_to(LEASE, 80);
	say(client, "GET /a HTTP/1.1\r\nHost: evil.test\r\n\r\n", 36);
	assert_non_null(strstr(hear_all(w, client),
			       "X-Sallyport-Reason: name_mismatch\r\n"));
	assert_origin_quiet(w);
	close(client);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tls),
		cmocka_unit_test(test_tls_refused),
		cmocka_unit_test(test_ech),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_server_first),
		cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_other_port),
		cmocka_unit_test(test_other_port_http),
		cmocka_unit_test(test_other_port_keep_alive),
		cmocka_unit_test(test_server_first_http),
		cmocka_unit_test(test_http),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
