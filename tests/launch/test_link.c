/* SPDX-License-Identifier: Apache-2.0
 *
 * test_link.c - what is asked of rtnetlink is what `ip` shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/link.h"
#include "launch/netns.h"

struct pair {
	struct netns here, there;
};

static int quiet(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_sysctl("ipv6/conf/default/addr_gen_mode", "1");
}

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	assert_int_equal(netns_create(&p->here, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(netns_create(&p->there, quiet, NULL, NULL, NULL), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	netns_close(&p->here);
	netns_close(&p->there);
	free(p);
	return 0;
}

/* Runs `ip` with the words of @arguments in @ns; its output in @ret. */
static void ip(const struct netns *ns, const char *arguments, char *ret,
	       size_t cap)
{
	char words[256], *argv[24] = { "ip" }, *save = NULL;
	AUTO_FD int out = memfd_create("output", MFD_CLOEXEC);
	int n = 1, status;

	(void)snprintf(words, sizeof(words), "%s", arguments);
	for (char *w = strtok_r(words, " ", &save); w && n < 23;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setns(ns->fd, CLONE_NEWNET) == 0 && dup2(out, 1) == 1)
			execvp("ip", argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("ip %s: %x", arguments, (unsigned)status);
	ssize_t len = pread(out, ret, cap - 1, 0);
	assert_true(len >= 0);
	ret[len] = '\0';
}

static void assert_shows(const struct netns *ns, const char *arguments,
			 const char *wanted)
{
	char text[4096];

	ip(ns, arguments, text, sizeof(text));
	if (!strstr(text, wanted))
		fail_msg("no \"%s\" in ip %s:\n%s", wanted, arguments, text);
}

/* Host bits are fine here: an address on a link. */
static struct cidr on_link(const char *address, uint8_t bits)
{
	struct cidr c = { .bits = bits };

	assert_true(ip_parse(address, &c.ip));
	return c;
}

static void test_veth(void **state)
{
	const struct cidr a = on_link("198.19.0.1", 30);
	const struct cidr b = on_link("198.19.0.2", 30);
	struct pair *p = *state;
	char text[4096];
	uint32_t index;

	assert_int_equal(link_veth(p->here.route, "spA", "eth0", p->there.fd),
			 0);
	assert_int_equal(link_veth(p->here.route, "spA", "eth1", p->there.fd),
			 -EEXIST);
	assert_int_equal(link_address(p->here.route, "spA", &a), 0);
	assert_int_equal(link_address(p->here.route, "spA", &a), -EEXIST);
	assert_int_equal(link_address(p->there.route, "eth0", &b), 0);
	assert_int_equal(link_up(p->here.route, "spA"), 0);
	/* Alone it has no carrier. */
	assert_int_equal(link_wait(p->here.route, "spA"), -ETIMEDOUT);
	assert_int_equal(link_up(p->there.route, "eth0"), 0);
	assert_int_equal(link_wait(p->here.route, "spA"), 0);
	assert_shows(&p->here, "-o link show spA", "state UP");
	assert_int_equal(link_wait(p->here.route, "spB"), -ENODEV);
	assert_int_equal(link_default_route(p->there.route, &a.ip), 0);
	assert_shows(&p->here, "-d link show spA", "addrgenmode none");
	assert_shows(&p->here, "-d link show spA", "veth");
	assert_shows(&p->here, "addr show spA", "inet 198.19.0.1/30");
	assert_shows(&p->here, "link show up spA", "spA");
	assert_shows(&p->there, "route", "default via 198.19.0.1 dev eth0");
	/* No address of its own making, on either side. */
	ip(&p->here, "-6 addr show dev spA", text, sizeof(text));
	assert_string_equal(text, "");
	ip(&p->there, "-6 addr show dev eth0", text, sizeof(text));
	assert_string_equal(text, "");

	assert_int_equal(link_index(p->here.route, "spA", &index), 0);
	(void)snprintf(text, sizeof(text), "%u: spA@", index);
	assert_shows(&p->here, "link show spA", text);
	/* Both ends go together. */
	assert_int_equal(link_delete(p->here.route, "spA"), 0);
	assert_int_equal(link_index(p->there.route, "eth0", &index), -ENODEV);
	assert_int_equal(link_delete(p->here.route, "spA"), -ENODEV);
}

/* Each end knows the other for good, and asks nobody. */
static void test_neighbour(void **state)
{
	const struct cidr a = on_link("198.19.0.1", 30);
	const struct cidr b = on_link("198.19.0.2", 30);
	const struct ip none = { 0 };
	struct pair *p = *state;
	int here = p->here.route, there = p->there.route;
	char text[4096], mac[18] = "";
	const char *at;

	assert_int_equal(link_neighbour(here, "spA", there, "eth0", &b.ip),
			 -ENODEV);
	assert_int_equal(link_veth(here, "spA", "eth0", p->there.fd), 0);
	assert_int_equal(link_address(here, "spA", &a), 0);
	assert_int_equal(link_address(there, "eth0", &b), 0);
	assert_int_equal(link_up(here, "spA"), 0);
	assert_int_equal(link_up(there, "eth0"), 0);
	assert_int_equal(link_neighbour(here, "spA", there, "eth9", &b.ip),
			 -ENODEV);
	assert_int_equal(link_neighbour(here, "spA", there, "eth0", &none),
			 -EINVAL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			link_neighbour(here, "spA", there, "eth0", &b.ip), 0);
	assert_int_equal(link_neighbour(there, "eth0", here, "spA", &a.ip), 0);
	ip(&p->there, "-o link show eth0", text, sizeof(text));
	at = strstr(text, "link/ether ");
	assert_non_null(at);
	memcpy(mac, at + strlen("link/ether "), sizeof(mac) - 1);
	(void)snprintf(text, sizeof(text), "198.19.0.2 dev spA lladdr %s", mac);
	assert_shows(&p->here, "neigh show nud permanent", text);
	assert_shows(&p->there, "neigh show nud permanent",
		     "198.19.0.1 dev eth0 lladdr ");
	/* Who is without carrier for a while is not forgotten. */
	assert_int_equal(link_down(there, "eth0"), 0);
	assert_int_equal(link_up(there, "eth0"), 0);
	assert_int_equal(link_wait(here, "spA"), 0);
	assert_shows(&p->here, "neigh show nud permanent", text);
}

static void test_errors(void **state)
{
	static const char *const bad[] = { "", "0123456789abcdef" };
	const struct cidr none = { .bits = 0 }, odd = on_link("10.0.0.1", 33);
	struct pair *p = *state;
	uint32_t index;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(
			link_veth(p->here.route, bad[i], "eth0", p->there.fd),
			-EINVAL);
		assert_int_equal(
			link_veth(p->here.route, "spA", bad[i], p->there.fd),
			-EINVAL);
		assert_int_equal(link_up(p->here.route, bad[i]), -EINVAL);
		assert_int_equal(link_delete(p->here.route, bad[i]), -EINVAL);
		assert_int_equal(link_index(p->here.route, bad[i], &index),
				 -EINVAL);
	}
	assert_int_equal(link_veth(p->here.route, "spA", "eth0", -1), -EINVAL);
	assert_int_equal(link_index(p->here.route, "nobody", &index), -ENODEV);
	assert_int_equal(link_up(p->here.route, "nobody"), -ENODEV);
	assert_int_equal(link_address(p->here.route, "lo", &none), -EINVAL);
	assert_int_equal(link_address(p->here.route, "lo", &odd), -EINVAL);
	assert_int_equal(link_default_route(p->here.route, &none.ip), -EINVAL);
	/* A name on the other side that is taken: nothing is left here. */
	assert_int_equal(link_veth(p->here.route, "spA", "lo", p->there.fd),
			 -EEXIST);
	assert_int_equal(link_index(p->here.route, "spA", &index), -ENODEV);
}

static void test_local_delivery(void **state)
{
	struct pair *p = *state;
	char text[1024];

	/* Twice is once. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(link_local_delivery(p->here.route, 1, 100), 0);
	assert_shows(&p->here, "rule", "fwmark 0x1 lookup 100");
	assert_shows(&p->here, "route show table 100", "local default dev lo");
	ip(&p->here, "rule", text, sizeof(text));
	assert_null(strstr(strstr(text, "fwmark") + 1, "fwmark"));
}

static bool listed(const struct cidr *list, size_t n, const char *wanted)
{
	char text[CIDR_TEXT_MAX];

	for (size_t i = 0; i < n; i++)
		if (strcmp(cidr_format(&list[i], text), wanted) == 0)
			return true;
	return false;
}

static void test_prefixes(void **state)
{
	static const char *const commands[] = {
		"link set p1 up",
		"addr add 192.0.2.7/24 dev p1",
		"addr add 2001:db8:1::7/64 dev p1 nodad",
		"addr add 10.9.9.1 peer 10.8.8.1 dev p1",
		"addr add 127.0.0.77/8 dev lo",
		"route add 203.0.113.0/25 dev p1",
		"route add 198.51.100.0/24 via 192.0.2.1",
		"route add default via 192.0.2.1",
		"route add default dev p1 metric 9",
		"route add 172.30.0.0/16 dev p1 table 77",
		"route add blackhole 172.31.0.0/16",
		"route add 2001:db8:2::/48 dev p1",
		/* A VPN's half Internet. */
		"link add tun9 type veth peer name tun8",
		"link set tun9 up arp off",
		"route add 128.0.0.0/1 dev tun9",
	};
	static const char *const wanted[] = {
		"192.0.2.7/32",	   "192.0.2.0/24",  "2001:db8:1::7/128",
		"2001:db8:1::/64", "10.9.9.1/32",   "10.8.8.1/32",
		"203.0.113.0/25",  "172.30.0.0/16", "2001:db8:2::/48",
	};
	static const char *const unwanted[] = {
		"127.0.0.0/8",	   "127.0.0.1/32", "127.0.0.77/32",
		"::1/128",	   "0.0.0.0/0",	   "::/0",
		"198.51.100.0/24", "128.0.0.0/1",  "172.31.0.0/16",
	};
	struct pair *p = *state;
	struct cidr list[64];
	size_t n = 0;
	char text[1024];

	assert_int_equal(link_prefixes(p->here.route, list, 64, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(link_veth(p->here.route, "p1", "p2", p->there.fd), 0);
	assert_int_equal(link_up(p->there.route, "p2"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		ip(&p->here, commands[i], text, sizeof(text));
	assert_int_equal(link_prefixes(p->here.route, list, 64, &n), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!listed(list, n, wanted[i]))
			fail_msg("%s is missing", wanted[i]);
	for (size_t i = 0; i < ARRAY_SIZE(unwanted); i++)
		if (listed(list, n, unwanted[i]))
			fail_msg("%s is listed", unwanted[i]);
	/* Too many is said, and the socket is good afterwards. */
	size_t few = 0;
	assert_int_equal(link_prefixes(p->here.route, list, 3, &few), -ENOSPC);
	assert_int_equal(few, 3);
	assert_int_equal(link_prefixes(p->here.route, list, n, &few), 0);
	assert_int_equal(few, n);
}

static int watch_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] = link_watch();
	*ret_n = 1;
	return ret_fds[0] < 0 ? ret_fds[0] : 0;
}

static bool told(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char buf[4096];

	bool any = poll(&poll_fd, 1, 1000) == 1;
	while (recv(fd, buf, sizeof(buf), 0) > 0)
		continue;
	return any && errno == EAGAIN;
}

static void test_watch(void **state)
{
	const struct cidr a = on_link("198.19.0.1", 30);
	struct pair *p = *state;
	char text[64];
	int fds[8];
	size_t n;

	assert_int_equal(netns_enter(p->here.fd, watch_inside, NULL, fds, &n),
			 0);
	AUTO_FD int watch = fds[0];
	assert_true(fcntl(watch, F_GETFL) & O_NONBLOCK);
	assert_int_equal(link_veth(p->here.route, "p1", "p2", p->there.fd), 0);
	assert_int_equal(link_address(p->here.route, "p1", &a), 0);
	assert_true(told(watch));
	assert_int_equal(link_up(p->there.route, "p2"), 0);
	assert_int_equal(link_up(p->here.route, "p1"), 0);
	(void)told(watch);
	ip(&p->here, "route add 203.0.113.0/24 dev p1", text, sizeof(text));
	assert_true(told(watch));
	ip(&p->here, "-6 addr add 2001:db8::1/64 dev p1 nodad", text,
	   sizeof(text));
	assert_true(told(watch));
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Known by its other end, not by its name. */
static void test_peer(void **state)
{
	struct pair *p = *state;
	uint32_t ours, decoy, found = 0;
	struct netns third;

	assert_int_equal(netns_create(&third, NULL, NULL, NULL, NULL), 0);
	/* The same indices, the other way round, in another namespace. */
	assert_int_equal(link_veth(p->here.route, "sp0", "a", p->there.fd), 0);
	assert_int_equal(link_veth(third.route, "sp0", "b", p->there.fd), 0);
	assert_int_equal(link_index(p->here.route, "sp0", &ours), 0);
	assert_int_equal(link_index(third.route, "sp0", &decoy), 0);
	assert_int_equal(ours, decoy);
	assert_int_equal(link_peer(p->there.route, p->here.fd, ours, &found),
			 0);
	assert_int_equal(link_index(p->there.route, "a", &decoy), 0);
	assert_int_equal(found, decoy);
	assert_int_equal(link_peer(p->there.route, third.fd, ours, &found), 0);
	assert_int_equal(link_index(p->there.route, "b", &decoy), 0);
	assert_int_equal(found, decoy);
	assert_int_equal(
		link_peer(p->there.route, p->here.fd, ours + 7, &found),
		-ENODEV);
	assert_int_equal(link_peer(third.route, p->here.fd, ours, &found),
			 -ENODEV);
	netns_close(&third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(test_veth),	  PAIR_TEST(test_neighbour),
		PAIR_TEST(test_errors),	  PAIR_TEST(test_local_delivery),
		PAIR_TEST(test_prefixes), PAIR_TEST(test_watch),
		PAIR_TEST(test_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
