/* SPDX-License-Identifier: Apache-2.0
 *
 * test_http_response.c - response heads; paths; and heads that are written
 * anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proxy/http_write.h"
#include "proxy/sniff/http_authority.h"

static struct http_request req;
static struct http_error error;

/* H13 */
static void test_path(void **state)
{
	static const struct {
		const char *from, *to;
	} row[] = {
		{ "/", "/" },
		{ "*", "*" },
		{ "?x", "/?x" },
		{ "/a/./b", "/a/b" },
		{ "/a/../b", "/b" },
		{ "/a/b/..", "/a/" },
		{ "/a/%2e%2E/b", "/b" },
		{ "/a/.%2e/b", "/b" },
		{ "/./x?/../y", "/x?/../y" },
		{ "//a", "//a" },
		{ "/a//../b", "/a/b" },
		{ "/.", "/" },
		{ "/...", "/..." },
		{ "/.a/..b", "/.a/..b" },
		{ "/@s%2fname", "/@s%2Fname" },
		{ "/%61%2D%5f%7E%2e/%39%5A", "/a-_~./9Z" },
		{ "/%c3%a4%20%3a%00", "/%C3%A4%20%3A%00" },
		{ "/%252e%252e/b", "/%252e%252e/b" },
		{ "/%2e%2E%2f..", "/..%2F.." },
		{ "/a%2F..%2fb", "/a%2F..%2Fb" },
		{ "/a?%61=%2f", "/a?%61=%2f" },
		{ "/a//b\\c", "/a//b\\c" },
		{ "/a;x", "/a;x" },
		{ "/..", NULL },
		{ "/a/../../b", NULL },
		{ "/%2e%2e/b", NULL },
		{ "/a/..;x/b", NULL },
		{ "/a/%2e%2e;/b", NULL },
		{ "/%", NULL },
		{ "/a%2", NULL },
		{ "/%zz", NULL },
		{ "/%%32%66", NULL },
		{ "/a%2/f", NULL },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct http_text text = { row[i].from, strlen(row[i].from) };
		const char *detail =
			http_path_canonical(text, buf, sizeof(buf));

		print_message("%s\n", row[i].from);
		if (row[i].to) {
			assert_null(detail);
			assert_string_equal(buf, row[i].to);
			text = (struct http_text){ row[i].to,
						   strlen(row[i].to) };
			assert_null(
				http_path_canonical(text, buf, sizeof(buf)));
			assert_string_equal(buf, row[i].to); /* once is all */
		} else {
			assert_non_null(detail);
		}
	}
	assert_non_null(http_path_canonical((struct http_text){ "/abcdef", 7 },
					    buf, 7));
	assert_null(http_path_canonical((struct http_text){ "/abcdef", 7 }, buf,
					8));
}

static const struct {
	const char *text;
	bool head;
	int status; /* 0: refused */
	enum http_framing framing;
} responses[] = {
#define OK "HTTP/1.1 200 OK\r\n"
	{ OK "\r\n", false, 200, HTTP_UNTIL_CLOSE },
	{ "HTTP/1.0 200\r\n\r\n", false, 200, HTTP_UNTIL_CLOSE },
	{ "HTTP/1.1 404 \r\n\r\n", false, 404, HTTP_UNTIL_CLOSE },
	{ OK "Content-Length: 3\r\n\r\n", false, 200, HTTP_LENGTH },
	{ OK "Content-Length: 3\r\n\r\n", true, 200, HTTP_NO_BODY },
	{ OK "Transfer-Encoding: chunked\r\n\r\n", false, 200, HTTP_CHUNKED },
	{ "HTTP/1.1 204 x\r\n\r\n", false, 204, HTTP_NO_BODY },
	{ "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", false, 304,
	  HTTP_NO_BODY },
	{ "HTTP/1.1 100 Continue\r\n\r\n", false, 100, HTTP_NO_BODY },
/* H19: what could be read in two ways */
#define BAD(text)                            \
	{                                    \
		text, false, 0, HTTP_NO_BODY \
	}
	BAD(OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD(OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\n"),
	BAD(OK "Content-Length: -3\r\n\r\n"),
	BAD(OK "Content-Length: 3,3\r\n\r\n"),
	BAD(OK "Transfer-Encoding: gzip, chunked\r\n\r\n"),
	BAD(OK "Transfer-Encoding: identity\r\n\r\n"),
	BAD("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD(OK "X : y\r\n\r\n"),
	BAD(OK "X: a\r\n b\r\n\r\n"),
	BAD("HTTP/1.1 200 OK\nX: y\n\n"),
	BAD("HTTP/1.1 200 O\rK\r\n\r\n"),
	BAD("HTTP/1.1 99 x\r\n\r\n"),
	BAD("HTTP/1.1 099 x\r\n\r\n"),
	BAD("HTTP/1.1 600 x\r\n\r\n"),
	BAD("HTTP/1.1 2000 x\r\n\r\n"),
	BAD("HTTP/1.1  200 x\r\n\r\n"),
	BAD("HTTP/2 200 x\r\n\r\n"),
	BAD("ICY 200 OK\r\n\r\n"),
	BAD("SSH-2.0-OpenSSH\r\n\r\n"),
	BAD("\r\nHTTP/1.1 200 OK\r\n\r\n"),
#undef BAD
#undef OK
};

static void test_responses(void **state)
{
	struct http_response resp;
	const char *detail;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(responses); i++) {
		const char *text = responses[i].text;
		enum sniff got = http_response_parse(
			text, strlen(text), responses[i].head, &resp, &detail);

		print_message("%s\n", text);
		assert_int_equal(got,
				 responses[i].status ? SNIFF_DONE : SNIFF_BAD);
		if (!responses[i].status) {
			assert_non_null(detail);
			continue;
		}
		assert_int_equal(resp.status, responses[i].status);
		assert_int_equal(resp.framing, responses[i].framing);
		assert_int_equal(resp.head_len, strlen(text));
	}
}

static void test_write(void **state)
{
	static const char text[] =
		"POST http://ok.com:81/x HTTP/1.1\r\nHost: ok.com:81\r\n"
		"Connection: close, x-secret, Upgrade\r\nX-Secret: 1\r\n"
		"Keep-Alive: 5\r\nProxy-Authorization: Basic eA==\r\n"
		"Proxy-Connection: keep-alive\r\nTE: trailers\r\nTrailer: X\r\n"
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
		"X-Forwarded-For: 10.0.0.1\r\nx-forwarded-host: evil.com\r\n"
		"Forwarded: for=10.0.0.1\r\nExpect: 100-continue\r\n"
		"Accept:  */*  \r\nVia: 1.1 other\r\nContent-Length: 007\r\n\r\n";
	char buf[1024], authority[HTTP_AUTHORITY_MAX];
	struct wirebuf out = wirebuf_of(buf, sizeof(buf));

	(void)state;
	assert_int_equal(http_request_parse(text, strlen(text), &req, &error),
			 SNIFF_DONE);
	assert_true(req.expect_continue);
	http_write_authority(req.host, &req.address, req.port, authority);
	http_write_request(&out, &req, authority, "/x");
	wirebuf_u8(&out, 0);
	assert_false(out.full);
	assert_string_equal(buf, "POST /x HTTP/1.1\r\nHost: ok.com:81\r\n"
				 "Accept: */*\r\nVia: 1.1 other\r\n"
				 "Content-Length: 7\r\n"
				 "Via: 1.1 sallyport\r\n"
				 "Connection: close\r\n\r\n");
	assert_false(http_via_us(req.header, req.headers));
	assert_int_equal(http_request_parse(buf, out.len - 1, &req, &error),
			 SNIFF_DONE);
	assert_true(http_via_us(req.header, req.headers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
