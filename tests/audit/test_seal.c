/* SPDX-License-Identifier: Apache-2.0
 *
 * When the head is signed: after what is in the log, never before; in the
 * thread or at once; and each checkpoint goes on from the one before.
 */
#include "audit/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/checkpoint.h"
#include "audit/writer.h"
#include "base/cleanup.h"

#define NAME "h/s"

struct rig {
	struct writer *writer;
	struct seal *seal;
	struct vkey vkey;
	char log[64], notes[64];
	uint64_t lines;
	struct merkle_hash root[4096]; /* over the first n lines */
};

static int temporary(char *path, size_t cap)
{
	snprintf(path, cap, "/tmp/sallyport-seal-XXXXXX");
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct key *new_key(void)
{
	struct key *key;

	assert_int_equal(
		key_generate((struct text){ NAME, strlen(NAME) }, &key), 0);
	return key;
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct key *key = new_key();

	rig->vkey = *key_public(key);
	assert_int_equal(
		writer_new(temporary(rig->log, sizeof(rig->log)), &rig->writer),
		0);
	assert_int_equal(seal_new(key,
				  temporary(rig->notes, sizeof(rig->notes)),
				  false, &rig->seal),
			 0);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	seal_free(rig->seal);
	writer_free(rig->writer);
	unlink(rig->log);
	unlink(rig->notes);
	free(rig);
	return 0;
}

/* They are in the file. */
static void add_lines(struct rig *rig, size_t n)
{
	char line[32];

	while (n--) {
		int len = snprintf(line, sizeof(line), "{\"n\":%u}",
				   (unsigned)rig->lines);

		assert_int_equal(writer_append(rig->writer, line, (size_t)len),
				 0);
		merkle_root(writer_tree(rig->writer), &rig->root[++rig->lines]);
	}
	assert_int_equal(writer_flush(rig->writer), 0);
}

static int turn(struct rig *rig, uint64_t now, int *ret_timeout)
{
	return seal_turn(rig->seal, writer_fd(rig->writer),
			 writer_tree(rig->writer), now, ret_timeout);
}

static int now(struct rig *rig)
{
	return seal_now(rig->seal, writer_fd(rig->writer),
			writer_tree(rig->writer));
}

/* Pages of a file that are in memory. */
static size_t resident(const char *path)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	const size_t len = (size_t)lseek(fd, 0, SEEK_END);
	const size_t pages = (len + 4095) / 4096;
	unsigned char *in = calloc(pages, 1);
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	size_t n = 0;

	assert_true(in && map != MAP_FAILED && mincore(map, len, in) == 0);
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	munmap(map, len);
	free(in);
	return n;
}

/* All checkpoints in the file: good, growing, of the lines as they were. The
 * size of the last; their number. */
static uint64_t read_notes(const struct rig *rig, size_t *ret_count)
{
	AUTO_FILE FILE *file = fopen(rig->notes, "r");
	struct checkpoint checkpoint = { .size = 0 };
	char note[CHECKPOINT_NOTE_MAX + 1];
	uint64_t before = 0;
	size_t len = 0;
	int c, lines = 0;

	assert_non_null(file);
	*ret_count = 0;
	while ((c = fgetc(file)) != EOF) {
		assert_true(len < sizeof(note));
		note[len++] = (char)c;
		if (c != '\n' || ++lines < 5)
			continue;
		assert_int_equal(checkpoint_open((struct text){ note, len },
						 &rig->vkey, &checkpoint),
				 0);
		assert_true(checkpoint.size > before);
		assert_true(checkpoint.size <= rig->lines);
		assert_memory_equal(&checkpoint.root,
				    &rig->root[checkpoint.size], MERKLE_HASH);
		before = checkpoint.size;
		len = 0;
		lines = 0;
		++*ret_count;
	}
	assert_int_equal(len, 0);
	return before;
}

static void assert_covers(const struct rig *rig, uint64_t size, size_t count)
{
	size_t n;

	assert_int_equal(read_notes(rig, &n), size);
	assert_int_equal(n, count);
}

static void test_at_once(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(now(rig), 0); /* nothing: nothing is signed */
	assert_covers(rig, 0, 0);
	assert_string_equal(seal_first(rig->seal), "");
	for (size_t i = 1; i <= 20; i++) {
		add_lines(rig, i);
		assert_int_equal(now(rig), 0);
		assert_covers(rig, rig->lines, i);
	}
	assert_int_equal(now(rig), 0); /* it is signed already */
	assert_covers(rig, rig->lines, 20);
	assert_int_equal(strncmp(seal_first(rig->seal), NAME "\n1\n", 6), 0);
	assert_int_equal(strncmp(seal_last(rig->seal), NAME "\n210\n", 8), 0);
	assert_int_equal(seal_sync(rig->seal), 0);
}

/* Until the thread has ended one. */
static void await(struct rig *rig)
{
	struct pollfd ended = { .fd = seal_fd(rig->seal), .events = POLLIN };

	assert_int_equal(poll(&ended, 1, 30000), 1);
}

static void test_when_due(void **state)
{
	struct rig *rig = *state;
	struct pollfd ended = { .fd = seal_fd(rig->seal), .events = POLLIN };
	int timeout;

	assert_int_equal(seal_start(rig->seal), 0);
	assert_int_equal(turn(rig, 1000, &timeout), 0);
	assert_int_equal(timeout, -1);
	/* By age: of the oldest, whatever comes after it. */
	add_lines(rig, 1);
	assert_int_equal(turn(rig, 1000, &timeout), 0);
	assert_int_equal(timeout, SEAL_MS);
	add_lines(rig, SEAL_RECORDS - 2);
	assert_int_equal(turn(rig, 1000 + SEAL_MS - 1, &timeout), 0);
	assert_int_equal(timeout, 1);
	assert_int_equal(poll(&ended, 1, 20), 0);
	assert_int_equal(turn(rig, 1000 + SEAL_MS, &timeout), 0);
	assert_int_equal(timeout, -1);
	await(rig);
	assert_covers(rig, SEAL_RECORDS - 1, 1);
	/* By number. */
	add_lines(rig, SEAL_RECORDS - 1);
	assert_int_equal(turn(rig, 2000, &timeout), 0);
	assert_int_equal(timeout, SEAL_MS);
	assert_int_equal(poll(&ended, 1, 0), 0); /* what ended was noticed */
	add_lines(rig, 1);
	assert_int_equal(turn(rig, 2001, &timeout), 0);
	await(rig);
	assert_covers(rig, 2 * SEAL_RECORDS - 1, 2);
	/* Age begins anew. */
	add_lines(rig, 1);
	assert_int_equal(turn(rig, 9000, &timeout), 0);
	assert_int_equal(timeout, SEAL_MS);
	assert_int_equal(now(rig), 0);
	assert_covers(rig, 2 * SEAL_RECORDS, 3);
}

/* However many lines there are, the disk has a rest between two. */
static void test_gap(void **state)
{
	struct rig *rig = *state;
	struct pollfd ended = { .fd = seal_fd(rig->seal), .events = POLLIN };
	int timeout;

	assert_int_equal(seal_start(rig->seal), 0);
	add_lines(rig, SEAL_RECORDS);
	assert_int_equal(turn(rig, 1000, &timeout), 0);
	await(rig);
	add_lines(rig, 3 * SEAL_RECORDS);
	assert_int_equal(turn(rig, 1000, &timeout), 0);
	assert_int_equal(timeout, SEAL_GAP_MS);
	assert_int_equal(turn(rig, 1000 + SEAL_GAP_MS - 1, &timeout), 0);
	assert_int_equal(timeout, 1);
	assert_int_equal(poll(&ended, 1, 20), 0);
	assert_int_equal(turn(rig, 1000 + SEAL_GAP_MS, &timeout), 0);
	assert_int_equal(timeout, -1);
	await(rig);
	assert_covers(rig, 4 * SEAL_RECORDS, 2);
	/* Who asks for one now gets it. */
	add_lines(rig, 1);
	assert_int_equal(now(rig), 0);
	assert_covers(rig, 4 * SEAL_RECORDS + 1, 3);
}

/* One is under way at a time: lines that come meanwhile are for the next. */
static void test_many(void **state)
{
	struct rig *rig = *state;
	size_t count;
	int timeout;

	/* It starts its thread itself. */
	for (uint64_t i = 0; i < 400; i++) {
		add_lines(rig, i % 17);
		assert_int_equal(turn(rig, i * 100, &timeout), 0);
		if (i % 40 == 0)
			assert_int_equal(seal_wait(rig->seal), 0);
		if (i % 100 == 0)
			assert_int_equal(now(rig), 0);
	}
	assert_int_equal(now(rig), 0);
	assert_int_equal(read_notes(rig, &count), rig->lines);
	assert_true(count >= 10);
	seal_free(rig->seal); /* while one is under way, too */
	rig->seal = NULL;
}

static void test_freed_while_busy(void **state)
{
	struct rig *rig = *state;
	int timeout;

	assert_int_equal(seal_start(rig->seal), 0);
	add_lines(rig, SEAL_RECORDS);
	assert_int_equal(turn(rig, 1, &timeout), 0);
	seal_free(rig->seal);
	rig->seal = NULL;
	assert_covers(rig, SEAL_RECORDS, 1); /* it was ended first */
}

static void test_bad_files(void **state)
{
	struct rig *rig = *state;
	struct seal *seal = NULL;
	int timeout = 0, fds[2];

	assert_int_equal(seal_new(new_key(), -1, false, &seal), -EBADF);
	assert_null(seal);
	/* A log that can't be synced is not signed, now and ever. */
	assert_int_equal(seal_start(rig->seal), 0);
	add_lines(rig, SEAL_RECORDS);
	assert_int_equal(
		seal_turn(rig->seal, -1, writer_tree(rig->writer), 1, &timeout),
		0);
	await(rig);
	assert_int_equal(turn(rig, 2, &timeout), -EBADF);
	assert_int_equal(now(rig), -EBADF);
	assert_int_equal(seal_wait(rig->seal), -EBADF);
	assert_covers(rig, 0, 0);
	/* Nor if the checkpoint finds no way. */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(seal_new(new_key(), fds[1], false, &seal), 0);
	assert_int_equal(seal_now(seal, writer_fd(rig->writer),
				  writer_tree(rig->writer)),
			 -EPIPE);
	assert_int_equal(seal_now(seal, writer_fd(rig->writer),
				  writer_tree(rig->writer)),
			 -EPIPE);
	seal_free(seal);
	seal_free(NULL);
}

/* The file may get no larger in the middle of a checkpoint: half of one does
 * not stay. */
static int torn(struct rig *rig)
{
	struct rlimit limit = { .rlim_cur = 1000, .rlim_max = 1000 };
	struct stat st;
	int good = 0, r;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 20;
	do {
		add_lines(rig, 1);
		r = now(rig);
		good += r == 0;
	} while (r == 0 && good < 100);
	if (r != -ENOSPC && r != -EFBIG)
		return 21;
	if (now(rig) != r)
		return 22;
	if (stat(rig->notes, &st) < 0 || st.st_size == 1000)
		return 23;
	return good >= 2 && good < 20 ? good : 24;
}

static void test_torn(void **state)
{
	struct rig *rig = *state;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(torn(rig));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	int good = WEXITSTATUS(status);
	assert_in_range(good, 2, 19);
	/* The roots that the child signed, again. */
	add_lines(rig, 100);
	assert_covers(rig, (uint64_t)good, (size_t)good);
}

/* What is signed need not be in memory any more; what it says stays. Where
 * files lie in memory this can't be shown: /var/tmp is no such place. */
static void test_memory(void **state)
{
	struct rig *rig = *state;
	char line[1000], path[] = "/var/tmp/sallyport-seal-XXXXXX";
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	uint64_t lines = 0;

	writer_free(rig->writer);
	assert_int_equal(writer_new(fd, &rig->writer), 0);
	memset(line, 'x', sizeof(line));
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 1000; i++, lines++)
			assert_int_equal(
				writer_append(rig->writer, line, sizeof(line)),
				0);
		assert_int_equal(writer_flush(rig->writer), 0);
		assert_true(resident(path) >= 200);
		assert_int_equal(now(rig), 0);
		assert_in_range(resident(path), 0, 20);
	}
	unlink(path);
	assert_int_equal(writer_lines(rig->writer), lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_when_due, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_freed_while_busy, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_bad_files, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
