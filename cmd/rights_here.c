/* SPDX-License-Identifier: Apache-2.0
 *
 * rights_here.c - keepers, namespaces and their names, made by this process: by
 * a daemon that has all rights, or by its builder.
 */
#include "cmd/rights_here.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sock.h"
#include "cmd/docker_lock.h"
#include "firewall/lock.h"
#include "launch/child.h"
#include "launch/link.h"
#include "launch/netns.h"
#include "launch/owned.h"
#include "launch/pin.h"

#define ENV_MAX 32
/* Longer than launch/owned.h waits for who may be slow. */
#define MAKE_S	  10
#define KILLER_NS 3

/* --- keepers ------------------------------------------------------------- */

static bool is_kept(const char *variable)
{
	static const char *const kept[] = { "SALLYPORT_", "ASAN_OPTIONS=",
					    "UBSAN_OPTIONS=", "PATH=" };

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

/* Between fork and exec: a process with our memory and one thread. */
static _Noreturn void become(pid_t parent, int sock, int errors)
{
	char *argv[] = { (char[]){ "sallyport" }, (char[]){ "keeper" }, NULL };
	char *env[ENV_MAX];
	size_t n = 0;
	sigset_t none;
	int null;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
	for (char **e = environ; e && *e && n < ENV_MAX - 1; e++)
		if (is_kept(*e))
			env[n++] = *e;
	env[n] = NULL;
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Out of the way of the four that it gets. */
	sock = fcntl(sock, F_DUPFD_CLOEXEC, 10);
	errors = fcntl(errors, F_DUPFD_CLOEXEC, 10);
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(errors, 2) < 0 || dup2(sock, CHILD_SOCKET) < 0 ||
	    fcntl(CHILD_SOCKET, F_SETFD, 0) < 0 ||
	    syscall(SYS_close_range, CHILD_SOCKET + 1, ~0U, 0) < 0)
		_exit(125);
	execve("/proc/self/exe", argv, env);
	_exit(125);
}

/* To the parent, whose child @pid is. */
static int watch(pid_t pid, pid_t *ret_pid, int *ret_pidfd)
{
	int err, fd;

	if (pid < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0) {
		err = -errno;
		kill(pid, SIGKILL);
		return err;
	}
	*ret_pid = pid;
	*ret_pidfd = fd;
	return 0;
}

int here_keeper(int sock, int errors, pid_t *ret_pid, int *ret_pidfd)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		become(parent, sock, errors);
	return watch(pid, ret_pid, ret_pidfd);
}

/* --- namespaces ---------------------------------------------------------- */

static int path_of(char *path, const char *run, const char *below,
		   const char *name)
{
	int len = snprintf(path, PATH_MAX, "%s/%s/%s", run, below, name);

	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool is_ours(int ns, const char *own)
{
	struct stat its, our;

	return fstat(ns, &its) < 0 || stat(own, &our) < 0 ||
	       (its.st_ino == our.st_ino && its.st_dev == our.st_dev);
}

static bool is_ours_net(int ns)
{
	return is_ours(ns, "/proc/self/ns/net");
}

static int pin(const char *run, const char *below, const char *name, int fd)
{
	char path[PATH_MAX];
	int err = path_of(path, run, below, name);

	return err ? err : pin_make(path, fd);
}

/* What is to be made: .name NULL: nothing is pinned. */
struct making {
	const char *run, *name;
	uid_t uid;
	gid_t gid;
};

static int pin_both(const struct making *m, int ns, int user)
{
	int err = pin(m->run, "netns", m->name, ns);

	/* It was there before: somebody else's. */
	if (err)
		return err;
	if (user >= 0)
		err = pin(m->run, "user", m->name, user);
	if (err)
		here_drop(m->run, m->name);
	return err;
}

/* @ret_fds: what is to be told. */
static int make(const struct making *m, int *ret_fds, size_t *ret_n)
{
	AUTO_FD int user = -1;
	struct netns made;
	int err = owned_create(m->uid, m->gid, &user, &made);

	if (err)
		return err;
	AUTO_FD int ns = steal_fd(&made.fd);
	netns_close(&made);
	if (m->name)
		err = pin_both(m, ns, user);
	if (err)
		return err;
	ret_fds[(*ret_n)++] = steal_fd(&ns);
	if (!m->name && user >= 0)
		ret_fds[(*ret_n)++] = steal_fd(&user);
	return 0;
}

/* Root's, so that nobody can keep it; whom it has to wait for is @m->uid's. */
static _Noreturn void make_it(pid_t parent, const struct making *m, int sock)
{
	int fds[2], err;
	size_t n = 0;

	signal(SIGALRM, SIG_DFL);
	alarm(MAKE_S);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
	    dup2(sock, CHILD_SOCKET) < 0 ||
	    syscall(SYS_close_range, CHILD_SOCKET + 1, ~0U, 0) < 0)
		_exit(1);
	err = make(m, fds, &n);
	err = fdpass_send(CHILD_SOCKET, &err, sizeof(err), fds, n);
	_exit(err ? 1 : 0);
}

static int start_making(const struct making *m, pid_t *ret_pid, int *ret_sock)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		make_it(parent, m, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		int err = -errno;

		close(pair[0]);
		return err;
	}
	*ret_pid = pid;
	*ret_sock = pair[0];
	return 0;
}

int here_namespace(const char *run, const char *name, uid_t uid, gid_t gid,
		   pid_t *ret_pid, int *ret_sock)
{
	const struct making m = {
		.run = run, .name = name, .uid = uid, .gid = gid
	};

	return start_making(&m, ret_pid, ret_sock);
}

int here_spare(uid_t uid, gid_t gid, pid_t *ret_pid, int *ret_sock)
{
	const struct making m = { .uid = uid, .gid = gid };

	return start_making(&m, ret_pid, ret_sock);
}

/* What it is of, as CLONE_NEWNET and others; 0: it is no namespace. Only one is
 * asked: to other files the number of the question may mean something else. */
static int kind_of(int ns)
{
	struct statfs fs;

	return fstatfs(ns, &fs) == 0 && fs.f_type == NSFS_MAGIC
		       ? ioctl(ns, NS_GET_NSTYPE)
		       : 0;
}

int here_pin(const char *run, const char *name, int ns)
{
	const int type = kind_of(ns);
	const bool net = type == CLONE_NEWNET;

	if (!net && type != CLONE_NEWUSER)
		return -EINVAL;
	if (is_ours(ns, net ? "/proc/self/ns/net" : "/proc/self/ns/user"))
		return -EXDEV;
	return pin(run, net ? "netns" : "user", name, ns);
}

static _Noreturn void kill_them(const char *name, int ns)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(ns, KILLER_NS) < 0 ||
	    syscall(SYS_close_range, KILLER_NS + 1, ~0U, 0) < 0)
		_exit(1);
	if (sandbox_kill_all(KILLER_NS) < 0) {
		log_err("%s: somebody inside does not die; there is no way out "
			"any more",
			name);
		_exit(1);
	}
	_exit(0);
}

/* It may take seconds, as long as somebody lets it: not ours. */
int here_kill(const char *run, const char *name, pid_t *ret_pid, int *ret_pidfd)
{
	char path[PATH_MAX];
	int err = path_of(path, run, "netns", name);
	pid_t pid;

	if (err)
		return err;
	AUTO_FD int ns = pin_open(path);
	if (ns < 0)
		return ns;
	pid = fork();
	if (pid == 0)
		kill_them(name, ns);
	return watch(pid, ret_pid, ret_pidfd);
}

int here_drop(const char *run, const char *name)
{
	static const char *const below[] = { "netns", "user" };
	char path[PATH_MAX];
	int first = 0;

	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		int err = path_of(path, run, below[i], name);

		if (!err)
			err = pin_drop(path);
		if (err && !first)
			first = err;
	}
	return first;
}

int here_lock(int ns, const struct ip *gateway, char *reterr, size_t cap)
{
	struct lock_spec spec = {
		.gateway = *gateway,
		.netdev = true,
		.early = true,
	};

	if (is_ours_net(ns)) {
		snprintf(reterr, cap, "it is the host's own namespace");
		return -EXDEV;
	}
	return docker_lock(ns, &spec, NULL, reterr, cap);
}

static int open_route(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (ret_fds[0] < 0)
		return -errno;
	*ret_n = 1;
	return 0;
}

int here_end(int ns)
{
	return is_ours_net(ns) ? -EXDEV : sandbox_kill_all(ns);
}

int here_link(int ns, char (*ret_name)[16])
{
	int fds[8], err;
	size_t n = 0;

	if (is_ours_net(ns))
		return -EXDEV;
	err = netns_enter(ns, open_route, NULL, fds, &n);
	if (err)
		return err;
	err = link_grouped(fds[0], LOCK_GROUP, ret_name);
	close(fds[0]);
	return err;
}
