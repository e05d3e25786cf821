/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_detach.c - `guard up` in the background.
 *
 * The process that stays is forked before it opens anything but its lock, so
 * that nothing is opened twice, and its parent waits for one byte: the gate
 * serves. What it has to say goes to a file, which the parent shows: our
 * children keep writing to it, and must not hold a pipe of the caller's open.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/guard.h"

static int open_messages(void)
{
	char path[PATH_MAX];

	return open(guard_messages_path(path),
		    O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC |
			    O_NOFOLLOW,
		    0600);
}

static void show_messages(int fd)
{
	char buf[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		fwrite(buf, 1, (size_t)n, stderr);
		at += n;
	}
}

/* What else the caller had open is not ours to keep: a lock, a pipe whose end
 * somebody waits for. */
static void close_others(int a, int b)
{
	const unsigned low = (unsigned)(a < b ? a : b);
	const unsigned high = (unsigned)(a < b ? b : a);

	if (low > 3)
		syscall(SYS_close_range, 3u, low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0);
	syscall(SYS_close_range, high + 1, ~0u, 0);
}

static void detach(int messages)
{
	AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(messages, 2) < 0)
		_exit(EXIT_SALLYPORT);
}

/* Whether it serves; else what it ended with. */
static int await(pid_t child, int ready)
{
	int status = 0;
	char byte;
	ssize_t n;

	do
		n = read(ready, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return 0;
	if (waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	    WEXITSTATUS(status))
		return WEXITSTATUS(status);
	return EXIT_SALLYPORT;
}

int guard_detach(int lock, guard_stay_fn *stay, void *arg)
{
	AUTO_FD int messages = open_messages();
	int pair[2], status;
	pid_t child;

	if (messages < 0 || pipe2(pair, O_CLOEXEC) < 0)
		die(EXIT_SALLYPORT, "starting: %s", strerror(errno));
	child = fork();
	if (child < 0)
		die(EXIT_SALLYPORT, "starting: %s", strerror(errno));
	if (child == 0) {
		close(pair[0]);
		detach(messages);
		close_others(lock, pair[1]);
		exit(stay(arg, pair[1]));
	}
	close(pair[1]);
	status = await(child, pair[0]);
	close(pair[0]);
	show_messages(messages);
	return status;
}
