/* SPDX-License-Identifier: Apache-2.0
 *
 * Envelopes and the statements in them.
 */
#include "audit/dsse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/base64.h"
#include "audit/statement.h"
#include "base/cleanup.h"

#define TYPE "application/vnd.test+json"
#define ZERO "0000000000000000000000000000000000000000000000000000000000000000"
#define ONES "1111111111111111111111111111111111111111111111111111111111111111"
#define KIND "https://sallyport.example/receipt/v1"

static struct key *key, *other;

static struct text of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static int open_json(const char *json, const struct key *by)
{
	AUTO_FREE char *body = NULL;
	size_t len;

	return dsse_open(of(json), TYPE, key_public(by), &body, &len);
}

/* The example of protocol.md. */
static void test_pae(void **state)
{
	AUTO_FREE char *pae = NULL, *empty = NULL;
	size_t len;

	(void)state;
	assert_int_equal(dsse_pae("http://example.com/HelloWorld",
				  of("hello world"), &pae, &len),
			 0);
	assert_string_equal(
		pae, "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
	assert_int_equal(len, strlen(pae));
	assert_int_equal(dsse_pae("", (struct text){ NULL, 0 }, &empty, &len),
			 0);
	assert_string_equal(empty, "DSSEv1 0  0 ");
}

static void test_there_and_back(void **state)
{
	/* Every byte, and lengths around those of base64 groups. */
	char data[259], *json, *body;
	size_t json_len, len;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)i;
	for (size_t n = 0; n <= sizeof(data); n++) {
		struct text text = { data, n };

		assert_int_equal(dsse_sign(TYPE, text, key, &json, &json_len),
				 0);
		assert_int_equal(json_len, strlen(json));
		assert_int_equal(
			dsse_open(of(json), TYPE, key_public(key), &body, &len),
			0);
		assert_int_equal(len, n);
		assert_memory_equal(body, data, n);
		assert_int_equal(body[n], 0);
		free(json);
		free(body);
	}
}

static void test_who_and_what(void **state)
{
	AUTO_FREE char *json = NULL, *body = NULL;
	size_t len;

	(void)state;
	assert_int_equal(dsse_sign(TYPE, of("{}"), key, &json, &len), 0);
	assert_ptr_equal(strstr(json,
				"{\"payload\":\"e30=\",\"payloadType\":\"" TYPE
				"\",\"signatures\":[{\"keyid\":\"k.example+"),
			 json);
	assert_int_equal(open_json(json, key), 0);
	assert_int_equal(open_json(json, other), -EKEYREJECTED);
	assert_int_equal(
		dsse_open(of(json), "text/x", key_public(key), &body, &len),
		-ENOMSG);
	memcpy(strstr(json, "e30="), "e3A=", 4);
	assert_int_equal(open_json(json, key), -EKEYREJECTED);
	memcpy(strstr(json, "e3A="), "e31=", 4);
	assert_int_equal(open_json(json, key), -EBADMSG);
	memcpy(strstr(json, "e31="), "e30K", 4);
	assert_int_equal(open_json(json, key), -EKEYREJECTED);
	assert_int_equal(dsse_sign("", of("{}"), key, &body, &len), -EINVAL);
	assert_int_equal(dsse_sign("a/\xff", of("{}"), key, &body, &len),
			 -EINVAL);
	assert_null(body);
}

/* No single bit may change and leave another body, or one by nobody. */
static void test_every_bit(void **state)
{
	AUTO_FREE char *json = NULL;
	size_t len;

	(void)state;
	assert_int_equal(dsse_sign(TYPE, of("hello"), key, &json, &len), 0);
	for (size_t bit = 0; bit < len * 8; bit++) {
		AUTO_FREE char *body = NULL;
		size_t n;
		int r;

		json[bit / 8] ^= (char)(1 << bit % 8);
		r = dsse_open((struct text){ json, len }, TYPE, key_public(key),
			      &body, &n);
		if (!r)
			assert_string_equal(body, "hello");
		else
			assert_null(body);
		/* Only the hint is not signed. */
		if (!r && !(json + bit / 8 > strstr(json, ":[{") &&
			    json + bit / 8 < strstr(json, "sig\":")))
			fail_msg("bit %zu does not matter: %s", bit, json);
		json[bit / 8] ^= (char)(1 << bit % 8);
	}
}

static void test_several_signers(void **state)
{
	AUTO_FREE char *a = NULL, *b = NULL;
	char sig[128], json[4096];
	size_t len;

	(void)state;
	assert_int_equal(dsse_sign(TYPE, of("hello"), key, &a, &len), 0);
	assert_int_equal(dsse_sign(TYPE, of("hello"), other, &b, &len), 0);
	snprintf(sig, sizeof(sig), "%.88s", strstr(b, "\"sig\":\"") + 7);
	/* A second one without a hint, a third of another algorithm, members
	 * that nobody knows. */
	snprintf(json, sizeof(json),
		 "%.*s,{\"sig\":\"%s\",\"x\":1},{\"sig\":\"AAAA\"}],"
		 "\"y\":[]}\n",
		 (int)strlen(a) - 2, a, sig);
	assert_int_equal(open_json(json, key), 0);
	assert_int_equal(open_json(json, other), 0);
}

#define SIG "\"signatures\":[{\"sig\":\"AAAA\"}]"
#define PAY "\"payload\":\"AAAA\",\"payloadType\":\"" TYPE "\""

static void test_what_is_no_envelope(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"null",
		"\"x\"",
		"{}",
		"{" SIG "}",
		"{" PAY "}",
		"{" PAY ",\"signatures\":[]}",
		"{" PAY ",\"signatures\":{}}",
		"{" PAY ",\"signatures\":[1]}",
		"{" PAY ",\"signatures\":[{}]}",
		"{" PAY ",\"signatures\":[{\"sig\":1}]}",
		"{" PAY ",\"signatures\":[{\"sig\":\"\"}]}",
		"{" PAY ",\"signatures\":[{\"sig\":\"AA-_\"}]}",
		"{" PAY ",\"signatures\":[{\"sig\":\"AA AA\"}]}",
		"{" PAY "," PAY "," SIG "}",
		"{\"payload\":1,\"payloadType\":\"" TYPE "\"," SIG "}",
		"{\"payload\":\"AA\\n==\",\"payloadType\":\"" TYPE "\"," SIG
		"}",
		"{\"payload\":\"AAAA\",\"payloadType\":[]," SIG "}",
		"{" PAY "," SIG "} {}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (open_json(bad[i], key) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(open_json("{" PAY "," SIG "}", key), -EKEYREJECTED);
}

static void test_limits(void **state)
{
	AUTO_FREE char *big = calloc(1, DSSE_BODY_MAX + 1), *json = NULL;
	char many[4096] = "{" PAY ",\"signatures\":[{\"sig\":\"AAAA\"}";
	size_t len;

	(void)state;
	assert_int_equal(dsse_sign(TYPE,
				   (struct text){ big, DSSE_BODY_MAX + 1 }, key,
				   &json, &len),
			 -E2BIG);
	assert_int_equal(dsse_sign(TYPE, (struct text){ big, DSSE_BODY_MAX },
				   key, &json, &len),
			 0);
	assert_int_equal(open_json(json, key), 0);
	for (size_t i = 0; i < DSSE_SIGNATURES_MAX; i++)
		strcat(many, ",{\"sig\":\"AAAA\"}");
	strcat(many, "]}");
	assert_int_equal(open_json(many, key), -E2BIG);
}

static void test_statement(void **state)
{
	static const struct statement_subject subjects[] = {
		{ "audit.jsonl", ZERO }, { "policy", ONES }
	};
	char buf[1024];
	struct json j = json_of(buf, sizeof(buf));
	json_t *statement;

	(void)state;
	statement_open(&j, subjects, 2, KIND);
	json_uint(&j, "records", 41);
	statement_close(&j);
	assert_false(j.full);
	buf[j.len] = '\0';
	assert_string_equal(buf,
			    "{\"_type\":\"https://in-toto.io/Statement/v1\","
			    "\"subject\":[{\"name\":\"audit.jsonl\",\"digest\":"
			    "{\"sha256\":\"" ZERO "\"}},{\"name\":\"policy\","
			    "\"digest\":{\"sha256\":\"" ONES "\"}}],"
			    "\"predicateType\":\"" KIND "\","
			    "\"predicate\":{\"records\":41}}");
	assert_int_equal(statement_parse(of(buf), "other", &statement),
			 -ENOMSG);
	assert_int_equal(statement_parse(of(buf), KIND, &statement), 0);
	assert_string_equal(statement_digest(statement, "policy"), ONES);
	assert_null(statement_digest(statement, "rules"));
	json_decref(statement);
}

#define S1 "{\"name\":\"a\",\"digest\":{\"sha256\":\"" ZERO "\"}}"
#define T1 "\"_type\":\"https://in-toto.io/Statement/v1\""
#define P1 "\"predicateType\":\"" KIND "\",\"predicate\":{}"

static void test_what_is_no_statement(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{" T1 ",\"subject\":[" S1 "]}",
		"{\"subject\":[" S1 "]," P1 "}",
		"{\"_type\":\"https://in-toto.io/Statement/v0.1\","
		"\"subject\":[" S1 "]," P1 "}",
		"{" T1 "," P1 "}",
		"{" T1 ",\"subject\":[]," P1 "}",
		"{" T1 ",\"subject\":[1]," P1 "}",
		"{" T1 ",\"subject\":[" S1 "," S1 "]," P1 "}",
		"{" T1 ",\"subject\":[{\"name\":\"a\"}]," P1 "}",
		"{" T1 ",\"subject\":[{\"digest\":{\"sha256\":\"" ZERO
		"\"}}]," P1 "}",
		"{" T1 ",\"subject\":[{\"name\":\"a\",\"digest\":{\"sha256\":"
		"\"00\"}}]," P1 "}",
		"{" T1 ",\"subject\":[" S1 "],\"predicateType\":\"" KIND
		"\",\"predicate\":[]}",
	};
	json_t *statement = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (statement_parse(of(bad[i]), KIND, &statement) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_null(statement);
	assert_int_equal(
		statement_parse(of("{" T1 ",\"subject\":[" S1 "]," P1 "}"),
				KIND, &statement),
		0);
	json_decref(statement);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pae),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_who_and_what),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_several_signers),
		cmocka_unit_test(test_what_is_no_envelope),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_statement),
		cmocka_unit_test(test_what_is_no_statement),
	};
	int r;

	key_generate(of("k.example"), &key);
	key_generate(of("k.example"), &other);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	key_free(key);
	key_free(other);
	return r;
}
