/* SPDX-License-Identifier: Apache-2.0
 *
 * test_keeper_ends.c - ends that nobody ordered, and what is left of a sandbox.
 */
#include "tests/cmd/keeper_case.h"

#include "base/clock.h"

/* --- one keeper after the other ------------------------------------------ */

static void test_file(void **state)
{
	AUTO_FD int leases = leases_new();
	struct netns ns;
	struct rig rig;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "file");
	/* Not of the size that it has to be: the gate would die of it. */
	assert_int_equal(ftruncate(leases, 4096), 0);
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	hear(&rig, 0);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	/* Nothing was opened for it. */
	assert_int_equal(access(rig.log, F_OK), -1);
	netns_close(&ns);
}

static bool gone(pid_t pid)
{
	char path[64], state = 'Z';

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	AUTO_FILE FILE *file = fopen(path, "re");
	return !file || fscanf(file, "%*d %*s %c", &state) != 1 || state == 'Z';
}

/* Until nobody and, with @ns, nothing is left, in ms. */
static int64_t await_nothing_left(const struct netns *ns, const pid_t *pid,
				  size_t n)
{
	const struct timespec step = { .tv_nsec = 5000000 };
	const int64_t from = now_ms();
	int64_t took = 0;
	uint32_t index;
	size_t left;

	for (;;) {
		left = ns && link_index(ns->route, "eth0", &index) != -ENODEV;
		for (size_t i = 0; i < n; i++)
			left += !gone(pid[i]);
		took = now_ms() - from;
		if (!left)
			return took;
		assert_true(took < 60000);
		nanosleep(&step, NULL);
	}
}

/* Within two seconds. What the machine does beside it only ever adds: it may
 * be tried again. */
static void assert_soon(int64_t (*once)(const char *name))
{
	static const char *const names[] = { "first", "second", "third" };
	int64_t took = INT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(names) && took >= 2000; i++)
		took = once(names[i]);
	assert_true(took < 2000);
}

/* The daemon's end: an orderly one, and then another keeper. */
static void test_end_of_daemon(void **state)
{
	AUTO_FD int leases = leases_new();
	pid_t pid[3];
	struct netns ns;
	struct rig rig;
	struct ip first, again;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "orphan");
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &first), 0);
	pid[0] = rig.keeper.pid;
	assert_int_equal(children(pid[0], pid + 1), 2);
	close_fd(&rig.keeper.sock);
	/* It is waited for. */
	struct rig next = rig;
	rig_spawn(&next, ALLOWS("good.example"), leases, ns.fd);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	rig_ready(&next);
	AUTO_FREE char *earlier = read_log(&rig, "earlier-000001/audit.jsonl");
	assert_non_null(strstr(earlier, "the daemon is gone"));
	AUTO_FREE char *receipt =
		read_log(&rig, "earlier-000001/receipt.dsse.json");
	assert_true(strlen(receipt) > 100);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &again), 0);
	assert_true(ip_equal(&first, &again));
	assert_int_equal(rig_end(&next).whole, 1);
	netns_close(&ns);
}

/* kill -9 of the daemon, which is a process of its own here. */
static int64_t killed_daemon(const char *name)
{
	AUTO_FD int leases = leases_new();
	int pipes[2], status;
	struct netns ns;
	pid_t daemon, pid[3];
	struct rig rig;
	struct ip ip;
	char log[32];
	int64_t took;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	snprintf(log, sizeof(log), "killed-%s", name);
	rig_start(&rig, log);
	daemon = fork();
	if (daemon == 0) {
		rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
		rig_ready(&rig);
		pid[0] = rig.keeper.pid;
		if (children(pid[0], pid + 1) == 2 &&
		    write(pipes[1], pid, sizeof(pid)) == sizeof(pid))
			pause();
		_exit(1);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], pid, sizeof(pid)), sizeof(pid));
	close(pipes[0]);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	assert_int_equal(kill(daemon, SIGKILL), 0);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	took = await_nothing_left(&ns, pid, 3);
	waitpid(pid[0], &status, 0);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), -1);
	has(&rig, "the daemon is gone");
	/* Adopted by the next one. */
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	assert_int_equal(rig_end(&rig).whole, 1);
	netns_close(&ns);
	return took;
}

static void test_killed_daemon(void **state)
{
	(void)state;
	assert_soon(killed_daemon);
}

/* The keeper itself: nobody writes the end of its log, but it is no way out. */
static int64_t killed_keeper(const char *name)
{
	AUTO_FD int leases = leases_new();
	struct netns ns;
	pid_t pid[3];
	struct rig rig;
	struct ip ip;
	char log[32];
	int64_t took;

	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	snprintf(log, sizeof(log), "keeper-%s", name);
	rig_start(&rig, log);
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	pid[0] = rig.keeper.pid;
	assert_int_equal(children(pid[0], pid + 1), 2);
	kill(rig.keeper.pid, SIGKILL);
	/* At once: an old link may still be there. */
	struct rig next = rig;
	rig_spawn(&next, ALLOWS("good.example"), leases, ns.fd);
	assert_int_equal(exit_status(&rig), -SIGKILL);
	rig_ready(&next);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	took = await_nothing_left(NULL, pid + 1, 2);
	assert_int_equal(rig_end(&next).whole, 1);
	took += await_nothing_left(&ns, pid, 3);
	netns_close(&ns);
	return took;
}

static void test_killed_keeper(void **state)
{
	(void)state;
	assert_soon(killed_keeper);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_end_of_daemon),
		cmocka_unit_test(test_killed_daemon),
		cmocka_unit_test(test_killed_keeper),
	};

	if (is_role(argc, argv))
		return run_role(argc, argv);
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
