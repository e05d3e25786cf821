/* SPDX-License-Identifier: Apache-2.0
 *
 * test_netns.c - namespaces made by a child: what comes back belongs there, and
 * we have not moved.
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
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/link.h"
#include "launch/netns.h"
#include "tests/clock.h"

static ino_t own_namespace(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	return st.st_ino;
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

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

static void test_create(void **state)
{
	const ino_t before = own_namespace();
	const unsigned fds = open_fds();
	struct netns a, b;
	struct ifreq lo = { .ifr_name = "lo" };
	uint32_t index;

	(void)state;
	assert_int_equal(netns_create(&a, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(netns_create(&b, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(own_namespace(), before);
	assert_int_not_equal(inode(a.fd), before);
	assert_int_not_equal(inode(a.fd), inode(b.fd));
	/* The sockets act there: lo is up, and alone. */
	assert_int_equal(link_index(a.route, "lo", &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(ioctl(a.route, SIOCGIFFLAGS, &lo), 0);
	assert_true(lo.ifr_flags & IFF_UP);
	assert_int_equal(link_veth(a.route, "here", "there", b.fd), 0);
	assert_int_equal(link_index(b.route, "there", &index), 0);
	assert_int_equal(link_index(b.route, "here", &index), -ENODEV);
	/* None of them would pass to a program that is executed. */
	assert_true(fcntl(a.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(a.route, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(a.filter, F_GETFD) & FD_CLOEXEC);
	netns_close(&a);
	netns_close(&b);
	netns_close(&b); /* twice is fine */
	assert_int_equal(open_fds(), fds);
}

struct wish {
	int result;
	size_t fds;
	ino_t seen; /* only in the child: memory is not shared */
};

/* Opens as many sockets as wished, each with its number as priority. */
static int open_some(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct wish *wish = arg;

	for (size_t i = 0; i < wish->fds; i++) {
		int priority = (int)i;

		ret_fds[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (ret_fds[i] < 0 ||
		    setsockopt(ret_fds[i], SOL_SOCKET, SO_PRIORITY, &priority,
			       sizeof(priority)) < 0)
			return -errno;
	}
	*ret_n = wish->fds;
	return wish->result;
}

static void test_inside(void **state)
{
	const unsigned before = open_fds();
	struct wish wish = { .fds = 6 };
	int fds[8];
	size_t n = 0;
	struct netns ns;

	(void)state;
	assert_int_equal(netns_create(&ns, open_some, &wish, fds, &n), 0);
	assert_int_equal(n, 6);
	for (int i = 0; i < 6; i++) {
		int priority = -1;
		socklen_t len = sizeof(priority);
		struct ifreq eth = { .ifr_name = "only-here" };

		assert_int_equal(getsockopt(fds[i], SOL_SOCKET, SO_PRIORITY,
					    &priority, &len),
				 0);
		assert_int_equal(priority, i);
		/* The socket is the namespace's. */
		if (i == 0)
			assert_int_equal(
				link_veth(ns.route, "only-here", "peer", ns.fd),
				0);
		assert_int_equal(ioctl(fds[i], SIOCGIFINDEX, &eth), 0);
		close(fds[i]);
	}
	/* Entering one that exists; fds that nobody wants are closed. */
	wish.fds = 2;
	assert_int_equal(netns_enter(ns.fd, open_some, &wish, fds, &n), 0);
	assert_int_equal(n, 2);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(netns_enter(ns.fd, open_some, &wish, NULL, NULL), 0);
	netns_close(&ns);
	assert_int_equal(open_fds(), before);
}

static int kill_myself(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	(void)ret_n;
	raise(SIGKILL);
	return 0;
}

static void test_errors(void **state)
{
	const unsigned before = open_fds();
	struct wish wish = { .fds = 3, .result = -EDOM };
	struct netns ns = { .fd = 77 };
	int fds[8] = { -2 };
	size_t n = 99;

	(void)state;
	assert_int_equal(netns_create(&ns, open_some, &wish, fds, &n), -EDOM);
	assert_int_equal(netns_create(&ns, kill_myself, NULL, fds, &n),
			 -ECHILD);
	/* Outputs are left alone, nothing is left behind. */
	assert_int_equal(ns.fd, 77);
	assert_int_equal(fds[0], -2);
	assert_int_equal(n, 99);
	assert_int_equal(netns_enter(-1, open_some, &wish, fds, &n), -EBADF);
	AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(netns_enter(null, open_some, &wish, fds, &n), -EINVAL);
	close_fd(&null);
	assert_int_equal(open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static int read_setting(const char *key)
{
	char path[128], text[16] = "";

	(void)snprintf(path, sizeof(path), "/proc/sys/net/%s", key);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return -1;
	return (int)strtol(text, NULL, 10);
}

static int check_gateway(void *arg, int *ret_fds, size_t *ret_n)
{
	static const struct {
		const char *key;
		int value;
	} row[] = {
		{ "ipv4/ip_forward", 0 },
		{ "ipv4/conf/all/forwarding", 0 },
		{ "ipv4/icmp_ratelimit", 0 },
		{ "ipv4/icmp_ratemask", 0 },
		{ "ipv4/conf/default/accept_redirects", 0 },
		{ "ipv4/conf/all/rp_filter", 1 },
		{ "ipv4/conf/all/route_localnet", 0 },
		{ "ipv6/conf/all/disable_ipv6", 0 },
		{ "ipv6/conf/default/accept_ra", 0 },
		{ "ipv6/conf/all/forwarding", 0 },
	};

	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	/* As on a host that routes. */
	if (netns_sysctl("ipv4/ip_forward", "1") < 0)
		return -EIO;
	int r = netns_gateway_sysctls();
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (read_setting(row[i].key) != row[i].value)
			return -(int)(1000 + i);
	if (netns_sysctl("ipv4/no_such_key", "1") != -ENOENT)
		return -2000;
	if (netns_sysctl("ipv4/ip_forward", "maybe") != -EINVAL)
		return -2001;
	return 0;
}

static int check_sandbox(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	int r = netns_sandbox_sysctls();
	if (r < 0)
		return r;
	return read_setting("ipv6/conf/lo/disable_ipv6") == 1 &&
			       read_setting("ipv6/conf/default/disable_ipv6") ==
				       1
		       ? 0
		       : -1000;
}

static void test_sysctls(void **state)
{
	const int forwarding = read_setting("ipv4/ip_forward");
	struct netns ns;

	(void)state;
	assert_int_equal(netns_create(&ns, check_gateway, NULL, NULL, NULL), 0);
	netns_close(&ns);
	assert_int_equal(netns_create(&ns, check_sandbox, NULL, NULL, NULL), 0);
	netns_close(&ns);
	/* Ours are as they were. */
	assert_int_equal(read_setting("ipv4/ip_forward"), forwarding);
}

static int gateway(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_gateway_sysctls();
}

static void test_quick(void **state)
{
	double best = 1e9;

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct netns ns;
		double t0 = exact_ms();

		assert_int_equal(netns_create(&ns, gateway, NULL, NULL, NULL),
				 0);
		double t1 = exact_ms();
		best = t1 - t0 < best ? t1 - t0 : best;
		netns_close(&ns);
	}
	print_message("a gateway namespace takes %.2f ms\n", best);
	assert_true(best < 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create), cmocka_unit_test(test_inside),
		cmocka_unit_test(test_errors), cmocka_unit_test(test_sysctls),
		cmocka_unit_test(test_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
