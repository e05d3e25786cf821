/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request by the control socket says, and what is wrong with it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon_request.h"

static int parse(enum request_kind kind, const char *body, struct request *ret,
		 struct request_error *why)
{
	return request_parse(kind, body, strlen(body), ret, why);
}

static void test_create(void **state)
{
	static const char body[] =
		"{\"name\":\"a\",\"policy\":\"version: 1\\n\","
		"\"timeout_s\":60,\"publish\":[{\"port\":8080,\"inside\":80},"
		"{\"address\":\"::1\",\"port\":1,\"inside\":2}]}";
	/* FILE, origin "policy", text "version: 1\n": policy/bundle.c. */
	static const char part[] = "\x01\0\x06\0\0\0\x0bpolicyversion: 1\n";
	struct request_error why;
	struct request r;
	struct ip local;

	(void)state;
	assert_int_equal(parse(REQUEST_CREATE, body, &r, &why), 0);
	assert_string_equal(r.name, "a");
	assert_true(r.has_bundle);
	assert_int_equal(r.bundle.len, sizeof(part) - 1);
	assert_memory_equal(r.bundle.data, part, sizeof(part) - 1);
	assert_int_equal(r.timeout_s, 60);
	assert_int_equal(r.publishes, 2);
	assert_true(ip_parse("127.0.0.1", &local));
	assert_memory_equal(&r.publish[0].at.ip, &local, sizeof(local));
	assert_int_equal(r.publish[0].at.port, 8080);
	assert_int_equal(r.publish[1].inside, 2);
	request_free(&r);
}

static void test_base64(void **state)
{
	/* RFC 4648 section 10, and what is no canonical text. */
	static const struct {
		const char *text, *bytes;
	} rows[] = {
		{ "Zg==", "f" },
		{ "Zm8=", "fo" },
		{ "Zm9v", "foo" },
		{ "Zm9vYg==", "foob" },
		{ "Zm9vYmE=", "fooba" },
		{ "Zm9vYmFy", "foobar" },
		{ "+/+/", "\xfb\xff\xbf" },
		{ "", "" },
		{ "Zh==", NULL },
		{ "Zm9=", NULL },
		{ "Zg=", NULL },
		{ "Zg", NULL },
		{ "====", NULL },
		{ "Z===", NULL },
		{ "Zg==Zg==", NULL },
		{ "Zm 9", NULL },
		{ "Zm9v\\n", NULL },
		{ "-_-_", NULL },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request_error why;
		struct request r;
		char body[64];

		snprintf(body, sizeof(body), "{\"bundle\":\"%s\"}",
			 rows[i].text);
		if (!rows[i].bytes) {
			assert_int_equal(parse(REQUEST_POLICY, body, &r, &why),
					 -EINVAL);
			assert_non_null(strstr(why.error, "base64"));
			continue;
		}
		assert_int_equal(parse(REQUEST_POLICY, body, &r, &why), 0);
		assert_int_equal(r.bundle.len, strlen(rows[i].bytes));
		assert_memory_equal(r.bundle.data, rows[i].bytes, r.bundle.len);
		request_free(&r);
	}
}

static void test_wrong(void **state)
{
	static const struct {
		enum request_kind kind;
		const char *body, *error, *hint;
	} rows[] = {
		{ REQUEST_CREATE, "", "no body", "" },
		{ REQUEST_CREATE, "{", "line 1", "" },
		{ REQUEST_CREATE, "{} x", "line 1", "" },
		{ REQUEST_CREATE, "7", "line 1", "" },
		{ REQUEST_CREATE, "[]", "object", "" },
		{ REQUEST_CREATE, "{}", "'name' is missing", "" },
		{ REQUEST_CREATE, "{\"name\":\"a\",\"name\":\"a\"}",
		  "duplicate", "" },
		{ REQUEST_CREATE, "{\"nam\":\"a\"}", "'nam'", "'name'" },
		{ REQUEST_CREATE, "{\"x\\u001b[0m\":1}", "unknown key",
		  "keys here are" },
		{ REQUEST_CREATE, "{\"name\":\"a\\u0000b\"}", "line 1", "" },
		{ REQUEST_CREATE, "{\"name\":\"a\",\"timeout_s\":1.5}",
		  "timeout_s", "" },
		{ REQUEST_CREATE, "{\"name\":\"a\",\"timeout_s\":31536001}",
		  "timeout_s", "" },
		{ REQUEST_CREATE,
		  "{\"name\":\"a\",\"policy\":\"\",\"bundle\":\"\"}", "use one",
		  "" },
		{ REQUEST_POLICY, "{\"name\":\"a\"}", "'name'", "keys" },
		{ REQUEST_PUBLISH, "{\"port\":80}", "missing", "" },
		{ REQUEST_PUBLISH, "{\"port\":80,\"inside\":65536}", "'inside'",
		  "" },
		{ REQUEST_PUBLISH,
		  "{\"address\":\"localhost\",\"port\":8,\"inside\":8}",
		  "'address'", "" },
		{ REQUEST_CREATE, "{\"name\":\"a\",\"publish\":{}}", "a list",
		  "" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request_error why;
		struct request r;

		assert_int_equal(parse(rows[i].kind, rows[i].body, &r, &why),
				 -EINVAL);
		if (!strstr(why.error, rows[i].error) ||
		    !strstr(why.hint, rows[i].hint))
			fail_msg("%s: %s; %s", rows[i].body, why.error,
				 why.hint);
		/* Nothing that a terminal would obey. */
		assert_null(strchr(why.error, '\x1b'));
	}
}

static void test_long(void **state)
{
	struct request_error why;
	struct request r;
	char *body;
	int len;

	(void)state;
	body = malloc(REQUEST_POLICY_MAX + 64);
	assert_non_null(body);
	for (size_t more = 0; more < 2; more++) {
		len = snprintf(body, 64, "{\"policy\":\"");
		memset(body + len, '#', REQUEST_POLICY_MAX + more);
		memcpy(body + len + REQUEST_POLICY_MAX + more, "\"}", 3);
		assert_int_equal(parse(REQUEST_POLICY, body, &r, &why),
				 more ? -EFBIG : 0);
		if (!more)
			request_free(&r);
	}
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
