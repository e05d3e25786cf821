/* SPDX-License-Identifier: Apache-2.0
 *
 * test_exchange.c - requests: which are forwarded, and as what; which are
 * refused, recorded and never seen by any origin.
 */
#include "exchange_world.h"

#define OK_GET "GET http://ok.test/a HTTP/1.1\r\nHost: ok.test\r\n\r\n"
#define UP_GET                                                       \
	"GET /a HTTP/1.1\r\nHost: ok.test\r\nVia: 1.1 sallyport\r\n" \
	"Connection: close\r\n\r\n"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define ANSWERED \
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nVia: 1.1 sallyport\r\n\r\nhi"

static void answer(int origin)
{
	say(origin, ANSWER, strlen(ANSWER));
	assert_answered(ANSWERED);
}

static void one_exchange(void)
{
	int origin = origin_expect(place.w);

	assert_sent_up(origin, UP_GET);
	answer(origin);
	close(origin);
}

static void test_get(void **state)
{
	struct world *w = place_open_with(http_door(), OK_GET);
	const struct note *n;

	(void)state;
	one_exchange();
	n = last_request();
	assert_true(n->allow);
	assert_string_equal(n->host, "ok.test");
	assert_string_equal(place.method, "GET");
	assert_string_equal(place.target, "/a");
	turn_for(w, 20);
	n = note_find(w, EVENT_FLOW_CLOSE);
	assert_non_null(n);
	assert_int_equal(place.status, 200);
	assert_int_equal(n->up, strlen(UP_GET));
	assert_int_equal(n->down, strlen(ANSWER));
	assert_string_equal(n->detail, "eof");

	/* kept: again, one byte a segment, on an upstream connection anew */
	say_slowly(w, place.client, OK_GET, strlen(OK_GET));
	one_exchange();
	assert_int_equal(place.requests, 2);
	assert_false(place.closed);
	place_close();
}

/* Pipelined requests are served in order, each on its own connection. */
static void test_pipelined(void **state)
{
	struct world *w = place_open();

	(void)state;
	ask(OK_GET OK_GET OK_GET);
	for (int i = 0; i < 3; i++) {
		int origin = origin_expect(w);

		assert_sent_up(origin, UP_GET);
		assert_origin_quiet(w);
		answer(origin);
		close(origin);
	}
	place_close();
}

/* H11: what follows a refusal is never served. */
static void test_pipelined_denied(void **state)
{
	struct world *w = place_open();

	(void)state;
	ask(OK_GET
	    "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n" OK_GET);
	one_exchange();
	assert_refusal("HTTP/1.1 403 ", "not_in_policy");
	assert_origin_quiet(w);
	assert_int_equal(place.requests, 2);
	assert_false(last_request()->allow);
	assert_string_equal(last_request()->host, "evil.test");
	place_close();
}

static void test_denied_body(void **state)
{
	struct world *w = place_open();

	(void)state;
	ask("POST http://evil.test/x HTTP/1.1\r\nHost: evil.test\r\n"
	    "Content-Length: 52\r\n\r\n" OK_GET);
	assert_refusal("HTTP/1.1 403 ", "not_in_policy");
	assert_origin_quiet(w);
	place_close();
}

static const struct {
	const char *id, *text, *start, *reason;
} refused[] = {
#define REST " HTTP/1.1\r\nHost: ok.test\r\n\r\n"
#define MAL  "HTTP/1.1 400 ", "malformed"
	{ "H1",
	  "POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
	  "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	  MAL },
	{ "H2",
	  "POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
	  "Transfer-Encoding: chunked, identity\r\n\r\n",
	  MAL },
	{ "H4", "GET http://ok.test/ HTTP/1.1\nHost: ok.test\n\n", MAL },
	{ "H5", "GET http://ok.test/ HTTP/1.1\r\nHost : ok.test\r\n\r\n", MAL },
	{ "H6", "GET http://ok.test/ HTTP/1.1\r\n\r\n", MAL },
	{ "H7", "GET http://ok.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	  "HTTP/1.1 400 ", "name_mismatch" },
	{ "H8", "GET http://ok.test@evil.test/" REST, MAL },
	{ "H12", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 505 ",
	  "protocol" },
	{ "H13", "GET http://ok.test/../x" REST, MAL },
	{ "H14",
	  "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
	  "Via: 1.1 x, 1.1 sallyport (z)\r\n\r\n",
	  "HTTP/1.1 403 ", "self" },
	{ "H15", "GET https://ok.test/" REST, MAL },
	{ "H15", "GET ftp://ok.test/" REST, MAL },
	{ "door", "GET /" REST, MAL },
	{ "door", "OPTIONS *" REST, MAL },
	{ "door",
	  "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n" OK_GET,
	  "HTTP/1.1 400 ", "protocol" },
	{ "N9", "GET http://127.9/ HTTP/1.1\r\nHost: 127.9\r\n\r\n",
	  "HTTP/1.1 403 ", "literal_address" },
	{ "N9", "GET http://127.0.0.9/ HTTP/1.1\r\nHost: 127.0.0.9\r\n\r\n",
	  "HTTP/1.1 403 ", "literal_address" },
	{ "N11", "GET http://ok.test:81/ HTTP/1.1\r\nHost: ok.test:81\r\n\r\n",
	  "HTTP/1.1 403 ", "port" },
	{ "443",
	  "GET http://ok.test:443/ HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
	  "HTTP/1.1 400 ", "protocol" },
#undef MAL
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct world *w = place_open();

		print_message("%s: %s\n", refused[i].id, refused[i].text);
		ask(refused[i].text);
		assert_refusal(refused[i].start, refused[i].reason);
		assert_origin_quiet(w);
		assert_int_equal(w->notes, 1);
		assert_false(w->note[0].allow);
		place_close();
	}
}

/* The body of a refusal must not follow the answer to a HEAD. */
static void test_refused_head(void **state)
{
	const char *text;

	(void)state;
	place_open();
	ask("HEAD http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n");
	text = hear_all(place.w, place.client);
	assert_memory_equal(text, "HTTP/1.1 403 ", 13);
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	place_close();
}

/* H10, T10: a connection is for one authority, whatever Host says. */
static void test_fixed(void **state)
{
	static const struct {
		const char *text;
		bool allow;
	} row[] = {
		{ "GET /a HTTP/1.1\r\nHost: OK.test\r\n\r\n", true },
		{ "GET /a HTTP/1.1\r\nHost: ok.test:80\r\n\r\n", true },
		{ OK_GET, true },
		{ "GET /a HTTP/1.1\r\nHost: evil.test\r\n\r\n", false },
		{ "GET /a HTTP/1.1\r\nHost: other.test\r\n\r\n", false },
		{ "GET /a HTTP/1.1\r\nHost: ok.test:8443\r\n\r\n", false },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.9\r\n\r\n", false },
		{ "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		  false },
	};
	struct exchange_config config = { .door = DOOR_TRANSPARENT,
					  .host = "ok.test",
					  .port = 80 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct world *w = place_open_with(config, row[i].text);

		if (row[i].allow) {
			one_exchange();
		} else {
			assert_refusal("HTTP/1.1 403 ", "name_mismatch");
			assert_origin_quiet(w);
			assert_string_equal(w->note[0].host, "ok.test");
		}
		place_close();
	}
}

/* Under `serve` Host says where to, and the port is the listener's. */
static void test_serve(void **state)
{
	struct exchange_config config = { .door = DOOR_TRANSPARENT };
	struct world *w;

	(void)state;
	place_open_with(config, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n");
	one_exchange();
	place_close();
	w = place_open_with(config,
			    "GET /a HTTP/1.1\r\nHost: ok.test:8443\r\n\r\n");
	assert_refusal("HTTP/1.1 403 ", "name_mismatch");
	assert_origin_quiet(w);
	place_close();
}

/* P6: no record, no SYN. */
static void test_ledger_dead(void **state)
{
	struct world *w = place_open();

	(void)state;
	w->ledger_dead = true;
	ask(OK_GET);
	assert_refusal("HTTP/1.1 503 ", "ledger_unavailable");
	assert_origin_quiet(w);
	place_close();
}

/* H16, H12: what says who we are, or asks for another protocol, stays here. */
static void test_stripped(void **state)
{
	struct world *w = place_open();
	int origin;

	(void)state;
	ask("GET http://ok.test/a/./b HTTP/1.1\r\nHost: ok.test\r\n"
	    "X-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\n"
	    "Connection: Upgrade, HTTP2-Settings, X-Hop\r\nUpgrade: h2c\r\n"
	    "HTTP2-Settings: AAMAAABkAAQAAP__\r\nX-Hop: 1\r\n"
	    "Proxy-Authorization: Basic eDp5\r\nX-Kept: 1\r\n\r\n");
	origin = origin_expect(w);
	assert_sent_up(origin, "GET /a/b HTTP/1.1\r\nHost: ok.test\r\n"
			       "X-Kept: 1\r\nVia: 1.1 sallyport\r\n"
			       "Connection: close\r\n\r\n");
	answer(origin);
	assert_string_equal(place.target, "/a/b");
	close(origin);
	place_close();
}

#define POST_HEAD "POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
#define UP_POST(framing)                               \
	"POST / HTTP/1.1\r\nHost: ok.test\r\n" framing \
	"Via: 1.1 sallyport\r\nConnection: close\r\n\r\n"

static void test_bodies(void **state)
{
	struct world *w = place_open();
	int origin;

	(void)state;
	ask(POST_HEAD "Content-Length: 5\r\n\r\nhe");
	origin = origin_expect(w);
	assert_sent_up(origin, UP_POST("Content-Length: 5\r\n") "he");
	ask("llo" OK_GET);
	assert_sent_up(origin, "llo");
	answer(origin);
	close(origin);
	one_exchange();

	/* chunks are made anew: no extensions, no trailers */
	ask(POST_HEAD "Transfer-Encoding: CHUNKED\r\n\r\n"
		      "0003;x=y\r\nabc\r\n0\r\nX-Trailer: z\r\n\r\n");
	origin = origin_expect(w);
	assert_sent_up(
		origin,
		UP_POST("Transfer-Encoding: chunked\r\n") "3\r\nabc\r\n0\r\n\r\n");
	answer(origin);
	close(origin);
	place_close();
}

/* H3: what came before a bad chunk went up; the body is never ended. */
static void test_bad_chunk(void **state)
{
	struct world *w = place_open();
	char buf[16];
	int origin, end;

	(void)state;
	ask(POST_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	origin = origin_expect(w);
	assert_sent_up(
		origin,
		UP_POST("Transfer-Encoding: chunked\r\n") "3\r\nabc\r\n");
	ask("+5\r\nhello\r\n0\r\n\r\n" OK_GET);
	assert_refusal("HTTP/1.1 400 ", "malformed");
	assert_int_equal(hear(w, origin, buf, sizeof(buf), &end), 0);
	assert_int_not_equal(end, 0);
	assert_origin_quiet(w);
	close(origin);
	place_close();
}

static void test_expect(void **state)
{
	struct world *w = place_open();
	int origin;

	(void)state;
	ask(POST_HEAD "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	origin = origin_expect(w);
	assert_answered("HTTP/1.1 100 Continue\r\n\r\n");
	assert_sent_up(origin, UP_POST("Content-Length: 2\r\n"));
	ask("ab");
	assert_sent_up(origin, "ab");
	answer(origin);
	close(origin);
	/* none is said to what is refused */
	ask("POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n"
	    "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	assert_refusal("HTTP/1.1 403 ", "not_in_policy");
	place_close();
}

/* A client that goes away takes its upstream connection with it. */
static void test_client_leaves(void **state)
{
	struct world *w = place_open();
	char buf[512];
	int origin, end;

	(void)state;
	ask(POST_HEAD "Content-Length: 5\r\n\r\nhe");
	origin = origin_expect(w);
	assert_sent_up(origin, UP_POST("Content-Length: 5\r\n") "he");
	close_fd(&place.client);
	assert_int_equal(hear(w, origin, buf, sizeof(buf), &end), 0);
	assert_int_equal(end, -ECONNRESET);
	assert_true(place.closed);
	close(origin);
	place_close();
}

/* A client may half-close and still wait for its answer. */
static void test_half_close(void **state)
{
	struct world *w = place_open();
	int origin;

	(void)state;
	ask(OK_GET);
	shutdown(place.client, SHUT_WR);
	origin = origin_expect(w);
	assert_sent_up(origin, UP_GET);
	answer(origin);
	assert_string_equal(hear_all(w, place.client), "");
	turn_for(w, 20);
	assert_true(place.closed);
	close(origin);
	place_close();
}

static void test_abort(void **state)
{
	static const char *const text[] = {
		"",
		"GET",
		OK_GET,
		POST_HEAD "Content-Length: 5\r\n\r\nhe",
		"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		for (int ms = 0; ms <= 20; ms += 20) {
			place_open_with(http_door(), text[i]);
			turn_for(place.w, ms);
			exchange_abort(STEAL(place.exchange));
			turn_for(place.w, 5);
			assert_false(place.closed);
			place_close();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_pipelined),
		cmocka_unit_test(test_pipelined_denied),
		cmocka_unit_test(test_denied_body),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_head),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_serve),
		cmocka_unit_test(test_ledger_dead),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_bad_chunk),
		cmocka_unit_test(test_expect),
		cmocka_unit_test(test_client_leaves),
		cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_abort),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
