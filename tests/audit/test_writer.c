/* SPDX-License-Identifier: Apache-2.0
 *
 * The log file: whole lines, or the writer has failed and says so.
 */
#include "audit/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static int temporary(char *path, size_t cap)
{
	snprintf(path, cap, "/tmp/sallyport-writer-XXXXXX");
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static char *slurp(const char *path, size_t *ret_len)
{
	AUTO_FILE FILE *file = fopen(path, "r");
	struct stat st;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	char *text = calloc(1, (size_t)st.st_size + 1);
	*ret_len = fread(text, 1, (size_t)st.st_size, file);
	return text;
}

static void test_lines(void **state)
{
	struct writer *writer;
	char path[64];
	size_t len;

	(void)state;
	assert_int_equal(writer_new(temporary(path, sizeof(path)), &writer), 0);
	assert_int_equal(writer_append(writer, "{\"a\":1}", 7), 0);
	assert_int_equal(writer_append(writer, "{}", 2), 0);
	assert_int_equal(writer_lines(writer), 0); /* not yet in the file */
	AUTO_FREE char *before = slurp(path, &len);
	assert_string_equal(before, "");
	assert_int_equal(writer_flush(writer), 0);
	assert_int_equal(writer_lines(writer), 2);
	assert_int_equal(writer_flush(writer), 0);
	assert_int_equal(writer_sync(writer), 0);
	AUTO_FREE char *after = slurp(path, &len);
	assert_string_equal(after, "{\"a\":1}\n{}\n");
	/* A line that would be two is none. */
	assert_int_equal(writer_append(writer, "a\nb", 3), -EINVAL);
	assert_int_equal(writer_append(writer, "c", 1), 0);
	assert_int_equal(writer_flush(writer), 0);
	assert_int_equal(writer_lines(writer), 3);
	writer_free(writer);
	writer_free(NULL);
	unlink(path);
}

static void test_full_batch_writes_itself(void **state)
{
	static char line[60000];
	struct writer *writer;
	char path[64];
	size_t len;

	(void)state;
	memset(line, 'x', sizeof(line));
	assert_int_equal(writer_new(temporary(path, sizeof(path)), &writer), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(writer_append(writer, line, sizeof(line)), 0);
	assert_true(writer_lines(writer) >= 40);
	assert_int_equal(writer_flush(writer), 0);
	assert_int_equal(writer_lines(writer), 50);
	AUTO_FREE char *text = slurp(path, &len);
	assert_int_equal(len, 50 * (sizeof(line) + 1));
	for (size_t i = 0; i < len; i++)
		assert_int_equal(text[i] == '\n',
				 i % (sizeof(line) + 1) == sizeof(line));
	writer_free(writer);
	unlink(path);
}

/* Is the digest that of the file, byte for byte? */
static bool digest_matches(const struct writer *writer, const char *path)
{
	char want[DIGEST_HEX], have[DIGEST_HEX];
	struct digest digest;
	size_t len;
	AUTO_FREE char *text = slurp(path, &len);

	digest_begin(&digest);
	digest_add(&digest, text, len);
	digest_end(&digest, want);
	writer_digest(writer, have);
	return strcmp(have, want) == 0;
}

/* Appends lines of 1000 bytes until it fails; what is left must be whole. */
static int fill(const char *path)
{
	AUTO_FREE char *line = malloc(1000);
	struct writer *writer;
	struct stat st;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	int r = 0;

	memset(line, 'y', 1000);
	if (fd < 0 || writer_new(fd, &writer) < 0)
		return 10;
	for (int i = 0; i < 10000 && r == 0; i++) {
		r = writer_append(writer, line, 1000);
		if (r == 0 && i % 7 == 0)
			r = writer_flush(writer);
	}
	if (r != -ENOSPC && r != -EFBIG)
		return 11;
	if (writer_append(writer, line, 1) != r || writer_flush(writer) != r ||
	    writer_sync(writer) != r)
		return 12; /* it must not come back to life */
	if (stat(path, &st) < 0 || st.st_size == 0 || st.st_size % 1001)
		return 13; /* half a line */
	if ((uint64_t)st.st_size / 1001 != writer_lines(writer))
		return 14;
	if (!digest_matches(writer, path))
		return 15; /* of what was cut off again, too */
	writer_free(writer);
	return 0;
}

static int on_full_disk(void)
{
	char dir[] = "/tmp/sallyport-full-XXXXXX", path[64];

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !mkdtemp(dir) || mount("tmpfs", dir, "tmpfs", 0, "size=256k") < 0)
		return 20;
	snprintf(path, sizeof(path), "%s/log", dir);
	int r = fill(path);
	umount(dir);
	rmdir(dir);
	return r;
}

static int over_file_limit(void)
{
	/* In the middle of a line: write(2) is short, then fails. */
	struct rlimit limit = { .rlim_cur = 123456, .rlim_max = 123456 };
	char path[64];

	signal(SIGXFSZ, SIG_IGN);
	close(temporary(path, sizeof(path)));
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 21;
	int r = fill(path);
	unlink(path);
	return r;
}

static void in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_disk_full(void **state)
{
	(void)state;
	in_child(on_full_disk);
}

static void test_short_write(void **state)
{
	(void)state;
	in_child(over_file_limit);
}

static void test_only_to_an_empty_file(void **state)
{
	struct writer *writer;
	char path[64];

	(void)state;
	int fd = temporary(path, sizeof(path));
	assert_int_equal(write(fd, "old\n", 4), 4);
	assert_int_equal(writer_new(fd, &writer), -ENOTEMPTY);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* taken all the same */
	unlink(path);
	assert_int_equal(writer_new(-1, &writer), -EBADF);
}

static void assert_digest(const struct writer *writer, const char *path)
{
	assert_true(digest_matches(writer, path));
}

static void test_digest(void **state)
{
	static char line[60000];
	struct writer *writer;
	char path[64];

	(void)state;
	memset(line, 'z', sizeof(line));
	assert_int_equal(writer_new(temporary(path, sizeof(path)), &writer), 0);
	assert_digest(writer, path);
	for (size_t i = 0; i < 40; i++) {
		assert_int_equal(writer_append(writer, line, i * 1500), 0);
		assert_digest(writer, path); /* also when a batch was full */
		if (i % 9 == 0)
			assert_int_equal(writer_flush(writer), 0);
	}
	assert_int_equal(writer_flush(writer), 0);
	assert_digest(writer, path);
	writer_free(writer);
	unlink(path);
}

static void assert_root(const struct writer *writer, const char *const *line,
			size_t n)
{
	struct merkle tree = { 0 };
	struct merkle_hash want, have, leaf;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(merkle_append(&tree, line[i], strlen(line[i])),
				 0);
	merkle_root(&tree, &want);
	merkle_root(writer_tree(writer), &have);
	assert_int_equal(writer_tree(writer)->size, n);
	assert_memory_equal(&want, &have, sizeof(want));
	merkle_leaf(line[n - 1], strlen(line[n - 1]), &leaf);
	assert_memory_equal(writer_last(writer), leaf.byte, MERKLE_HASH);
}

/* Lines of all lengths, written whenever: what is hashed beside what differs
 * each time, what it comes to does not. */
static void test_hashes_of_any_lines(void **state)
{
	static char line[3000];
	struct merkle tree = { 0 };
	struct merkle_hash leaf, root, want;
	struct writer *writer;
	char path[64];
	unsigned seed = 7;

	(void)state;
	assert_int_equal(writer_new(temporary(path, sizeof(path)), &writer), 0);
	for (unsigned i = 0; i < 4000; i++) {
		size_t len = (size_t)rand_r(&seed) % (i % 5 ? 1500 : 200);

		for (size_t k = 0; k < len; k++)
			line[k] = (char)('a' + (i + k * k) % 26);
		assert_int_equal(writer_append(writer, line, len), 0);
		merkle_leaf(line, len, &leaf);
		merkle_append_hash(&tree, &leaf);
		assert_memory_equal(writer_last(writer), leaf.byte,
				    MERKLE_HASH);
		if (rand_r(&seed) % 20)
			continue;
		assert_digest(writer, path); /* without those that are kept */
		assert_int_equal(writer_flush(writer), 0);
		assert_digest(writer, path);
	}
	merkle_root(writer_tree(writer), &root);
	merkle_root(&tree, &want);
	assert_true(merkle_hash_equal(&root, &want));
	writer_free(writer);
	unlink(path);
}

/* The tree goes on; bytes and digest are of the part. */
static void test_rotate(void **state)
{
	static const char *const line[] = { "one", "two", "three", "four" };
	char first[64], second[64], digest[DIGEST_HEX], want[DIGEST_HEX];
	struct digest of_first;
	struct writer *writer;
	size_t len;

	(void)state;
	assert_int_equal(writer_new(temporary(first, sizeof(first)), &writer),
			 0);
	assert_null(writer_last(writer));
	assert_int_equal(writer_append(writer, line[0], 3), 0);
	assert_root(writer, line, 1);
	assert_int_equal(writer_append(writer, line[1], 3), 0);
	assert_int_equal(writer_bytes(writer), 8); /* before it is written */
	int fd = temporary(second, sizeof(second));
	assert_int_equal(writer_rotate(writer, fd, digest), 0);
	assert_int_equal(writer_fd(writer), fd);
	digest_begin(&of_first);
	digest_add(&of_first, "one\ntwo\n", 8);
	digest_end(&of_first, want);
	assert_string_equal(digest, want);
	assert_int_equal(writer_bytes(writer), 0);
	assert_digest(writer, second);
	assert_int_equal(writer_append(writer, line[2], 5), 0);
	assert_int_equal(writer_append(writer, line[3], 4), 0);
	assert_root(writer, line, 4);
	assert_int_equal(writer_flush(writer), 0);
	assert_int_equal(writer_bytes(writer), 11);
	assert_int_equal(writer_lines(writer), 4);
	assert_digest(writer, second);
	AUTO_FREE char *before = slurp(first, &len);
	assert_string_equal(before, "one\ntwo\n");
	AUTO_FREE char *after = slurp(second, &len);
	assert_string_equal(after, "three\nfour\n");
	/* Not to what is somebody else's: then the old part goes on. */
	assert_int_equal(
		writer_rotate(writer, open(first, O_WRONLY | O_APPEND), digest),
		-ENOTEMPTY);
	assert_int_equal(writer_append(writer, "five", 4), 0);
	assert_int_equal(writer_flush(writer), 0);
	assert_digest(writer, second);
	writer_free(writer);
	unlink(first);
	unlink(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_full_batch_writes_itself),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_short_write),
		cmocka_unit_test(test_only_to_an_empty_file),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_hashes_of_any_lines),
		cmocka_unit_test(test_rotate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
