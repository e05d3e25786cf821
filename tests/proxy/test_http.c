/* SPDX-License-Identifier: Apache-2.0
 *
 * test_http.c - request heads: tables of good ones, and of the rows of
 * THREATS.md that concern them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proxy/sniff/http.h"

#define GET(headers)	  "GET / HTTP/1.1\r\nHost: ok.com\r\n" headers "\r\n"
#define POST(headers)	  "POST / HTTP/1.1\r\nHost: ok.com\r\n" headers "\r\n"
#define ABS(target, host) "GET " target " HTTP/1.1\r\nHost: " host "\r\n\r\n"
#define CONNECT(target, host) \
	"CONNECT " target " HTTP/1.1\r\nHost: " host "\r\n\r\n"

static struct http_request req;
static struct http_error error;

static enum sniff parse(const char *text, size_t len)
{
	/* An allocation of its own, so that ASan sees a read past the end. */
	AUTO_FREE char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	return http_request_parse(copy, len, &req, &error);
}

static const struct {
	const char *text;
	const char *host;
	uint16_t port;
	enum http_form form;
	enum http_framing framing;
	uint64_t length;
	bool keep_alive;
} good[] = {
	{ GET(""), "ok.com", 80, HTTP_ORIGIN, HTTP_NO_BODY, 0, true },
	{ "\r\n" GET(""), "ok.com", 80, HTTP_ORIGIN, HTTP_NO_BODY, 0, true },
	{ GET("Connection: x, close\r\n"), "ok.com", 80, HTTP_ORIGIN,
	  HTTP_NO_BODY, 0, false },
	{ GET("A:\r\nB:   \r\nC:\tx y \t\r\n"), "ok.com", 80, HTTP_ORIGIN,
	  HTTP_NO_BODY, 0, true },
	{ GET("Connection:\r\nX: 1\r\n"), "ok.com", 80, HTTP_ORIGIN,
	  HTTP_NO_BODY, 0, true },
	{ ABS("http://oK.com./x", "ok.COM"), "ok.com", 80, HTTP_ABSOLUTE,
	  HTTP_NO_BODY, 0, true },
	{ ABS("HTTP://ok.com:8080", "ok.com:8080"), "ok.com", 8080,
	  HTTP_ABSOLUTE, HTTP_NO_BODY, 0, true },
	{ ABS("http://ok.com:80/", "ok.com"), "ok.com", 80, HTTP_ABSOLUTE,
	  HTTP_NO_BODY, 0, true },
	{ ABS("http://ok.com?a=http://evil.com/@x", "ok.com"), "ok.com", 80,
	  HTTP_ABSOLUTE, HTTP_NO_BODY, 0, true },
	{ "GET http://ok.com/ HTTP/1.0\r\n\r\n", "ok.com", 80, HTTP_ABSOLUTE,
	  HTTP_NO_BODY, 0, false },
	{ "GET http://ok.com/ HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
	  "ok.com", 80, HTTP_ABSOLUTE, HTTP_NO_BODY, 0, true },
	{ CONNECT("ok.com:443", "ok.com:443"), "ok.com", 443, HTTP_AUTHORITY,
	  HTTP_NO_BODY, 0, true },
	{ CONNECT("ok.com:443", "ok.com"), "ok.com", 443, HTTP_AUTHORITY,
	  HTTP_NO_BODY, 0, true },
	{ "CONNECT ok.com:443 HTTP/1.0\r\n\r\n", "ok.com", 443, HTTP_AUTHORITY,
	  HTTP_NO_BODY, 0, false },
	{ "OPTIONS * HTTP/1.1\r\nHost: ok.com\r\n\r\n", "ok.com", 80,
	  HTTP_ASTERISK, HTTP_NO_BODY, 0, true },
	{ POST("Content-Length: 12\r\n"), "ok.com", 80, HTTP_ORIGIN,
	  HTTP_LENGTH, 12, true },
	{ POST("Content-Length: 0\r\n"), "ok.com", 80, HTTP_ORIGIN, HTTP_LENGTH,
	  0, true },
	{ POST("Transfer-Encoding: Chunked\r\n"), "ok.com", 80, HTTP_ORIGIN,
	  HTTP_CHUNKED, 0, true }, /* H2: plain "Chunked" works */
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		size_t len = strlen(good[i].text);

		print_message("%zu: %s\n", i, good[i].text);
		assert_int_equal(parse(good[i].text, len), SNIFF_DONE);
		assert_int_equal(req.head_len, len);
		assert_string_equal(req.host, good[i].host);
		assert_int_equal(req.port, good[i].port);
		assert_int_equal(req.form, good[i].form);
		assert_int_equal(req.framing, good[i].framing);
		assert_int_equal(req.length, good[i].length);
		assert_int_equal(req.keep_alive, good[i].keep_alive);
		/* What follows the head is not part of it. */
		for (size_t n = 0; n < len; n++)
			assert_int_equal(parse(good[i].text, n), SNIFF_MORE);
	}
}

static const struct {
	const char *id;
	const char *text;
	enum reason reason;
	uint16_t status;
} evil[] = {
#define MAL REASON_MALFORMED, 400
	{ "H1", POST("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
	  MAL },
	{ "H1", POST("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
	  MAL },
	{ "H1", POST("Content-Length: 5\r\nContent-Length: 5\r\n"), MAL },
	{ "H1", POST("Content-Length: 5\r\nContent-Length: 6\r\n"), MAL },
	{ "H1", POST("Content-Length: 5, 5\r\n"), MAL },
	{ "H1", POST("Content-Length:\r\n"), MAL },
	{ "H1", POST("Content-Length: +5\r\n"), MAL },
	{ "H1", POST("Content-Length: -5\r\n"), MAL },
	{ "H1", POST("Content-Length: 0x5\r\n"), MAL },
	{ "H1", POST("Content-Length: 5 5\r\n"), MAL },
	{ "H1", POST("Content-Length: 18446744073709551621\r\n"), MAL },
	{ "H2", POST("Transfer-Encoding: chunkedx\r\n"), MAL },
	{ "H2", POST("Transfer-Encoding: xchunked\r\n"), MAL },
	{ "H2", POST("Transfer-Encoding: chunked, identity\r\n"), MAL },
	{ "H2", POST("Transfer-Encoding: identity, chunked\r\n"), MAL },
	{ "H2", POST("Transfer-Encoding: gzip, chunked\r\n"), MAL },
	{ "H2", POST("Transfer-Encoding: \r\n"), MAL },
	{ "H2", POST("Transfer-Encoding: \"chunked\"\r\n"), MAL },
	{ "H2",
	  POST("Transfer-Encoding: chunked\r\n"
	       "Transfer-Encoding: chunked\r\n"),
	  MAL },
	{ "H2",
	  "POST http://ok.com/ HTTP/1.0\r\nHost: ok.com\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n",
	  MAL },
	{ "H4", "GET / HTTP/1.1\nHost: ok.com\n\n", MAL },
	{ "H4", "GET / HTTP/1.1\r\nHost: ok.com\n\r\n", MAL },
	{ "H4", GET("X: a\rb\r\n"), MAL },
	{ "H4", GET("X: a\r\r\n"), MAL },
	{ "H4", GET("X: a\r\n b\r\n"), MAL },
	{ "H4", GET("X: a\r\n\tb\r\n"), MAL },
	{ "H4", "GET / HTTP/1.1\r\n Host: ok.com\r\n\r\n", MAL },
	{ "H5", GET(": a\r\n"), MAL },
	{ "H5", GET("Host : evil.com\r\n"), MAL },
	{ "H5", GET("X : a\r\n"), MAL },
	{ "H5", GET("X\t: a\r\n"), MAL },
	{ "H5", GET("X\r\n"), MAL },
	{ "H5", GET("(x): a\r\n"), MAL },
	{ "H5", GET("X\x80: a\r\n"), MAL },
	{ "H5", GET("X: a\x7f\r\n"), MAL },
	{ "H5", GET("X: \x1b[2J\r\n"), MAL },
	{ "H6", "GET / HTTP/1.1\r\n\r\n", MAL },
	{ "H6", "GET http://ok.com/ HTTP/1.1\r\n\r\n", MAL },
	{ "H6", "GET / HTTP/1.0\r\n\r\n", MAL },
	{ "H6", GET("Host: ok.com\r\n"), MAL },
	{ "H6", GET("hOST: evil.com\r\n"), MAL },
	{ "H6", ABS("/", "ok.com, evil.com"), MAL },
	{ "H6", ABS("/", "ok.com evil.com"), MAL },
	{ "H6", ABS("/", ""), MAL },
	{ "H7", ABS("http://ok.com/", "evil.com"), REASON_NAME_MISMATCH, 400 },
	{ "H7", ABS("http://evil.com/", "ok.com"), REASON_NAME_MISMATCH, 400 },
	{ "H7", ABS("http://ok.com:81/", "ok.com"), REASON_NAME_MISMATCH, 400 },
	{ "H7", ABS("http://ok.com/", "1.2.3.4"), REASON_NAME_MISMATCH, 400 },
	{ "H7", CONNECT("ok.com:443", "evil.com:443"), REASON_NAME_MISMATCH,
	  400 },
	{ "H7", CONNECT("ok.com:443", "ok.com:444"), REASON_NAME_MISMATCH,
	  400 },
	{ "H8", ABS("http://ok.com@evil.com/", "evil.com"), MAL },
	{ "H8", ABS("http://ok.com:80@evil.com/", "evil.com"), MAL },
	{ "H8", ABS("http://evil.com#@ok.com/", "ok.com"), MAL },
	{ "H8", ABS("http://ok.com/#x", "ok.com"), MAL },
	{ "H8", ABS("http://evil.com\\@ok.com/", "ok.com"), MAL },
	{ "H8", CONNECT("ok.com@evil.com:443", "evil.com"), MAL },
	{ "H8", CONNECT("evil.com#@ok.com:443", "ok.com"), MAL },
	{ "H12", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REASON_PROTOCOL, 505 },
	{ "H15", ABS("ftp://ok.com/", "ok.com"), MAL },
	{ "H15", ABS("gopher://ok.com/", "ok.com"), MAL },
	{ "H15", ABS("file:///etc/passwd", "ok.com"), MAL },
	{ "H15", ABS("https://ok.com/", "ok.com"), MAL },
	{ "H15", ABS("http:/ok.com/", "ok.com"), MAL },
	{ "H15", ABS("http:///x", "ok.com"), MAL },
	{ "N4", ABS("http://*.ok.com/", "*.ok.com"), MAL },
	{ "N5", ABS("http://ok.com../", "ok.com.."), MAL },
	{ "N6", ABS("http://[ok.com]/", "[ok.com]"), MAL },
	{ "N6", ABS("http://[::1/", "[::1"), MAL },
	{ "N6", CONNECT("ok.com]:443", "ok.com"), MAL },
	{ "N8", ABS("/", "\xc3\xb6k.com"), MAL },
	{ "N8", ABS("http://ok%2ecom/", "ok%2ecom"), MAL },
	{ "N9", CONNECT("2130706433:443", "2130706433:443"),
	  REASON_LITERAL_ADDRESS, 403 },
	{ "N9", CONNECT("0x7f.1:443", "0x7f.1:443"), REASON_LITERAL_ADDRESS,
	  403 },
	{ "N9", ABS("http://0177.0.0.1/", "0177.0.0.1"), REASON_LITERAL_ADDRESS,
	  403 },
	{ "N9", ABS("http://127.1./", "127.1."), REASON_LITERAL_ADDRESS, 403 },
	{ "N13", ABS("http://a..com/", "a..com"), MAL },
	{ "port", CONNECT("ok.com", "ok.com"), MAL },
	{ "port", CONNECT("ok.com:", "ok.com:"), MAL },
	{ "port", CONNECT("ok.com:0", "ok.com:0"), MAL },
	{ "port", CONNECT("ok.com:65536", "ok.com:65536"), MAL },
	{ "port", CONNECT("ok.com:+443", "ok.com:+443"), MAL },
	{ "port", CONNECT("ok.com:0443", "ok.com:0443"), MAL },
	{ "port", ABS("http://ok.com:/", "ok.com"), MAL },
	{ "line", "GET  / HTTP/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "GET / x HTTP/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "GET /\tx HTTP/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "GET /\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "GET / HTTP/1.1 \r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "GET / http/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "GET / HTTP/1.2\r\nHost: ok.com\r\n\r\n", REASON_MALFORMED,
	  505 },
	{ "line", "GET / HTTP/2.0\r\nHost: ok.com\r\n\r\n", REASON_MALFORMED,
	  505 },
	{ "line", "G(T / HTTP/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "QUERY / HTTP/1.1\r\nHost: ok.com\r\n\r\n", REASON_MALFORMED,
	  501 },
	{ "line", "get / HTTP/1.1\r\nHost: ok.com\r\n\r\n", REASON_MALFORMED,
	  501 },
	{ "line", "GET * HTTP/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "GET ok.com HTTP/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "line", "\r\n\r\nGET / HTTP/1.1\r\nHost: ok.com\r\n\r\n", MAL },
	{ "body",
	  "CONNECT ok.com:443 HTTP/1.1\r\nHost: ok.com\r\n"
	  "Content-Length: 3\r\n\r\n",
	  MAL },
	{ "body", GET("Expect: 200-maybe\r\n"), REASON_MALFORMED, 417 },
	{ "T", "\x16\x03\x01\x02", MAL },
#undef MAL
};

static void test_evil(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(evil); i++) {
		size_t len = strlen(evil[i].text);

		print_message("%s: %s\n", evil[i].id, evil[i].text);
		assert_int_equal(parse(evil[i].text, len), SNIFF_BAD);
		assert_int_equal(error.reason, evil[i].reason);
		assert_int_equal(error.status, evil[i].status);
		assert_non_null(error.detail);
		for (size_t n = 0; n < len; n++)
			assert_int_not_equal(parse(evil[i].text, n),
					     SNIFF_DONE);
	}
}

/* N2, H5: NUL anywhere. */
static void test_nul(void **state)
{
	static const char host[] = "GET / HTTP/1.1\r\nHost: ok.com\r\n"
				   "X: y\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < sizeof(host) - 1; i++) {
		char text[sizeof(host)];

		memcpy(text, host, sizeof(host));
		text[i] = '\0';
		assert_int_equal(parse(text, sizeof(host) - 1), SNIFF_BAD);
	}
}

static enum sniff parse_repeated(const char *head, const char *piece, size_t n,
				 const char *tail)
{
	size_t unit = strlen(piece), len = strlen(head);
	AUTO_FREE char *text = malloc(len + unit * n + strlen(tail) + 1);

	memcpy(text, head, len);
	for (size_t i = 0; i < n; i++, len += unit)
		memcpy(text + len, piece, unit);
	memcpy(text + len, tail, strlen(tail));
	return parse(text, len + strlen(tail));
}

static void test_limits(void **state)
{
	static const char end[] = " HTTP/1.1\r\nHost: a\r\n\r\n";
	static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\n";

	(void)state;
	assert_int_equal(parse_repeated("GET /", "x", 7000, end), SNIFF_DONE);
	assert_int_equal(strlen(req.shown), sizeof(req.shown) - 1);
	assert_int_equal(parse_repeated("GET /", "x", 9000, end), SNIFF_BAD);
	assert_int_equal(error.status, 414);
	assert_int_equal(parse_repeated("GET /", "x", 9000, ""), SNIFF_BAD);
	assert_int_equal(error.status, 414);
	assert_int_equal(parse_repeated(start, "A: b\r\n", 99, "\r\n"),
			 SNIFF_DONE);
	assert_int_equal(parse_repeated(start, "A: b\r\n", 100, "\r\n"),
			 SNIFF_BAD);
	assert_int_equal(error.status, 431);
	assert_int_equal(parse_repeated(start,
					"A: 0123456789012345678901234"
					"56789012345678901234567890123"
					"456789012345678901234567890123"
					"456789012345678901234567890123"
					"456789012345678901234567890123"
					"4567890123456789012345678\r\n",
					95, ""),
			 SNIFF_BAD);
	assert_int_equal(error.status, 431);
	/* N13: long names */
	assert_int_equal(parse_repeated("GET / HTTP/1.1\r\nHost: ", "abc.", 64,
					"\r\n\r\n"),
			 SNIFF_BAD);
	assert_int_equal(parse_repeated("GET / HTTP/1.1\r\nHost: ", "a", 64,
					".com\r\n\r\n"),
			 SNIFF_BAD);
}

static void test_addresses(void **state)
{
	static const char v6[] = ABS("http://[::1]:81/x", "[::1]:81");
	static const char v4[] = CONNECT("192.0.2.1:443", "192.0.2.1:443");

	(void)state;
	assert_int_equal(parse(v4, strlen(v4)), SNIFF_DONE);
	assert_string_equal(req.host, "");
	assert_int_equal(req.address.len, 4);
	assert_int_equal(parse(v6, strlen(v6)), SNIFF_DONE);
	assert_string_equal(req.host, "");
	assert_int_equal(req.address.len, 16);
	assert_int_equal(req.port, 81);
}

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static void test_upgrade(void **state)
{
	static const struct {
		const char *text;
		bool upgrade, websocket;
	} row[] = {
		{ GET("Connection: Upgrade\r\nUpgrade: websocket\r\n" KEY),
		  true, true },
		{ GET("Connection: keep-alive, UPGRADE\r\n"
		      "Upgrade: WebSocket\r\n" KEY),
		  true, true },
		{ GET("Upgrade: websocket\r\n" KEY), false, false },
		{ GET("Connection: Upgrade\r\n" KEY), false, false },
		{ GET("Connection: Upgrade\r\nUpgrade: websocket\r\n"), true,
		  false },
		{ GET("Connection: Upgrade\r\nUpgrade: h2c\r\n" KEY), true,
		  false }, /* H12 */
		{ GET("Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n" KEY),
		  true, false },
		{ GET("Connection: Upgrade\r\nUpgrade: websocket\r\n"
		      "Upgrade: h2c\r\n" KEY),
		  true, false },
		{ POST("Connection: Upgrade\r\nUpgrade: websocket\r\n" KEY),
		  true, false },
		{ GET("Connection: Upgrade\r\nUpgrade: websocket\r\n"
		      "Content-Length: 4\r\n" KEY),
		  true, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(parse(row[i].text, strlen(row[i].text)),
				 SNIFF_DONE);
		assert_int_equal(req.upgrade, row[i].upgrade);
		assert_int_equal(req.websocket, row[i].websocket);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_evil),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_upgrade),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
