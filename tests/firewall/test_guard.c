/* SPDX-License-Identifier: Apache-2.0
 *
 * test_guard.c - the guard's tables, beside those of others: loaded, read back,
 * changed by somebody else, and taken away. What they do to packets is tested
 * in tests/system/test_guard.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "firewall/guard.h"
#include "firewall/nft.h"
#include "launch/userns.h"

static struct nft *nft;
static struct guard_spec spec;
static char differs[512];

static int netfilter(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	assert_true(fd >= 0);
	return fd;
}

static void sh(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* Nobody but us is in it. */
static int make_world(void **state)
{
	char why[512];

	(void)state;
	if (geteuid() != 0)
		assert_int_equal(userns_enter(why, sizeof(why)), 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	sh("ip link add a0 type veth peer name b0");
	return 0;
}

static int setup(void **state)
{
	(void)state;
	spec = (struct guard_spec){ .uid = 1234567,
				    .dns_udp_port = 5301,
				    .dns_tcp_port = 5302,
				    .transparent_port = 5303,
				    .nflog_group = 7,
				    .egress = true,
				    .resolver = { ip_v4(0x7f00000b) },
				    .resolvers = 1 };
	assert_int_equal(nft_open(netfilter(), &nft), 0);
	guard_use(nft);
	assert_int_equal(guard_find_devices(&spec), 0);
	sh("nft 'table inet theirs { chain c { counter; }; }'");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sh("nft flush ruleset");
	nft_close(nft);
	return 0;
}

static int verify(char *ret_digest)
{
	*differs = '\0';
	return guard_verify(nft, &spec, ret_digest, differs, sizeof(differs));
}

static void test_devices(void **state)
{
	(void)state;
	assert_int_equal(spec.devices, 2);
	assert_string_equal(spec.device[0], "a0");
	assert_string_equal(spec.device[1], "b0");
}

static void test_as_loaded(void **state)
{
	char digest[65], again[65];

	(void)state;
	assert_int_equal(verify(NULL), -EBADMSG);
	assert_int_equal(guard_install(nft, &spec), 0);
	assert_int_equal(verify(digest), 0);
	assert_int_equal(strlen(digest), 64);
	/* All of it anew, in place of what was there. */
	assert_int_equal(guard_install(nft, &spec), 0);
	assert_int_equal(verify(again), 0);
	assert_string_equal(digest, again);
	/* Without the hook they are other rules. */
	spec.egress = false;
	assert_int_equal(verify(NULL), -EBADMSG);
	assert_int_equal(guard_install(nft, &spec), 0);
	assert_int_equal(verify(again), 0);
	assert_string_not_equal(digest, again);
	assert_int_not_equal(system("nft list table netdev sallyport_guard "
				    ">/dev/null 2>&1"),
			     0);
}

static void test_another_spec(void **state)
{
	(void)state;
	assert_int_equal(guard_install(nft, &spec), 0);
	const struct guard_spec loaded = spec;

	spec.uid++;
	assert_int_equal(verify(NULL), -EBADMSG);
	spec = loaded;
	spec.transparent_port++;
	assert_int_equal(verify(NULL), -EBADMSG);
	assert_non_null(strstr(differs, "redir"));
	spec = loaded;
	spec.resolvers = 0;
	assert_int_equal(verify(NULL), -EBADMSG);
	spec = loaded;
	assert_int_equal(verify(NULL), 0);

	spec.dns_udp_port = 0;
	assert_int_equal(guard_install(nft, &spec), -EINVAL);
	spec = loaded;
	spec.devices = GUARD_DEVICES_MAX + 1;
	assert_int_equal(guard_install(nft, &spec), -EINVAL);
	spec = loaded;
	assert_int_equal(verify(NULL), 0);
}

static void test_changes(void **state)
{
	static const char *const change[] = {
		"nft insert rule inet sallyport_guard out accept",
		"nft add rule inet sallyport_guard refuse accept",
		"nft flush chain inet sallyport_guard forward",
		"nft add chain inet sallyport_guard more",
		"nft add set inet sallyport_guard s '{ type mark; }'",
		"nft add counter inet sallyport_guard more",
		"nft 'chain inet sallyport_guard out { policy accept; }'",
		"nft delete table inet sallyport_guard",
		"nft delete table netdev sallyport_guard",
		"nft flush chain netdev sallyport_guard egress",
		"nft 'chain netdev sallyport_guard egress { policy drop; }'",
		"nft 'table netdev sallyport_guard { flags dormant; }'",
		"nft 'table inet sallyport_guard { flags dormant; }'",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		assert_int_equal(guard_install(nft, &spec), 0);
		assert_int_equal(verify(NULL), 0);
		sh(change[i]);
		if (verify(NULL) != -EBADMSG || !*differs)
			fail_msg("not seen: %s", change[i]);
	}
}

/* What they do is theirs. */
static void test_others(void **state)
{
	(void)state;
	sh("nft list table inet theirs >/tmp/guard-before.$PPID");
	assert_int_equal(guard_install(nft, &spec), 0);
	sh("nft add table ip engine");
	sh("nft 'add chain ip engine o { type nat hook output priority -100; "
	   "}'");
	sh("nft add rule ip engine o udp dport 53 redirect to :99");
	sh("nft 'table netdev x { chain e { type filter hook ingress device a0 "
	   "priority 0; }; }'");
	assert_int_equal(verify(NULL), 0);
	bool any = false;
	assert_int_equal(guard_remove(nft, &any), 0);
	assert_true(any);
	sh("nft list table inet theirs | cmp - /tmp/guard-before.$PPID");
	sh("rm /tmp/guard-before.$PPID");
	sh("nft list table ip engine | grep -q redirect");
	sh("test $(nft list tables | wc -l) = 3");
	assert_int_equal(guard_remove(nft, &any), 0);
	assert_false(any);
}

/* What names have opened stays, when an interface comes or goes. */
static void test_another_interface(void **state)
{
	const struct ruleset_flow lease = {
		{ .ip = ip_v4(0xc6120001), .bits = 32 }, { 443, 443 }
	};
	char digest[65], again[65];

	(void)state;
	assert_int_equal(guard_install(nft, &spec), 0);
	assert_int_equal(ruleset_flow_add(nft, GUARD_FLOWS_OF, &lease, 1), 0);
	assert_int_equal(verify(digest), 0);
	sh("ip link add c0 type veth peer name d0");
	assert_int_equal(guard_find_devices(&spec), 0);
	assert_int_equal(spec.devices, 4);
	assert_int_equal(verify(NULL), -EBADMSG);
	assert_int_equal(guard_install_devices(nft, &spec), 0);
	assert_int_equal(verify(again), 0);
	assert_string_equal(digest, again);
	sh("nft list set inet sallyport_guard points | grep -q 198.18.0.1");
	sh("ip link del c0");
	assert_int_equal(guard_find_devices(&spec), 0);
	assert_int_equal(guard_install_devices(nft, &spec), 0);
	assert_int_equal(verify(again), 0);
	assert_string_equal(digest, again);
	/* One that is not there: newer kernels wait for it to come. */
	memcpy(spec.device[0], "zz", 3);
	int r = guard_install_devices(nft, &spec);
	memcpy(spec.device[0], "a0", 3);
	assert_int_equal(verify(NULL), r == 0 ? -EBADMSG : 0);
}

static void test_counters(void **state)
{
	struct ruleset_counters count;
	bool any;

	(void)state;
	assert_int_equal(guard_counters(nft, &count), -ENOENT);
	assert_int_equal(guard_install(nft, &spec), 0);
	assert_int_equal(guard_counters(nft, &count), 0);
	assert_int_equal(count.refused, 0);
	sh("ip link set a0 up && ip link set b0 up");
	sh("ip addr add 10.9.9.1/24 dev a0");
	sh("ping -q -c 1 -W 1 10.9.9.2 >/dev/null 2>&1; test $? != 0");
	assert_int_equal(guard_counters(nft, &count), 0);
	assert_int_equal(count.refused, 1);
	assert_int_equal(guard_remove(nft, &any), 0);
}

static void test_forget_connections(void **state)
{
	AUTO_FD int fd = netfilter();

	(void)state;
	assert_int_equal(guard_forget_connections(fd), 0);
	assert_int_equal(guard_forget_connections(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_devices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_as_loaded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_another_spec, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_interface, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_counters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget_connections, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, make_world, NULL);
}
