/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate that was taken over says what it likes, as long as it has the form of
 * a record. It may lie about what it saw; but the log of it holds, its receipt
 * is one, and what others tell of it is there.
 */
#include "audit/verify.h"

#include "audit/log_dir.h"
#include "tests/cmd/ledger_rig.h"

#define MOST ((UINT64_C(1) << 53) - 1)

/* Files of the rig, and what they are called in the directory of a session. */
static const char *const names[][2] = {
	{ "log", LOG_DIR_RECORDS },
	{ "checkpoints", LOG_DIR_CHECKPOINTS },
	{ "vkey", LOG_DIR_VKEY },
	{ "receipt", LOG_DIR_RECEIPT },
};

static void verify(struct verify_result *ret)
{
	struct verify_options options = { .key = NULL };
	char to[96], from[96], place[96], line[VKEY_TEXT_MAX + 2];
	struct vkey key;

	snprintf(place, sizeof(place), "%s/place", dir);
	assert_int_equal(mkdir(place, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(from, sizeof(from), "%s/%s", dir, names[i][0]);
		snprintf(to, sizeof(to), "%s/place/%s", dir, names[i][1]);
		assert_int_equal(rename(from, to), 0);
	}
	snprintf(to, sizeof(to), "%s/place/" LOG_DIR_VKEY, dir);
	AUTO_FILE FILE *file = fopen(to, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_int_equal(
		vkey_parse((struct text){ line, strcspn(line, "\n") }, &key),
		0);
	options.key = &key;
	assert_int_equal(verify_log(place, &options, ret), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(to, sizeof(to), "%s/place/%s", dir, names[i][1]);
		assert_int_equal(unlink(to), 0);
	}
	assert_int_equal(rmdir(place), 0);
}

static void assert_holds(const struct verify_result *result)
{
	if (result->problems)
		fail_msg("%s:%llu: %s", result->problem[0].file,
			 (unsigned long long)result->problem[0].line,
			 result->problem[0].text);
	assert_int_equal(result->verdict, VERIFY_HOLDS);
}

struct session {
	struct rig rig;
	int warden, gate;
	uint64_t said; /* by the gate */
};

static void begin(struct session *s)
{
	struct audit_event open = event_of(EVENT_SESSION_OPEN, NULL);

	start(&s->rig);
	s->warden = link_new(&s->rig);
	s->gate = link_as(&s->rig, false);
	s->said = 0;
	assert_int_equal(audit_submit_sync(s->warden, &open, 1), 0);
}

static void say(struct session *s, const struct audit_event *event)
{
	assert_int_equal(audit_submit_sync(s->gate, event, ++s->said), 0);
}

static void finish_as(struct session *s, const struct msg_ledger_end *how,
		      struct verify_result *ret)
{
	struct audit_event close = event_of(EVENT_SESSION_CLOSE, NULL);
	static struct tally tally;

	assert_int_equal(msg_send(s->rig.control, MSG_LEDGER_END, how, -1), 0);
	assert_int_equal(audit_submit_sync(s->warden, &close, 1000), 0);
	assert_int_equal(finish(&s->rig, &tally), 0);
	assert_true(s->rig.done.receipt);
	close_fd(&s->warden);
	close_fd(&s->gate);
	verify(ret);
}

static void end_held(struct session *s, struct verify_result *ret)
{
	const struct msg_ledger_end how = { .ended = ENDED_EXIT,
					    .held = BOUNDARY_HELD };

	finish_as(s, &how, ret);
	assert_holds(ret);
}

static json_int_t number(const struct verify_result *result, const char *a,
			 const char *b)
{
	return json_integer_value(
		json_object_get(json_object_get(result->receipt, a), b));
}

/* No sum of theirs is too large for who reads it. */
static void test_numbers(void **state)
{
	struct audit_event event = event_of(EVENT_FLOW_CLOSE, "a.test");
	struct verify_result result;
	struct session s;

	(void)state;
	begin(&s);
	event.bytes_up = event.bytes_down = event.duration_ms = MOST;
	event.flow = UINT64_MAX;
	event.status = UINT16_MAX;
	/* 2^63 is beyond what a reader of JSON takes. */
	for (int i = 0; i < 1100; i++)
		say(&s, &event);
	event.kind = EVENT_PACKET;
	event.verdict = (struct verdict){ .reason = REASON_BYPASS };
	event.count = UINT32_MAX;
	event.sandbox = UINT32_MAX;
	for (int i = 0; i < 3; i++)
		say(&s, &event);
	end_held(&s, &result);
	assert_int_equal(number(&result, "bytes", "up"), MOST);
	assert_int_equal(number(&result, "packets", "recorded"),
			 UINT64_C(3) * UINT32_MAX);
	verify_free(&result);
}

/* Its records have the time at which they came. */
static void test_time(void **state)
{
	struct audit_event event = event_of(EVENT_FLOW_OPEN, "a.test");
	struct verify_result result;
	struct session s;

	(void)state;
	begin(&s);
	event.time_ms = 1;
	say(&s, &event);
	event.time_ms = MOST;
	say(&s, &event);
	end_held(&s, &result);
	assert_int_equal(result.backwards, 0);
	assert_true(result.last_ms - result.first_ms < 60000);
	verify_free(&result);
}

/* Every kind with every verdict: either it is no record, or the receipt counts
 * it as the log does. */
static void test_verdicts(void **state)
{
	struct verify_result result;
	unsigned refused = 0;
	struct session s;

	(void)state;
	begin(&s);
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++)
		for (int reason = 0; reason < REASON_COUNT; reason++)
			for (int allow = 0; allow < 2; allow++) {
				struct audit_event event = {
					.kind = (enum event_kind)kind,
					.verdict = { .allow = allow,
						     .reason = (enum reason)
							     reason },
				};

				if (audit_submit_sync(s.gate, &event,
						      ++s.said) == 0)
					continue;
				refused++;
				close(s.gate);
				s.gate = link_as(&s.rig, false);
			}
	assert_true(refused > 0);
	end_held(&s, &result);
	verify_free(&result);
}

/* However much it tells, what is told of it is in the receipt. */
static void test_findings(void **state)
{
	struct audit_event event = event_of(EVENT_FINDING, NULL);
	struct verify_result result;
	struct session s;
	json_t *list, *last;

	(void)state;
	begin(&s);
	event.detail = "the kernel's rules were changed by nobody";
	event.verdict = (struct verdict){ .reason = REASON_MALFORMED };
	for (int i = 0; i < 200; i++)
		say(&s, &event);
	event.detail = "the gate died";
	assert_int_equal(audit_submit_sync(s.warden, &event, 2), 0);
	end_held(&s, &result);
	list = json_object_get(result.receipt, "findings");
	assert_int_equal(json_array_size(list), TALLY_GATE_NOTES + 1);
	last = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(last, "from")),
			    "gate");
	last = json_array_get(list, TALLY_GATE_NOTES);
	assert_string_equal(json_string_value(json_object_get(last, "text")),
			    event.detail);
	assert_null(json_object_get(last, "from"));
	verify_free(&result);
}

/* Packets that never were do not stand for those that nobody told of. */
static void test_packets(void **state)
{
	const struct msg_ledger_end how = { .ended = ENDED_EXIT,
					    .held = BOUNDARY_HELD,
					    .counted = 1,
					    .refused = 10 };
	struct audit_event event = event_of(EVENT_PACKET, NULL);
	struct verify_result result;
	struct session s;
	json_t *list;

	(void)state;
	begin(&s);
	event.verdict = (struct verdict){ .reason = REASON_BYPASS };
	event.count = 11;
	say(&s, &event);
	finish_as(&s, &how, &result);
	assert_holds(&result);
	list = json_object_get(result.receipt, "findings");
	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(
		json_string_value(
			json_object_get(json_array_get(list, 0), "text")),
		"11 dropped packets are recorded, and the kernel counted 10");
	verify_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_packets),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
