/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a sandbox wrote: one line, valid JSON, below the limit.
 */
#include "tests/audit/lines.h"

/* What a sandbox can put into each string, in each kind. */
static void test_hostile_text(void **state)
{
	static const char *const evil[] = {
		"a\nb\r\"}{\"class_uid\":1,\"x\":\"",
		"\x1b]0;owned\x07\x1b[2J",
		"\\\"\\u0000\\",
		"\xff\xfe\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xe2",
		"\xc2\x9b"
		"31m",
		"\xe2\x80\xae"
		"moc.live",
		"%s%n%d",
		"",
		"\x7f\x01\x1f",
	};
	static char buf[RECORD_LINE_MAX];

	(void)state;
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		for (size_t i = 0; i < ARRAY_SIZE(evil); i++) {
			struct audit_event event = sample(
				(enum event_kind)kind, false, REASON_MALFORMED);

			event.rule = event.rule_text = event.host = evil[i];
			event.protocol = event.sni = event.method = evil[i];
			event.target = event.detail = evil[i];
			json_t *line = line_of(&event, buf);
			assert_null(at(line, "x"));
			assert_true(json_integer_value(at(line, "class_uid")) >
				    1000);
			json_decref(line);
		}
	}
}

/* The longest message, with the bytes that grow most when they are escaped. */
static void test_worst_case_fits(void **state)
{
	static char big[20000], buf[RECORD_LINE_MAX], text[RECORD_MESSAGE_MAX];
	uint8_t message[RECORD_MESSAGE_MAX];
	uint64_t seq;

	(void)state;
	memset(big, 0x01, sizeof(big) - 1);
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		struct audit_event event =
			sample((enum event_kind)kind, false, REASON_MALFORMED);
		struct audit_event decoded;

		event.rule = event.rule_text = event.host = event.sni = big;
		event.protocol = event.method = event.target = big;
		event.detail = big;
		event.answers = EVENT_ANSWERS_MAX;
		for (size_t i = 0; i < EVENT_ANSWERS_MAX; i++)
			memset(&event.answer[i], 16, sizeof(event.answer[i]));
		size_t len = record_encode(&event, 1, message);
		assert_int_equal(
			record_decode(message, len, &decoded, &seq, text), 0);
		json_t *line = line_of(&decoded, buf);
		/* Whole, not cut for want of room. */
		if (kind == EVENT_HTTP_REQUEST)
			assert_int_equal(
				json_string_length(
					at(line, "http_request.url.path")),
				4096);
		json_decref(line);

		json_decref(line_of(&event, buf));
	}
}

static void test_small_buffer(void **state)
{
	static char buf[RECORD_LINE_MAX];
	struct audit_event event = sample(EVENT_FLOW_OPEN, true, REASON_RULE);

	(void)state;
	assert_int_equal(record_format(&event, 1, &lines_context, buf, 100), 0);
	assert_int_equal(record_format(&event, 1, &lines_context, buf, 0), 0);
	event.kind = EVENT_KIND_COUNT;
	assert_int_equal(
		record_format(&event, 1, &lines_context, buf, sizeof(buf)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_worst_case_fits),
		cmocka_unit_test(test_small_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
