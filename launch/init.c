/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c - pid 1 of a sandbox, a static executable of its own, without a libc.
 *
 *	init [--tty] [--nest] [--write PATH]... START_FD ERROR_FD -- CMD...
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
 * Where the kernel has Landlock, CMD and what it starts can write below the
 * PATHs only: a second wall behind the view of files,
 * for what may lead around that, as an inherited descriptor may. Not with
 * --nest: who is held by Landlock can't mount anything, anywhere, and CMD means
 * to, in namespaces of its own.
 *
 * It has the same rights as CMD, none. It is not dumpable all the same, so that
 * CMD can't take its place and invent an exit status.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "launch/init_landlock.h"
#include "launch/init_sys.h"

#define STATUS_OURS 125
#define DIR_MAX	    4096 /* of PATH; a longer one is not searched */
#define NAME_LONG   255

static const int forwarded[] = { SIGTERM, SIGINT,  SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };

/* As the kernel has it: a bit for each signal. */
static const unsigned long all_signals = ~0UL, no_signals;

struct args {
	bool tty, nest;
	char **write; /* "--write", PATH ... up to another word */
	int start_fd, error_fd;
	char **argv, **env;
};

static size_t length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

static bool equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static void say(const char *text, size_t len)
{
	sys(SYS_write, 2, (long)text, (long)len, 0, 0);
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
	say(why, length(why));
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

/* The first of our three that is a terminal, or -1. */
static int terminal(void)
{
	char termios[256];

	for (int fd = 0; fd <= 2; fd++)
		if (sys(SYS_ioctl, fd, TCGETS, (long)termios, 0, 0) == 0)
			return fd;
	return -1;
}

/* Returns only with -errno. */
static int execute(const struct args *args, const char *file)
{
	char **argv = args->argv;
	long r = sys(SYS_execve, (long)file, (long)argv, (long)args->env, 0, 0);

	if (r != -ENOEXEC)
		return (int)r;
	/* A script without its first line. In front of the command is room for
	 * the shell's name: there was "--". */
	argv[0] = (char *)file;
	argv[-1] = (char *)"/bin/sh";
	return (int)sys(SYS_execve, (long)argv[-1], (long)(argv - 1),
			(long)args->env, 0, 0);
}

static const char *find_path(char **env)
{
	for (; *env; env++) {
		const char *e = *env;

		if (e[0] == 'P' && e[1] == 'A' && e[2] == 'T' && e[3] == 'H' &&
		    e[4] == '=')
			return e + 5;
	}
	return "/bin:/usr/bin";
}

/* Goes on with the next folder of PATH? */
static bool elsewhere(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES ||
	       error == -ESTALE || error == -ENODEV || error == -ETIMEDOUT;
}

/* "@dir/@name", where there is no @dir just the name. */
static void join(char *file, const char *dir, size_t dir_len, const char *name)
{
	while (dir_len--)
		*file++ = *dir++;
	if (file[-1])
		*file++ = '/';
	while ((*file++ = *name++))
		;
}

/* As execvp(3); but EACCES, which the kernel says also when a folder of PATH
 * could not be searched, only if the file was seen. Returns -errno. */
static int search(const struct args *args)
{
	static char file[1 + DIR_MAX + 1 + NAME_LONG + 1];
	const char *name = args->argv[0], *path = find_path(args->env);
	int result = -ENOENT;

	for (const char *c = name; *c; c++)
		if (*c == '/')
			return execute(args, name);
	if (!*name)
		return -ENOENT;
	if (length(name) > NAME_LONG)
		return -ENAMETOOLONG;
	for (;;) {
		size_t dir = 0;
		int r;

		while (path[dir] && path[dir] != ':')
			dir++;
		if (dir <= DIR_MAX) {
			/* file[0] stays 0: what is before the name. */
			join(file + 1, path, dir, name);
			r = execute(args, file + 1);
			if (!elsewhere(r))
				return r;
			if (r == -EACCES && sys(SYS_faccessat, AT_FDCWD,
						(long)(file + 1), 0, 0, 0) == 0)
				result = -EACCES;
		}
		if (!path[dir])
			return result;
		path += dir + 1;
	}
}

/* In the child; every signal is still blocked, so SIGTTOU can't stop us. */
static _Noreturn void run(const struct args *args)
{
	int error, status;

	if (args->tty) {
		int group = (int)sys(SYS_getpid, 0, 0, 0, 0, 0);

		sys(SYS_setpgid, 0, 0, 0, 0, 0);
		sys(SYS_ioctl, terminal(), TIOCSPGRP, (long)&group, 0, 0);
	}
	if (!args->nest && !landlock(args->write))
		sys(SYS_exit_group, STATUS_OURS, 0, 0, 0, 0);
	sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&no_signals, 0,
	    sizeof(no_signals), 0);
	error = -search(args);
	complain(args->argv[0], reason(error));
	status = error == ENOENT ? 127 : 126;
	if (sys(SYS_write, args->error_fd, (long)&error, sizeof(error), 0, 0) <
	    0)
		status = STATUS_OURS;
	for (;;)
		sys(SYS_exit_group, status, 0, 0, 0, 0);
}

/* Returns CMD's status once it is gone, else -1. */
static int reap(const struct args *args, pid_t cmd)
{
	int result = -1, status;
	pid_t pid;

	while ((pid = (pid_t)sys(SYS_wait4, -1, (long)&status,
				 WNOHANG | WUNTRACED, 0, 0)) > 0) {
		if (pid != cmd)
			continue;
		if (WIFSTOPPED(status)) {
			if (args->tty)
				sys(SYS_kill, -cmd, SIGCONT, 0, 0, 0);
		} else if (WIFEXITED(status)) {
			result = WEXITSTATUS(status);
		} else {
			result = 128 + WTERMSIG(status);
		}
	}
	return result;
}

static int serve(const struct args *args, pid_t cmd)
{
	for (;;) {
		int sig = (int)sys(SYS_rt_sigtimedwait, (long)&all_signals, 0,
				   0, sizeof(all_signals), 0);
		int status;

		if (sig == SIGCHLD) {
			status = reap(args, cmd);
			if (status >= 0)
				return status;
			continue;
		}
		for (size_t i = 0; sig > 0 && i < 8; i++)
			if (forwarded[i] == sig)
				sys(SYS_kill, cmd, sig, 0, 0, 0);
	}
}

/* A descriptor above 2, or -1. */
static int number(const char *text)
{
	int n = 0;

	for (; *text >= '0' && *text <= '9' && n < 1 << 20; text++)
		n = n * 10 + (*text - '0');
	return *text || n <= 2 ? -1 : n;
}

static bool parse(int argc, char **argv, struct args *ret)
{
	int i = 1;

	if (i < argc && equal(argv[i], "--tty")) {
		ret->tty = true;
		i++;
	}
	if (i < argc && equal(argv[i], "--nest")) {
		ret->nest = true;
		i++;
	}
	ret->write = argv + i;
	while (i + 1 < argc && equal(argv[i], "--write"))
		i += 2;
	if (argc - i < 4 || !equal(argv[i + 2], "--"))
		return false;
	ret->start_fd = number(argv[i]);
	ret->error_fd = number(argv[i + 1]);
	ret->argv = argv + i + 3;
	return ret->start_fd >= 0 && ret->error_fd >= 0;
}

static bool wait_for_start(int fd)
{
	char byte;
	long n;

	do
		n = sys(SYS_read, fd, (long)&byte, 1, 0, 0);
	while (n == -EINTR);
	return n == 1;
}

static int init_main(int argc, char **argv, char **env)
{
	struct args args = { .env = env };
	pid_t cmd;

	/* Blocked, not ignored: pid 1 does not get what it has no handler for,
	 * unless it waits for it. */
	sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all_signals, 0,
	    sizeof(all_signals), 0);
	if (!parse(argc, argv, &args) ||
	    sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return STATUS_OURS;
	if (sys(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC, 0, 0) < 0)
		return STATUS_OURS;
	if (!wait_for_start(args.start_fd))
		return STATUS_OURS;
	if (args.tty && terminal() < 0)
		args.tty = false;

	/* fork(2), which newer architectures don't have. */
	cmd = (pid_t)sys(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (cmd == 0)
		run(&args);
	if (cmd < 0)
		return STATUS_OURS;
	/* We keep nothing that a command could find in our place. */
	if (sys(SYS_close_range, 3, ~0U, 0, 0, 0) < 0)
		return STATUS_OURS;
	return serve(&args, cmd);
}
