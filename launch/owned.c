/* SPDX-License-Identifier: Apache-2.0
 *
 * owned.c - a namespace that is somebody's, made by a child of ours.
 *
 * A user namespace belongs to the effective uid of who makes it. So the child
 * takes that on, and nothing else of the user: with his real uid he could stop
 * it. From unshare(2) on he may all the same, as he owns what it is in; so the
 * child has its own memory, which nobody may look at (not dumpable: that is why
 * the maps are written by us), and we wait for it in bounded time, and not at
 * all for one that he stops.
 *
 *	child	effective ids; unshare(CLONE_NEWUSER); says so
 *	we	write the maps; say so
 *	child	unshare(CLONE_NEWNET), settings, sockets; sends them
 */
#include "launch/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "launch/userns.h"

#define WAIT_MS 5000
/* So often we look whether the child was stopped. */
#define LOOK_MS 20

enum { FD_USER, FD_NET, FD_ROUTE, FD_FILTER, FD_COUNT };

/* --- the child ----------------------------------------------------------- */

static int become(uid_t uid, gid_t gid)
{
	/* Else a system that keeps user namespaces from its users would keep
	 * them from us. Where we may not, it does. */
	(void)prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
	if (setgroups(0, NULL) < 0 || setegid(gid) < 0 || seteuid(uid) < 0)
		return -errno;
	/* As fs.suid_dumpable may say otherwise. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    unshare(CLONE_NEWUSER) < 0)
		return -errno;
	return 0;
}

static int loopback_up(void)
{
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return -errno;
	return 0;
}

static int make_net(int *fd)
{
	int err;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	err = loopback_up();
	if (!err)
		err = netns_sandbox_sysctls();
	if (err)
		return err;
	fd[FD_USER] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	fd[FD_NET] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	fd[FD_ROUTE] =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	fd[FD_FILTER] =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	for (size_t i = 0; i < FD_COUNT; i++)
		if (fd[i] < 0)
			return -errno;
	return 0;
}

static _Noreturn void child(pid_t parent, int sock, uid_t uid, gid_t gid)
{
	int fd[FD_COUNT] = { -1, -1, -1, -1 }, answer = 0;
	int err = become(uid, gid);

	/* Whoever stops it must not keep it longer than us. Now: what it has
	 * become so far took that away each time. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	if (send(sock, &err, sizeof(err), MSG_NOSIGNAL) != sizeof(err) || err)
		_exit(1);
	if (recv(sock, &answer, sizeof(answer), 0) != sizeof(answer) || answer)
		_exit(1);
	err = make_net(fd);
	(void)fdpass_send(sock, &err, sizeof(err), fd, err ? 0 : FD_COUNT);
	_exit(0);
}

/* --- we ------------------------------------------------------------------ */

static bool is_stopped(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) ==
		       0 &&
	       info.si_pid == pid;
}

/* Others are served by who waits here: whoever stops the child has had his
 * turn. */
static int await_child(int sock, pid_t pid)
{
	struct pollfd ready = { .fd = sock, .events = POLLIN };

	for (int ms = 0; ms < WAIT_MS; ms += LOOK_MS) {
		if (poll(&ready, 1, LOOK_MS) > 0)
			return 0;
		if (is_stopped(pid))
			return -EINTR;
	}
	return -ETIMEDOUT;
}

/* What the child says; its descriptors, if it has any to give. 0 or -errno. */
static int hear(int sock, pid_t pid, int *fds, size_t *ret_n)
{
	int said = 0, err = await_child(sock, pid);
	ssize_t n;

	*ret_n = 0;
	if (err)
		return err;
	n = fdpass_recv(sock, &said, sizeof(said), fds, ret_n, MSG_DONTWAIT);
	if (n != sizeof(said))
		return n < 0 ? (int)n : -ECHILD;
	return said;
}

static int lead(int sock, pid_t pid, uid_t uid, gid_t gid, int *ret_fds)
{
	int fds[FDPASS_MAX], err;
	size_t n;

	err = hear(sock, pid, fds, &n);
	if (!err && !n)
		err = userns_map(pid, 0, uid, 0, gid);
	if (send(sock, &err, sizeof(err), MSG_NOSIGNAL) < 0 && !err)
		err = -errno;
	if (err)
		return err;
	err = hear(sock, pid, fds, &n);
	if (!err && n == FD_COUNT) {
		memcpy(ret_fds, fds, FD_COUNT * sizeof(*fds));
		return 0;
	}
	while (n)
		close(fds[--n]);
	return err ? err : -EBADMSG;
}

static int settings(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_sandbox_sysctls();
}

int owned_create(uid_t uid, gid_t gid, int *ret_user, struct netns *ret)
{
	int pair[2], fds[FD_COUNT], err;
	pid_t parent = getpid(), pid;

	*ret_user = -1;
	if (!uid)
		return netns_create(ret, settings, NULL, NULL, NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		child(parent, pair[1], uid, gid);
	}
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (!err) {
		err = lead(pair[0], pid, uid, gid, fds);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(pair[0]);
	if (err)
		return err;
	*ret_user = fds[FD_USER];
	*ret = (struct netns){ .fd = fds[FD_NET],
			       .route = fds[FD_ROUTE],
			       .filter = fds[FD_FILTER] };
	return 0;
}
