/* SPDX-License-Identifier: Apache-2.0
 *
 * test_path_walk.c - each step on the way, through links of every kind.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/path_walk.h"

static char top[PATH_MAX];

static const char *in_top(const char *name)
{
	static char path[4][PATH_MAX + 300];
	static unsigned next;
	char *buf = path[next++ % 4];

	snprintf(buf, sizeof(path[0]), "%s/%s", top, name);
	return buf;
}

static int set_up(void **state)
{
	char made[] = "/tmp/path-walk-XXXXXX";
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(made));
	assert_non_null(realpath(made, top));
	assert_int_equal(mkdir(in_top("a"), 0700), 0);
	assert_int_equal(mkdir(in_top("a/b"), 0700), 0);
	f = fopen(in_top("a/b/file"), "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(symlink("b/file", in_top("a/relative")), 0);
	assert_int_equal(symlink(in_top("a/relative"), in_top("absolute")), 0);
	assert_int_equal(symlink("../a/../a/b/", in_top("a/up")), 0);
	assert_int_equal(symlink("nowhere", in_top("dangling")), 0);
	assert_int_equal(symlink("circle", in_top("circle")), 0);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const made[] = {
		"circle",   "dangling",	  "a/up",
		"absolute", "a/relative", "a/b/file"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		unlink(in_top(made[i]));
	rmdir(in_top("a/b"));
	rmdir(in_top("a"));
	rmdir(top);
	return 0;
}

struct seen {
	char text[4096];
	const char *stop; /* at this step */
};

/* Steps below our own directory; a link has an '@'. */
static int visit(void *arg, const struct path_step *step)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text), n = strlen(top);
	size_t dir = strlen(step->dir);

	assert_int_equal(strncmp(step->at, step->dir, dir), 0);
	assert_null(strchr(step->at + dir + 1, '/'));
	if (strncmp(step->at, top, n) != 0 || step->at[n] != '/')
		return 0;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%s%s ",
		 step->at + n + 1, S_ISLNK(step->st.st_mode) ? "@" : "");
	return seen->stop && strcmp(step->at + n + 1, seen->stop) == 0 ? 7 : 0;
}

static void assert_walk(const char *path, int want, const char *steps)
{
	struct seen seen = { .text = "" };

	assert_int_equal(path_walk(path, visit, &seen), want);
	assert_string_equal(seen.text, steps);
}

static void test_steps(void **state)
{
	(void)state;
	assert_walk("/", 0, "");
	assert_walk(in_top("a/b/file"), 0, "a a/b a/b/file ");
	assert_walk(in_top(".//a/./b//file"), 0, "a a/b a/b/file ");
	assert_walk(in_top("a/b/../b/file"), 0, "a a/b a/b a/b/file ");
	assert_walk("/../..", 0, "");
}

static void test_links(void **state)
{
	(void)state;
	assert_walk(in_top("a/relative"), 0, "a a/relative@ a/b a/b/file ");
	assert_walk(in_top("absolute"), 0,
		    "absolute@ a a/relative@ a/b a/b/file ");
	assert_walk(in_top("a/up/file"), 0, "a a/up@ a a a/b a/b/file ");
	/* Up from where a link led, not from where it lies. */
	assert_walk(in_top("a/up/../relative"), 0,
		    "a a/up@ a a a/b a/relative@ a/b a/b/file ");
}

static void test_ends(void **state)
{
	char long_name[NAME_MAX + 2], long_path[PATH_MAX + 1];

	(void)state;
	assert_walk(in_top("none/file"), -ENOENT, "");
	assert_walk(in_top("dangling"), -ENOENT, "dangling@ ");
	assert_walk(in_top("a/b/file/x"), -ENOTDIR, "a a/b a/b/file ");
	struct seen seen = { .text = "" };
	assert_int_equal(path_walk(in_top("circle"), visit, &seen), -ELOOP);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_walk(in_top(long_name), -ENAMETOOLONG, "");
	memset(long_path, '/', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	assert_walk(long_path, -ENAMETOOLONG, "");
}

static void test_relative(void **state)
{
	char before[PATH_MAX];

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(in_top("a")), 0);
	assert_walk("b/file", 0, "a/b a/b/file ");
	assert_walk("../absolute", 0, "absolute@ a a/relative@ a/b a/b/file ");
	assert_walk("", 0, "");
	assert_int_equal(chdir("/"), 0);
	assert_walk(in_top("a") + 1, 0, "a ");
	assert_int_equal(chdir(before), 0);
}

static void test_stops(void **state)
{
	struct seen seen = { .stop = "a/relative" };

	(void)state;
	assert_int_equal(path_walk(in_top("absolute"), visit, &seen), 7);
	assert_string_equal(seen.text, "absolute@ a a/relative@ ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps), cmocka_unit_test(test_links),
		cmocka_unit_test(test_ends),  cmocka_unit_test(test_relative),
		cmocka_unit_test(test_stops),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
