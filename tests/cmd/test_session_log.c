/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a log: what is made, what an earlier session left and how it is
 * kept and told, parts, the receipt's name.
 */
#include "cmd/session_log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/key.h"
#include "base/cleanup.h"
#include "tests/scratch.h"

static char dir[64];
static struct session_log made;

static int set_up(void **state)
{
	(void)state;
	return scratch_make(dir, sizeof(dir));
}

static int tear_down(void **state)
{
	(void)state;
	session_log_close(&made);
	return scratch_remove(dir);
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "a");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static bool is_there(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

static char *content(const char *name, char *buf, size_t cap)
{
	FILE *file = fopen(path_of(name), "r");

	assert_non_null(file);
	buf[fread(buf, 1, cap - 1, file)] = '\0';
	fclose(file);
	return buf;
}

static int begin(void)
{
	char why[512] = "";
	int r;

	session_log_close(&made);
	r = session_log_open(dir, true, &made, why, sizeof(why));
	assert_true(!r == !*why);
	return r;
}

static unsigned mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(path_of(name), &st), 0);
	return st.st_mode & 07777;
}

static void test_new(void **state)
{
	(void)state;
	assert_int_equal(begin(), 0);
	assert_false(made.has_earlier);
	assert_int_equal(mode_of("audit.jsonl"), 0600);
	assert_int_equal(mode_of("checkpoints"), 0600);
	assert_int_equal(mode_of("session.vkey"), 0644);
	assert_int_equal(mode_of("receipt.dsse.json.new"), 0600);
	assert_true(fcntl(made.records, F_GETFL) & O_APPEND);
	assert_true(fcntl(made.checkpoints, F_GETFL) & O_APPEND);
	/* Without a receipt its file goes; a part of one stays as such. */
	assert_int_equal(session_log_finish(&made, false), 0);
	assert_false(is_there("receipt.dsse.json.new"));
	assert_int_equal(begin(), 0);
	put("receipt.dsse.json.new", "half");
	assert_int_equal(session_log_finish(&made, false), 0);
	assert_true(is_there("receipt.dsse.json.new"));
	assert_int_equal(session_log_finish(&made, true), 0);
	assert_false(is_there("receipt.dsse.json.new"));
	assert_true(is_there("receipt.dsse.json"));
	assert_int_equal(session_log_finish(&made, true), -ENOENT);
}

/* Some checkpoint, signed by somebody. */
static const char *note(uint64_t size)
{
	static const struct text name = { "host.test/s", 11 };
	static char text[CHECKPOINT_NOTE_MAX];
	struct checkpoint checkpoint = { .origin = "host.test/s",
					 .size = size,
					 .root.byte = { 7 } };
	struct key *key = NULL;
	size_t len;

	assert_int_equal(
		key_of_seed(name, (const uint8_t[KEY_SEED]){ 1 }, &key), 0);
	assert_int_equal(
		checkpoint_sign(&checkpoint, key, text, sizeof(text), &len), 0);
	key_free(key);
	return text;
}

static void test_earlier(void **state)
{
	char buf[64], want[CHECKPOINT_NOTE_MAX];

	(void)state;
	put("audit.jsonl.000001", "a\nb\n");
	put("audit.jsonl.000002", "\n\n\n");
	put("audit.jsonl", "c\ntorn");
	put("audit.jsonl.bak", "not ours\n");
	put("audit.jsonl.1", "nor this\n");
	put("receipt.dsse.json", "{}\n");
	put("other", "mine\n");
	put("checkpoints", note(1));
	put("checkpoints", note(3));
	strcpy(want, note(3));
	assert_int_equal(begin(), 0);
	assert_true(made.has_earlier);
	assert_string_equal(made.kept, "earlier-000001");
	assert_int_equal(made.earlier.lines, 6);
	assert_int_equal(made.earlier.bytes, 13);
	assert_true(made.earlier.receipt);
	assert_string_equal(made.earlier.checkpoint, want);
	assert_string_equal(
		content("earlier-000001/audit.jsonl", buf, sizeof(buf)),
		"c\ntorn");
	assert_string_equal(
		content("earlier-000001/audit.jsonl.000002", buf, sizeof(buf)),
		"\n\n\n");
	assert_int_equal(mode_of("earlier-000001"), 0700);
	assert_true(is_there("audit.jsonl.bak") && is_there("audit.jsonl.1") &&
		    is_there("other"));
	assert_false(is_there("audit.jsonl.000001"));
	/* What was never closed, in the first place that is free. */
	assert_int_equal(mkdir(path_of("earlier-000003"), 0700), 0);
	assert_int_equal(begin(), 0);
	assert_string_equal(made.kept, "earlier-000002");
	assert_int_equal(made.earlier.bytes, 0);
	assert_false(made.earlier.receipt);
	assert_string_equal(made.earlier.checkpoint, "");
	assert_int_equal(begin(), 0);
	assert_string_equal(made.kept, "earlier-000004");
}

static void test_last_checkpoint(void **state)
{
	static const char *const torn[] = {
		"", "h", "host\n", "host\n5\n", "host\n5\nAAAA", "a\nb\nc\n\n",
	};
	char want[CHECKPOINT_NOTE_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(torn); i++) {
		put("checkpoints", note(1));
		put("checkpoints", note(2 + i));
		put("checkpoints", torn[i]);
		strcpy(want, note(2 + i));
		assert_int_equal(begin(), 0);
		assert_string_equal(made.earlier.checkpoint, want);
		unlink(path_of("checkpoints"));
	}
	/* More than a crash leaves is no checkpoint. */
	put("checkpoints", note(1));
	put("checkpoints", "a\nb\nc\nd\ne\n");
	assert_int_equal(begin(), 0);
	assert_string_equal(made.earlier.checkpoint, "");
	unlink(path_of("checkpoints"));
	for (int i = 0; i < 20000; i++)
		put("checkpoints", "x\n");
	assert_int_equal(begin(), 0);
	assert_string_equal(made.earlier.checkpoint, "");
}

/* Links and pipes are moved as they are, never followed, never waited for. */
static void test_odd_files(void **state)
{
	struct stat st;

	(void)state;
	put("victim", "precious\n");
	assert_int_equal(symlink("victim", path_of("audit.jsonl")), 0);
	assert_int_equal(mkfifo(path_of("checkpoints"), 0600), 0);
	assert_int_equal(mkdir(path_of("session.vkey"), 0700), 0);
	assert_int_equal(begin(), 0);
	assert_int_equal(made.earlier.lines, 0);
	assert_int_equal(lstat(path_of("earlier-000001/audit.jsonl"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat(path_of("audit.jsonl"), &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 0);
}

static void test_locked(void **state)
{
	struct session_log other;
	char why[512];

	(void)state;
	assert_int_equal(begin(), 0);
	assert_int_equal(session_log_open(dir, false, &other, why, sizeof(why)),
			 -EBUSY);
	assert_non_null(strstr(why, "another session"));
	assert_false(is_there("earlier-000001"));
	/* The warden is gone, its ledger not yet. */
	AUTO_FD int ledgers = dup(made.records);
	session_log_close(&made);
	assert_int_equal(session_log_open(dir, false, &other, why, sizeof(why)),
			 -EBUSY);
	close_fd(&ledgers);
	assert_int_equal(begin(), 0);
	assert_true(made.has_earlier);
}

static void test_parts(void **state)
{
	char buf[64];

	(void)state;
	assert_int_equal(begin(), 0);
	for (unsigned i = 1; i <= 3; i++) {
		char text[8];
		int fd;

		snprintf(text, sizeof(text), "%u\n", i);
		put("audit.jsonl", text);
		assert_int_equal(session_log_rotate(&made, i + 1), -EBADMSG);
		fd = session_log_rotate(&made, i);
		assert_true(fd >= 0);
		assert_true(fcntl(fd, F_GETFL) & O_APPEND);
		assert_int_equal(write(fd, "n", 1), 1);
		close(fd);
		assert_string_equal(content("audit.jsonl", buf, sizeof(buf)),
				    "n");
		assert_int_equal(truncate(path_of("audit.jsonl"), 0), 0);
	}
	assert_string_equal(content("audit.jsonl.000002", buf, sizeof(buf)),
			    "2\n");
	/* Never over another file; and the old part goes on. */
	put("audit.jsonl.000004", "mine");
	put("audit.jsonl", "4\n");
	assert_int_equal(session_log_rotate(&made, 4), -EEXIST);
	assert_string_equal(content("audit.jsonl", buf, sizeof(buf)), "4\n");
	assert_string_equal(content("audit.jsonl.000004", buf, sizeof(buf)),
			    "mine");
	assert_int_equal(made.parts, 3);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_new),
		TEST(test_earlier),
		TEST(test_last_checkpoint),
		TEST(test_odd_files),
		TEST(test_locked),
		TEST(test_parts),
	};

	made = (struct session_log){ .dir = -1,
				     .records = -1,
				     .checkpoints = -1,
				     .vkey = -1,
				     .receipt = -1 };
	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
