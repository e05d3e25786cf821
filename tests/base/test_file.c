/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static char path[] = "/tmp/sallyport-file-XXXXXX";
static int dir;

static int setup(void **state)
{
	(void)state;
	(void)stpcpy(strrchr(path, '-') + 1, "XXXXXX");
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "a", "a.new", "link", "fifo" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlinkat(dir, names[i], 0);
	close(dir);
	return rmdir(path);
}

static void assert_file(const char *want)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	assert_int_equal(file_get(dir, "a", 64, &text, &len), 0);
	assert_int_equal(len, strlen(want));
	assert_string_equal(text, want);
}

static void test_put(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(file_put(dir, "a", "first", 5), 0);
	assert_file("first");
	assert_int_equal(file_put(dir, "a", "", 0), 0);
	assert_file("");
	assert_int_equal(fstatat(dir, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(faccessat(dir, "a.new", F_OK, 0), -1);
}

/* What was there stays as it was. */
static void test_put_fails(void **state)
{
	char name[NAME_MAX + 1];

	(void)state;
	assert_int_equal(file_put(dir, "a", "old", 3), 0);
	assert_int_equal(mkdirat(dir, "a.new", 0700), 0);
	assert_int_equal(file_put(dir, "a", "new", 3), -EISDIR);
	assert_int_equal(unlinkat(dir, "a.new", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("a", dir, "a.new"), 0);
	assert_int_equal(file_put(dir, "a", "new", 3), -ELOOP);
	assert_file("old");
	memset(name, 'n', sizeof(name) - 1);
	name[NAME_MAX] = '\0';
	assert_int_equal(file_put(dir, name, "new", 3), -ENAMETOOLONG);
	assert_int_equal(file_put(-1, "a", "new", 3), -EBADF);
}

static void test_get_fails(void **state)
{
	char *text = NULL;
	size_t len;

	(void)state;
	assert_int_equal(file_get(dir, "a", 64, &text, &len), -ENOENT);
	assert_int_equal(file_put(dir, "a", "12345", 5), 0);
	assert_int_equal(file_get(dir, "a", 4, &text, &len), -EFBIG);
	assert_int_equal(symlinkat("a", dir, "link"), 0);
	assert_int_equal(file_get(dir, "link", 64, &text, &len), -ELOOP);
	/* Nobody writes it, and nobody waits. */
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(file_get(dir, "fifo", 64, &text, &len), -EFBIG);
	assert_int_equal(file_get(dir, ".", 1 << 20, &text, &len), -EFBIG);
	assert_null(text);
}

static void test_write(void **state)
{
	AUTO_FD int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(file_write(full, "x", 1), -ENOSPC);
	assert_int_equal(file_write(full, "", 0), 0);
}

int main(void)
{
#define FILE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		FILE_TEST(test_put),
		FILE_TEST(test_put_fails),
		FILE_TEST(test_get_fails),
		FILE_TEST(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
