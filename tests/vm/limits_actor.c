/* SPDX-License-Identifier: Apache-2.0
 *
 * limits_actor.c - limits_actor MEMORY PIDS CPUS: a child under these limits
 * (0: none; CPUS in thousandths) takes 32 MB, forks 60 times, and computes for
 * a second; what came of it, how it was held, and which limits were reached.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/limits.h"

#define EATEN (32u << 20)
#define FORKS 60

static int take(void)
{
	volatile char *p = malloc(EATEN);

	for (size_t i = 0; p && i < EATEN; i += 4096)
		p[i] = 1;
	return !p;
}

static int forks(void)
{
	pid_t pid[FORKS];
	int n = 0;

	for (; n < FORKS; n++) {
		pid[n] = fork();
		if (pid[n] < 0)
			break;
		if (pid[n] == 0) {
			pause();
			_exit(0);
		}
	}
	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return n;
}

/* Of a second of wall-clock time, in thousandths. */
static int spin(void)
{
	struct timespec now, end;
	struct rusage used;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec++;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec < end.tv_sec ||
	       (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	getrusage(RUSAGE_SELF, &used);
	return (int)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
	       (int)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static void child(const struct limits_groups *groups, int (*what)(void),
		  const char *name)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int r = limits_groups_join(groups);

		if (r < 0) {
			printf("join: %s\n", strerror(-r));
			fflush(stdout);
			_exit(1);
		}
		printf("%s: %d\n", name, what());
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("%s: signal %d\n", name, WTERMSIG(status));
}

int main(int argc, char **argv)
{
	struct resources limits = { 0 };
	struct limits_groups groups;
	char said[4][LIMITS_SAID], text[256] = "";
	size_t n;

	if (argc != 4)
		return 1;
	limits.memory = strtoull(argv[1], NULL, 10);
	limits.pids = (unsigned)strtoul(argv[2], NULL, 10);
	limits.cpus = (unsigned)strtoul(argv[3], NULL, 10);
	if (limits_groups_make(&limits, &groups, text, sizeof(text)) < 0)
		printf("refused: %s\n", text);
	limits_describe(&limits, &groups, text, sizeof(text));
	printf("held: %s\n", text);
	fflush(stdout);
	if (limits.memory)
		child(&groups, take, "take");
	if (limits.pids)
		child(&groups, forks, "forks");
	if (limits.cpus)
		child(&groups, spin, "spin");
	n = limits_reached(&limits, &groups, said, 4);
	for (size_t i = 0; i < n; i++)
		printf("%s\n", said[i]);
	limits_groups_remove(&groups);
	return 0;
}
