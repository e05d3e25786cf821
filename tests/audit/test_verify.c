/* SPDX-License-Identifier: Apache-2.0
 *
 * What a line has to be, and what the interface promises of a log. The logs
 * that are damaged are in damage.py.
 */
#include "audit/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/log_dir.h"
#include "audit/record.h"
#include "audit/verify_line.h"
#include "base/cleanup.h"

#define SESSION "20261121T120000Z-0123456789"
#define SIGNER	"box.example"
#define RECORDS 21

static char dir[] = "/tmp/test_verify.XXXXXX";
static char line[RECORDS][2048];
static struct key *key, *signer;

/* Only what is required. */
#define HEAD "{\"time\":1,\"metadata\":{\"product\":{\"name\":\"sallyport\"},"
#define BODY "\"sequence\":7,\"uid\":\"s/7\",\"correlation_uid\":\"s\"},"
#define TAIL "\"unmapped\":{\"event\":\"flow_open\"}}"

static const char *parse(const char *s, struct verify_line *ret)
{
	return verify_line_parse((struct text){ s, strlen(s) }, ret);
}

static void test_line(void **state)
{
	struct verify_line l;
	struct text session;
	uint64_t number;

	(void)state;
	assert_null(parse(HEAD BODY TAIL, &l));
	assert_int_equal(l.sequence, 7);
	assert_int_equal(l.time_ms, 1);
	assert_int_equal(l.kind, EVENT_FLOW_OPEN);
	assert_true(text_is(l.session, "s"));
	assert_null(l.prev.at);
	assert_true(verify_line_uid(l.uid, &session, &number));
	assert_true(text_is(session, "s"));
	assert_int_equal(number, 7);
	/* The same words elsewhere mean nothing. */
	assert_null(parse("{\"x\":{\"sequence\":9,\"uid\":\"x/9\"},\"y\":[{"
			  "\"time\":5}],\"time\":1,\"metadata\":{\"product\":{"
			  "\"name\":\"sallyport\"}," BODY TAIL,
			  &l));
	assert_int_equal(l.sequence, 7);
	assert_int_equal(l.time_ms, 1);
}

static void test_what_is_no_line(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"{",
		"{}",
		"[]",
		"null",
		"{\"a\":}",
		"{\"a\"}",
		"{,}",
		"{\"a\":1,}",
		HEAD BODY,
		HEAD TAIL,
		BODY TAIL,
		HEAD BODY TAIL "x",
		HEAD BODY TAIL "\n",
		HEAD BODY TAIL "\r",
		HEAD BODY TAIL HEAD BODY TAIL,
		" " HEAD BODY TAIL,
		HEAD " " BODY TAIL,
		HEAD "\"x\":01," BODY TAIL,
		HEAD "\"x\":-1," BODY TAIL,
		HEAD "\"x\":1e5," BODY TAIL,
		HEAD "\"x\":9007199254740992," BODY TAIL,
		HEAD "\"x\":nul," BODY TAIL,
		HEAD "\"x\":truefalse," BODY TAIL,
		HEAD "\"x\":[1," BODY TAIL,
		HEAD "\"x\":[1,]," BODY TAIL,
		HEAD "\"x\":1,\"x\":2," BODY TAIL,
		HEAD "\"\":1," BODY TAIL,
		HEAD "\"\\u0041\":1," BODY TAIL,
		HEAD "\"x\":\"\\u0000\"," BODY TAIL,
		HEAD "\"x\":\"\\u00FF\"," BODY TAIL,
		HEAD "\"x\":\"\\u0100\"," BODY TAIL,
		HEAD "\"x\":\"\\n\"," BODY TAIL,
		HEAD "\"x\":\"\\/\"," BODY TAIL,
		HEAD "\"x\":\"\\\"," BODY TAIL,
		HEAD "\"x\":\"\t\"," BODY TAIL,
		HEAD "\"x\":\"\x7f\"," BODY TAIL,
		HEAD "\"x\":\"\xc3\"," BODY TAIL,
		HEAD "\"x\":\"\xed\xa0\x80\"," BODY TAIL,
		HEAD "\"sequence\":\"7\"," TAIL,
		HEAD "\"x\":[[[[[[[[[]]]]]]]]]," BODY TAIL,
		"{\"metadata\":[]}",
		"{\"metadata\":1}",
	};
	struct verify_line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (!parse(bad[i], &l))
			fail_msg("accepted: %s", bad[i]);
	}
	/* Each byte of a good one matters. */
	for (size_t i = 0; i < strlen(HEAD BODY TAIL); i++) {
		char cut[] = HEAD BODY TAIL;

		cut[i] = '\0';
		assert_non_null(parse(cut, &l));
	}
}

static void test_uid(void **state)
{
	static const char *const bad[] = { "",	   "s",	   "s/",     "s/x",
					   "s/01", "s/-1", "s/7/7x", "s/7 " };
	struct text session;
	uint64_t number;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(
			verify_line_uid((struct text){ bad[i], strlen(bad[i]) },
					&session, &number));
}

static FILE *create(const char *name)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	return file;
}

/* An open session, which a checkpoint of all but one record covers. */
static int set_up(void **state)
{
	static const uint8_t seed[KEY_SEED] = { 9 };
	AUTO_FILE FILE *log = NULL, *notes = NULL;
	struct checkpoint checkpoint = { .origin = SIGNER "/" SESSION };
	struct merkle_hash before;
	struct merkle tree = { 0 };
	char note[CHECKPOINT_NOTE_MAX];
	size_t len;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(key_of_seed((struct text){ SIGNER, strlen(SIGNER) },
				     seed, &signer),
			 0);
	assert_int_equal(
		key_under_name(signer,
			       (struct text){ SIGNER "/" SESSION,
					      strlen(SIGNER "/" SESSION) },
			       &key),
		0);
	log = create(LOG_DIR_RECORDS);
	notes = create(LOG_DIR_CHECKPOINTS);
	for (unsigned i = 0; i < RECORDS; i++) {
		struct audit_event event = { .kind = i ? EVENT_FLOW_OPEN
						       : EVENT_SESSION_OPEN,
					     .flow = i,
					     .time_ms = 1000 + i,
					     .verdict = { .allow = true },
					     .host = "a.test" };
		struct record_context context = { .session = SESSION,
						  .prev = i ? before.byte
							    : NULL };

		len = record_format(&event, i, &context, line[i],
				    sizeof(line[i]) - 1);
		assert_true(len > 0);
		fprintf(log, "%s\n", line[i]);
		merkle_leaf(line[i], len, &before);
		merkle_append_hash(&tree, &before);
		if (i % 10 != 9)
			continue;
		checkpoint.size = tree.size;
		merkle_root(&tree, &checkpoint.root);
		assert_int_equal(checkpoint_sign(&checkpoint, key, note,
						 sizeof(note), &len),
				 0);
		fputs(note, notes);
	}
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(key_write_public(key, fd, LOG_DIR_VKEY), 0);
	close(fd);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { LOG_DIR_RECORDS,
					     LOG_DIR_CHECKPOINTS,
					     LOG_DIR_VKEY };
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	key_free(key);
	key_free(signer);
	return rmdir(dir);
}

static unsigned seen;

static void on_line(void *arg, const char *data, size_t len, uint64_t sequence)
{
	assert_ptr_equal(arg, dir);
	assert_int_equal(sequence, seen);
	assert_int_equal(len, strlen(line[seen]));
	assert_memory_equal(data, line[seen], len);
	seen++;
}

static void test_open_log(void **state)
{
	struct verify_options options = { .line = on_line, .arg = dir };
	struct verify_result result;
	char path[128];

	(void)state;
	seen = 0;
	assert_int_equal(verify_log(dir, &options, &result), 0);
	assert_int_equal(seen, RECORDS);
	assert_int_equal(result.verdict, VERIFY_INCOMPLETE);
	assert_false(result.known_key);
	assert_int_equal(result.records, RECORDS);
	assert_int_equal(result.covered, 20);
	assert_int_equal(result.checkpoints, 2);
	assert_int_equal(result.allowed, RECORDS - 1);
	assert_int_equal(result.first_ms, 1000);
	assert_int_equal(result.last_ms, 1000 + RECORDS - 1);
	assert_string_equal(result.session, SESSION);
	assert_true(result.opened && !result.closed && !result.has_receipt);
	assert_int_equal(result.problems, 0);
	verify_free(&result);

	/* Either key will do, and either name of the log. */
	options = (struct verify_options){ .key = key_public(signer) };
	snprintf(path, sizeof(path), "%s/" LOG_DIR_RECORDS, dir);
	assert_int_equal(verify_log(path, &options, &result), 0);
	assert_true(result.known_key);
	verify_free(&result);
	options.key = key_public(key);
	assert_int_equal(verify_log(path, &options, &result), 0);
	assert_true(result.known_key);
	verify_free(&result);
}

static bool stop(void *arg, uint64_t bytes, uint64_t total)
{
	(void)arg;
	assert_true(bytes && bytes <= total);
	return false;
}

static void test_errors(void **state)
{
	struct verify_options options = { .progress = stop };
	struct verify_result result;
	char path[128];

	(void)state;
	assert_int_equal(verify_log(dir, &options, &result), -ECANCELED);
	options = (struct verify_options){ .key = NULL };
	assert_int_equal(verify_log("/nonexistent", &options, &result),
			 -ENOENT);
	assert_int_equal(verify_log("/proc/self", &options, &result), -ENOENT);
	snprintf(path, sizeof(path), "%s/" LOG_DIR_CHECKPOINTS, dir);
	assert_int_equal(verify_log(path, &options, &result), -EINVAL);
	options.receipt = "/nonexistent";
	assert_int_equal(verify_log(dir, &options, &result), -ENOENT);
	options = (struct verify_options){ .checkpoint = "/nonexistent" };
	assert_int_equal(verify_log(dir, &options, &result), -ENOENT);
}

static void prove(uint64_t number, char **ret_file, size_t *ret_len)
{
	const struct verify_options options = { .key = key_public(signer) };
	struct verify_result result;

	assert_int_equal(verify_log(dir, &options, &result), 0);
	assert_int_equal(verify_prove(dir, &result, number, ret_file, ret_len),
			 0);
	verify_free(&result);
}

static void test_proofs(void **state)
{
	struct verify_shown shown;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct text record = { line[i], strlen(line[i]) };
		struct text other = { line[i + 1], strlen(line[i + 1]) };
		AUTO_FREE char *file = NULL;
		struct text text;

		prove(i, &file, &text.len);
		text.at = file;
		assert_int_equal(
			verify_shows(record, text, key_public(key), &shown), 0);
		assert_true(shown.known_session);
		assert_int_equal(shown.index, i);
		assert_int_equal(shown.size, 20);
		assert_string_equal(shown.session, SESSION);
		assert_int_equal(
			verify_shows(record, text, key_public(signer), &shown),
			0);
		assert_false(shown.known_session);
		assert_int_equal(
			verify_shows(other, text, key_public(key), &shown),
			-ENOMSG);
	}
}

static void test_what_shows_nothing(void **state)
{
	static const uint8_t seed[KEY_SEED] = { 10 };
	struct text record = { line[5], strlen(line[5]) };
	char edited[sizeof(line[5])];
	AUTO_FREE char *file = NULL;
	struct verify_result result;
	const struct verify_options options = { .key = NULL };
	struct verify_shown shown;
	struct key *stranger;
	struct text text;

	(void)state;
	prove(5, &file, &text.len);
	text.at = file;
	assert_int_equal(key_of_seed((struct text){ SIGNER, strlen(SIGNER) },
				     seed, &stranger),
			 0);
	assert_int_equal(
		verify_shows(record, text, key_public(stranger), &shown),
		-ENOKEY);
	key_free(stranger);
	/* No byte of the record can change; nor one of the proof. */
	for (size_t i = 0; i < record.len; i++) {
		memcpy(edited, line[5], record.len);
		edited[i] ^= 1;
		assert_true(verify_shows((struct text){ edited, record.len },
					 text, key_public(key), &shown) < 0);
	}
	for (size_t i = 0; i < text.len; i++) {
		file[i] ^= 1;
		assert_true(verify_shows(record, text, key_public(key),
					 &shown) < 0);
		file[i] ^= 1;
		assert_true(verify_shows(record, (struct text){ file, i },
					 key_public(key), &shown) < 0);
	}
	/* What is not signed can't be proved. */
	assert_int_equal(verify_log(dir, &options, &result), 0);
	free(STEAL(file));
	assert_int_equal(verify_prove(dir, &result, 20, &file, &text.len),
			 -EINVAL);
	verify_free(&result);
}

static void test_words(void **state)
{
	(void)state;
	for (int i = 0; i < VERIFY_FAULT_COUNT; i++) {
		assert_non_null(verify_word((enum verify_fault)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(
				verify_word((enum verify_fault)i),
				verify_word((enum verify_fault)k));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_what_is_no_line),
		cmocka_unit_test(test_uid),
		cmocka_unit_test(test_open_log),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_proofs),
		cmocka_unit_test(test_what_shows_nothing),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
