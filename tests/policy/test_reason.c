/* SPDX-License-Identifier: Apache-2.0
 *
 * test_reason.c - the table is whole: no row without a word, no two alike, and
 * no refusal that a client would take for success.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/reason.h"

/* DESIGN.md section 8, in the order of the enum. */
static const char *const words[] = {
	"rule",
	"public",
	"observe",
	"not_in_policy",
	"deny_rule",
	"port",
	"method",
	"path",
	"name_mismatch",
	"no_name",
	"literal_address",
	"forbidden_address",
	"resolve_failed",
	"record_type",
	"ech",
	"malformed",
	"protocol",
	"self",
	"limit_connections",
	"limit_bytes",
	"limit_names",
	"limit_rate",
	"timeout",
	"expired",
	"policy_revoked",
	"ledger_unavailable",
	"connect_failed",
	"bypass",
};

static void test_words(void **state)
{
	(void)state;
	assert_int_equal(sizeof(words) / sizeof(words[0]), REASON_COUNT);
	for (int r = 0; r < REASON_COUNT; r++) {
		assert_string_equal(reason_word((enum reason)r), words[r]);
		assert_string_equal(reason_info((enum reason)r)->word,
				    words[r]);
	}
	assert_string_equal(reason_word(REASON_COUNT), "unknown");
}

static void test_rows(void **state)
{
	(void)state;
	for (int r = 0; r < REASON_COUNT; r++) {
		const struct reason_info *info = reason_info((enum reason)r);

		assert_int_equal(info->allow, r < REASON_NOT_IN_POLICY);
		assert_non_null(info->http_phrase);
		assert_non_null(info->proxy_error);
		assert_true(strlen(info->text) > 8);
		if (info->allow) {
			assert_int_equal(info->socks, 0);
			assert_int_equal(info->dns_rcode, 0);
			continue;
		}
		assert_true(info->socks >= 1 && info->socks <= 8);
		assert_true(info->tls_alert > 0);
		assert_true(info->dns_rcode || r == REASON_RECORD_TYPE);
		assert_int_equal(!info->http_status, !*info->http_phrase);
		assert_int_equal(!info->http_status, !*info->proxy_error);
		if (info->http_status)
			assert_in_range(info->http_status, 400, 599);
	}
}

static void test_values(void **state)
{
	static const struct {
		enum reason reason;
		uint16_t status;
		const char *token;
		uint8_t socks, alert, rcode;
		uint16_t ede;
	} rows[] = {
		{ REASON_NOT_IN_POLICY, 403, "http_request_denied", 2, 49, 3,
		  15 },
		{ REASON_FORBIDDEN_ADDRESS, 502, "destination_ip_prohibited", 2,
		  49, 3, 15 },
		{ REASON_RESOLVE_FAILED, 502, "dns_error", 4, 80, 2, 22 },
		{ REASON_MALFORMED, 400, "http_request_error", 1, 50, 1, 0 },
		{ REASON_NAME_MISMATCH, 400, "http_request_error", 2, 112, 3,
		  15 },
		{ REASON_LIMIT_CONNECTIONS, 503, "connection_limit_reached", 1,
		  80, 5, 15 },
		{ REASON_LEDGER_UNAVAILABLE, 503, "proxy_internal_error", 1, 80,
		  2, 0 },
		{ REASON_TIMEOUT, 504, "connection_timeout", 4, 80, 2, 23 },
		{ REASON_CONNECT_FAILED, 502, "connection_refused", 5, 80, 2,
		  23 },
		{ REASON_RECORD_TYPE, 0, "", 2, 49, 0, 0 },
		{ REASON_PROTOCOL, 400, "http_request_error", 7, 40, 5, 21 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct reason_info *info = reason_info(rows[i].reason);

		assert_int_equal(info->http_status, rows[i].status);
		assert_string_equal(info->proxy_error, rows[i].token);
		assert_int_equal(info->socks, rows[i].socks);
		assert_int_equal(info->tls_alert, rows[i].alert);
		assert_int_equal(info->dns_rcode, rows[i].rcode);
		assert_int_equal(info->ede, rows[i].ede);
	}
}

static void test_hints(void **state)
{
	char buf[200];

	(void)state;
	assert_string_equal(reason_hint(REASON_NOT_IN_POLICY, "a.com", 443, buf,
					sizeof(buf)),
			    "add --allow a.com, or a rule for it to the "
			    "policy");
	reason_hint(REASON_NOT_IN_POLICY, "a.com", 22, buf, sizeof(buf));
	assert_non_null(strstr(buf, "--allow a.com:22,"));
	reason_hint(REASON_NOT_IN_POLICY, "a.com", 0, buf, sizeof(buf));
	assert_non_null(strstr(buf, "--allow a.com,"));
	reason_hint(REASON_PORT, "a.com", 443, buf, sizeof(buf));
	assert_non_null(strstr(buf, "--allow a.com:443,"));
	reason_hint(REASON_LITERAL_ADDRESS, "2001:db8::1", 8443, buf,
		    sizeof(buf));
	assert_non_null(strstr(buf, "--allow [2001:db8::1]:8443,"));
	reason_hint(REASON_FORBIDDEN_ADDRESS, "a.com", 8443, buf, sizeof(buf));
	assert_non_null(strstr(buf, "--permit"));
	/* hostile or missing names, short buffers */
	reason_hint(REASON_NOT_IN_POLICY, "\x1b[31m\nx", 443, buf, sizeof(buf));
	assert_null(strpbrk(buf, "\x1b\n"));
	for (int r = 0; r < REASON_COUNT; r++) {
		char tiny[4];

		assert_true(strlen(reason_hint((enum reason)r, NULL, 0, buf,
					       sizeof(buf))) > 5);
		assert_int_equal(strlen(reason_hint((enum reason)r, "a.com", 1,
						    tiny, sizeof(tiny))),
				 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_hints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
