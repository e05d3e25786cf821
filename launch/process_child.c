/* SPDX-License-Identifier: Apache-2.0
 *
 * process_child.c - the child's half of process.c, up to its execve.
 *
 * What needs rights comes first, in the order in which they are lost: the plan
 * of the view with the caller's eyes, the network namespace, the idmapped
 * working directory, the identity. Bubblewrap's arguments are written last, as
 * the uid that will have to follow them.
 */
#include "launch/process_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/isolate.h"
#include "launch/limits.h"
#include "launch/userns.h"
#include "launch/view.h"

static _Noreturn void fail(const struct pipes *pipes, struct report *report,
			   int status)
{
	report->status = status;
	if (write(pipes->fd[REPORT][1], report, sizeof(*report)) < 0)
		_exit(STATUS_OURS);
	_exit(STATUS_OURS);
}

static int explain(struct report *report, const char *what)
{
	int r = -errno;

	snprintf(report->text, sizeof(report->text), "cannot %s: %s", what,
		 strerror(-r));
	return r;
}

/* Leaves real root for good: a user namespace maps one id, the sandbox's. */
static int become_user(const struct process_spec *spec, struct view *view,
		       struct report *report)
{
	AUTO_FD int userns = steal_fd(&view->userns);

	if (userns < 0)
		userns = userns_make(0, spec->uid, 0, spec->gid);
	if (userns < 0) {
		errno = -userns;
		return explain(report, "make a user namespace (sysctl "
				       "user.max_user_namespaces)");
	}
	if (setgroups(0, NULL) < 0)
		return explain(report, "drop groups");
	if (setns(userns, CLONE_NEWUSER) < 0)
		return explain(report, "enter the user namespace");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return explain(report, "change to the sandbox's uid");
	return 0;
}

/* No signal has a handler or is ignored. Those that end a command stay blocked:
 * one that comes while pid 1 of the sandbox is still bubblewrap's code, which
 * as pid 1 would not even notice it, waits for init. Init has its own mask and
 * starts the command with none. An own session unless it shares our terminal.
 */
static int prepare_session(const struct process_spec *spec,
			   struct report *report)
{
	static const int later[] = { SIGTERM, SIGINT,  SIGHUP,
				     SIGQUIT, SIGUSR1, SIGUSR2 };
	sigset_t blocked;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(later); i++)
		sigaddset(&blocked, later[i]);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	if (!spec->interactive && setsid() < 0)
		return explain(report, "make a session");
	return 0;
}

/* Also after the last change of identity, which clears it. A parent that was
 * gone before has closed its end of the pipe; getppid() is 0 for us, always. */
static int die_with_parent(const struct pipes *pipes, struct report *report)
{
	struct pollfd p = { .fd = pipes->fd[START][0] };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return explain(report, "follow our parent");
	if (poll(&p, 1, 0) != 0)
		_exit(STATUS_OURS);
	return 0;
}

/* The /proc of our pid namespace: bubblewrap and userns.c look there for the
 * processes that they start. */
static int mount_proc(struct report *report)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0)
		return explain(report, "mount /proc");
	return 0;
}

/* What execve leaves open: the fds in @keep. */
static int keep_only(const int *keep, size_t n, struct report *report)
{
	if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return explain(report, "close files (Linux 5.11 is needed)");
	for (size_t i = 0; i < n; i++)
		if (fcntl(keep[i], F_SETFD, 0) < 0)
			return explain(report, "keep a file open");
	return 0;
}

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

struct numbers {
	char args[12], seccomp[12], status[12], start[12], error[12];
};

/* bwrap --args N ... init [--tty] [--nest] [--write PATH]... START ERROR --
 * CMD. NULL without memory. */
static char **bwrap_argv(const struct process_spec *spec,
			 const struct view *view, const struct numbers *number)
{
	const char *head[] = { "bwrap",		"--args",
			       number->args,	"--seccomp",
			       number->seccomp, "--json-status-fd",
			       number->status,	"--",
			       VIEW_INIT };
	size_t n = 0, cmd = count(spec->argv);
	char **argv = calloc(ARRAY_SIZE(head) + cmd + 9 +
				     2 * (VIEW_TREES + VIEW_BINDS),
			     sizeof(*argv));

	if (!argv)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		argv[n++] = (char *)head[i];
	if (spec->interactive)
		argv[n++] = (char *)"--tty";
	if (spec->nest)
		argv[n++] = (char *)"--nest";
	for (size_t i = 0; i < view->trees; i++) {
		argv[n++] = (char *)"--write";
		argv[n++] = view->tree[i];
	}
	for (size_t i = 0; i < view->binds; i++) {
		if (!view->bind[i].rw)
			continue;
		argv[n++] = (char *)"--write";
		argv[n++] = view->bind[i].path;
	}
	argv[n++] = (char *)number->start;
	argv[n++] = (char *)number->error;
	argv[n++] = (char *)"--";
	memcpy(argv + n, spec->argv, cmd * sizeof(*argv));
	return argv;
}

static int run_bwrap(const struct process_spec *spec, struct view *view,
		     const struct pipes *pipes, const char *bwrap,
		     struct report *report)
{
	int keep[VIEW_FDS + 4], filter = isolate_sandbox_filter(spec->nest);
	struct numbers number;
	char **argv;
	size_t n = 0;
	int r;

	if (filter < 0) {
		errno = -filter;
		return explain(report, "make the system call filter");
	}
	r = view_write(view, report->text, sizeof(report->text));
	if (r < 0)
		return r;
	for (; n < view->fds; n++)
		keep[n] = view->fd[n];
	keep[n++] = filter;
	keep[n++] = pipes->fd[STATUS][1];
	keep[n++] = pipes->fd[START][0];
	keep[n++] = pipes->fd[ERROR][1];
	snprintf(number.args, sizeof(number.args), "%d", r);
	snprintf(number.seccomp, sizeof(number.seccomp), "%d", filter);
	snprintf(number.status, sizeof(number.status), "%d",
		 pipes->fd[STATUS][1]);
	snprintf(number.start, sizeof(number.start), "%d", pipes->fd[START][0]);
	snprintf(number.error, sizeof(number.error), "%d", pipes->fd[ERROR][1]);
	argv = bwrap_argv(spec, view, &number);
	if (!argv)
		return -ENOMEM;
	r = keep_only(keep, n, report);
	if (r < 0)
		return r;

	memset(report, 0, sizeof(*report));
	snprintf(report->text, sizeof(report->text), "%s", view->note);
	if (write(pipes->fd[REPORT][1], report, sizeof(*report)) < 0)
		return -errno;
	execve(bwrap, argv, spec->env);
	return explain(report, "execute bubblewrap");
}

_Noreturn void process_child(const struct process_spec *spec,
			     const struct pipes *pipes, const char *bwrap)
{
	struct report report = { 0 };
	struct view view = { .userns = -1 };
	int r;

	close(pipes->fd[START][1]);
	r = die_with_parent(pipes, &report);
	/* Before there is a second process. */
	if (r == 0 && limits_groups_join(spec->groups) < 0)
		r = explain(&report, "join the control group of the limits");
	if (r == 0)
		r = prepare_session(spec, &report);
	if (r == 0)
		r = mount_proc(&report);
	if (r == 0)
		r = view_plan(&view, spec, report.text, sizeof(report.text));
	if (r == 0 && setns(spec->netns, CLONE_NEWNET) < 0)
		r = explain(&report, "enter the sandbox's network namespace");
	if (r == 0)
		r = view_place(&view, report.text, sizeof(report.text));
	if (r == 0 && spec->as_root)
		r = become_user(spec, &view, &report);
	if (r == 0)
		r = die_with_parent(pipes, &report);
	if (r == 0)
		r = run_bwrap(spec, &view, pipes, bwrap, &report);
	fail(pipes, &report, r);
}
