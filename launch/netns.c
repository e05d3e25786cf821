/* SPDX-License-Identifier: Apache-2.0
 *
 * netns.c - a child enters the namespace, and its descriptors come back.
 *
 * A process that left its namespace without being root over the old one could
 * never return, so we do not leave: a forked child unshares, opens what belongs
 * to the new namespace, sends it to us in one message and exits. Sockets keep
 * the namespace they were made in, wherever they are used.
 */
#include "launch/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"

#define NETNS_OWN   3 /* the namespace and the two netlink sockets come first */
#define NETNS_EXTRA 8 /* and at most so many of the caller's */

/* What the child says, beside the descriptors. */
struct netns_word {
	int32_t error;
	uint32_t own;
};

/* One run of a child; @enter is -1 for a new namespace. */
struct netns_job {
	int enter;
	netns_inside *inside;
	void *arg;
};

static int loopback_up(void)
{
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return -errno;
	return 0;
}

/* Fills @fds with the namespace and its two sockets. */
static int open_own(int *fds)
{
	/* A thread's own link: "self" would be the thread group's leader. */
	fds[0] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fds[0] < 0)
		return -errno;
	fds[1] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fds[1] < 0)
		return -errno;
	fds[2] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	return fds[2] < 0 ? -errno : 0;
}

/* The child's whole work; what it opens is closed by its exit. */
static int child_work(const struct netns_job *job, int *fds, size_t *ret_n,
		      uint32_t *ret_own)
{
	size_t extra = 0, own = 0;
	int r;

	if (job->enter >= 0) {
		if (setns(job->enter, CLONE_NEWNET) < 0)
			return -errno;
	} else {
		if (unshare(CLONE_NEWNET) < 0)
			return -errno;
		r = loopback_up();
		if (r < 0)
			return r;
		r = open_own(fds);
		if (r < 0)
			return r;
		own = NETNS_OWN;
	}
	if (job->inside) {
		r = job->inside(job->arg, fds + own, &extra);
		if (r < 0)
			return r;
		if (extra > NETNS_EXTRA)
			return -E2BIG;
	}
	*ret_own = (uint32_t)own;
	*ret_n = own + extra;
	return 0;
}

static _Noreturn void child_run(int sock, const struct netns_job *job)
{
	struct netns_word word = { 0 };
	int fds[NETNS_OWN + NETNS_EXTRA];
	size_t n = 0;

	word.error = child_work(job, fds, &n, &word.own);
	int r = fdpass_send(sock, &word, sizeof(word), fds, word.error ? 0 : n);
	_exit(r < 0 ? 1 : 0);
}

static void reap(pid_t pid)
{
	/* ECHILD is fine: somebody may ignore SIGCHLD. */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

/* Runs @job in a child. @fds has room for FDPASS_MAX. */
static int run(const struct netns_job *job, size_t own, int *fds, size_t *ret_n)
{
	struct netns_word word;
	size_t n = 0;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	AUTO_FD int ours = pair[0];
	AUTO_FD int theirs = pair[1];
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_run(theirs, job);
	close_fd(&theirs);
	ssize_t len = fdpass_recv(ours, &word, sizeof(word), fds, &n, 0);
	reap(pid);
	if (len < 0)
		return (int)len;
	if (len != sizeof(word) || word.error || word.own != own || n < own ||
	    n > own + NETNS_EXTRA) {
		close_all(fds, n);
		/* No message at all: the child was killed. */
		return len == sizeof(word) && word.error < 0 ? word.error
							     : -ECHILD;
	}
	*ret_n = n;
	return 0;
}

/* Hands the caller's descriptors over; those it has no room for are closed. */
static void hand_over(const int *fds, size_t n, int *ret_fds, size_t *ret_n)
{
	if (ret_fds && ret_n) {
		if (n)
			memcpy(ret_fds, fds, n * sizeof(*fds));
		*ret_n = n;
	} else {
		close_all(fds, n);
	}
}

int netns_create(struct netns *ret_ns, netns_inside *inside, void *arg,
		 int *ret_fds, size_t *ret_n)
{
	const struct netns_job job = {
		.enter = -1,
		.inside = inside,
		.arg = arg,
	};
	int fds[FDPASS_MAX];
	size_t n;

	int r = run(&job, NETNS_OWN, fds, &n);
	if (r < 0)
		return r;
	*ret_ns = (struct netns){
		.fd = fds[0],
		.route = fds[1],
		.filter = fds[2],
	};
	hand_over(fds + NETNS_OWN, n - NETNS_OWN, ret_fds, ret_n);
	return 0;
}

int netns_enter(int ns_fd, netns_inside *inside, void *arg, int *ret_fds,
		size_t *ret_n)
{
	const struct netns_job job = {
		.enter = ns_fd,
		.inside = inside,
		.arg = arg,
	};
	int fds[FDPASS_MAX];
	size_t n;

	if (ns_fd < 0)
		return -EBADF;
	int r = run(&job, 0, fds, &n);
	if (r < 0)
		return r;
	hand_over(fds, n, ret_fds, ret_n);
	return 0;
}

void netns_close(struct netns *ns)
{
	close_fd(&ns->filter);
	close_fd(&ns->route);
	close_fd(&ns->fd);
}
