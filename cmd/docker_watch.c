/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_watch.c - three ways to hear that a namespace is there, since each
 * alone may miss it.
 *
 * The engine makes a file and then mounts the namespace on it. The first is
 * told by inotify, on the deepest directory of the path that there is: with an
 * exec-root that is new, those below come one after another. The second is
 * told by /proc/self/mountinfo, if the mount reaches our mount namespace, as it
 * must. And a timer looks whatever was told.
 *
 * mountinfo is always readable; a change is an error condition (EPOLLERR),
 * which libevent reports to whoever waits until it can write.
 */
#include "cmd/docker_watch.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/rights.h"

#define POLL_MS 10
#define CHANGES \
	(IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

struct docker_watch {
	char path[PATH_MAX];
	struct ip gateway;
	docker_watch_fn *fn;
	void *arg;
	int64_t ends_ms;
	int inotify, mounts;
	int descriptor; /* of the directory we watch, -1: none */
	struct event *on_inotify, *on_mounts, *on_time;
};

/* The host's own is at a path of the engine, too: locked, it would be cut off.
 */
static int is_own(int fd, bool *ret_own)
{
	struct stat own, other;

	if (stat("/proc/self/ns/net", &own) < 0 || fstat(fd, &other) < 0)
		return -errno;
	*ret_own = own.st_dev == other.st_dev && own.st_ino == other.st_ino;
	return 0;
}

int docker_netns_open(const char *path)
{
	struct statfs fs;
	bool own = true;

	if (path[0] != '/')
		return -EINVAL;
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
					    O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	/* The file is there before the namespace is mounted on it. */
	if (fs.f_type != NSFS_MAGIC)
		return -ENOENT;
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return -EINVAL;
	int r = is_own(fd, &own);
	if (r < 0)
		return r;
	return own ? -EXDEV : steal_fd(&fd);
}

void docker_watch_free(struct docker_watch *watch)
{
	if (!watch)
		return;
	struct event *const events[] = { watch->on_inotify, watch->on_mounts,
					 watch->on_time };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i])
			event_free(events[i]);
	close_fd(&watch->inotify);
	close_fd(&watch->mounts);
	free(watch);
}

static void finish(struct docker_watch *watch, int err, int ns, const char *why)
{
	docker_watch_fn *fn = watch->fn;
	void *arg = watch->arg;

	docker_watch_free(watch);
	fn(arg, err, ns, why);
}

/* Listens to the deepest directory there is. What came before we listened is
 * found by looking afterwards. */
static void follow(struct docker_watch *watch)
{
	char dir[PATH_MAX];
	int descriptor = -1;

	(void)stpcpy(dir, watch->path);
	while (descriptor < 0) {
		char *slash = strrchr(dir, '/');

		if (!slash)
			break;
		slash[slash == dir ? 1 : 0] = '\0';
		descriptor = inotify_add_watch(watch->inotify, dir, CHANGES);
		if (slash == dir)
			break;
	}
	if (watch->descriptor >= 0 && watch->descriptor != descriptor)
		(void)inotify_rm_watch(watch->inotify, watch->descriptor);
	watch->descriptor = descriptor;
}

/* @watch may be gone afterwards. */
static void look(struct docker_watch *watch)
{
	char why[PATH_MAX + 64] = "";

	int ns = docker_netns_open(watch->path);
	if (ns >= 0) {
		int r = rights_lock(ns, &watch->gateway, why, sizeof(why));
		if (r < 0)
			close_fd(&ns);
		finish(watch, r, ns, why);
		return;
	}
	if (ns != -ENOENT) {
		(void)snprintf(why, sizeof(why), "%s: %s", watch->path,
			       ns == -EXDEV ? "it is the host's own namespace"
					    : strerror(-ns));
		finish(watch, ns, -1, why);
	} else if (now_ms() >= watch->ends_ms) {
		(void)snprintf(why, sizeof(why),
			       "%s: no namespace in %d seconds", watch->path,
			       DOCKER_WATCH_S);
		finish(watch, -ETIMEDOUT, -1, why);
	}
}

static void on_inotify(evutil_socket_t fd, short what, void *arg)
{
	char buf[4096] __attribute__((aligned(8)));

	(void)what;
	/* That something happened is all we need to know. */
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	follow(arg);
	look(arg);
}

static void on_change(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	look(arg);
}

static int listen_all(struct event_base *base, struct docker_watch *watch)
{
	const struct timeval poll = { .tv_usec = POLL_MS * 1000 };

	watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	watch->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (watch->inotify < 0 || watch->mounts < 0)
		return -errno;
	watch->on_inotify = event_new(base, watch->inotify,
				      EV_READ | EV_PERSIST, on_inotify, watch);
	watch->on_mounts = event_new(base, watch->mounts, EV_WRITE | EV_PERSIST,
				     on_change, watch);
	watch->on_time = event_new(base, -1, EV_PERSIST, on_change, watch);
	if (!watch->on_inotify || !watch->on_mounts || !watch->on_time ||
	    event_add(watch->on_inotify, NULL) < 0 ||
	    event_add(watch->on_mounts, NULL) < 0 ||
	    event_add(watch->on_time, &poll) < 0)
		return -ENOMEM;
	return 0;
}

int docker_watch(struct event_base *base, const char *path,
		 const struct ip *gateway, docker_watch_fn *fn, void *arg,
		 struct docker_watch **ret_watch)
{
	if (path[0] != '/' || strlen(path) >= PATH_MAX || gateway->len != 4)
		return -EINVAL;
	struct docker_watch *watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	*watch = (struct docker_watch){
		.gateway = *gateway,
		.fn = fn,
		.arg = arg,
		.ends_ms = now_ms() + (int64_t)DOCKER_WATCH_S * 1000,
		.inotify = -1,
		.mounts = -1,
		.descriptor = -1,
	};
	(void)stpcpy(watch->path, path);
	int r = listen_all(base, watch);
	if (r < 0) {
		docker_watch_free(watch);
		return r;
	}
	follow(watch);
	/* It may have come before we listened. */
	event_active(watch->on_time, EV_TIMEOUT, 1);
	*ret_watch = watch;
	return 0;
}
