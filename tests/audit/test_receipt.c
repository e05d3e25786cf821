/* SPDX-License-Identifier: Apache-2.0
 *
 * What a receipt says, read back as a stranger reads it.
 */
#include "audit/receipt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/dsse.h"
#include "audit/key.h"
#include "base/cleanup.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct tally_sums sums;
static struct vkey vkey;

static struct receipt sample(void)
{
	static const struct statement_subject subjects[] = {
		{ "audit.jsonl", HEX_A },
		{ "policy", HEX_B },
	};

	return (struct receipt){
		.subjects = subjects,
		.subject_count = ARRAY_SIZE(subjects),
		.parts = 1,
		.session = "20260401T032858Z-3f9a0c11d2",
		.sandbox = "run",
		.kernel = "6.1.0",
		.command = "curl \"a.test\"\n",
		.started_ms = UINT64_C(1775014138811),
		.ended_ms = UINT64_C(1775014140007),
		.duration_ms = 1196,
		.boundary = "netns",
		.held = "held",
		.separation = "uid",
		.status = 7,
		.ended_by = "exit",
		.policy_digest = HEX_B,
		.policy_name = "test",
		.policy_files = "policy.yaml",
		.ruleset_start = HEX_A,
		.ruleset_end = "",
		.sums = &sums,
		.records = 42,
		.first_checkpoint = "first\n1\n",
		.last_checkpoint = "last\n42\n",
		.vkey = &vkey,
	};
}

/* The predicate; the caller releases the statement. */
static const json_t *read_back(const struct receipt *receipt,
			       json_t **ret_statement)
{
	AUTO_FREE char *body = NULL;
	size_t len;

	assert_int_equal(receipt_format(receipt, &body, &len), 0);
	assert_int_equal(statement_parse((struct text){ body, len },
					 RECEIPT_TYPE, ret_statement),
			 0);
	return json_object_get(*ret_statement, "predicate");
}

static const json_t *in(const json_t *object, const char *a, const char *b)
{
	object = json_object_get(object, a);
	return b ? json_object_get(object, b) : object;
}

static const char *text(const json_t *object, const char *a, const char *b)
{
	const char *s = json_string_value(in(object, a, b));

	return s ? s : "(absent)";
}

static json_int_t number(const json_t *object, const char *a, const char *b)
{
	assert_true(json_is_integer(in(object, a, b)));
	return json_integer_value(in(object, a, b));
}

static void test_members(void **state)
{
	struct receipt receipt = sample();
	json_t *statement;

	(void)state;
	memset(&sums, 0, sizeof(sums));
	sums.allowed = 5;
	sums.refused = 3;
	sums.by_reason[REASON_NOT_IN_POLICY] = 2;
	sums.by_reason[REASON_PORT] = 1;
	sums.up = UINT64_C(5000000000);
	const json_t *p = read_back(&receipt, &statement);
	assert_string_equal(statement_digest(statement, "audit.jsonl"), HEX_A);
	assert_string_equal(text(p, "session", NULL), receipt.session);
	assert_string_equal(text(p, "product", "name"), "sallyport");
	assert_string_equal(text(p, "product", "version"), SALLYPORT_VERSION);
	assert_string_equal(text(p, "started", NULL),
			    "2026-04-01T03:28:58.811Z");
	assert_string_equal(text(p, "ended", NULL), "2026-04-01T03:29:00.007Z");
	assert_int_equal(number(p, "duration_ms", NULL), 1196);
	assert_string_equal(text(p, "command", NULL), "curl \"a.test\"\n");
	assert_int_equal(number(p, "exit", "status"), 7);
	assert_string_equal(text(p, "policy", "digest"), HEX_B);
	assert_string_equal(text(p, "ruleset", "start"), HEX_A);
	assert_null(in(p, "ruleset", "end"));
	assert_int_equal(number(p, "verdicts", "allowed"), 5);
	const json_t *reasons = in(p, "verdicts", "by_reason");
	assert_int_equal(json_object_size(reasons), 2);
	assert_int_equal(number(reasons, "not_in_policy", NULL), 2);
	assert_int_equal(number(p, "bytes", "up"), 5000000000);
	assert_int_equal(number(p, "log", "records"), 42);
	assert_string_equal(text(p, "log", "root"),
			    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	assert_string_equal(text(p, "log", "sign"), "batch");
	assert_string_equal(text(p, "log", "durability"), "batch");
	assert_string_equal(text(p, "log", "last_checkpoint"), "last\n42\n");
	assert_int_equal(strncmp(text(p, "key", "vkey"), "h/s+", 4), 0);
	assert_true(json_is_false(in(p, "key", "ephemeral")));
	/* The kernel was not asked: nothing is said of its numbers. */
	assert_null(in(p, "packets", "counted"));
	assert_null(in(p, "packets", "unreported"));
	json_decref(statement);
	receipt.counted = receipt.sign_every = receipt.durable = true;
	receipt.ipv6 = 9;
	receipt.unreported = 4;
	receipt.ephemeral = true;
	p = read_back(&receipt, &statement);
	assert_int_equal(number(in(p, "packets", "counted"), "ipv6", NULL), 9);
	assert_int_equal(number(p, "packets", "unreported"), 4);
	assert_string_equal(text(p, "log", "sign"), "every");
	assert_string_equal(text(p, "log", "durability"), "record");
	assert_true(json_is_true(in(p, "key", "ephemeral")));
	json_decref(statement);
}

/* Of `prove`: counted, and each by its name; in other sessions not at all. */
static void test_attacks(void **state)
{
	static struct attacks attacks = {
		.n = 3,
		.duration_ms = 1700,
		.at = { { "tcp", ATTACK_HELD },
			{ "udp", ATTACK_GOT_OUT },
			{ "dns-label", ATTACK_HELD } },
	};
	struct receipt receipt = sample();
	json_t *statement;

	(void)state;
	memset(&sums, 0, sizeof(sums));
	receipt.attacks = &attacks;
	const json_t *p = read_back(&receipt, &statement);
	assert_int_equal(number(p, "attacks", "held"), 2);
	assert_int_equal(number(p, "attacks", "got_out"), 1);
	assert_int_equal(number(p, "attacks", "skipped"), 0);
	assert_int_equal(number(p, "attacks", "duration_ms"), 1700);
	const json_t *results = in(p, "attacks", "results");
	assert_int_equal(json_object_size(results), 3);
	assert_string_equal(text(results, "udp", NULL), "got_out");
	assert_string_equal(text(results, "dns-label", NULL), "held");
	json_decref(statement);
	attacks.n = 0;
	p = read_back(&receipt, &statement);
	assert_null(in(p, "attacks", NULL));
	json_decref(statement);
}

/* The first of a kind are quoted, all are counted; hostile text stays text. */
static void test_notes(void **state)
{
	struct receipt receipt = sample();
	struct tally_notes *notes = &sums.finding;
	json_t *statement;

	(void)state;
	memset(&sums, 0, sizeof(sums));
	notes->total = 1000;
	notes->kept = TALLY_NOTES;
	for (size_t i = 0; i < TALLY_NOTES; i++) {
		notes->note[i].sequence = i * 3;
		notes->note[i].time_ms = UINT64_C(1775014138811);
		memset(notes->note[i].text, '"', 255);
	}
	sums.ruleset.total = sums.ruleset.kept = 1;
	sums.ruleset.note[0].sequence = 17;
	sums.ruleset.note[0].pid = 4711;
	strcpy(sums.ruleset.note[0].process, "nft");
	strcpy(sums.ruleset.note[0].text, "</script>\x1b[31m");
	sums.policy.total = sums.policy.kept = 2;
	strcpy(sums.policy.note[1].text, HEX_A);
	const json_t *p = read_back(&receipt, &statement);
	assert_int_equal(number(p, "findings_total", NULL), 1000);
	const json_t *list = in(p, "findings", NULL);
	assert_int_equal(json_array_size(list), TALLY_NOTES);
	const json_t *last = json_array_get(list, TALLY_NOTES - 1);
	assert_int_equal(number(last, "sequence", NULL), 189);
	assert_string_equal(text(last, "time", NULL),
			    "2026-04-01T03:28:58.811Z");
	assert_int_equal(strlen(text(last, "text", NULL)), 255);
	const json_t *change = json_array_get(in(p, "ruleset", "changes"), 0);
	assert_string_equal(text(change, "process", NULL), "nft");
	assert_int_equal(number(change, "pid", NULL), 4711);
	assert_string_equal(text(change, "text", NULL), "</script>\x1b[31m");
	assert_int_equal(number(p, "ruleset", "changes_total"), 1);
	list = in(p, "policy", "changes");
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(text(json_array_get(list, 1), "digest", NULL),
			    HEX_A);
	json_decref(statement);
}

/* So many parts that the first buffer is too small; and more than fit at all.
 */
static void test_large(void **state)
{
	static struct statement_subject subjects[40000];
	static char names[ARRAY_SIZE(subjects)][32];
	struct receipt receipt = sample();
	AUTO_FREE char *body = NULL;
	json_t *statement;
	size_t len;

	(void)state;
	memset(&sums, 0, sizeof(sums));
	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
		snprintf(names[i], sizeof(names[i]), "audit.jsonl.%06u",
			 (unsigned)i + 1);
		subjects[i] = (struct statement_subject){ names[i], HEX_A };
	}
	receipt.subjects = subjects;
	receipt.subject_count = 1000;
	read_back(&receipt, &statement);
	assert_string_equal(statement_digest(statement, "audit.jsonl.001000"),
			    HEX_A);
	json_decref(statement);
	receipt.subject_count = ARRAY_SIZE(subjects);
	assert_int_equal(receipt_format(&receipt, &body, &len), -E2BIG);
	assert_null(body);
}

static int setup(void **state)
{
	struct key *key;

	(void)state;
	if (key_generate((struct text){ "h/s", 3 }, &key))
		return -1;
	vkey = *key_public(key);
	key_free(key);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_attacks),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
