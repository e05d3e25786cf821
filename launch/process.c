/* SPDX-License-Identifier: Apache-2.0
 *
 * process.c - from a fork to a command that waits for the word.
 *
 *	us		child			bwrap		init
 *	clone --------> join the namespace
 *			become the uid
 *			write the view
 *	(report) <----- execve ---------------> view, pids
 *						fork ---------> read(start)
 *	process_start() ----------------------------------------> execve CMD
 *
 * Bubblewrap sets up while its caller is still busy with the firewall; what
 * waits is our own init, with nothing of the user's in memory. The end of the
 * start pipe, without a byte, ends it.
 *
 * The child, later bubblewrap, is pid 1 of a pid namespace around that of the
 * sandbox: it dies with us, and whatever it forked then dies with it, also what
 * had no time yet to ask for that. So pids that it names are not ours.
 *
 * The child is given a user namespace in which its uid 0 is the sandbox's uid
 * outside, so nothing it or bubblewrap does has the power of real root.
 */
#include "launch/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/limits.h"
#include "launch/process_child.h"

#define START_WAIT 10000 /* ms, for bubblewrap to say who pid 1 is */

static void pipes_close(struct pipes *pipes)
{
	for (int i = 0; i < PIPES; i++) {
		close_fd(&pipes->fd[i][0]);
		close_fd(&pipes->fd[i][1]);
	}
}

static int pipes_open(struct pipes *pipes)
{
	memset(pipes, -1, sizeof(*pipes));
	for (int i = 0; i < PIPES; i++) {
		if (pipe2(pipes->fd[i], O_CLOEXEC) < 0) {
			int r = -errno;

			pipes_close(pipes);
			return r;
		}
	}
	return 0;
}

static const char *find_bwrap(void)
{
	static const char *const places[] = { "/usr/bin/bwrap", "/bin/bwrap",
					      "/usr/local/bin/bwrap" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static ssize_t read_all(int fd, void *buf, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		ssize_t n = read(fd, (char *)buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Waits until bubblewrap was executed, or we know why not. */
static int read_report(int fd, char *note, size_t note_cap, char *reterr,
		       size_t cap)
{
	struct report report[2] = { 0 };
	size_t n = (size_t)read_all(fd, report, sizeof(report)) /
		   sizeof(report[0]);
	const struct report *last = &report[n == 2];

	if (n == 0) {
		snprintf(reterr, cap, "the sandbox's first process died");
		return -ECHILD;
	}
	if (last->status < 0) {
		snprintf(reterr, cap, "%.*s", REPORT_MAX - 1, last->text);
		return last->status;
	}
	snprintf(note, note_cap, "%.*s", (int)note_cap - 1, last->text);
	return 0;
}

static void fill(struct process *process, struct pipes *pipes, pid_t pid,
		 bool interactive)
{
	*process = (struct process){
		.pid = pid,
		.pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
		.start_fd = steal_fd(&pipes->fd[START][1]),
		.status_fd = steal_fd(&pipes->fd[STATUS][0]),
		.error_fd = steal_fd(&pipes->fd[ERROR][0]),
		.report_fd = steal_fd(&pipes->fd[REPORT][0]),
		.init_fd = -1,
	};
	process->interactive =
		interactive && tcgetattr(STDIN_FILENO, &process->terminal) == 0;
	fcntl(process->status_fd, F_SETFL, O_NONBLOCK);
	fcntl(process->error_fd, F_SETFL, O_NONBLOCK);
}

int process_begin(const struct process_spec *spec, struct process *ret,
		  char *reterr, size_t cap)
{
	const char *bwrap = find_bwrap();
	pid_t pid;
	struct pipes pipes;
	int r;

	if (!bwrap) {
		snprintf(
			reterr, cap,
			"bubblewrap is not installed (apt install bubblewrap)");
		return -ENOENT;
	}
	r = pipes_open(&pipes);
	if (r < 0) {
		snprintf(reterr, cap, "cannot make a pipe: %s", strerror(-r));
		return r;
	}
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD,
			     NULL, NULL, NULL, NULL);
	if (pid == 0)
		process_child(spec, &pipes, bwrap);
	if (pid < 0) {
		r = -errno;
		snprintf(reterr, cap, "cannot fork: %s", strerror(-r));
		pipes_close(&pipes);
		return r;
	}
	fill(ret, &pipes, pid, spec->interactive);
	ret->limits = spec->limits;
	ret->groups = spec->groups;
	pipes_close(&pipes); /* the child's ends */
	return 0;
}

int process_ready(struct process *process, char *reterr, size_t cap)
{
	int r = read_report(process->report_fd, process->note,
			    sizeof(process->note), reterr, cap);

	close_fd(&process->report_fd);
	if (r < 0) {
		process_kill(process);
		process_wait(process);
	}
	return r;
}

int process_prepare(const struct process_spec *spec, struct process *ret,
		    char *reterr, size_t cap)
{
	int r = process_begin(spec, ret, reterr, cap);

	return r < 0 ? r : process_ready(ret, reterr, cap);
}

/* Takes @pid for pid 1 of the sandbox if it is bubblewrap's child. Asked after
 * its pidfd was opened: the number can't have become another's. */
static bool take_init(struct process *process, pid_t pid)
{
	static const char key[] = "\nPPid:";
	char path[64], text[1024];
	AUTO_FD int fd = -1;
	AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (pidfd < 0 || fd < 0)
		return false;
	text[read_all(fd, text, sizeof(text) - 1)] = '\0';
	at = strstr(text, key);
	if (!at || strtol(at + sizeof(key) - 1, NULL, 10) != process->pid)
		return false;
	process->init_fd = steal_fd(&pidfd);
	process->init = pid;
	return true;
}

/* Needs CONFIG_PROC_CHILDREN. */
static bool ask_for_children(struct process *process)
{
	char path[64], text[32];
	AUTO_FD int fd = -1;
	long pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		 (int)process->pid, (int)process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	text[read_all(fd, text, sizeof(text) - 1)] = '\0';
	pid = strtol(text, NULL, 10); /* it has one */
	return pid > 1 && pid <= INT32_MAX && take_init(process, (pid_t)pid);
}

static void search_children(struct process *process)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		long pid = strtol(entry->d_name, NULL, 10);

		if (pid > 1 && pid <= INT32_MAX &&
		    take_init(process, (pid_t)pid))
			break;
	}
	if (dir)
		closedir(dir);
}

/* {"child-pid": N, ...} on the first line, in bubblewrap's pid namespace: what
 * we learn is that there is a child. */
static void find_init(struct process *process, int timeout)
{
	struct pollfd p = { .fd = process->status_fd, .events = POLLIN };
	char text[1024];
	ssize_t n;

	if (process->init || poll(&p, 1, timeout) <= 0)
		return;
	/* Bubblewrap writes the line at once. */
	n = read(process->status_fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	if (strstr(text, "\"child-pid\":") && !ask_for_children(process))
		search_children(process);
}

int process_start(struct process *process)
{
	char byte = 0;
	ssize_t n;

	if (process->start_fd < 0)
		return -EALREADY;
	find_init(process, START_WAIT);
	if (process->limits) {
		int r = limits_apply(process->limits, process->groups,
				     process->init);

		if (r < 0 && r != -ESRCH)
			return r;
	}
	do
		n = write(process->start_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	close_fd(&process->start_fd);
	/* EPIPE: bubblewrap failed, process_wait() has its status. */
	return n == 1 || errno == EPIPE ? 0 : -errno;
}

static void send_signal(int pidfd, int signal)
{
	if (pidfd >= 0)
		syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

void process_signal(struct process *process, int signal)
{
	find_init(process, 0);
	send_signal(process->init_fd, signal);
}

void process_kill(struct process *process)
{
	find_init(process, 0);
	send_signal(process->init_fd, SIGKILL);
	send_signal(process->pidfd, SIGKILL);
}

/* The command's group is gone, and nobody else would take the foreground back:
 * without this our user's shell finds itself in the background. */
static void restore_terminal(const struct process *process)
{
	sigset_t block, old;

	if (!process->interactive)
		return;
	sigemptyset(&block);
	sigaddset(&block, SIGTTOU);
	sigprocmask(SIG_BLOCK, &block, &old);
	tcsetpgrp(STDIN_FILENO, getpgrp());
	tcsetattr(STDIN_FILENO, TCSADRAIN, &process->terminal);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Bubblewrap says {"exit-code": N} only for a command that was executed. */
static int exit_status(struct process *process, int status)
{
	static const char key[] = "\"exit-code\":";
	char text[2048];
	ssize_t n = read_all(process->status_fd, text, sizeof(text) - 1);
	const char *at;

	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	text[n] = '\0';
	at = strstr(text, key);
	if (!at || !WIFEXITED(status))
		return STATUS_OURS;
	return WEXITSTATUS(status);
}

int process_wait(struct process *process)
{
	int status = 0;
	pid_t pid;

	do
		pid = waitpid(process->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	status = pid < 0 ? STATUS_OURS : exit_status(process, status);
	restore_terminal(process);
	close_fd(&process->pidfd);
	close_fd(&process->init_fd);
	close_fd(&process->start_fd);
	close_fd(&process->status_fd);
	close_fd(&process->report_fd);
	close_fd(&process->error_fd);
	return status;
}
