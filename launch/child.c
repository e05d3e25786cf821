/* SPDX-License-Identifier: Apache-2.0
 *
 * child.c - one clone(2), then the shortest way to execve(2).
 *
 * The namespaces are made by clone itself, so there is no moment at which the
 * child exists outside of them. It stays in our network namespace: the gate
 * dials from there.
 */
#include "launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/userns.h"

#define ENV_MAX 32

/* Leaks of a process that is killed on purpose are of no interest, and the
 * check needs ptrace, which we forbid. */
static const char asan_default[] = "ASAN_OPTIONS=detect_leaks=0";

/* What a connection needs is allocated and freed as often as there are some:
 * its buffers too are to come from the thread's own cache (glibc, mallopt(3)).
 */
static char malloc_tunables[] = "GLIBC_TUNABLES=glibc.malloc.tcache_max=4096:"
				"glibc.malloc.tcache_count=64";

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void collect_env(char **env, char *asan, size_t asan_cap)
{
	size_t n = 0;

	snprintf(asan, asan_cap, "%s", asan_default);
	for (char **e = environ; e && *e; e++) {
		if (has_prefix(*e, "ASAN_OPTIONS="))
			snprintf(asan, asan_cap, "%s:detect_leaks=0", *e);
		else if (n < ENV_MAX - 3 && (has_prefix(*e, "UBSAN_OPTIONS=") ||
					     has_prefix(*e, "SALLYPORT_")))
			env[n++] = *e;
	}
	env[n++] = asan;
	env[n++] = malloc_tunables;
	env[n] = NULL;
}

/* 0 and 1 become /dev/null, @sock CHILD_SOCKET, and all but 2 is closed. */
static int arrange_fds(int sock)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		return -1;
	if (sock == CHILD_SOCKET) {
		if (fcntl(sock, F_SETFD, 0) < 0)
			return -1;
	} else if (dup2(sock, CHILD_SOCKET) < 0) {
		return -1;
	}
	return (int)syscall(SYS_close_range, CHILD_SOCKET + 1, ~0U, 0);
}

static void default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

struct start {
	const char *role;
	bool nested;
	uid_t uid;
	gid_t gid;
	int sock;
	char **env;
};

static _Noreturn void become(const struct start *start)
{
	char *argv[] = { (char[]){ "sallyport" }, (char *)start->role, NULL };

	/* If the parent died before this line, the end of its socket tells. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(125);
	default_signals();
	if (start->nested && userns_map(0, 0, start->uid, 0, start->gid) < 0)
		_exit(125);
	if (arrange_fds(start->sock) < 0)
		_exit(125);
	execve("/proc/self/exe", argv, start->env);
	_exit(125);
}

static int spawn(const char *role, unsigned long flags, bool nested,
		 struct child *ret_child)
{
	char asan[512], *env[ENV_MAX];
	struct start start = { .role = role,
			       .nested = nested,
			       .uid = geteuid(),
			       .gid = getegid(),
			       .env = env };
	int pair[2], pidfd = -1, r = 0;
	long pid;

	collect_env(env, asan, sizeof(asan));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	start.sock = pair[1];
	pid = syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, NULL, &pidfd,
		      NULL, NULL);
	if (pid == 0)
		become(&start);
	if (pid < 0)
		r = -errno;
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	*ret_child = (struct child){ .pid = (pid_t)pid,
				     .pidfd = pidfd,
				     .sock = pair[0] };
	return 0;
}

int child_spawn(const char *role, bool nested, struct child *ret_child)
{
	unsigned long flags =
		CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

	if (nested)
		flags |= CLONE_NEWUSER;
	return spawn(role, flags, nested, ret_child);
}

int child_spawn_bare(const char *role, struct child *ret_child)
{
	return spawn(role, 0, false, ret_child);
}

void child_close(struct child *child)
{
	if (!child)
		return;
	close_fd(&child->sock);
	close_fd(&child->pidfd);
}
