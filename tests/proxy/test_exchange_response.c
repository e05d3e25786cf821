/* SPDX-License-Identifier: Apache-2.0
 *
 * test_exchange_response.c - responses: framed anew, or refused where they
 * could be read in two ways; websockets; time.
 */
#include "exchange_world.h"

#define VIA "Via: 1.1 sallyport\r\n"

static const struct {
	const char *id, *method, *minor, *from, *to;
	bool kept;
} row[] = {
	{ "length", "GET", "1",
	  "HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\nServer:  x \r\n"
	  "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\nhi",
	  "HTTP/1.1 404 Not Found\r\nServer: x\r\nContent-Length: 2\r\n" VIA
	  "\r\nhi",
	  true },
	{ "chunked", "GET", "1",
	  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
	  "2;x=y\r\nhi\r\n0\r\nX: evil\r\n\r\n",
	  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA "\r\n"
	  "2\r\nhi\r\n0\r\n\r\n",
	  true },
	{ "until close", "GET", "1", "HTTP/1.1 200 OK\r\n\r\nhi",
	  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA "\r\n"
	  "2\r\nhi\r\n0\r\n\r\n",
	  true },
	{ "until close, 1.0", "GET", "0", "HTTP/1.1 200 OK\r\n\r\nhi",
	  "HTTP/1.1 200 OK\r\n" VIA "Connection: close\r\n\r\nhi", false },
	{ "chunked, 1.0", "GET", "0",
	  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "2\r\nhi\r\n0\r\n\r\n",
	  "HTTP/1.1 200 OK\r\n" VIA "Connection: close\r\n\r\nhi", false },
	{ "HEAD", "HEAD", "1", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
	  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n" VIA "\r\n", true },
	{ "204", "GET", "1", "HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n",
	  "HTTP/1.1 204 \r\n" VIA "\r\n", true },
	{ "304", "GET", "1", "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n",
	  "HTTP/1.1 304 x\r\nContent-Length: 9\r\n" VIA "\r\n", true },
	{ "interim", "GET", "1",
	  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hint\r\nLink: x\r\n\r\n"
	  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" VIA "\r\n", true },
};

/* Asks, and waits until the request is at the origin. */
static int asked(const char *method, const char *minor)
{
	char text[128], up[128];
	int origin;

	snprintf(text, sizeof(text),
		 "%s http://ok.test/a HTTP/1.%s\r\nHost: ok.test\r\n\r\n",
		 method, minor);
	snprintf(up, sizeof(up),
		 "%s /a HTTP/1.1\r\nHost: ok.test\r\n" VIA
		 "Connection: close\r\n\r\n",
		 method);
	ask(text);
	origin = origin_expect(place.w);
	assert_sent_up(origin, up);
	return origin;
}

static void test_framing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		int origin;

		print_message("%s\n", row[i].id);
		place_open();
		origin = asked(row[i].method, row[i].minor);
		say(origin, row[i].from, strlen(row[i].from));
		close(origin);
		assert_answered(row[i].to);
		turn_for(place.w, 5);
		if (row[i].kept) {
			close(asked("GET", "1"));
			assert_refusal("HTTP/1.1 502 ", "connect_failed");
		} else {
			assert_string_equal(hear_all(place.w, place.client),
					    "");
		}
		place_close();
	}
}

static void test_slowly(void **state)
{
	static const char text[] =
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
	int origin;

	(void)state;
	place_open();
	origin = asked("GET", "1");
	say_slowly(place.w, origin, text, strlen(text));
	assert_answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA
			"\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
	close(origin);
	place_close();
}

/* H19: nothing of these reaches the client. */
static void test_ambiguous(void **state)
{
	static const struct {
		const char *text, *reason;
	} bad[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
		  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		  "protocol" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
		  "Content-Length: 3\r\n\r\nhi",
		  "protocol" },
		{ "HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "protocol" },
		{ "HTTP/1.1 200 OK\nX: y\n\n", "protocol" },
		{ "SSH-2.0-x\r\n", "protocol" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
		  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nho",
		  "protocol" },
		{ "HTTP/1.1 204 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "protocol" },
		{ "HTTP/1.1 101 x\r\nUpgrade: websocket\r\n"
		  "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
		  "protocol" }, /* unasked */
		{ "HTTP/1.1 200 OK\r\nContent-Le", "protocol" },
		{ "", "connect_failed" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct world *w = place_open();
		int origin = asked("GET", "1");

		say(origin, bad[i].text, strlen(bad[i].text));
		close(origin);
		assert_refusal("HTTP/1.1 502 ", bad[i].reason);
		assert_int_equal(place.status, 502);
		assert_int_equal(w->notes > 2, true);
		place_close();
	}
}

/* A response that breaks off half-way must not look whole. */
static void test_truncated(void **state)
{
	static const char *const text[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"2\r\nhi\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"2\r\nhi\r\n+1\r\nx\r\n0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		char buf[512];
		int origin, end;
		size_t len;

		place_open();
		origin = asked("GET", "1");
		say(origin, text[i], strlen(text[i]));
		turn_for(place.w, 10);
		close(origin);
		len = hear(place.w, place.client, buf, sizeof(buf), &end);
		assert_int_equal(end, -ECONNRESET);
		assert_null(memmem(buf, len, "0\r\n\r\n", 5));
		assert_true(place.closed);
		place_close();
	}
}

/* A second response that comes late is dropped, and the connection with it. */
static void test_extra_later(void **state)
{
	static const char first[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhi";
	static const char rest[] = "hoHTTP/1.1 200 OK\r\n\r\nevil";
	int origin;

	(void)state;
	place_open();
	origin = asked("GET", "1");
	say(origin, first, strlen(first));
	turn_for(place.w, 10);
	say(origin, rest, strlen(rest));
	assert_string_equal(hear_all(place.w, place.client),
			    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n" VIA
			    "\r\nhiho");
	close(origin);
	place_close();
}

/* The server may answer before it has the whole request. */
static void test_early(void **state)
{
	static const char text[] =
		"HTTP/1.1 413 x\r\nContent-Length: 2\r\n\r\nno";
	int origin;

	(void)state;
	place_open();
	ask("POST http://ok.test/a HTTP/1.1\r\nHost: ok.test\r\n"
	    "Content-Length: 50\r\n\r\nhe");
	origin = origin_expect(place.w);
	say(origin, text, strlen(text));
	close(origin);
	assert_string_equal(hear_all(place.w, place.client),
			    "HTTP/1.1 413 x\r\nContent-Length: 2\r\n" VIA
			    "Connection: close\r\n\r\nno");
	place_close();
}

#define WS_ASK                                            \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
	"Sec-WebSocket-Version: 13\r\n"
#define WS_ANSWER "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

static void test_websocket(void **state)
{
	static const char yes[] =
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: Upgrade\r\n" WS_ANSWER "\r\nearly";
	struct world *w = place_open();
	const struct note *n;
	int origin, end;
	char c;

	(void)state;
	ask("GET http://ok.test/ws HTTP/1.1\r\nHost: ok.test\r\n"
	    "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n" WS_ASK
	    "\r\n");
	origin = origin_expect(w);
	assert_sent_up(origin,
		       "GET /ws HTTP/1.1\r\nHost: ok.test\r\n" WS_ASK VIA
		       "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	say(origin, yes, strlen(yes));
	assert_answered("HTTP/1.1 101 Switching Protocols\r\n" WS_ANSWER VIA
			"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
			"early");
	ask("GET / HTTP/1.1\r\n\r\n"); /* bytes, not a request, from here on */
	assert_sent_up(origin, "GET / HTTP/1.1\r\n\r\n");
	say(origin, "frame", 5);
	assert_answered("frame");
	close(origin);
	assert_int_equal(hear(w, place.client, &c, 1, &end), 0);
	assert_int_equal(end, 1);
	close_fd(&place.client);
	turn_for(w, 20);
	assert_true(place.closed);
	n = note_find(w, EVENT_FLOW_CLOSE);
	assert_non_null(n);
	assert_string_equal(n->protocol, "websocket");
	assert_int_equal(place.status, 101);
	assert_int_equal(n->down, strlen(yes) + 5);
	place_close();
}

static struct exchange_config hurried(void)
{
	struct exchange_config config = http_door();

	config.head_ms = 150;
	config.idle_ms = 250;
	config.response_ms = 200;
	config.body_ms = 200;
	return config;
}

static void test_time(void **state)
{
	static const char half[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi";
	char buf[256];
	int origin, end;

	(void)state;
	/* R4: a head that trickles in */
	place_open_with(hurried(), "");
	ask("GET http://ok");
	turn_for(place.w, 100);
	ask(".test/ HTT");
	assert_refusal("HTTP/1.1 408 ", "timeout");
	assert_int_equal(place.w->note[0].reason, REASON_TIMEOUT);
	place_close();

	place_open_with(hurried(), ""); /* silence: no word, no record */
	assert_string_equal(hear_all(place.w, place.client), "");
	assert_int_equal(place.w->notes, 0);
	place_close();

	place_open_with(hurried(), ""); /* no response; a trickle is none */
	origin = asked("GET", "1");
	turn_for(place.w, 120);
	say(origin, "HTTP", 4);
	assert_refusal("HTTP/1.1 504 ", "timeout");
	close(origin);
	place_close();

	place_open_with(hurried(), ""); /* a body that stalls */
	origin = asked("GET", "1");
	say(origin, half, strlen(half));
	hear(place.w, place.client, buf, sizeof(buf), &end);
	assert_int_equal(end, -ECONNRESET);
	close(origin);
	place_close();

	place_open_with(hurried(), ""); /* a request that stalls */
	ask("POST http://ok.test/a HTTP/1.1\r\nHost: ok.test\r\n"
	    "Content-Length: 50\r\n\r\nhe");
	origin = origin_expect(place.w);
	assert_refusal("HTTP/1.1 408 ", "timeout");
	close(origin);
	place_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_framing),
		cmocka_unit_test(test_slowly),
		cmocka_unit_test(test_ambiguous),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_extra_later),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
