/* SPDX-License-Identifier: Apache-2.0
 *
 * test_owned.c - a sandbox's namespace is its owner's, who may enter it from
 * outside, and nobody else's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "launch/link.h"
#include "launch/owned.h"

#define UID 61001
#define GID 61002
/* So long somebody may need to get hold of a child that lives for a moment. */
#define TRIES_MS 20000

static unsigned open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* As a client of the daemon would: an ordinary user. 0 or an errno. */
static int enter_as(uid_t uid, int user, int net)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct ifreq lo = { .ifr_name = "lo" };
		int fd;

		if (setgroups(0, NULL) < 0 || setresgid(GID, GID, GID) < 0 ||
		    setresuid(uid, uid, uid) < 0)
			_exit(255);
		if (setns(user, CLONE_NEWUSER) < 0 ||
		    setns(net, CLONE_NEWNET) < 0)
			_exit(errno);
		/* He is root there, and lo is up; ids are his own outside. */
		fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1);
		if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &lo) < 0)
			_exit(errno);
		_exit(lo.ifr_flags & IFF_UP && getuid() == 0 && getgid() == 0
			      ? 0
			      : 254);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_owned(void **state)
{
	const unsigned before = open_fds();
	uid_t owner = 0;
	uint32_t index;
	struct netns ns;
	int user;

	(void)state;
	assert_int_equal(owned_create(UID, GID, &user, &ns), 0);
	assert_int_equal(ioctl(user, NS_GET_OWNER_UID, &owner), 0);
	assert_int_equal(owner, UID);
	AUTO_FD int above = ioctl(ns.fd, NS_GET_USERNS);
	assert_true(above >= 0);
	assert_true(inode(above) == inode(user));
	assert_int_equal(enter_as(UID, user, ns.fd), 0);
	assert_int_equal(enter_as(UID + 1, user, ns.fd), EPERM);
	/* What we put there acts there. */
	assert_int_equal(link_index(ns.route, "lo", &index), 0);
	assert_int_equal(link_veth(ns.route, "one", "two", ns.fd), 0);
	assert_true(fcntl(user, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(ns.fd, F_GETFD) & FD_CLOEXEC);
	/* We have not moved, and still are who we were. */
	assert_int_equal(geteuid(), 0);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
	close_fd(&above);
	close_fd(&user);
	netns_close(&ns);
	assert_int_equal(open_fds(), before);
	/* No child is left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_roots(void **state)
{
	struct netns ns;
	int user = 7;

	(void)state;
	assert_int_equal(owned_create(0, 0, &user, &ns), 0);
	assert_int_equal(user, -1);
	AUTO_FD int above = ioctl(ns.fd, NS_GET_USERNS);
	AUTO_FD int own = open("/proc/self/ns/user", O_RDONLY);
	assert_true(inode(above) == inode(own));
	netns_close(&ns);
}

/* Where the kernel gives no more, nothing is left behind. */
static void test_refused(void **state)
{
	const unsigned before = open_fds();
	struct netns ns;
	int user;

	(void)state;
	/* No such id: the maps refuse it. */
	assert_int_not_equal(owned_create((uid_t)-1, GID, &user, &ns), 0);
	assert_int_equal(user, -1);
	assert_int_equal(open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* --- an owner who is in the way ------------------------------------------- */

/* As the user: stops every child of @parent that it may stop. */
static _Noreturn void stop_children(pid_t parent)
{
	char path[64];

	if (setgroups(0, NULL) < 0 || setresgid(GID, GID, GID) < 0 ||
	    setresuid(UID, UID, UID) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent,
		 (int)parent);
	for (;;) {
		FILE *file = fopen(path, "re");
		int pid;

		while (file && fscanf(file, "%d", &pid) == 1)
			if (pid != getpid())
				kill(pid, SIGSTOP);
		if (file)
			fclose(file);
	}
}

/* How long the longest wait for one was, in ms. */
static int64_t wait_for_stopped(void)
{
	const pid_t parent = getpid(), owner = fork();
	const int64_t end = now_ms() + TRIES_MS;
	unsigned stopped = 0, other = 0;
	int64_t longest = 0;

	if (owner == 0)
		stop_children(parent);
	assert_true(owner > 0);
	while (stopped < 3 && now_ms() < end) {
		const int64_t start = now_ms();
		struct netns ns;
		int user = -1, err = owned_create(UID, GID, &user, &ns);

		if (now_ms() - start > longest)
			longest = now_ms() - start;
		stopped += err == -EINTR;
		other += err && err != -EINTR;
		if (err)
			continue;
		close_fd(&user);
		netns_close(&ns);
	}
	kill(owner, SIGKILL);
	assert_int_equal(waitpid(owner, NULL, 0), owner);
	assert_true(stopped > 0);
	assert_int_equal(other, 0);
	return longest;
}

/* From its user namespace on he may stop who makes it: others are served by who
 * waits for that. */
static void test_stopped(void **state)
{
	const unsigned before = open_fds();
	int64_t longest = INT64_MAX;

	(void)state;
	/* What the machine does beside it only ever adds. */
	for (int i = 0; i < 3 && longest >= 2000; i++)
		longest = wait_for_stopped();
	assert_true(longest < 2000);
	assert_int_equal(open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owned),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
