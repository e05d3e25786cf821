/* SPDX-License-Identifier: Apache-2.0
 *
 * test_docker_watch.c - namespaces that appear as an engine makes them, and
 * paths at which something else does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/docker_lock.h"
#include "cmd/docker_watch.h"
#include "firewall/lock.h"
#include "firewall/ruleset.h"
#include "launch/link.h"
#include "launch/netns.h"
#include "tests/clock.h"

static char root[64];
static const struct ip gateway = { 4, { 10, 77, 0, 1 } };

/* One watch, and what it said. */
struct world {
	struct event_base *base;
	struct netns ns;
	char path[128];
	int step; /* of what the engine does */
	double mounted, told;
	int calls, err, fd;
	char why[256];
};

static int setup(void **state)
{
	static int count;
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->base = event_base_new();
	assert_non_null(w->base);
	assert_int_equal(netns_create(&w->ns, NULL, NULL, NULL, NULL), 0);
	(void)snprintf(w->path, sizeof(w->path), "%s/%d/docker/netns/abc", root,
		       ++count);
	w->fd = -1;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	close_fd(&w->fd);
	netns_close(&w->ns);
	(void)umount2(w->path, MNT_DETACH);
	event_base_free(w->base);
	free(w);
	return 0;
}

static void told(void *arg, int err, int ns, const char *why)
{
	struct world *w = arg;

	w->told = exact_ms();
	w->calls++;
	w->err = err;
	w->fd = ns;
	(void)snprintf(w->why, sizeof(w->why), "%s", why);
	event_base_loopbreak(w->base);
}

static void mount_ns(const char *path, int fd)
{
	char from[64];

	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	assert_int_equal(mount(from, path, NULL, MS_BIND, NULL), 0);
}

static void make_file(const char *path)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
}

/* The directory of that depth below the root, counted from 1. */
static void make_dir(const struct world *w, int depth)
{
	char dir[128];
	char *at = dir + strlen(root);

	memcpy(dir, w->path, sizeof(dir));
	for (int i = 0; i < depth; i++)
		at = strchr(at + 1, '/');
	*at = '\0';
	assert_int_equal(mkdir(dir, 0700), 0);
}

/* What an engine does when it is new, a step each time. */
static void engine(evutil_socket_t fd, short what, void *arg)
{
	struct world *w = arg;

	(void)fd;
	(void)what;
	assert_int_equal(w->calls, 0);
	if (w->step < 3) {
		w->step++;
		make_dir(w, w->step);
	} else if (w->step++ == 3) {
		make_file(w->path);
	} else {
		w->mounted = exact_ms();
		mount_ns(w->path, w->ns.fd);
	}
}

static struct docker_watch *watch(struct world *w)
{
	struct docker_watch *watch = NULL;

	assert_int_equal(
		docker_watch(w->base, w->path, &gateway, told, w, &watch), 0);
	assert_non_null(watch);
	assert_int_equal(w->calls, 0);
	return watch;
}

static void assert_locked(struct world *w, int ns)
{
	const struct lock_spec spec = { .gateway = gateway };
	struct stat a, b;
	struct nft *nft;
	char why[256];

	assert_int_equal(fstat(ns, &a), 0);
	assert_int_equal(fstat(w->ns.fd, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(
		nft_open(fcntl(w->ns.filter, F_DUPFD_CLOEXEC, 0), &nft), 0);
	assert_int_equal(lock_verify(nft, &spec, why, sizeof(why)), 0);
	nft_close(nft);
}

static int read_sysctl(void *arg, int *ret_fds, size_t *ret_n)
{
	AUTO_FD int fd = open("/proc/sys/net/ipv4/conf/all/route_localnet",
			      O_RDONLY | O_CLOEXEC);

	(void)ret_fds;
	*ret_n = 0;
	return read(fd, arg, 1) == 1 ? 0 : -EIO;
}

/* Nothing of the path is there at first. */
static void test_appears(void **state)
{
	struct world *w = *state;
	const struct timeval pace = { .tv_usec = 30000 };
	char value = '?';

	struct event *steps = event_new(w->base, -1, EV_PERSIST, engine, w);
	assert_int_equal(event_add(steps, &pace), 0);
	(void)watch(w);
	assert_int_equal(event_base_dispatch(w->base), 0);
	event_free(steps);
	if (w->err)
		fail_msg("%d: %s", w->err, w->why);
	assert_int_equal(w->calls, 1);
	assert_int_equal(w->step, 5);
	assert_locked(w, w->fd);
	assert_int_equal(netns_enter(w->fd, read_sysctl, &value, NULL, NULL),
			 0);
	assert_int_equal(value, '1');
	print_message("locked %.1f ms after the mount\n", w->told - w->mounted);
	assert_true(w->told - w->mounted < 100);
}

static void make_all(const struct world *w)
{
	for (int i = 1; i <= 3; i++)
		make_dir(w, i);
	make_file(w->path);
}

/* At Join of newer engines. */
static void test_there_already(void **state)
{
	struct world *w = *state;

	assert_int_equal(docker_netns_open(w->path), -ENOENT);
	make_all(w);
	assert_int_equal(docker_netns_open(w->path), -ENOENT);
	mount_ns(w->path, w->ns.fd);
	(void)watch(w);
	assert_int_equal(event_base_dispatch(w->base), 0);
	assert_int_equal(w->err, 0);
	assert_locked(w, w->fd);
	AUTO_FD int fd = docker_netns_open(w->path);
	assert_true(fd >= 0);
	assert_locked(w, fd);
}

/* What is as it should be is left, with its counters; what is not is mended. */
static void test_lock_again(void **state)
{
	struct world *w = *state;
	struct lock_spec spec = { .gateway = gateway };
	struct lock_counters c;
	struct nft *nft;
	char why[256];

	assert_int_equal(docker_lock(w->ns.fd, &spec, &nft, why, sizeof(why)),
			 0);
	assert_int_equal(lock_counters(nft, &c), 0);
	assert_int_equal(c.left + c.entered + c.names + c.stray, 0);
	assert_int_equal(docker_lock(w->ns.fd, &spec, NULL, why, sizeof(why)),
			 0);
	struct lock_spec other = { .gateway = { 4, { 10, 1, 1, 1 } } };
	assert_int_equal(lock_install(nft, &other), 0);
	assert_int_equal(docker_lock(w->ns.fd, &spec, NULL, why, sizeof(why)),
			 0);
	assert_locked(w, w->ns.fd);
	nft_close(nft);
	assert_true(docker_lock(-1, &spec, NULL, why, sizeof(why)) < 0);
	assert_true(strlen(why) > 10);
}

/* A path with something else than a container's namespace. */
static void test_something_else(void **state)
{
	struct world *w = *state;
	char from[] = "/proc/self/ns/uts";

	make_all(w);
	AUTO_FD int uts = open(from, O_RDONLY | O_CLOEXEC);
	mount_ns(w->path, uts);
	assert_int_equal(docker_netns_open(w->path), -EINVAL);
	(void)watch(w);
	assert_int_equal(event_base_dispatch(w->base), 0);
	assert_int_equal(w->err, -EINVAL);
	assert_int_equal(w->fd, -1);
	assert_true(strlen(w->why) > 10);
}

/* `--network host` has one of those: we would lock ourselves out. */
static void test_the_host(void **state)
{
	struct world *w = *state;

	make_all(w);
	AUTO_FD int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	mount_ns(w->path, own);
	(void)watch(w);
	assert_int_equal(event_base_dispatch(w->base), 0);
	assert_int_equal(w->err, -EXDEV);
	assert_non_null(strstr(w->why, "host"));
}

static void test_bad_paths(void **state)
{
	struct world *w = *state;
	struct docker_watch *none = NULL;
	const struct ip six = { .len = 16 };
	char link[140], endless[PATH_MAX + 8];

	assert_int_equal(docker_netns_open("relative"), -EINVAL);
	assert_int_equal(docker_netns_open(""), -EINVAL);
	assert_int_equal(
		docker_watch(w->base, "relative", &gateway, told, w, &none),
		-EINVAL);
	memset(endless, '/', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	assert_int_equal(
		docker_watch(w->base, endless, &gateway, told, w, &none),
		-EINVAL);
	assert_int_equal(docker_watch(w->base, w->path, &six, told, w, &none),
			 -EINVAL);
	assert_null(none);
	/* A link at its end could lead anywhere. */
	make_all(w);
	mount_ns(w->path, w->ns.fd);
	(void)snprintf(link, sizeof(link), "%s.link", w->path);
	assert_int_equal(symlink(w->path, link), 0);
	assert_int_equal(docker_netns_open(link), -ELOOP);
	/* Neither a FIFO nor a file where a directory should be stop us. */
	(void)snprintf(link, sizeof(link), "%s.fifo", w->path);
	assert_int_equal(mkfifo(link, 0600), 0);
	assert_int_equal(docker_netns_open(link), -ENOENT);
	(void)snprintf(link, sizeof(link), "%s/below", w->path);
	assert_int_equal(docker_netns_open(link), -ENOENT);
}

static void count_fds(unsigned *ret)
{
	*ret = 0;
	for (int fd = 0; fd < 1024; fd++)
		*ret += fcntl(fd, F_GETFD) >= 0;
}

/* Given up, and never come: nothing is left, and the end is told. */
static void test_never(void **state)
{
	struct world *w = *state;
	unsigned before, after;

	count_fds(&before);
	docker_watch_free(watch(w));
	docker_watch_free(NULL);
	count_fds(&after);
	assert_int_equal(before, after);
	double took = 1e9;
	/* What the machine does beside it only ever adds. */
	for (int i = 0; i < 3 && took >= DOCKER_WATCH_S * 1e3 + 2000; i++) {
		double began = exact_ms();

		w->calls = 0;
		(void)watch(w);
		assert_int_equal(event_base_dispatch(w->base), 0);
		took = exact_ms() - began;
		assert_int_equal(w->calls, 1);
		assert_int_equal(w->err, -ETIMEDOUT);
		assert_int_equal(w->fd, -1);
		assert_non_null(strstr(w->why, w->path));
		assert_true(took > DOCKER_WATCH_S * 1e3 - 1);
	}
	assert_true(took < DOCKER_WATCH_S * 1e3 + 2000);
	count_fds(&after);
	assert_int_equal(before, after);
}

int main(void)
{
#define WATCH_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WATCH_TEST(test_appears),    WATCH_TEST(test_there_already),
		WATCH_TEST(test_lock_again), WATCH_TEST(test_something_else),
		WATCH_TEST(test_the_host),   WATCH_TEST(test_bad_paths),
		WATCH_TEST(test_never),
	};

	(void)snprintf(root, sizeof(root), "/tmp/docker-watch.XXXXXX");
	if (!mkdtemp(root) || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", root, "tmpfs", 0, NULL) < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (umount2(root, MNT_DETACH) == 0)
		(void)rmdir(root);
	return failed;
}
