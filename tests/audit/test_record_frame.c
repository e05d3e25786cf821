/* SPDX-License-Identifier: Apache-2.0
 *
 * test_record_frame.c - a line is the same whether what does not change was
 * made once or with it; and whatever a context says, there is room for it.
 */
#include "audit/record_frame.h"

#include "tests/audit/lines.h"

#define MUCH 300

static const struct audit_event event = {
	.kind = EVENT_FLOW_OPEN,
	.sandbox = 1,
	.flow = 7,
	.time_ms = 1775014138811,
	.verdict = { .allow = true, .reason = REASON_RULE },
	.door = DOOR_CONNECT,
	.host = "api.example.test",
	.dst_port = 443,
};

/* The line of @context, which is checked to be the same both ways. */
static json_t *both_ways(struct record_context context, uint64_t sequence)
{
	static char own[RECORD_LINE_MAX], framed[RECORD_LINE_MAX];
	struct record_frame frame;
	json_error_t error;
	size_t len;
	json_t *line;

	len = record_format(&event, sequence, &context, own, sizeof(own));
	assert_true(len > 0);
	memset(&frame, 0xa5, sizeof(frame));
	record_frame_make(&context, &frame);
	context.frame = &frame;
	assert_int_equal(record_format(&event, sequence, &context, framed,
				       sizeof(framed)),
			 len);
	assert_memory_equal(framed, own, len);
	line = json_loadb(own, len, JSON_REJECT_DUPLICATES, &error);
	assert_non_null(line);
	return line;
}

static const char *text_at(json_t *line, const char *outer, const char *inner)
{
	return json_string_value(
		json_object_get(json_object_get(line, outer), inner));
}

static void test_same(void **state)
{
	const struct record_context context = { .session = "s1",
						.sandbox_name = "box",
						.policy_digest = "0123",
						.policy_name = "p",
						.boundary = "netns" };
	json_t *line = both_ways(context, 1234567);

	(void)state;
	assert_string_equal(text_at(line, "metadata", "uid"), "s1/1234567");
	assert_string_equal(text_at(line, "metadata", "correlation_uid"), "s1");
	assert_string_equal(text_at(line, "policy", "uid"), "sha256:0123");
	assert_string_equal(text_at(line, "policy", "name"), "p");
	assert_string_equal(text_at(line, "unmapped", "boundary"), "netns");
	assert_string_equal(text_at(line, "unmapped", "sandbox"), "box");
	assert_string_equal(text_at(line, "unmapped", "event"), "flow_open");
	assert_int_equal(
		json_integer_value(json_object_get(
			json_object_get(line, "metadata"), "sequence")),
		1234567);
	json_decref(line);
}

static void test_nothing(void **state)
{
	json_t *line = both_ways((struct record_context){ .session = NULL }, 0);

	(void)state;
	assert_string_equal(text_at(line, "metadata", "uid"), "/0");
	assert_null(text_at(line, "metadata", "correlation_uid"));
	assert_int_equal(json_object_size(json_object_get(line, "policy")), 0);
	assert_null(text_at(line, "unmapped", "boundary"));
	assert_null(text_at(line, "unmapped", "sandbox"));
	json_decref(line);
}

/* Each byte becomes six. */
static void test_much(void **state)
{
	static char much[MUCH + 1];
	const struct record_context context = { .session = much,
						.sandbox_name = much,
						.policy_digest = much,
						.policy_name = much,
						.boundary = much };
	struct record_frame frame;
	json_t *line;

	(void)state;
	memset(much, 1, MUCH);
	record_frame_make(&context, &frame);
	assert_in_range(frame.place, 1, RECORD_FRAME_MAX - 1);
	assert_int_equal(frame.text[frame.place - 1], '"');
	line = both_ways(context, UINT64_C(1) << 53);
	assert_int_equal(strlen(text_at(line, "unmapped", "sandbox")), 128);
	json_decref(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
