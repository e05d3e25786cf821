/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kill_all.c - all that runs in a sandbox's namespace can be ended,
 * however it hides; and nobody else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "launch/owned.h"

#define CHAINS 2
#define ALL_MS 60000

/* What children say of themselves. */
static struct {
	_Atomic unsigned links[CHAINS];
	_Atomic bool over;
} * shared;
static pid_t tester;

static bool runs(pid_t pid)
{
	char path[64], state = 'Z';

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	AUTO_FILE FILE *file = fopen(path, "re");
	return file && fscanf(file, "%*d %*s %c", &state) == 1 &&
	       state != 'Z' && state != 'X';
}

/* Who was killed leaves his namespace on his way out, before he is a zombie. */
static bool is_inside(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	return runs(pid) && stat(path, &st) == 0;
}

static _Noreturn void wait_for_the_end(void)
{
	while (!shared->over && kill(tester, 0) == 0)
		usleep(10000);
	_exit(0);
}

static int pause_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const pid_t pid = fork();

	(void)ret_fds;
	*ret_n = 0;
	if (pid == 0) {
		signal(SIGTERM, SIG_IGN);
		wait_for_the_end();
	}
	*(pid_t *)arg = pid;
	return pid < 0 ? -errno : 0;
}

static void *go_on(void *arg)
{
	(void)arg;
	wait_for_the_end();
}

/* Its first thread ends; what /proc shows of that is not in any namespace. */
static int threads_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const pid_t pid = fork();
	pthread_t thread;

	(void)ret_fds;
	*ret_n = 0;
	if (pid == 0) {
		if (pthread_create(&thread, NULL, go_on, NULL) != 0)
			_exit(1);
		syscall(SYS_exit, 0);
	}
	*(pid_t *)arg = pid;
	return pid < 0 ? -errno : 0;
}

/* Makes another one of itself again and again: it is never one process for
 * long. */
static int breed_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const unsigned *which = arg;
	const pid_t pid = fork();
	const int64_t end = now_ms() + ALL_MS;

	(void)ret_fds;
	*ret_n = 0;
	while (pid == 0 && !shared->over && now_ms() < end) {
		shared->links[*which]++;
		usleep(300);
		if (fork() > 0) {
			usleep(300);
			_exit(0);
		}
	}
	if (pid == 0)
		_exit(0);
	return pid < 0 ? -errno : 0;
}

static void begin(struct netns *ns, netns_inside *what, void *arg)
{
	assert_int_equal(netns_enter(ns->fd, what, arg, NULL, NULL), 0);
}

static int set_up(void **state)
{
	static struct netns ns[2];

	tester = getpid();
	*state = ns;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -1;
	return netns_create(&ns[0], NULL, NULL, NULL, NULL) < 0 ||
			       netns_create(&ns[1], NULL, NULL, NULL, NULL) < 0
		       ? -1
		       : 0;
}

static int tear_down(void **state)
{
	struct netns *ns = *state;

	shared->over = true;
	while (waitpid(-1, NULL, 0) > 0)
		;
	netns_close(&ns[0]);
	netns_close(&ns[1]);
	munmap(shared, sizeof(*shared));
	return 0;
}

static void test_nobody_else(void **state)
{
	struct netns *ns = *state;
	pid_t in[3], other;

	for (size_t i = 0; i < 3; i++)
		begin(&ns[0], pause_inside, &in[i]);
	begin(&ns[1], pause_inside, &other);
	assert_true(runs(in[0]) && runs(in[2]) && runs(other));
	assert_int_equal(sandbox_kill_all(ns[0].fd), 0);
	for (size_t i = 0; i < 3; i++)
		assert_false(is_inside(in[i]));
	assert_true(runs(other));
	/* Nobody left: nothing to do. */
	assert_int_equal(sandbox_kill_all(ns[0].fd), 0);
	assert_int_equal(kill(other, SIGKILL), 0);
}

static void test_first_thread_is_over(void **state)
{
	struct netns *ns = *state;
	siginfo_t ended = { 0 };
	pid_t pid;

	begin(&ns[0], threads_inside, &pid);
	while (runs(pid))
		usleep(1000);
	/* It looks as if it had ended, and has not. */
	assert_int_equal(
		waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT),
		0);
	assert_int_equal(ended.si_pid, 0);
	assert_int_equal(sandbox_kill_all(ns[0].fd), 0);
	for (int i = 0; i < 1000 && !ended.si_pid; i++) {
		usleep(10000);
		waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT);
	}
	assert_int_equal(ended.si_code, CLD_KILLED);
}

static void test_chains(void **state)
{
	struct netns *ns = *state;
	unsigned were[CHAINS];

	for (unsigned i = 0; i < CHAINS; i++) {
		begin(&ns[0], breed_inside, &i);
		while (shared->links[i] < 20)
			usleep(1000);
	}
	assert_int_equal(sandbox_kill_all(ns[0].fd), 0);
	for (unsigned i = 0; i < CHAINS; i++)
		were[i] = shared->links[i];
	usleep(50000);
	for (unsigned i = 0; i < CHAINS; i++)
		assert_int_equal(shared->links[i], were[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobody_else, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_first_thread_is_over,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_chains, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
