/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes of what sessions masked: taken back, kept, and read by others.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/policy_marks.h"

static char home[] = "/tmp/sallyport-marks-XXXXXX";
static char policy[64], other[64];

static void put(const char *path, const char *text)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void replace(const char *path)
{
	char new[80];

	snprintf(new, sizeof(new), "%s.new", path);
	put(new, "another");
	assert_int_equal(rename(new, path), 0);
}

static void note_path(const char *id, char buf[128])
{
	snprintf(buf, 128, "%s/masked/%s", home, id);
}

static bool is_trusted(const char *path)
{
	struct policy_error error = { 0 };
	int err = policy_marks_check(home, path, &error);

	assert_int_equal(!err, !*error.text);
	return !err;
}

static int setup(void **state)
{
	(void)state;
	put(policy, "version: 1");
	put(other, "version: 1");
	return 0;
}

static int teardown(void **state)
{
	char note[128];

	(void)state;
	note_path("one", note);
	unlink(note);
	note_path("two", note);
	unlink(note);
	return 0;
}

static void add(struct policy_marks *marks, const char *id, const char *path)
{
	assert_int_equal(policy_marks_add(marks, home, id, path), 0);
}

static void test_nothing_happened(void **state)
{
	struct policy_marks marks = { 0 };
	char note[128];

	(void)state;
	assert_true(is_trusted(policy));
	add(&marks, "one", policy);
	add(&marks, "one", other);
	assert_true(is_trusted(policy));
	assert_true(is_trusted(other));
	put(policy, "version: 1\nname: in-place");
	assert_true(is_trusted(policy));
	assert_null(policy_marks_settle(&marks));
	note_path("one", note);
	assert_int_equal(access(note, F_OK), -1);
	replace(policy);
	assert_true(is_trusted(policy));
	policy_marks_free(&marks);
}

static void test_replaced(void **state)
{
	struct policy_marks marks = { 0 };
	char note[128];

	(void)state;
	add(&marks, "one", other);
	add(&marks, "one", policy);
	replace(policy);
	assert_false(is_trusted(policy));
	assert_true(is_trusted(other));
	assert_string_equal(policy_marks_settle(&marks), policy);
	policy_marks_free(&marks);
	assert_false(is_trusted(policy));
	replace(policy);
	assert_false(is_trusted(policy));
	put(policy, "version: 1");
	assert_false(is_trusted(policy));
	assert_true(is_trusted(other));
	note_path("one", note);
	assert_int_equal(unlink(note), 0);
	assert_true(is_trusted(policy));
}

/* The one that is there at the end is what was there at the beginning, under
 * its own name. */
static void test_removed(void **state)
{
	struct policy_marks marks = { 0 };

	(void)state;
	add(&marks, "one", policy);
	assert_int_equal(unlink(policy), 0);
	assert_null(policy_marks_settle(&marks));
	policy_marks_free(&marks);
	put(policy, "version: 1");
	assert_true(is_trusted(policy));
}

static void test_linked(void **state)
{
	struct policy_marks marks = { 0 };

	(void)state;
	add(&marks, "one", policy);
	assert_int_equal(unlink(policy), 0);
	assert_int_equal(symlink(other, policy), 0);
	assert_string_equal(policy_marks_settle(&marks), policy);
	policy_marks_free(&marks);
	unlink(policy);
}

/* Killed: nobody settles. */
static void test_left(void **state)
{
	struct policy_marks marks = { 0 };

	(void)state;
	add(&marks, "one", policy);
	policy_marks_free(&marks);
	assert_true(is_trusted(policy));
	replace(policy);
	assert_false(is_trusted(policy));
}

static void test_two_sessions(void **state)
{
	struct policy_marks one = { 0 }, two = { 0 };

	(void)state;
	add(&one, "one", policy);
	add(&two, "two", policy);
	assert_null(policy_marks_settle(&two));
	policy_marks_free(&two);
	assert_true(is_trusted(policy));
	replace(policy);
	assert_false(is_trusted(policy));
	assert_non_null(policy_marks_settle(&one));
	policy_marks_free(&one);
	assert_false(is_trusted(policy));
}

static void test_unreadable(void **state)
{
	char note[128];

	(void)state;
	note_path("two", note);
	assert_int_equal(mkdir(note, 0700), 0);
	assert_false(is_trusted(policy));
	assert_int_equal(rmdir(note), 0);
	/* No whole entry: its command has not begun. */
	put(note, "0 0 0 /tmp");
	assert_true(is_trusted(policy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_happened, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_linked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_sessions, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup,
						teardown),
	};
	char notes[64];
	int failed;

	if (!mkdtemp(home))
		return 1;
	snprintf(policy, sizeof(policy), "%s/policy.yaml", home);
	snprintf(other, sizeof(other), "%s/other.yaml", home);
	snprintf(notes, sizeof(notes), "%s/masked", home);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(policy);
	unlink(other);
	rmdir(notes);
	rmdir(home);
	return failed;
}
