/* SPDX-License-Identifier: Apache-2.0
 *
 * cost_main.c - runs the scenarios, all or those named, and says to callgrind
 * when it is to count.
 *
 *	cost DIR [policy|hello|dns|record|relay]...
 *
 * Prints each scenario's name and how many operations were counted.
 */
#include "tests/cost/cost.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "base/cleanup.h"

/* One of them would wait for ever for what does not come. */
#define LIMIT_S 200

const char *cost_dir;
static bool measuring, paused;

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{ "policy", cost_policy }, { "hello", cost_hello }, { "dns", cost_dns },
	{ "record", cost_record }, { "relay", cost_relay },
};

void cost_on(void)
{
	if (measuring && !paused)
		CALLGRIND_TOGGLE_COLLECT;
}

void cost_off(void)
{
	if (measuring && !paused)
		CALLGRIND_TOGGLE_COLLECT;
}

void cost_pause(bool pause)
{
	paused = pause;
}

void cost_measure(const struct cost *cost)
{
	for (unsigned i = 0; i < cost->warm; i++)
		cost->op(cost->arg, i);
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	measuring = true;
	for (unsigned i = 0; i < cost->ops; i++)
		cost->op(cost->arg, i);
	measuring = false;
	CALLGRIND_DUMP_STATS_AT(cost->name);
	CALLGRIND_STOP_INSTRUMENTATION;
	printf("%s %u\n", cost->name,
	       cost->ops * (cost->each ? cost->each : 1));
}

void cost_fail(const char *what)
{
	fprintf(stderr, "%s (%s)\n", what, strerror(errno));
	exit(1);
}

/* In a process of its own: memory is as if there were no other scenario. */
static void run_alone(void (*run)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		run();
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		cost_fail("a scenario did not end as it should");
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	cost_dir = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		bool wanted = argc == 2;

		for (int k = 2; k < argc; k++)
			wanted |= strcmp(argv[k], scenarios[i].name) == 0;
		if (wanted)
			run_alone(scenarios[i].run);
	}
	return 0;
}
