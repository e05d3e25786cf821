/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proxy/refuse.h"

/* The body of a response whose Content-Length must be true. */
static const char *body_of(const char *response, size_t len)
{
	const char *end = strstr(response, "\r\n\r\n");
	const char *length = strstr(response, "\r\nContent-Length: ");

	assert_non_null(end);
	assert_non_null(length);
	assert_true(length < end);
	assert_int_equal(strtoul(length + 18, NULL, 10),
			 len - (size_t)(end + 4 - response));
	return end + 4;
}

static void test_denied(void **state)
{
	char buf[REFUSE_MAX], hint[256], want[512];
	const struct reason_info *info = reason_info(REASON_NOT_IN_POLICY);
	size_t len = refuse_http(REASON_NOT_IN_POLICY, 0, "evil.test", 443,
				 NULL, buf);

	(void)state;
	assert_int_equal(len, strlen(buf));
	assert_int_equal(strncmp(buf, "HTTP/1.1 403 Forbidden\r\n", 24), 0);
	assert_non_null(strstr(buf, "\r\nProxy-Status: sallyport; "
				    "error=http_request_denied; "
				    "details=\"not_in_policy\"\r\n"));
	assert_non_null(
		strstr(buf, "\r\nX-Proxy-Error: blocked-by-allowlist\r\n"));
	assert_non_null(strstr(buf, "\r\nX-Sallyport-Reason: "
				    "not_in_policy\r\n"));
	assert_non_null(strstr(buf, "\r\nConnection: close\r\n"));
	snprintf(want, sizeof(want),
		 "sallyport: evil.test:443 refused: not_in_policy: %s\n%s\n",
		 info->text,
		 reason_hint(REASON_NOT_IN_POLICY, "evil.test", 443, hint,
			     sizeof(hint)));
	assert_string_equal(body_of(buf, len), want);
}

static void test_every_reason(void **state)
{
	(void)state;
	for (enum reason r = REASON_NOT_IN_POLICY; r < REASON_COUNT; r++) {
		char buf[REFUSE_MAX], want[96];
		size_t len = refuse_http(r, 0, "a.test", 8443, "why", buf);
		const char *body = body_of(buf, len);
		const char *nl = strchr(body, '\n');

		snprintf(want, sizeof(want),
			 "a.test:8443 refused: %s: ", reason_word(r));
		assert_non_null(strstr(body, want));
		assert_non_null(strstr(body, "(why)"));
		assert_non_null(nl);
		assert_ptr_equal(strrchr(body, '\n'), body + strlen(body) - 1);
		assert_ptr_equal(strchr(nl + 1, '\n'), body + strlen(body) - 1);
		assert_int_equal(!strstr(buf, "X-Proxy-Error: "),
				 strncmp(buf + 9, "403", 3) != 0);
	}
}

static void test_status(void **state)
{
	char buf[REFUSE_MAX];

	(void)state;
	refuse_http(REASON_TIMEOUT, 408, NULL, 0, NULL, buf);
	assert_int_equal(strncmp(buf, "HTTP/1.1 408 Request Timeout\r\n", 30),
			 0);
	assert_non_null(strstr(buf, "sallyport: request refused: timeout: "));
	assert_null(strstr(buf, "X-Proxy-Error"));
	refuse_http(REASON_CONNECT_FAILED, 504, "a.test", 22, NULL, buf);
	assert_int_equal(strncmp(buf, "HTTP/1.1 504 Gateway Timeout\r\n", 30),
			 0);
	refuse_http(REASON_LIMIT_CONNECTIONS, 0, NULL, 0, NULL, buf);
	assert_int_equal(strncmp(buf, "HTTP/1.1 503 ", 13), 0);
	refuse_http(REASON_NOT_IN_POLICY, 0, "2001:db8::1", 22, NULL, buf);
	assert_non_null(strstr(buf, "sallyport: [2001:db8::1]:22 refused: "));
}

/* Hostile text: no line, header or escape of its own, nothing past the end. */
static void test_hostile(void **state)
{
	char host[8192], detail[8192], buf[REFUSE_MAX];

	(void)state;
	for (int c = 1; c < 256; c++) {
		size_t len;
		const char *body;

		memset(host, c, sizeof(host) - 1);
		memset(detail, c, sizeof(detail) - 1);
		host[sizeof(host) - 1] = detail[sizeof(detail) - 1] = '\0';
		len = refuse_http(REASON_MALFORMED, 400, host, 65535, detail,
				  buf);
		assert_true(len > 0 && len < REFUSE_MAX);
		body = body_of(buf, len);
		for (const char *p = body; *p; p++)
			if (*p != '\n')
				assert_in_range(*p, 0x20, 0x7e);
		assert_int_equal(body[strlen(body) - 1], '\n');
	}
	refuse_http(REASON_MALFORMED, 400, "a\r\nX-Evil: 1\r\n\r\n\x1b[31m", 1,
		    "b\r\nX-Evil: 1", buf);
	assert_null(strstr(buf, "\nX-Evil"));
	assert_non_null(strstr(buf, "a\\x0d\\x0aX-Evil: 1"));
	assert_non_null(strstr(buf, "\\x1b[31m"));
}

static void test_alert(void **state)
{
	uint8_t buf[7];

	(void)state;
	for (enum reason r = REASON_NOT_IN_POLICY; r < REASON_COUNT; r++) {
		assert_int_equal(refuse_tls(r, buf), 7);
		assert_memory_equal(buf, "\x15\x03\x03\x00\x02\x02", 6);
		assert_int_equal(buf[6], reason_info(r)->tls_alert);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_every_reason),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_alert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
