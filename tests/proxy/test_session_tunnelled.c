/* SPDX-License-Identifier: Apache-2.0
 *
 * test_session_tunnelled.c - what is spoken within a tunnel of the explicit
 * door is looked at too.
 */
#include "tests/proxy/session_case.h"

/* A tunnel to 443, opened: what the client says first decides. */
static void tunnel_443(struct world *w, int *client, int *server)
{
	*client = dial_proxy();
	say_text(*client, "CONNECT ok.test:443 HTTP/1.1\r\n"
			  "Host: ok.test:443\r\n\r\n");
	assert_heard(w, *client, YES, sizeof(YES) - 1);
	*server = origin_expect(w);
}

static void test_sni(void **state)
{
	static const struct {
		const char *name;
		enum reason reason;
	} rows[] = {
		{ "ok.test", REASON_RULE },
		{ "OK.TEST", REASON_RULE },
		{ "evil.test", REASON_NAME_MISMATCH },
		{ "other.test", REASON_NAME_MISMATCH },
		{ "ok.test.", REASON_MALFORMED },
		{ NULL, REASON_NO_NAME },
	};
	struct world *w = explicit_world(443);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct hello_spec spec = { .name = rows[i].name };
		uint8_t hello[256], alert[7];
		size_t len = hello_make(&spec, hello, sizeof(hello));
		int client, server, end;

		tunnel_443(w, &client, &server);
		say_slowly(w, client, hello, len);
		if (rows[i].reason == REASON_RULE) {
			assert_heard(w, server, hello, len);
		} else {
			assert_origin_silent(w, server);
			assert_int_equal(hear(w, client, alert, 7, &end), 7);
			assert_memory_equal(alert, "\x15\x03\x03\0\x02\x02", 6);
			assert_refused(w, rows[i].reason, "ok.test");
		}
		close(client);
		close(server);
		turn_for(w, 20);
	}
	assert_int_equal(w->sandbox.connections, 0);
	world_free(w);
}

/* 443 is TLS, whatever the server might have understood (T11). */
static void test_443_is_tls(void **state)
{
	static const char *const rows[] = {
		"SSH-2.0-x\r\n", "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n", "x",
		"\x15\x03\x01"
	};
	struct world *w = explicit_world(443);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int client, server;

		tunnel_443(w, &client, &server);
		say_text(client, rows[i]);
		assert_origin_silent(w, server);
		assert_refused(w, REASON_PROTOCOL, "ok.test");
		close(client);
		close(server);
	}
	world_free(w);
}

/* The hello right behind the CONNECT, in one segment. */
static void test_early_hello(void **state)
{
	static const char head[] = "CONNECT ok.test:443 HTTP/1.1\r\n"
				   "Host: ok.test:443\r\n\r\n";
	struct world *w = explicit_world(443);

	(void)state;
	for (int evil = 0; evil < 2; evil++) {
		const struct hello_spec spec = { .name = evil ? "evil.test"
							      : "ok.test" };
		uint8_t bytes[512];
		size_t len;
		int client = dial_proxy(), server;

		memcpy(bytes, head, sizeof(head) - 1);
		len = hello_make(&spec, bytes + sizeof(head) - 1,
				 sizeof(bytes) - sizeof(head));
		say(client, bytes, sizeof(head) - 1 + len);
		server = origin_expect(w);
		if (evil)
			assert_origin_silent(w, server);
		else
			assert_heard(w, server, bytes + sizeof(head) - 1, len);
		close(client);
		close(server);
		turn_for(w, 20);
	}
	assert_refused(w, REASON_NAME_MISMATCH, "ok.test");
	world_free(w);
}

/* Port 80 in CONNECT: requests are judged one by one. */
static void test_connect_80(void **state)
{
	static const char host_differs[] =
		"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n";
	struct world *w = explicit_world(80);
	int client = dial_proxy(), server;
	char got[4096];
	const char *text;
	int end;
	size_t len;

	(void)state;
	say_text(client, "CONNECT ok.test:80 HTTP/1.1\r\n"
			 "Host: ok.test:80\r\n\r\n");
	assert_heard(w, client, YES, sizeof(YES) - 1);
	assert_origin_quiet(w);
	say_text(client, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n");
	server = origin_expect(w);
	assert_heard(w, server, "GET /a HTTP/1.1\r\n", 17);
	say_text(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
	for (len = 0, end = 0; !end && len < sizeof(got) - 1;) {
		len += hear(w, client, got + len, 1, &end);
		got[len] = '\0';
		if (strstr(got, "\r\n\r\nhi"))
			break;
	}
	assert_int_equal(strncmp(got, "HTTP/1.1 200", 12), 0);
	say_text(client, host_differs);
	text = hear_all(w, client);
	assert_non_null(strstr(text, "X-Sallyport-Reason: name_mismatch"));
	assert_origin_quiet(w);
	close(client);
	close(server);
	world_free(w);
}

/* The same on any other port, by either door, once it turns out to be HTTP. */
static void test_tunnelled_http(void **state)
{
	static const char good[] =
		"GET /a HTTP/1.1\r\nHost: ok.test:8443\r\n\r\n";
	static const char evil[] =
		"GET /b HTTP/1.1\r\nHost: other.test:8443\r\n\r\n";
	struct world *w = explicit_world(8443);

	(void)state;
	for (int socks = 0; socks < 2; socks++) {
		int client = dial_proxy(), probe, server, end;
		char got[4096];

		if (socks)
			say(client, "\x05\x01\x00" SOCKS_OK_TEST, 17);
		else
			say_text(client, "CONNECT ok.test:8443 HTTP/1.1\r\n"
					 "Host: ok.test:8443\r\n\r\n");
		assert_int_equal(hear(w, client, got,
				      socks ? 12 : sizeof(YES) - 1, &end),
				 socks ? 12 : sizeof(YES) - 1);
		probe = origin_expect(w);
		say_slowly(w, client, good, sizeof(good) - 1);
		assert_origin_silent(w, probe);
		server = origin_expect(w);
		assert_heard(w, server, "GET /a HTTP/1.1\r\n", 17);
		assert_int_equal(note_find(w, EVENT_HTTP_REQUEST)->door,
				 socks ? DOOR_SOCKS : DOOR_CONNECT);
		say_text(server,
			 "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n");
		assert_heard(w, client, "HTTP/1.1 204", 12);
		say_text(client, evil);
		assert_non_null(strstr(hear_all(w, client),
				       "X-Sallyport-Reason: name_mismatch"));
		assert_origin_quiet(w);
		close(client);
		close(server);
		close(probe);
		turn_for(w, 20);
		assert_int_equal(w->sandbox.connections, 0);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sni),
		cmocka_unit_test(test_443_is_tls),
		cmocka_unit_test(test_early_hello),
		cmocka_unit_test(test_connect_80),
		cmocka_unit_test(test_tunnelled_http),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
