/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sockets.c - which unix sockets are found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/sockets.h"

#define HEAD "Num       RefCount Protocol Flags    Type St Inode Path\n"
#define WIDE "ffff888004a1b000: 00000002 00000000 00010000 0001 01 "
#define THIN "c4a1b000: 00000002 00000000 00010000 0001 01 "

static void test_table(void **state)
{
	static const struct {
		const char *table;
		const char *path[3];
	} row[] = {
		{ "", { NULL } },
		{ HEAD, { NULL } },
		{ HEAD WIDE " 1234 /a\n", { "/a" } },
		{ HEAD THIN "1 /a\n" WIDE " 22 /b\n", { "/a", "/b" } },
		{ HEAD WIDE " 1234\n" WIDE "5 /b", { "/b" } },
		{ HEAD WIDE "1 @/abstract\n" WIDE "2 rel/a\n", { NULL } },
		{ HEAD WIDE "1 /a\nb\n" WIDE "2 /c\n", { "/a\nb", "/c" } },
		{ HEAD WIDE "1 /a\n\n\n", { "/a\n\n" } },
		{ HEAD WIDE "1 @a\n/b\n" WIDE "2 /c\n", { "/c" } },
		{ HEAD WIDE "1 /a\nabc: x\n", { "/a\nabc: x" } },
		{ HEAD WIDE "1 /with space \n", { "/with space " } },
		{ WIDE "\n", { NULL } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct sockets list = { 0 };
		size_t n = 0;

		assert_int_equal(sockets_parse(&list, row[i].table), 0);
		for (; n < 3 && row[i].path[n]; n++) {
			assert_true(n < list.n);
			assert_string_equal(list.path[n], row[i].path[n]);
		}
		assert_int_equal(list.n, n);
		sockets_free(&list);
	}
}

static int bind_here(const char *name, int type)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", name);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static char *enter_new(void)
{
	char name[] = "/tmp/test-sockets-XXXXXX";

	assert_non_null(mkdtemp(name));
	assert_int_equal(chdir(name), 0);
	return realpath(name, NULL);
}

static void leave(const char *top)
{
	char command[128];

	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof(command), "%s", top);
	if (fork() == 0) {
		execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
		_exit(127);
	}
}

static bool has(const struct sockets *list, const char *top, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->path[i], path) == 0)
			return true;
	return false;
}

static bool is_off(const void *arg, const char *dir)
{
	(void)arg;
	return strcmp(strrchr(dir, '/'), "/off") == 0;
}

static bool is_shut(const void *arg, const char *dir, int fd,
		    const struct stat *st)
{
	struct stat now;

	(void)arg;
	assert_int_equal(fd < 0 ? lstat(dir, &now) : fstat(fd, &now), 0);
	assert_int_equal(now.st_ino, st->st_ino);
	return (st->st_mode & 07777) == 0700 && strstr(dir, "shut");
}

static void test_walk(void **state)
{
	AUTO_FREE char *top = enter_new();
	const char *root[] = { top };
	struct sockets_search search = { .root = root,
					 .roots = 1,
					 .budget = 1000,
					 .hidden = is_off,
					 .closed = is_shut };
	struct sockets list;
	int fd[7];

	(void)state;
	assert_int_equal(mkdir("deep", 0755) | mkdir("deep/er", 0755) |
				 mkdir("off", 0755) | mkdir("shut", 0700),
			 0);
	fd[0] = bind_here("stream", SOCK_STREAM);
	fd[1] = bind_here("deep/er/dgram", SOCK_DGRAM);
	fd[2] = bind_here("before", SOCK_SEQPACKET);
	assert_int_equal(rename("before", "new\nline"), 0);
	fd[3] = bind_here("off/sock", SOCK_STREAM);
	fd[4] = bind_here("shut/sock", SOCK_STREAM);
	fd[5] = bind_here("dead", SOCK_STREAM);
	close(fd[5]);
	assert_int_equal(link("stream", "deep/link"), 0);
	assert_int_equal(symlink("deep", "symlink"), 0);
	fd[6] = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_int_equal(sockets_list(&search, &list), 0);
	assert_false(list.partial);
	assert_true(has(&list, top, "stream"));
	assert_true(has(&list, top, "deep/er/dgram"));
	assert_true(has(&list, top, "new\nline"));
	assert_true(has(&list, top, "deep/link"));
	assert_false(has(&list, top, "off/sock"));
	assert_false(has(&list, top, "shut/sock"));
	assert_false(has(&list, top, "dead"));
	assert_false(has(&list, top, "file"));
	assert_false(has(&list, top, "symlink/link"));
	for (size_t i = 1; i < list.n; i++)
		assert_true(strcmp(list.path[i - 1], list.path[i]) < 0);
	sockets_free(&list);
	for (size_t i = 0; i < 7; i++)
		if (i != 5)
			close(fd[i]);
	leave(top);
}

static void test_budget(void **state)
{
	AUTO_FREE char *top = enter_new();
	const char *root[] = { top };
	struct sockets_search search = { .root = root, .roots = 1 };
	struct sockets list = { 0 };
	int fd;

	(void)state;
	assert_int_equal(mkdir("a", 0755) | mkdir("a/b", 0755), 0);
	fd = bind_here("a/b/sock", SOCK_DGRAM);
	search.budget = 2;
	assert_int_equal(sockets_walk(&list, &search), 0);
	assert_true(list.partial);
	assert_int_equal(list.n, 0);
	sockets_free(&list);
	search.budget = 4;
	assert_int_equal(sockets_walk(&list, &search), 0);
	assert_false(list.partial);
	assert_int_equal(list.n, 1);
	sockets_free(&list);
	close(fd);
	leave(top);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
