/* SPDX-License-Identifier: Apache-2.0
 *
 * test_session.c - the explicit door: CONNECT, SOCKS, absolute-form HTTP on one
 * port.
 */
#include "tests/proxy/session_case.h"

/* A byte each way, then both close; the records say so. */
static void check_echo(struct world *w, int client, int server)
{
	const struct note *n;

	say_text(client, "ping\n");
	assert_heard(w, server, "ping\n", 5);
	say_text(server, "pong!\n");
	assert_heard(w, client, "pong!\n", 6);
	close(client);
	close(server);
	turn_for(w, 30);
	n = note_find(w, EVENT_FLOW_CLOSE);
	assert_non_null(n);
	assert_int_equal(n->down, 6);
	assert_string_equal(n->host, "ok.test");
	assert_int_equal(w->sandbox.connections, 0);
}

static void test_connect(void **state)
{
	static const char head[] = "CONNECT OK.test:8443 HTTP/1.1\r\n"
				   "Host: ok.test:8443\r\n\r\n";
	struct world *w = explicit_world(8443);

	(void)state;
	for (int slowly = 0; slowly < 2; slowly++) {
		int client = dial_proxy(), server;

		if (slowly)
			say_slowly(w, client, head, sizeof(head) - 1);
		else
			say_text(client, head);
		assert_heard(w, client, YES, sizeof(YES) - 1);
		server = origin_expect(w);
		assert_int_equal(w->sandbox.connections, 1);
		check_echo(w, client, server);
	}
	world_free(w);
}

/* H11: what comes behind a denied CONNECT is never looked at. */
static void test_denied(void **state)
{
	struct world *w = explicit_world(80);
	int client = dial_proxy();
	const char *text;

	(void)state;
	say_text(client, "CONNECT evil.test:443 HTTP/1.1\r\n"
			 "Host: evil.test:443\r\n\r\n"
			 "GET http://ok.test/ HTTP/1.1\r\n"
			 "Host: ok.test\r\n\r\n");
	text = hear_all(w, client);
	assert_int_equal(strncmp(text, "HTTP/1.1 403 ", 13), 0);
	assert_null(strstr(text + 1, "HTTP/1.1"));
	assert_non_null(strstr(text, "evil.test:443 refused: not_in_policy"));
	assert_origin_quiet(w);
	assert_int_equal(w->notes, 1);
	assert_refused(w, REASON_NOT_IN_POLICY, "evil.test");
	close(client);
	world_free(w);
}

/* The client reads the refusal although it goes on sending. */
static void test_lingers(void **state)
{
	struct world *w = explicit_world(0);
	char much[20000];
	int client = dial_proxy();

	(void)state;
	memset(much, 'x', sizeof(much));
	say_text(client, "CONNECT evil.test:443 HTTP/1.1\r\n"
			 "Host: evil.test:443\r\n\r\n");
	say(client, much, sizeof(much));
	turn_for(w, 20);
	say(client, much, sizeof(much));
	assert_int_equal(strncmp(hear_all(w, client), "HTTP/1.1 403 ", 13), 0);
	assert_int_equal(w->sandbox.connections, 1);
	close(client);
	turn_for(w, 20);
	assert_int_equal(w->sandbox.connections, 0);

	/* ... but not for ever */
	client = dial_proxy();
	say_text(client, "CONNECT evil.test:443 HTTP/1.1\r\n"
			 "Host: evil.test:443\r\n\r\n");
	hear_all(w, client);
	for (int i = 0; i < 10 && w->sandbox.connections; i++) {
		send(client, much, sizeof(much), MSG_NOSIGNAL | MSG_DONTWAIT);
		turn_for(w, 10);
	}
	assert_int_equal(w->sandbox.connections, 0);
	close(client);
	world_free(w);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *head, *status;
		enum reason reason;
	} rows[] = {
		{ "CONNECT ok.test HTTP/1.1\r\nHost: ok.test\r\n\r\n", "400",
		  REASON_MALFORMED },
		{ "CONNECT ok.test:0 HTTP/1.1\r\nHost: ok.test:0\r\n\r\n",
		  "400", REASON_MALFORMED },
		{ "CONNECT u@ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n",
		  "400", REASON_MALFORMED },
		{ "CONNECT 2130706433:443 HTTP/1.1\r\nHost: a\r\n\r\n", "4",
		  REASON_LITERAL_ADDRESS },
		{ "NONSENSE\r\n\r\n", "400", REASON_MALFORMED },
		{ "\x04\x01\x01\xbb\x7f\x01\x01\x01", "400", REASON_MALFORMED },
	};
	struct world *w = explicit_world(443);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int client = dial_proxy();
		const char *text;

		print_message("row %zu\n", i);
		w->notes = 0;
		say_text(client, rows[i].head);
		shutdown(client, SHUT_WR);
		text = hear_all(w, client);
		assert_int_equal(strncmp(text + 9, rows[i].status,
					 strlen(rows[i].status)),
				 0);
		assert_int_equal(w->notes, 1);
		assert_int_equal(note_find(w, EVENT_FLOW_OPEN)->reason,
				 rows[i].reason);
		close(client);
	}
	assert_origin_quiet(w);
	world_free(w);
}

/* A head that does not end within bounds. */
static void test_too_long(void **state)
{
	struct world *w = explicit_world(0);
	char much[20000];
	int client = dial_proxy();

	(void)state;
	memset(much, 'x', sizeof(much));
	say_text(client, "CONNECT ok.test:443 HTTP/1.1\r\nHost: ");
	say(client, much, sizeof(much));
	assert_int_equal(strncmp(hear_all(w, client) + 9, "4", 1), 0);
	close(client);
	world_free(w);
}

static void test_absolute_form(void **state)
{
	struct world *w = explicit_world(80);
	int client = dial_proxy(), server;

	(void)state;
	say_text(client, "GET http://ok.test/x HTTP/1.1\r\n"
			 "Host: ok.test\r\n\r\n");
	server = origin_expect(w);
	assert_heard(w, server, "GET /x HTTP/1.1\r\n", 17);
	assert_int_equal(note_find(w, EVENT_HTTP_REQUEST)->door, DOOR_HTTP);
	close(server);
	close(client);
	client = dial_proxy();
	say_text(client, "GET http://evil.test/x HTTP/1.1\r\n"
			 "Host: evil.test\r\n\r\n");
	assert_int_equal(strncmp(hear_all(w, client), "HTTP/1.1 403", 12), 0);
	assert_origin_quiet(w);
	close(client);
	world_free(w);
}

static void test_socks(void **state)
{
	static const uint8_t yes[] = "\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0";
	struct world *w = explicit_world(8443);

	(void)state;
	for (int slowly = 0; slowly < 2; slowly++) {
		int client = dial_proxy(), server;
		const char all[] = "\x05\x01\x00" SOCKS_OK_TEST;

		if (slowly)
			say_slowly(w, client, all, sizeof(all) - 1);
		else
			say(client, all, sizeof(all) - 1);
		assert_heard(w, client, yes, 12);
		assert_int_equal(note_find(w, EVENT_FLOW_OPEN)->door,
				 DOOR_SOCKS);
		server = origin_expect(w);
		check_echo(w, client, server);
	}
	world_free(w);
}

#define R(s) s, sizeof(s) - 1

static void test_socks_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		uint8_t reply; /* 0: refused in the greeting */
		enum reason reason;
		const char *host;
	} rows[] = {
		{ R("\x05\x01\x00\x03\x09"
		    "evil.test\x20\xfb"),
		  2, REASON_NOT_IN_POLICY, "evil.test" },
		{ R("\x05\x01\x00\x03\x07ok.test\x20\xfa"), 2, REASON_PORT,
		  "ok.test" },
		{ R("\x05\x01\x00\x01\x7f\x00\x00\x09\x20\xfb"), 2,
		  REASON_LITERAL_ADDRESS, "" },
		{ R("\x05\x03\x00\x03\x07ok.test\x20\xfb"), 7, REASON_PROTOCOL,
		  "ok.test" },
		{ R("\x05\x01\x00\x03\x0e"
		    "evil\0.ok.testx\x20\xfb"),
		  1, REASON_MALFORMED, "evil\\x00.ok.testx" },
		{ R("\x05\x01\x00\x09"), 8, REASON_MALFORMED, "" },
	};
	struct world *w = explicit_world(8443);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int client = dial_proxy();
		const char *text;

		print_message("row %zu\n", i);
		w->notes = 0;
		say(client, "\x05\x01\x00", 3);
		say(client, rows[i].bytes, rows[i].len);
		text = hear_all(w, client);
		assert_memory_equal(text, "\x05\x00\x05", 3);
		assert_int_equal(text[3], rows[i].reply);
		assert_refused(w, rows[i].reason, rows[i].host);
		assert_int_equal(w->notes, 1);
		close(client);
		turn_for(w, 10);
	}
	assert_origin_quiet(w);
	world_free(w);
}

static void test_socks_authentication(void **state)
{
	struct world *w = explicit_world(0);
	int client = dial_proxy();

	(void)state;
	say(client, "\x05\x01\x02", 3);
	assert_memory_equal(hear_all(w, client), "\x05\xff", 3);
	assert_refused(w, REASON_PROTOCOL, "");
	close(client);
	world_free(w);
}

/* A server that is not there, a ledger that is not there. */
static void test_failures(void **state)
{
	static const char head[] = "CONNECT ok.test:8443 HTTP/1.1\r\n"
				   "Host: ok.test:8443\r\n\r\n";
	struct world *w = explicit_world(0);
	int client = dial_proxy();
	char byte;

	(void)state;
	say_text(client, head);
	assert_int_equal(strncmp(hear_all(w, client), "HTTP/1.1 502", 12), 0);
	close(client);
	client = dial_proxy();
	say(client, "\x05\x01\x00" SOCKS_OK_TEST, 17);
	assert_int_equal(hear_all(w, client)[3], 5);
	close(client);

	w->origin = listen_at(ORIGIN, 8443);
	w->ledger_dead = true;
	client = dial_proxy();
	say_text(client, head);
	assert_int_equal(strncmp(hear_all(w, client), "HTTP/1.1 503", 12), 0);
	assert_origin_quiet(w);
	close(client);

	/* Nothing is said or sent while the ledger thinks. */
	w->ledger_dead = false;
	w->ledger_silent = true;
	client = dial_proxy();
	say_text(client, head);
	assert_origin_quiet(w);
	assert_int_equal(recv(client, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	listener_end_sandbox(w->listener[0], &w->sandbox);
	assert_int_equal(w->cancelled, 1);
	close(client);
	world_free(w);
}

/* No answer from a name server is like none from the server itself. */
static void test_no_name_server(void **state)
{
	static const struct {
		int status;
		const char *line;
	} rows[] = {
		{ -ETIMEDOUT, "HTTP/1.1 504" },
		{ -EIO, "HTTP/1.1 504" },
		{ -ENOENT, "HTTP/1.1 502" },
	};
	struct world *w = explicit_world(8443);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int client = dial_proxy();

		w->resolve_status = rows[i].status;
		say_text(client, "CONNECT ok.test:8443 HTTP/1.1\r\n"
				 "Host: ok.test:8443\r\n\r\n");
		assert_int_equal(strncmp(hear_all(w, client), rows[i].line, 12),
				 0);
		close(client);
	}
	assert_origin_quiet(w);
	world_free(w);
}

/* Who hangs up before the verdict is not waited for; who only said his last
 * may still listen. */
static void test_hangs_up(void **state)
{
	static const struct {
		bool transparent, reset;
		const char *more;
		bool stays;
	} rows[] = {
		{ false, false, "", false },  { false, true, "", false },
		{ false, true, "xy", false }, { false, false, "xy", true },
		{ true, true, "", false },    { true, true, "xy", false },
		{ true, false, "", true },
	};
	const struct linger now = { .l_onoff = 1 };
	struct world *w = explicit_world(22);

	(void)state;
	world_listen(w, LISTENER_TRANSPARENT, LEASE, 22);
	w->ledger_silent = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int client =
			rows[i].transparent ? dial_to(LEASE, 22) : dial_proxy();

		print_message("row %zu\n", i);
		w->cancelled = 0;
		if (!rows[i].transparent)
			say_text(client, "CONNECT ok.test:22 HTTP/1.1\r\n"
					 "Host: ok.test:22\r\n\r\n");
		say_text(client, rows[i].more);
		turn_for(w, 20);
		assert_int_equal(w->sandbox.connections, 1);
		assert_int_equal(w->cancelled, 0);
		if (rows[i].reset)
			setsockopt(client, SOL_SOCKET, SO_LINGER, &now,
				   sizeof(now));
		close(client);
		turn_for(w, 20);
		assert_int_equal(w->cancelled, rows[i].stays ? 0 : 1);
		listener_end_sandbox(w->listener[0], &w->sandbox);
		listener_end_sandbox(w->listener[1], &w->sandbox);
		assert_int_equal(w->sandbox.connections, 0);
	}
	assert_origin_quiet(w);
	world_free(w);
}

static int only_the_sandbox;

/* The listener or the sandbox goes while sessions are in every state. */
static void test_ends_with_listener(void **state)
{
	struct world *w = explicit_world(8443);
	int reading = dial_proxy(), relay = dial_proxy(), told = dial_proxy();
	int server;

	say_text(reading, "CONNECT ok.t");
	say_text(relay, "CONNECT ok.test:8443 HTTP/1.1\r\n"
			"Host: ok.test:8443\r\n\r\n");
	say_text(told, "CONNECT evil.test:8443 HTTP/1.1\r\n"
		       "Host: evil.test:8443\r\n\r\n");
	server = origin_expect(w);
	turn_for(w, 20);
	assert_int_equal(w->sandbox.connections, 3);
	if (*state == &only_the_sandbox) {
		struct sandbox other = { .id = 8 };

		listener_end_sandbox(w->listener[0], &other);
		assert_int_equal(w->sandbox.connections, 3);
		listener_end_sandbox(w->listener[0], &w->sandbox);
		assert_int_equal(w->sandbox.connections, 0);
	}
	world_free(w);
	close(reading);
	close(relay);
	close(told);
	close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_lingers),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_absolute_form),
		cmocka_unit_test(test_socks),
		cmocka_unit_test(test_socks_refused),
		cmocka_unit_test(test_socks_authentication),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_no_name_server),
		cmocka_unit_test(test_hangs_up),
		cmocka_unit_test(test_ends_with_listener),
		cmocka_unit_test_prestate(test_ends_with_listener,
					  &only_the_sandbox),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
