/* SPDX-License-Identifier: Apache-2.0
 *
 * netns.c - a child enters the namespace, and its descriptors stay.
 *
 * A process that left its namespace without being root over the old one could
 * never return, so we do not leave: a child that shares our descriptors
 * unshares, opens what belongs to the new namespace and exits. Sockets keep the
 * namespace they were made in, wherever they are used.
 */
#include "launch/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/helper.h"

#define NETNS_OWN   3 /* the namespace and the two netlink sockets come first */
#define NETNS_EXTRA 8 /* and at most so many of the caller's */

/* One run of a child; @enter is -1 for a new namespace. */
struct netns_job {
	int enter;
	netns_inside *inside;
	void *arg;
	/* What the child leaves behind, also when it failed. */
	int fd[NETNS_OWN + NETNS_EXTRA];
	size_t own, extra;
	int error;
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

static int child_work(struct netns_job *job)
{
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
		job->own = NETNS_OWN;
		r = open_own(job->fd);
		if (r < 0)
			return r;
	}
	if (!job->inside)
		return 0;
	r = job->inside(job->arg, job->fd + job->own, &job->extra);
	return r < 0 ? r : 0;
}

static int child_run(void *arg)
{
	struct netns_job *job = arg;

	job->error = child_work(job);
	return 0;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int run(struct netns_job *job)
{
	int r;

	memset(job->fd, -1, sizeof(job->fd));
	/* A child that was killed says nothing. */
	job->error = -ECHILD;
	r = helper_run(child_run, job);
	if (r == 0)
		r = job->error;
	if (r < 0)
		close_all(job->fd, job->own + job->extra);
	return r;
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
	struct netns_job job = {
		.enter = -1,
		.inside = inside,
		.arg = arg,
	};
	int r = run(&job);

	if (r < 0)
		return r;
	*ret_ns = (struct netns){
		.fd = job.fd[0],
		.route = job.fd[1],
		.filter = job.fd[2],
	};
	hand_over(job.fd + job.own, job.extra, ret_fds, ret_n);
	return 0;
}

int netns_enter(int ns_fd, netns_inside *inside, void *arg, int *ret_fds,
		size_t *ret_n)
{
	struct netns_job job = {
		.enter = ns_fd,
		.inside = inside,
		.arg = arg,
	};
	int r;

	if (ns_fd < 0)
		return -EBADF;
	r = run(&job);
	if (r < 0)
		return r;
	hand_over(job.fd, job.extra, ret_fds, ret_n);
	return 0;
}

void netns_close(struct netns *ns)
{
	close_fd(&ns->filter);
	close_fd(&ns->route);
	close_fd(&ns->fd);
}
