/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c - pid 1 of a sandbox, a static executable of its own.
 *
 *	init [--tty] START_FD ERROR_FD -- CMD...
 *
 * Waits for one byte on START_FD (its end: exits, nothing has run), runs CMD
 * with no descriptors but 0-2, passes signals on to it, reaps what is orphaned,
 * and exits as CMD did; the kernel then kills what is left. If CMD can't be
 * executed, errno goes to ERROR_FD as an int, and a sentence to stderr.
 *
 * With --tty CMD gets its own process group in the foreground: a shell in a
 * pid namespace can't see the group of its grandparents, and would refuse to do
 * job control. Nobody in here could continue a stopped CMD, so we do.
 *
 * It has the same rights as CMD, none. It is not dumpable all the same, so that
 * CMD can't take its place and invent an exit status.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_OURS 125

static const int forwarded[] = { SIGTERM, SIGINT,  SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };

struct args {
	bool tty;
	int start_fd, error_fd;
	char **argv;
};

static void say(const char *text, size_t len)
{
	if (write(STDERR_FILENO, text, len) < 0)
		return; /* nobody listens */
}

/* "sallyport: CMD: @why", without what could confuse a terminal. */
static void complain(const char *cmd, const char *why)
{
	static const char head[] = "sallyport: ";
	char name[200];
	size_t n = 0;

	for (; cmd[n] && n < sizeof(name) - 2; n++)
		name[n] = (unsigned char)cmd[n] < 0x20 || cmd[n] == 0x7f
				  ? '?'
				  : cmd[n];
	name[n++] = ':';
	name[n++] = ' ';
	say(head, sizeof(head) - 1);
	say(name, n);
	say(why, strlen(why));
	say("\n", 1);
}

static const char *reason(int error)
{
	switch (error) {
	case ENOENT:
		return "command not found";
	case EACCES:
	case EPERM:
		return "permission denied";
	case ENOEXEC:
		return "not an executable format";
	case E2BIG:
		return "argument list too long";
	default:
		return "cannot be executed";
	}
}

static int terminal(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (isatty(fd))
			return fd;
	return -1;
}

/* execvp() says EACCES also when a folder of PATH could not be searched; shells
 * call that "not found" unless the file was seen. */
static bool seen_in_path(const char *name)
{
	const char *path = getenv("PATH");
	size_t len = strlen(name);
	char file[4096];

	while (path && *path) {
		const char *end = strchrnul(path, ':');
		size_t dir = (size_t)(end - path);

		if (dir + 1 + len < sizeof(file)) {
			memcpy(file, path, dir);
			file[dir] = '/';
			memcpy(file + dir + 1, name, len + 1);
			if (access(file, F_OK) == 0)
				return true;
		}
		path = *end ? end + 1 : end;
	}
	return false;
}

/* In the child; every signal is still blocked, so SIGTTOU can't stop us. */
static _Noreturn void run(const struct args *args)
{
	sigset_t none;
	int error;

	if (args->tty) {
		setpgid(0, 0);
		tcsetpgrp(terminal(), getpid());
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(args->argv[0], args->argv);
	error = errno;
	if (error == EACCES && !strchr(args->argv[0], '/') &&
	    !seen_in_path(args->argv[0]))
		error = ENOENT;
	complain(args->argv[0], reason(error));
	if (write(args->error_fd, &error, sizeof(error)) < 0)
		_exit(STATUS_OURS);
	_exit(error == ENOENT ? 127 : 126);
}

/* Returns CMD's status once it is gone, else -1. */
static int reap(const struct args *args, pid_t cmd)
{
	int result = -1, status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != cmd)
			continue;
		if (WIFSTOPPED(status)) {
			if (args->tty)
				kill(-cmd, SIGCONT);
		} else if (WIFEXITED(status)) {
			result = WEXITSTATUS(status);
		} else {
			result = 128 + WTERMSIG(status);
		}
	}
	return result;
}

static int serve(const struct args *args, pid_t cmd, const sigset_t *all)
{
	for (;;) {
		int sig = sigwaitinfo(all, NULL);
		int status;

		if (sig == SIGCHLD) {
			status = reap(args, cmd);
			if (status >= 0)
				return status;
			continue;
		}
		for (size_t i = 0; sig > 0 && i < 8; i++)
			if (forwarded[i] == sig)
				kill(cmd, sig);
	}
}

static bool parse(int argc, char **argv, struct args *ret)
{
	int i = 1;

	if (i < argc && strcmp(argv[i], "--tty") == 0) {
		ret->tty = true;
		i++;
	}
	if (argc - i < 4 || strcmp(argv[i + 2], "--") != 0)
		return false;
	ret->start_fd = (int)strtol(argv[i], NULL, 10);
	ret->error_fd = (int)strtol(argv[i + 1], NULL, 10);
	ret->argv = argv + i + 3;
	return ret->start_fd > 2 && ret->error_fd > 2;
}

static bool wait_for_start(int fd)
{
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

int main(int argc, char **argv)
{
	struct args args = { 0 };
	sigset_t all;
	pid_t cmd;

	/* Blocked, not ignored: pid 1 does not get what it has no handler for,
	 * unless it waits for it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (!parse(argc, argv, &args) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return STATUS_OURS;
	if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return STATUS_OURS;
	if (!wait_for_start(args.start_fd))
		return STATUS_OURS;
	if (args.tty && terminal() < 0)
		args.tty = false;

	cmd = fork();
	if (cmd == 0)
		run(&args);
	if (cmd < 0)
		return STATUS_OURS;
	/* We keep nothing that a command could find in our place. */
	if (syscall(SYS_close_range, 3, ~0U, 0) < 0)
		return STATUS_OURS;
	return serve(&args, cmd, &all);
}
