/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gateway_lock.c - the tables in a container's namespace, and what becomes
 * of them where somebody inside has rights over it.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/gateway_impl.h"
#include "firewall/lock.h"
#include "launch/link.h"

static struct gateway g;

/* A shell in @ns. Its exit status. */
static int sh(const struct netns *ns, const char *script)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (setns(ns->fd, CLONE_NEWNET) == 0)
			execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(126);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int setup(void **state)
{
	(void)state;
	g = (struct gateway){ .place = { .tables = true } };
	/* The host is ours, too. */
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(netns_create(&g.ns, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(netns_create(&g.sandbox, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(link_veth(g.ns.route, "sp0", "eth0", g.sandbox.fd), 0);
	assert_int_equal(link_group(g.sandbox.route, "eth0", LOCK_GROUP), 0);
	assert_int_equal(link_index(g.ns.route, "sp0", &g.ifindex), 0);
	assert_true(ip_parse("10.77.0.1", &g.link.gateway));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nft_close(g.lock);
	netns_close(&g.sandbox);
	netns_close(&g.ns);
	return 0;
}

static void lock(void)
{
	char why[256] = "";
	int err = gateway_lock(&g, why, sizeof(why));

	if (err)
		fail_msg("%d: %s", err, why);
	assert_int_equal(gateway_shut(&g), 0);
}

static int filter_socket(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	*ret_n = 1;
	return ret_fds[0] < 0 ? -errno : 0;
}

static struct nft *open_inside(void)
{
	struct nft *nft;
	int fds[8];
	size_t n = 0;

	assert_int_equal(
		netns_enter(g.sandbox.fd, filter_socket, NULL, fds, &n), 0);
	assert_int_equal(nft_open(fds[0], &nft), 0);
	return nft;
}

/* As before Linux 6.9: with rights over the namespace anybody may. */
static void disown(void)
{
	nft_close(g.lock);
	g.lock = open_inside();
	g.locked.owned = false;
	assert_int_equal(lock_install(g.lock, &g.locked), 0);
	assert_int_equal(gateway_shut(&g), 0);
}

static void test_link_is_known(void **state)
{
	char why[256];
	uint32_t ours;

	(void)state;
	lock();
	assert_int_equal(link_index(g.sandbox.route, "eth0", &ours), 0);
	assert_int_equal(g.locked.link, ours);
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	/* Another one, as a new keeper makes it. */
	assert_int_equal(sh(&g.sandbox, "ip link del eth0"), 0);
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	assert_int_equal(g.locked.link, ours);
	assert_int_equal(link_veth(g.ns.route, "sp0", "eth0", g.sandbox.fd), 0);
	assert_int_equal(link_index(g.ns.route, "sp0", &g.ifindex), 0);
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	assert_int_not_equal(g.locked.link, ours);
}

static void test_put_back(void **state)
{
	static const char *const change[] = {
		"flush ruleset",
		"delete table inet sallyport_lock",
		"delete table netdev sallyport_lock",
		"insert rule inet sallyport_lock out accept",
		"flush chain netdev sallyport_lock early",
		"insert rule netdev sallyport_lock early accept",
	};
	char why[256], script[128];

	(void)state;
	lock();
	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		if (!g.locked.early && strstr(change[i], "early"))
			continue;
		disown();
		assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
		snprintf(script, sizeof(script), "nft '%s'", change[i]);
		assert_int_equal(sh(&g.sandbox, script), 0);
		if (gateway_verify_lock(&g, why, sizeof(why)) != 1)
			fail_msg("unseen: %s", change[i]);
		assert_true(strlen(why) > 10);
		assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	}
}

static bool is_up(const char *name)
{
	struct ifreq ifr = { 0 };
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)stpcpy(ifr.ifr_name, name);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &ifr), 0);
	return ifr.ifr_flags & IFF_UP;
}

/* Its end on the host goes down, whatever it is called inside. */
static void test_other_network(void **state)
{
	AUTO_FD int host =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	char why[256];

	(void)state;
	lock();
	assert_int_equal(g.shut_n, 0);
	assert_int_equal(link_veth(host, "far", "eth1", g.sandbox.fd), 0);
	assert_int_equal(link_up(host, "far"), 0);
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	assert_int_equal(g.shut_n, 1);
	assert_string_equal(g.shut[0], "eth1");
	assert_false(is_up("far"));
	/* Named and marked as if it were something else. */
	assert_int_equal(link_up(host, "far"), 0);
	assert_int_equal(sh(&g.sandbox, "ip link set eth1 name tun0; "
					"ip link set tun0 group 21328"),
			 0);
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	assert_int_equal(g.shut_n, 1);
	assert_string_equal(g.shut[0], "tun0");
	assert_false(is_up("far"));
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	assert_int_equal(sh(&g.sandbox, "ip link del tun0"), 0);
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), 0);
	assert_int_equal(g.shut_n, 0);
}

/* More than are shut: that is not held. */
static void test_too_many(void **state)
{
	char why[256];

	(void)state;
	lock();
	assert_int_equal(sh(&g.sandbox, "for i in 0 1 2 3 4 5 6 7; do ip link "
					"add a$i type veth peer b$i || exit 1; "
					"done"),
			 0);
	assert_int_equal(gateway_verify_lock(&g, why, sizeof(why)), -EPERM);
}

/* A table of that name which is somebody else's for good. */
static void test_taken_before(void **state)
{
	struct nft *theirs = open_inside();
	struct lock_spec spec = { .gateway = g.link.gateway, .owned = true };
	char why[256] = "";

	(void)state;
	assert_int_equal(lock_install(theirs, &spec), 0);
	if (spec.owned) {
		assert_int_equal(gateway_lock(&g, why, sizeof(why)), -EPERM);
		assert_non_null(strstr(why, "no table"));
	}
	nft_close(theirs);
	lock();
}

int main(void)
{
#define LOCK_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		LOCK_TEST(test_link_is_known), LOCK_TEST(test_put_back),
		LOCK_TEST(test_other_network), LOCK_TEST(test_too_many),
		LOCK_TEST(test_taken_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
