/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hostlog_many.c - many processes and one log, where some are killed.
 */
#include "base/clock.h"
#include "tests/audit/hostlog_case.h"

/* A session that was stopped at the wrong moment stops no other. */
static void test_held(void **state)
{
	struct world *w = *state;
	struct hostlog *log = opened(w);
	AUTO_FD int tree = openat(w->host, HOSTLOG_TREE, O_RDWR | O_CLOEXEC);
	uint64_t start;

	assert_int_equal(add(log, "one"), 0);
	assert_int_equal(flock(tree, LOCK_EX), 0);
	start = clock_ms(CLOCK_MONOTONIC);
	hostlog_free(opened(w));
	assert_in_range(clock_ms(CLOCK_MONOTONIC) - start, 0, 500);
	start = clock_ms(CLOCK_MONOTONIC);
	assert_int_equal(add(log, "two"), -EBUSY);
	assert_in_range(clock_ms(CLOCK_MONOTONIC) - start, HOSTLOG_WAIT_MS,
			HOSTLOG_WAIT_MS + 1500);
	flock(tree, LOCK_UN);
	assert_int_equal(add(log, "three"), 0);
	hostlog_free(log);
	assert_int_equal(verify(w->host, false, NULL, NULL), 2);
}

#define WORKERS	 50
#define ROUNDS	 12
#define BUSY_MAX 20

static int add_one(struct world *w, const char *session, bool known)
{
	struct hostlog_files files;
	struct hostlog *log;
	int r = hostlog_dir_open(w->home, HOSTLOG_DIR, key_public(w->key),
				 known, &files);

	if (r >= 0)
		r = hostlog_new(&files, w->key, &log);
	if (r == -EBUSY)
		return r;
	if (r < 0)
		_exit(-r);
	r = add(log, session);
	hostlog_free(log);
	return r;
}

/* Says "here is one" after each record that is in the log, as a session does
 * that goes on. Its own number is the session's. */
static void work(struct world *w, unsigned number, int out)
{
	char session[32];

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t said = number << 8 | i;
		int r = -EBUSY;

		snprintf(session, sizeof(session), "%u", said + 1);
		/* A lock is nobody's turn: on a busy machine one may be told
		 * more than once that it is held. */
		for (int j = 0; j < BUSY_MAX && r == -EBUSY; j++)
			r = add_one(w, session, i > 0);
		/* Another one was killed between our look and this. */
		if (r < 0 && r != -EUCLEAN)
			_exit(-r);
		if (r == 0 && write(out, &said, sizeof(said)) < 0)
			_exit(errno);
	}
	_exit(0);
}

static void mark(void *arg, json_t *record)
{
	bool *seen = arg;
	unsigned long number = strtoul(text_at(record, "session"), NULL, 10);

	assert_in_range(number, 0, WORKERS << 8);
	assert_false(seen[number]);
	seen[number] = true;
}

/* Back from the newest log to the first; returns how many there were. */
static unsigned walk(struct world *w, bool *seen)
{
	char name[LOG_DIR_NAME_MAX] = ".";
	unsigned logs = 0;

	for (bool more = true; more; logs++) {
		AUTO_FD int dir = openat(w->host, name, O_RDONLY | O_CLOEXEC);

		assert_true(dir >= 0);
		verify(dir, logs > 0, mark, seen);
		more = check_quote(w->host, dir, name);
	}
	return logs;
}

/* Who appends just now; 0 if nobody does. */
static pid_t holder(struct world *w)
{
	AUTO_FILE FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	struct stat st;
	pid_t pid;
	unsigned long inode;

	if (!locks || fstatat(w->host, HOSTLOG_TREE, &st, 0) < 0)
		return 0;
	while (fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*u: FLOCK %*s %*s %d %*x:%*x:%lu", &pid,
			   &inode) == 2 &&
		    inode == st.st_ino)
			return pid;
	return 0;
}

static void test_many_at_once(void **state)
{
	static bool seen[(WORKERS << 8) + 1];
	struct world *w = *state;
	unsigned kills = 0, said = 0, earlier = 0;
	pid_t pid[WORKERS];
	struct hostlog *log;
	uint32_t got;
	int out[2];

	memset(seen, 0, sizeof(seen));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	srand((unsigned)clock_ms(CLOCK_MONOTONIC));
	for (unsigned i = 0; i < WORKERS; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			work(w, i, out[1]);
	}
	close(out[1]);
	for (unsigned i = 0; i < WORKERS / 2; i++) {
		pid_t victim = i % 2 ? holder(w) : 0;

		usleep((unsigned)rand() % 8000);
		for (unsigned j = 0; j < WORKERS && i % 2 && victim; j++)
			if (pid[j] == victim)
				kills += kill(victim, SIGKILL) == 0;
		if (i % 2 == 0)
			kills += kill(pid[rand() % WORKERS], SIGKILL) == 0;
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		int status;

		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		if (!WIFSIGNALED(status) && status)
			fail_msg("one ended with %d", WEXITSTATUS(status));
	}
	log = opened(w);
	assert_int_equal(add(log, "0"), 0);
	hostlog_free(log);
	earlier = walk(w, seen) - 1;
	while (read(out[0], &got, sizeof(got)) == sizeof(got)) {
		said++;
		assert_true(seen[got + 1]);
	}
	close(out[0]);
	assert_true(kills > 0 && said > 0);
	print_message("%u records, %u killed, begun anew %u times\n", said,
		      kills, earlier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_at_once, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
