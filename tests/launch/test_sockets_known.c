/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sockets_known.c - directories that were read before, and whether a
 * change of them is seen.
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
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/sockets.h"
#include "launch/sockets_known.h"

#define MANY 80 /* more than it takes for a file to be written */

static char top[64], file[80];

/* In memory, and so on a file system whose times are trusted. */
static int setup(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/dev/shm/test-known-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(chdir(top), 0);
	snprintf(file, sizeof(file), "%s/known", top);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static struct stat fake(unsigned i)
{
	struct stat st = { .st_dev = 7 + i % 3, .st_ino = 1000 - i };

	st.st_ctim =
		(struct timespec){ .tv_sec = 1000000 + i, .tv_nsec = 1 + i };
	return st;
}

static struct known_dir names(const char *text, size_t len, unsigned entries)
{
	return (struct known_dir){ .entries = entries,
				   .name = text,
				   .end = text + len };
}

/* @n of them from @first on, as a search would. */
static void keep(unsigned first, unsigned n)
{
	struct known *known = known_open(file);
	AUTO_FD int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_non_null(known);
	for (unsigned i = first; i < first + n; i++) {
		const struct stat st = fake(i);
		struct known_dir what = names("one\0two", 8, i);

		if (i % 2)
			what = names("", 0, i);
		known_add(known, dir, &st, &what);
	}
	known_close(known);
}

static unsigned count(unsigned n)
{
	struct known *known = known_open(file);
	struct known_dir got;
	unsigned found = 0;

	assert_non_null(known);
	for (unsigned i = 0; i < n; i++) {
		struct stat st = fake(i);

		if (!known_find(known, &st, &got))
			continue;
		found++;
		assert_int_equal(got.entries, i);
		assert_int_equal(got.end - got.name, i % 2 ? 0 : 8);
		if (i % 2 == 0)
			assert_memory_equal(got.name, "one\0two", 8);
		st.st_ctim.tv_nsec++;
		assert_false(known_find(known, &st, &got));
		st = fake(i);
		st.st_ctim.tv_sec--;
		assert_false(known_find(known, &st, &got));
		st = fake(i);
		st.st_dev += 3;
		assert_false(known_find(known, &st, &got));
	}
	known_close(known);
	return found;
}

static void test_kept(void **state)
{
	struct stat st;

	(void)state;
	keep(0, 8);
	assert_int_equal(access(file, F_OK), -1); /* not worth it */
	keep(0, MANY);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(count(3 * MANY), MANY);
	keep(MANY, MANY);
	assert_int_equal(count(3 * MANY), 2 * MANY);
	keep(MANY / 2, MANY); /* the same ones again */
	assert_int_equal(count(3 * MANY), 2 * MANY);
}

/* What may change once more without another time. */
static void test_not_kept(void **state)
{
	struct known *known;
	AUTO_FD int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct known_dir what = names("", 0, 0);
	struct stat st[3] = { fake(MANY), fake(MANY + 1), fake(MANY + 2) };
	const struct stat good = fake(0);
	struct known_dir got;

	(void)state;
	known = known_open(file);
	st[0].st_ctim.tv_sec = time(NULL);
	st[1].st_ctim.tv_nsec = 0;
	known_add(known, dir, &st[0], &what);
	known_add(known, dir, &st[1], &what);
	st[2].st_dev = 99;
	known_add(known, proc, &st[2], &what);
	for (unsigned i = 0; i < MANY; i++) {
		const struct stat other = fake(i);

		known_add(known, dir, &other, &what);
	}
	known_close(known);
	known = known_open(file);
	assert_true(known_find(known, &good, &got));
	for (int i = 0; i < 3; i++)
		assert_false(known_find(known, &st[i], &got));
	known_close(known);
}

static void poke(off_t at, const void *data, size_t len)
{
	AUTO_FD int fd = open(file, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, data, len, at), len);
}

/* A file that is none: as if nothing was known. */
static void test_damaged(void **state)
{
	struct stat st;

	(void)state;
	keep(0, MANY);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(chmod(file, 0640), 0);
	assert_int_equal(count(MANY), 0);
	assert_int_equal(chmod(file, 0600), 0);
	assert_int_equal(count(MANY), MANY);
	for (off_t size = 0; size < st.st_size; size += 13) {
		assert_int_equal(truncate(file, size), 0);
		assert_int_equal(count(MANY), 0);
	}
	keep(0, MANY);
	poke(3, "x", 1);
	assert_int_equal(count(MANY), 0);
	keep(0, MANY);
	poke(8, "\xff\xff\xff\xff", 4);
	assert_int_equal(count(MANY), 0);
	keep(0, MANY);
	/* Every place and length of names, and the end of the last one. */
	for (unsigned i = 0; i < MANY; i++)
		poke(16 + 40 * (off_t)i + 32, "\xf0\xff\xff\xff\xff\xff\xff",
		     7);
	assert_int_equal(count(MANY), 0);
	keep(0, MANY);
	poke(st.st_size - 1, "x", 1);
	assert_int_equal(count(MANY), MANY - 1);
	assert_int_equal(rename(file, "other") | symlink("other", file), 0);
	assert_int_equal(count(MANY), 0);
}

/* --- the search ---------------------------------------------------------- */

static size_t search(const char *known)
{
	const char *root[] = { top };
	const struct sockets_search what = {
		.root = root, .roots = 1, .budget = 1000, .known = known
	};
	struct sockets list = { 0 };
	size_t n;

	assert_int_equal(sockets_walk(&list, &what), 0);
	assert_false(list.partial);
	n = list.n;
	sockets_free(&list);
	return n;
}

static int bind_at(const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", name);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Until a change of @path would get another time for sure. */
static void settle(const char *path)
{
	const struct timespec step = { .tv_nsec = 50 * 1000 * 1000 };
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	while (time(NULL) < st.st_ctim.tv_sec + 3)
		nanosleep(&step, NULL);
}

static void make_tree(void)
{
	char name[32];

	assert_int_equal(mkdir("tree", 0755) | mkdir("with", 0755), 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "tree/d%d", i);
		assert_int_equal(mkdir(name, 0755), 0);
	}
}

static void test_search(void **state)
{
	struct stat oldest;
	int fd[5];

	(void)state;
	assert_int_equal(search(file), 0);
	make_tree();
	fd[0] = bind_at("with/sock");
	assert_int_equal(search(file), 1);
	/* Too new, all of them, as long as the oldest is. */
	assert_int_equal(stat("tree/d0", &oldest), 0);
	if (time(NULL) < oldest.st_ctim.tv_sec + 2)
		assert_int_equal(access(file, F_OK), -1);
	settle("tree/d79");
	assert_int_equal(search(file), 1);
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(search(file), 1);
	/* By a name, by a rename, in what is new, in what had one already. */
	fd[1] = bind_at("tree/d3/sock");
	assert_int_equal(search(file), 2);
	fd[2] = bind_at("elsewhere");
	assert_int_equal(rename("elsewhere", "tree/d4/sock"), 0);
	assert_int_equal(search(file), 3);
	assert_int_equal(mkdir("tree/d5/new", 0755), 0);
	fd[3] = bind_at("tree/d5/new/sock");
	assert_int_equal(search(file), 4);
	fd[4] = bind_at("with/other");
	assert_int_equal(search(file), 5);
	assert_int_equal(search(NULL), 5);
	for (size_t i = 0; i < 5; i++)
		close(fd[i]);
}

/* What is known is not read: else the rest would show nothing. */
static void test_trusted(void **state)
{
	AUTO_FD int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct known_dir empty = names("", 0, 0);
	struct known *known;
	struct stat st;
	int fd;

	(void)state;
	make_tree();
	assert_int_equal(mkdir("tree/d7/deep", 0755), 0);
	fd = bind_at("tree/d7/deep/sock");
	settle("tree/d7");
	assert_int_equal(stat("tree/d7", &st), 0);
	keep(0, MANY);
	assert_int_equal(search(file), 1); /* and writes it */
	assert_int_equal(unlink(file), 0);
	known = known_open(file);
	for (unsigned i = 0; i < MANY; i++) {
		const struct stat other = fake(i);

		known_add(known, dir, &other, &empty);
	}
	known_add(known, dir, &st, &empty);
	known_close(known);
	assert_int_equal(search(file), 0);
	assert_int_equal(mkdir("tree/d7/more", 0755), 0);
	assert_int_equal(search(file), 1);
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_search, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trusted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
