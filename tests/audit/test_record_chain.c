/* SPDX-License-Identifier: Apache-2.0
 *
 * What ties the lines together, what the first one is anchored to, and what
 * OCSF demands of each class.
 */
#include "tests/audit/lines.h"

#include "audit/merkle.h"

#define DIGITS \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char buf[RECORD_LINE_MAX];

static void test_prev(void **state)
{
	struct record_context context = lines_context;
	struct merkle_hash before;
	char hex[2 * RECORD_HASH + 1] = "";

	(void)state;
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		struct audit_event event =
			sample((enum event_kind)kind, true, REASON_RULE);
		json_t *line;

		context.prev = *hex ? before.byte : NULL;
		line = line_in(&context, &event, buf);
		if (*hex)
			assert_str(line, "unmapped.prev", hex);
		else
			assert_null(at(line, "unmapped.prev"));
		json_decref(line);
		merkle_leaf(buf, strnlen(buf, 100), &before);
		for (size_t i = 0; i < RECORD_HASH; i++)
			snprintf(hex + 2 * i, 3, "%02x", before.byte[i]);
	}
}

static void test_prev_of_known_bytes(void **state)
{
	static const uint8_t prev[RECORD_HASH] = { 0x00, 0x01, 0x0f,
						   0x10, 0xab, 0xff };
	struct record_context context = lines_context;
	struct audit_event event = sample(EVENT_FLOW_OPEN, true, REASON_RULE);
	json_t *line;

	(void)state;
	context.prev = prev;
	line = line_in(&context, &event, buf);
	assert_str(line, "unmapped.prev",
		   "00010f10abff00000000000000000000"
		   "00000000000000000000000000000000");
	json_decref(line);
}

/* Only the record that opens the session has them. */
static void test_opening(void **state)
{
	static const char note[] =
		"example.test/earlier\n7\nq83vEjRWeJA=\n\n"
		"\xe2\x80\x94 example.test/earlier AAAA\"BBBB\\==\n";
	const struct record_earlier earlier = {
		.checkpoint = note,
		.lines = 7,
		.bytes = 9007199254740991,
		.receipt = true,
	};
	struct record_context context = lines_context;
	json_t *line;

	(void)state;
	context.ruleset_digest = DIGITS;
	context.earlier = &earlier;
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		struct audit_event event =
			sample((enum event_kind)kind, true, REASON_RULE);

		line = line_in(&context, &event, buf);
		if (kind == EVENT_SESSION_OPEN) {
			assert_str(line, "unmapped.ruleset", "sha256:" DIGITS);
			assert_int(line, "unmapped.earlier.records", 7);
			assert_int(line, "unmapped.earlier.bytes",
				   9007199254740991);
			assert_true(json_is_true(
				at(line, "unmapped.earlier.receipt")));
			assert_str(line, "unmapped.earlier.checkpoint", note);
		} else {
			assert_null(at(line, "unmapped.ruleset"));
			assert_null(at(line, "unmapped.earlier"));
		}
		json_decref(line);
	}
}

/* An earlier session that was killed before it signed anything. */
static void test_opening_after_little(void **state)
{
	const struct record_earlier earlier = { .checkpoint = "" };
	struct record_context context = lines_context;
	struct audit_event event =
		sample(EVENT_SESSION_OPEN, true, REASON_RULE);
	json_t *line;

	(void)state;
	line = line_in(&context, &event, buf);
	assert_null(at(line, "unmapped.ruleset"));
	assert_null(at(line, "unmapped.earlier"));
	json_decref(line);

	context.ruleset_digest = "";
	context.earlier = &earlier;
	line = line_in(&context, &event, buf);
	assert_null(at(line, "unmapped.ruleset"));
	assert_int(line, "unmapped.earlier.records", 0);
	assert_int(line, "unmapped.earlier.bytes", 0);
	assert_true(json_is_false(at(line, "unmapped.earlier.receipt")));
	assert_null(at(line, "unmapped.earlier.checkpoint"));
	json_decref(line);
}

/* The longest of all: nothing but newlines, which double. */
static void test_opening_fits(void **state)
{
	static char newlines[2000], text[20000];
	struct record_earlier earlier = { .checkpoint = newlines };
	struct record_context context = lines_context;
	struct audit_event event =
		sample(EVENT_SESSION_OPEN, true, REASON_RULE);
	json_t *line;

	(void)state;
	memset(newlines, '\n', sizeof(newlines) - 1);
	memset(text, '\1', sizeof(text) - 1);
	context.earlier = &earlier;
	context.session = context.sandbox_name = context.policy_name = text;
	context.boundary = context.policy_digest = text;
	context.ruleset_digest = text;
	event.rule = event.rule_text = event.detail = event.process = text;
	line = line_in(&context, &event, buf);
	assert_int_equal(
		json_string_length(at(line, "unmapped.earlier.checkpoint")),
		1024);
	json_decref(line);
}

static void test_evidence(void **state)
{
	struct audit_event event =
		sample(EVENT_FINDING, false, REASON_MALFORMED);
	json_t *line;

	(void)state;
	line = line_of(&event, buf);
	assert_null(at(line, "evidences"));
	json_decref(line);

	event.pid = 4294967295;
	event.process = "nft\n\"\x1b";
	line = line_of(&event, buf);
	assert_str(line, "evidences.0.process.name", event.process);
	assert_int(line, "evidences.0.process.pid", 4294967295);
	json_decref(line);

	/* No other kind tells of a process. */
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		event.kind = (enum event_kind)kind;
		line = line_of(&event, buf);
		if (kind != EVENT_FINDING)
			assert_null(at(line, "evidences"));
		json_decref(line);
	}
}

static void test_ruleset(void **state)
{
	struct audit_event event = sample(EVENT_RULESET, true, REASON_RULE);
	json_t *line;

	(void)state;
	event.detail = "table inet sallyport was put back";
	line = line_of(&event, buf);
	assert_int(line, "class_uid", 5019);
	assert_int(line, "category_uid", 5);
	assert_int(line, "type_uid", 501901);
	assert_int(line, "severity_id", 1);
	assert_int(line, "device.type_id", 0);
	assert_str(line, "device.type", "Unknown");
	assert_str(line, "device.name", "run");
	assert_str(line, "message", "The kernel's rules were put back.");
	assert_str(line, "unmapped.event", "ruleset");
	assert_str(line, "unmapped.detail",
		   "table inet sallyport was put back");
	assert_null(at(line, "dst_endpoint"));
	assert_null(at(line, "app"));
	json_decref(line);
}

/* "required" in the schema, of OCSF 1.8 and of 1.9-dev; a class of 0 means
 * all. An object that is not there requires nothing of what is in it. */
static const struct {
	int class;
	const char *object, *path;
} required[] = {
	{ 0, NULL, "activity_id" },
	{ 0, NULL, "category_uid" },
	{ 0, NULL, "class_uid" },
	{ 0, NULL, "metadata" },
	{ 0, NULL, "severity_id" },
	{ 0, NULL, "time" },
	{ 0, NULL, "type_uid" },
	{ 0, NULL, "metadata.product" },
	{ 0, NULL, "metadata.version" },
	{ 2004, NULL, "finding_info" },
	{ 2004, NULL, "finding_info.uid" },
	{ 4001, NULL, "src_endpoint" }, /* at least one of the two */
	{ 4002, NULL, "src_endpoint" },
	{ 4003, NULL, "src_endpoint" },
	{ 4002, NULL, "http_request" },
	{ 5019, NULL, "device" },
	{ 5019, NULL, "device.type_id" },
	{ 6002, NULL, "app" },
	{ 0, "query", "query.hostname" },
	{ 0, "http_request", "http_request.url.url_string" },
	{ 0, "http_response", "http_response.code" },
	{ 0, "connection_info", "connection_info.direction_id" },
	{ 0, "evidences", "evidences.0.process.pid" },
};

static void test_required(void **state)
{
	(void)state;
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		struct audit_event event =
			sample((enum event_kind)kind, false, REASON_MALFORMED);
		json_t *line;

		event.pid = 7;
		event.status = 200;
		line = line_of(&event, buf);
		for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
			if (required[i].class &&
			    required[i].class !=
				    json_integer_value(at(line, "class_uid")))
				continue;
			if (required[i].object && !at(line, required[i].object))
				continue;
			if (!at(line, required[i].path))
				fail_msg("%s has no %s",
					 event_word((enum event_kind)kind),
					 required[i].path);
		}
		json_decref(line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prev),
		cmocka_unit_test(test_prev_of_known_bytes),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_opening_after_little),
		cmocka_unit_test(test_opening_fits),
		cmocka_unit_test(test_evidence),
		cmocka_unit_test(test_ruleset),
		cmocka_unit_test(test_required),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
