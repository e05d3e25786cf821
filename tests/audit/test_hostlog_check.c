/* SPDX-License-Identifier: Apache-2.0
 *
 * What is gone, changed or unknown shows: sessions, and the log that names
 * them.
 */
#include "audit/hostlog_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "audit/hostlog.h"
#include "audit/hostlog_dir.h"
#include "base/cleanup.h"
#include "tests/scratch.h"

#define NAME "host.test"

struct world {
	char path[64];
	int home;
	struct key *key;
	char trouble[16][32]; /* of session sN */
	struct hostlog_checked checked;
};

static struct key *key_of(const char *name, uint8_t seed)
{
	uint8_t bytes[KEY_SEED] = { seed };
	struct key *key;

	assert_int_equal(
		key_of_seed((struct text){ name, strlen(name) }, bytes, &key),
		0);
	return key;
}

static void put(int dir, const char *name, const char *data)
{
	AUTO_FD int fd = openat(dir, name,
				O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, strlen(data)), (ssize_t)strlen(data));
}

static char *get(struct world *w, const char *name, char *buf, size_t cap)
{
	AUTO_FD int fd = openat(w->home, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, cap - 1);

	assert_true(n >= 0);
	buf[n] = '\0';
	return buf;
}

/* A session as it lies there: DIR, or a place below it. */
static void make_session(struct world *w, const char *dir, const char *session,
			 const char *receipt)
{
	char name[128];
	struct key *key;
	int fd;

	snprintf(name, sizeof(name), NAME "/%s", session);
	key = key_of(name, 1);
	assert_int_equal(mkdirat(w->home, dir, 0700), 0);
	fd = openat(w->home, dir, O_RDONLY | O_CLOEXEC);
	assert_int_equal(key_write_public(key, fd, LOG_DIR_VKEY), 0);
	put(fd, LOG_DIR_RECORDS, "{}\n");
	if (receipt)
		put(fd, LOG_DIR_RECEIPT, receipt);
	close(fd);
	key_free(key);
}

static void append(struct world *w, struct hostlog_entry *entry)
{
	struct hostlog_files files;
	struct hostlog *log;

	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR,
					  key_public(w->key), false, &files),
			 0);
	assert_int_equal(hostlog_new(&files, w->key, &log), 0);
	assert_int_equal(hostlog_append(log, entry), 0);
	hostlog_free(log);
}

static void say_opened(struct world *w, const char *session, const char *dir)
{
	char path[128], name[128];
	struct hostlog_entry entry = { .event = HOSTLOG_OPENED,
				       .session = session };
	struct key *key;

	snprintf(path, sizeof(path), "%s/%s", w->path, dir);
	snprintf(name, sizeof(name), NAME "/%s", session);
	key = key_of(name, 1);
	entry.directory = path;
	entry.vkey = key_public(key);
	append(w, &entry);
	key_free(key);
}

static void say_ended(struct world *w, const char *session, const char *receipt)
{
	uint8_t digest[32];
	struct hostlog_entry entry = {
		.event = receipt ? HOSTLOG_RECEIPT : HOSTLOG_ENDED,
		.session = session,
		.receipt = receipt ? digest : NULL,
	};

	if (receipt)
		EVP_Digest(receipt, strlen(receipt), digest, NULL, EVP_sha256(),
			   NULL);
	append(w, &entry);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_int_equal(scratch_make(w->path, sizeof(w->path)), 0);
	w->home = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w->key = key_of(NAME, 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	assert_int_equal(scratch_remove(w->path), 0);
	close(w->home);
	key_free(w->key);
	free(w);
	return 0;
}

static void remember(void *arg, const struct hostlog_session *session)
{
	struct world *w = arg;
	unsigned number;

	assert_int_equal(sscanf(session->session, "s%u", &number), 1);
	assert_true(number < ARRAY_SIZE(w->trouble));
	assert_string_equal(w->trouble[number], "");
	snprintf(w->trouble[number], sizeof(w->trouble[0]), "%s",
		 hostlog_trouble_word(session->trouble));
}

static void check_with(struct world *w, const struct vkey *key)
{
	memset(w->trouble, 0, sizeof(w->trouble));
	assert_int_equal(hostlog_check(w->path, key, remember, w, &w->checked),
			 0);
}

static void check(struct world *w)
{
	check_with(w, key_public(w->key));
}

static void test_sessions(void **state)
{
	static const char *const expected[] = { "fine",		"not_ended",
						"no_receipt",	"gone",
						"receipt_gone", "receipt_other",
						"gone",		"fine",
						"not_named",	"no_place" };
	static const struct timespec long_ago[2];
	struct world *w = *state;
	char dir[32], name[96];

	for (unsigned i = 0; i < 8; i++) {
		char session[8];

		snprintf(session, sizeof(session), "s%u", i);
		snprintf(dir, sizeof(dir), "d%u", i);
		say_opened(w, session, dir);
		make_session(w, dir, session,
			     i == 1 || i == 2 ? NULL : session);
		if (i != 1)
			say_ended(w, session, i == 2 ? NULL : session);
	}
	snprintf(name, sizeof(name), "%s/d3", w->path);
	assert_int_equal(scratch_remove(name), 0);
	assert_int_equal(unlinkat(w->home, "d4/" LOG_DIR_RECEIPT, 0), 0);
	put(w->home, "d5/" LOG_DIR_RECEIPT, "another");
	/* Two directories were used again; one session is still in there. */
	snprintf(name, sizeof(name), "%s/d6", w->path);
	assert_int_equal(scratch_remove(name), 0);
	make_session(w, "d6", "s8", "s8");
	assert_int_equal(renameat(w->home, "d7", w->home, "old"), 0);
	assert_int_equal(mkdirat(w->home, "d7", 0700), 0);
	assert_int_equal(renameat(w->home, "old", w->home, "d7/earlier-000001"),
			 0);
	say_ended(w, "s9", "x");
	/* One that began just now may be named yet. */
	check(w);
	assert_string_equal(w->trouble[8], "");
	assert_int_equal(utimensat(w->home, "d6/" LOG_DIR_VKEY, long_ago, 0),
			 0);
	check(w);
	for (unsigned i = 0; i < ARRAY_SIZE(expected); i++)
		assert_string_equal(w->trouble[i], expected[i]);
	assert_int_equal(w->checked.problems, 0);
	assert_int_equal(w->checked.records, 16);
	assert_int_equal(w->checked.covered, 16);
	assert_int_equal(w->checked.logs, 1);
}

/* All of it may have been moved; then sessions are found by their names. */
static void test_moved(void **state)
{
	struct world *w = *state;

	say_opened(w, "s0", "d0");
	say_opened(w, "s1", "d1");
	make_session(w, "s0", "s0", "s0");
	make_session(w, "s1", "s2", "s1"); /* another's, under its name */
	say_ended(w, "s0", "s0");
	check(w);
	assert_string_equal(w->trouble[0], "fine");
	assert_string_equal(w->trouble[1], "gone");
}

static enum hostlog_trouble check_one(struct world *w, const char *session,
				      uint8_t seed, const char *dir)
{
	enum hostlog_trouble trouble = HOSTLOG_TROUBLE_COUNT;
	char name[64], path[96];
	struct key *key;
	int r;

	snprintf(name, sizeof(name), NAME "/%s", session);
	snprintf(path, sizeof(path), "%s/%s", w->path, dir);
	key = key_of(name, seed);
	r = hostlog_check_one(w->path, key_public(key), path, &trouble,
			      &w->checked);
	key_free(key);
	assert_true(r == 0 || r == -ENOENT);
	return r ? HOSTLOG_TROUBLE_COUNT : trouble;
}

static void test_one(void **state)
{
	struct world *w = *state;

	assert_int_equal(check_one(w, "s0", 1, "d0"), HOSTLOG_TROUBLE_COUNT);
	say_opened(w, "s0", "d0");
	make_session(w, "d0", "s0", NULL);
	assert_int_equal(check_one(w, "s0", 1, "d0"), HOSTLOG_NOT_ENDED);
	assert_int_equal(w->checked.problems, 0);
	say_ended(w, "s0", "receipt");
	assert_int_equal(check_one(w, "s0", 1, "d0"), HOSTLOG_RECEIPT_GONE);
	put(w->home, "d0/" LOG_DIR_RECEIPT, "receipt");
	assert_int_equal(check_one(w, "s0", 1, "d0"), HOSTLOG_FINE);
	put(w->home, "d0/" LOG_DIR_RECEIPT, "another");
	assert_int_equal(check_one(w, "s0", 1, "d0"), HOSTLOG_RECEIPT_OTHER);
	assert_int_equal(check_one(w, "s1", 1, "d0"), HOSTLOG_NOT_NAMED);
	/* Nothing here is of that key. */
	assert_int_equal(check_one(w, "s0", 2, "d0"), HOSTLOG_TROUBLE_COUNT);
}

static void test_no_log(void **state)
{
	struct world *w = *state;

	assert_int_equal(hostlog_check(w->path, NULL, NULL, NULL, &w->checked),
			 -ENOENT);
}

static void expect_problem(struct world *w, const char *what)
{
	check(w);
	assert_true(w->checked.problems > 0);
	if (!strstr(w->checked.problem[0], what))
		fail_msg("\"%s\" is not in \"%s\"", what,
			 w->checked.problem[0]);
}

/* Each is undone before the next. */
static void test_the_log(void **state)
{
	struct world *w = *state;
	static const char *const records = "host/" HOSTLOG_RECORDS,
				 *const notes = "host/" HOSTLOG_CHECKPOINTS;
	char good[8192], good_notes[4096], bad[8300], *at;
	struct key *other = key_of(NAME, 2);

	for (unsigned i = 0; i < 3; i++)
		say_ended(w, i == 0 ? "s0" : i == 1 ? "s1" : "s2", "x");
	get(w, records, good, sizeof(good));
	get(w, notes, good_notes, sizeof(good_notes));
	check(w);
	assert_int_equal(w->checked.problems, 0);
	check_with(w, NULL);
	assert_int_equal(w->checked.problems, 0);
	assert_int_equal(w->checked.covered, 3);

	strcpy(bad, good);
	*(strstr(bad, "session s1") + 9) = '7';
	put(w->home, records, bad);
	expect_problem(w, "checkpoint 2 is of other records");

	strcpy(bad, good);
	at = strchr(strchr(bad, '\n') + 1, '\n') + 1;
	memmove(strchr(bad, '\n') + 1, at, strlen(at) + 1);
	put(w->home, records, bad);
	expect_problem(w, "line 2 of audit.jsonl is not in its place");

	strcpy(bad, good);
	*(strchr(strchr(bad, '\n') + 1, '\n') + 1) = '\0';
	put(w->home, records, bad);
	expect_problem(w, "more than the 2 records that are there were signed");

	snprintf(bad, sizeof(bad), "%snonsense\n", good);
	put(w->home, records, bad);
	expect_problem(w, "line 4 of audit.jsonl is no record");
	put(w->home, records, good);

	strcpy(bad, good_notes);
	at = strstr(bad + 1, NAME "/host\n2\n");
	memmove(bad, at, strlen(at) + 1);
	put(w->home, notes, bad);
	expect_problem(w, "checkpoint 1 is not in its place");

	strcpy(bad, good_notes);
	at = strstr(bad, "\n\n");
	at[60] = at[60] == 'A' ? 'B' : 'A';
	put(w->home, notes, bad);
	expect_problem(w, "checkpoint 1 has a wrong signature");
	put(w->home, notes, good_notes);

	check_with(w, key_public(other));
	assert_true(w->checked.problems > 0);
	assert_non_null(strstr(w->checked.problem[0], "another key"));
	/* A session that was killed as it wrote is no fault of the log. */
	snprintf(bad, sizeof(bad), "%s{\"half", good);
	put(w->home, records, bad);
	check(w);
	assert_int_equal(w->checked.problems, 0);
	assert_int_equal(w->checked.covered, 3);
	key_free(other);
}

static void test_earlier_logs(void **state)
{
	struct world *w = *state;
	static const char *const old = "host/earlier-000001/" HOSTLOG_RECORDS;
	char good[8192], name[96];

	for (unsigned i = 0; i < 3; i++) {
		char session[8];

		snprintf(session, sizeof(session), "s%u", i);
		say_ended(w, session, "x");
		if (i < 2)
			put(w->home, "host/" HOSTLOG_TREE, "");
	}
	check(w);
	assert_int_equal(w->checked.problems, 0);
	assert_int_equal(w->checked.logs, 3);
	assert_int_equal(w->checked.records, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(w->trouble[i], "no_place");

	/* Also before anything was added to the new one. */
	put(w->home, "host/" HOSTLOG_TREE, "");
	struct hostlog_files files;
	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR,
					  key_public(w->key), false, &files),
			 0);
	close(files.records);
	close(files.checkpoints);
	close(files.tree);
	check(w);
	assert_int_equal(w->checked.problems, 0);
	assert_int_equal(w->checked.logs, 4);

	get(w, old, good, sizeof(good));
	good[strlen(good) - 1] = '\0';
	put(w->home, old, good);
	expect_problem(w, "host/earlier-000001/: ");
	snprintf(name, sizeof(name), "%s/host/earlier-000001", w->path);
	assert_int_equal(scratch_remove(name), 0);
	expect_problem(w, "host/earlier-000001/: a log was put there");
	assert_int_equal(w->checked.logs, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sessions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_earlier_logs, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
