/* SPDX-License-Identifier: Apache-2.0
 *
 * actor.h - runs a function in a process of its own, as real root or as an
 * ordinary user in a user namespace, as sallyport would run it.
 */
#ifndef TESTS_LAUNCH_ACTOR_H
#define TESTS_LAUNCH_ACTOR_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/userns.h"

#define ACTOR_UID 12345
#define ACTOR_CAP 32768

enum actor { ROOT, USER };

struct outcome {
	int status;
	char text[ACTOR_CAP]; /* its stdout and stderr */
};

static inline void actor_become(enum actor who)
{
	char why[512];

	if (who == ROOT)
		return;
	if (setgroups(0, NULL) < 0 ||
	    setresgid(ACTOR_UID, ACTOR_UID, ACTOR_UID) < 0 ||
	    setresuid(ACTOR_UID, ACTOR_UID, ACTOR_UID) < 0)
		_exit(99);
	/* An ordinary login is dumpable; we just changed identity. */
	prctl(PR_SET_DUMPABLE, 1);
	if (userns_enter(why, sizeof(why)) < 0) {
		fprintf(stderr, "userns_enter: %s\n", why);
		_exit(99);
	}
}

/* At most 60 seconds. */
static inline struct outcome actor_run(enum actor who, int (*fn)(void *),
				       void *arg)
{
	struct outcome out = { 0 };
	size_t len = 0;
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(fds) < 0 || (pid = fork()) < 0) {
		out.status = 98;
		return out;
	}
	if (pid == 0) {
		int r;

		alarm(60);
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		actor_become(who);
		r = fn(arg);
		fflush(stdout);
		_exit(r);
	}
	close(fds[1]);
	while (len < ACTOR_CAP - 1 &&
	       (n = read(fds[0], out.text + len, ACTOR_CAP - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	waitpid(pid, &status, 0);
	out.status = WIFEXITED(status) ? WEXITSTATUS(status)
				       : 1000 + WTERMSIG(status);
	return out;
}

#endif
