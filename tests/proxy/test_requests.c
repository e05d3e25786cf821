/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules with methods and paths: each request is judged, whichever way it came,
 * and what was judged is what the server gets.
 */
#include "tests/proxy/doors.h"

#define POLICY                                     \
	"version: 1\n"                             \
	"allow:\n"                                 \
	"  - host: ok.test\n"                      \
	"    ports: [8080]\n"                      \
	"    methods: [GET, HEAD]\n"               \
	"    paths: [/repos/acme/**, \"/v1/*\"]\n" \
	"  - host: ok.test\n"                      \
	"    ports: [8080]\n"                      \
	"    methods: [POST]\n"                    \
	"    paths: [/upload]\n"                   \
	"  - host: old.test\n"                     \
	"    ports: [8080]\n"                      \
	"    expires: 2020-01-01\n"                \
	"  - host: new.test\n"                     \
	"    ports: [8080]\n"                      \
	"    expires: 2999-01-01T00:00:00Z\n"

static const struct {
	const char *method, *path;
	const char *up; /* what goes up, or NULL: refused */
	enum reason reason;
	uint16_t status;
} rows[] = {
	{ "GET", "/repos/acme/x", "/repos/acme/x", REASON_RULE, 0 },
	{ "GET", "/repos/acme/x?a=/../b", "/repos/acme/x?a=/../b", 0, 0 },
	{ "HEAD", "/v1/models", "/v1/models", REASON_RULE, 0 },
	{ "POST", "/upload", "/upload", REASON_RULE, 0 },
	{ "GET", "/x/../repos/%61cme/%7ex", "/repos/acme/~x", REASON_RULE, 0 },
	{ "GET", "/repos/acme/%c3%a4", "/repos/acme/%C3%A4", REASON_RULE, 0 },
	{ "POST", "/repos/acme/x", NULL, REASON_PATH, 403 },
	{ "DELETE", "/repos/acme/x", NULL, REASON_METHOD, 403 },
	{ "PUT", "/upload", NULL, REASON_METHOD, 403 },
	{ "GET", "/upload", NULL, REASON_PATH, 403 },
	{ "GET", "/repos/acme", NULL, REASON_PATH, 403 },
	{ "GET", "/repos/Acme/x", NULL, REASON_PATH, 403 },
	{ "GET", "/v1/a/b", NULL, REASON_PATH, 403 },
	{ "GET", "/repos/acme/../evil/x", NULL, REASON_PATH, 403 },
	{ "GET", "/repos/acme/%2e%2E/evil", NULL, REASON_PATH, 403 },
	{ "GET", "/repos/acme/..%2fevil", NULL, REASON_MALFORMED, 400 },
	{ "GET", "/repos/acme/..%5cevil", NULL, REASON_MALFORMED, 400 },
	{ "GET", "/repos/acme/%252e%252e/evil", NULL, REASON_MALFORMED, 400 },
	{ "GET", "/repos/acme/x;y", NULL, REASON_MALFORMED, 400 },
	{ "GET", "/repos/acme/x%00", NULL, REASON_MALFORMED, 400 },
	{ "GET", "/repos/acme//x", NULL, REASON_MALFORMED, 400 },
};

static void check(struct world *w, int client, size_t i, const char *before)
{
	char text[300], want[300];
	const struct note *n;
	int server;

	print_message("%s %s\n", rows[i].method, rows[i].path);
	snprintf(text, sizeof(text),
		 "%s %s%s HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n",
		 rows[i].method, before, rows[i].path);
	say_text(client, text);
	if (rows[i].up) {
		server = origin_expect(w);
		snprintf(want, sizeof(want),
			 "%s %s HTTP/1.1\r\nHost: ok.test:8080\r\n",
			 rows[i].method, rows[i].up);
		assert_heard(w, server, want, strlen(want));
		assert_note(w, EVENT_HTTP_REQUEST, true, REASON_RULE);
		n = note_find(w, EVENT_HTTP_REQUEST);
		assert_string_equal(n->target, rows[i].up);
		part(w, client, server);
		return;
	}
	snprintf(want, sizeof(want), "HTTP/1.1 %u", rows[i].status);
	assert_memory_equal(hear_all(w, client), want, strlen(want));
	assert_note(w, EVENT_HTTP_REQUEST, false, rows[i].reason);
	assert_origin_quiet(w);
	part(w, client, -1);
}

static void test_rows(void **state)
{
	struct world *w = doors_world(8080, POLICY);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t d = 0; d < ARRAY_SIZE(doors); d++) {
			w->notes = 0;
			check(w, enter(w, doors[d], 8080), i, "");
		}
		w->notes = 0;
		check(w, dial_to(PROXY, PROXY_PORT), i, "http://ok.test:8080");
	}
	world_free(w);
}

/* Behind a websocket's handshake nothing would be judged. */
static void test_websocket(void **state)
{
	struct world *w = doors_world(8080, POLICY);

	(void)state;
	for (size_t d = 0; d < ARRAY_SIZE(doors); d++) {
		int client = enter(w, doors[d], 8080);

		say_text(client,
			 "GET /v1/ws HTTP/1.1\r\nHost: ok.test:8080\r\n"
			 "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			 "Sec-WebSocket-Version: 13\r\n"
			 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
		assert_memory_equal(hear_all(w, client), "HTTP/1.1 400", 12);
		assert_note(w, EVENT_HTTP_REQUEST, false, REASON_PROTOCOL);
		assert_origin_quiet(w);
		part(w, client, -1);
	}
	world_free(w);
}

/* Frameworks would take it for another request than the one that was judged. */
static void test_overrides(void **state)
{
	static const char *const fields[] = { "X-HTTP-Method-Override: DELETE",
					      "x-method-override: DELETE",
					      "X-Original-URL: /evil",
					      "X-Rewrite-URL: /evil" };
	struct world *w = doors_world(8080, POLICY);
	char text[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		int client = enter(w, DOOR_CONNECT, 8080);

		snprintf(text, sizeof(text),
			 "GET /v1/a HTTP/1.1\r\nHost: ok.test:8080\r\n%s\r\n"
			 "\r\n",
			 fields[i]);
		say_text(client, text);
		assert_memory_equal(hear_all(w, client), "HTTP/1.1 400", 12);
		assert_note(w, EVENT_HTTP_REQUEST, false, REASON_MALFORMED);
		assert_origin_quiet(w);
		part(w, client, -1);
	}
	world_free(w);
}

/* What a client leaves unfinished is told. */
static void test_cut_off(void **state)
{
	struct world *w = doors_world(8080, POLICY);
	int client = enter(w, DOOR_CONNECT, 8080);

	(void)state;
	say_text(client, "GET /v1/a HTTP/1.1\r\nHost: ok.te");
	shutdown(client, SHUT_WR);
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 400", 12);
	assert_note(w, EVENT_FLOW_OPEN, false, REASON_MALFORMED);
	part(w, client, -1);
	world_free(w);
}

/* The second request on one connection is as good as the first. */
static void test_keep_alive(void **state)
{
	struct world *w = doors_world(8080, POLICY);
	int client = enter(w, DOOR_CONNECT, 8080), server;
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
				 "\r\nok";
	char buf[512];
	int end;

	(void)state;
	say_text(client, "GET /v1/a HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n"
			 "GET /evil HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n");
	server = origin_expect(w);
	say_text(server, ok);
	assert_true(hear(w, client, buf, sizeof(buf), &end) > 0);
	assert_int_equal(end, 1);
	assert_note(w, EVENT_HTTP_REQUEST, false, REASON_PATH);
	assert_origin_quiet(w);
	part(w, client, server);
	world_free(w);
}

static void test_expiry(void **state)
{
	struct world *w = doors_world(8080, POLICY);
	int client = dial_to(PROXY, PROXY_PORT), server;

	(void)state;
	say_text(client, "CONNECT old.test:8080 HTTP/1.1\r\n"
			 "Host: old.test:8080\r\n\r\n");
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_refused(w, REASON_EXPIRED, "old.test");
	assert_origin_quiet(w);
	part(w, client, -1);

	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, "CONNECT new.test:8080 HTTP/1.1\r\n"
			 "Host: new.test:8080\r\n\r\n");
	server = origin_expect(w);
	part(w, client, server);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_expiry),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
