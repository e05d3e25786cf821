/* SPDX-License-Identifier: Apache-2.0
 *
 * test_link_view.c - what `ip` and sysctl(8) change is seen, and what the
 * kernel does by itself is not.
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/link.h"
#include "launch/link_view.h"
#include "launch/netns.h"

struct pair {
	struct netns here, there;
	int watch; /* here */
	struct link_view *view;
};

static int here_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	int r = netns_gateway_sysctls();

	(void)arg;
	ret_fds[0] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	*ret_n = 1;
	return r;
}

static int there_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_sandbox_sysctls();
}

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	const struct cidr ip = { .ip = ip_v4(0xc6130001), .bits = 30 };
	size_t n = 0;

	assert_non_null(p);
	assert_int_equal(
		netns_create(&p->here, here_inside, NULL, &p->watch, &n), 0);
	assert_int_equal(
		netns_create(&p->there, there_inside, NULL, NULL, NULL), 0);
	assert_int_equal(link_veth(p->here.route, "sp0", "eth0", p->there.fd),
			 0);
	assert_int_equal(link_address(p->here.route, "sp0", &ip), 0);
	assert_int_equal(link_up(p->here.route, "sp0"), 0);
	assert_int_equal(link_view_listen(p->watch), 0);
	assert_int_equal(link_view_read(p->here.route, &p->view), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	link_view_free(p->view);
	close(p->watch);
	netns_close(&p->here);
	netns_close(&p->there);
	free(p);
	return 0;
}

/* Runs @command, by the shell, in @ns. */
static void run(const struct netns *ns, const char *command)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setns(ns->fd, CLONE_NEWNET) == 0)
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int compare(const struct pair *p, char *text, size_t cap)
{
	struct link_view *now = NULL;
	int r;

	text[0] = '\0';
	assert_int_equal(link_view_read(p->here.route, &now), 0);
	r = link_view_compare(p->view, now, text, cap);
	link_view_free(now);
	return r;
}

static int news(const struct pair *p, char *text, size_t cap)
{
	text[0] = '\0';
	return link_view_changed(p->watch, p->view, text, cap);
}

/* Until the kernel has told what it finds out by itself of the carrier, when it
 * likes: once it knows that a link which was up is not, nothing is left. */
static void settle(const struct pair *p)
{
	static const char *const until[] = {
		"while ip -o link show sp0 | grep -q 'state UP'; do "
		"sleep .01; done",
		"until ip -o link show sp0 | grep -q 'state UP'; do "
		"sleep .01; done",
	};
	char text[1024];

	for (int i = 0; i < 3; i++) {
		run(&p->there,
		    i % 2 ? "ip link set eth0 up" : "ip link set eth0 down");
		run(&p->here, until[i % 2]);
	}
	/* It tells with a lock that this has to have, too. */
	run(&p->here, "ip link set sp0 mtu 1500");
	(void)news(p, text, sizeof(text));
}

static int settled(void **state)
{
	int r = setup(state);

	settle(*state);
	return r;
}

/* Each is seen, told, and nothing is left of it when it was taken back. */
static void test_changes(void **state)
{
	static const struct {
		const char *make, *back, *text;
	} row[] = {
		{ "ip link add x0 type veth peer name x1", "ip link del x0",
		  "there is now: interface " },
		{ "ip addr add 10.1.2.3/24 dev sp0",
		  "ip addr del 10.1.2.3/24 dev sp0",
		  "there is now: address 10.1.2.3/24" },
		{ "ip addr add 2001:db8::1/64 dev sp0",
		  "ip addr del 2001:db8::1/64 dev sp0",
		  "there is now: address 2001:db8::1/64" },
		{ "ip addr add 198.19.0.9/32 dev lo",
		  "ip addr del 198.19.0.9/32 dev lo",
		  "there is now: address 198.19.0.9/32" },
		{ "ip route add 10.0.0.0/8 via 198.19.0.2",
		  "ip route del 10.0.0.0/8",
		  "there is now: ipv4 route to 10.0.0.0/8 via 198.19.0.2" },
		{ "ip route add default dev sp0 table 77 proto kernel",
		  "ip route flush table 77", "table 77" },
		{ "ip -6 route add 2001:db8:1::/64 dev sp0",
		  "ip -6 route del 2001:db8:1::/64 dev sp0",
		  "ipv6 route to 2001:db8:1::/64" },
		{ "ip rule add fwmark 5 table 77", "ip rule del fwmark 5",
		  "mark 5" },
		{ "ip -6 rule add fwmark 6 table 77", "ip -6 rule del fwmark 6",
		  "mark 6" },
		{ "ip link set lo down", "ip link set lo up",
		  "interface 1 lo, -, down" },
		{ "sysctl -qw net.ipv4.ip_forward=1",
		  "sysctl -qw net.ipv4.ip_forward=0",
		  "there is now: ipv4 forwarding (of all)" },
		{ "sysctl -qw net.ipv4.conf.sp0.forwarding=1",
		  "sysctl -qw net.ipv4.conf.sp0.forwarding=0",
		  "there is now: ipv4 forwarding (of interface " },
		{ "sysctl -qw net.ipv6.conf.all.forwarding=1",
		  "sysctl -qw net.ipv6.conf.all.forwarding=0",
		  "ipv6 forwarding (of all)" },
	};
	const struct pair *p = *state;
	char text[1024];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(news(p, text, sizeof(text)), 0);
		run(&p->here, row[i].make);
		assert_int_equal(news(p, text, sizeof(text)), -EBADMSG);
		if (strncmp(text, "there was for a moment", 22) != 0)
			fail_msg("%s: %s", row[i].make, text);
		assert_int_equal(compare(p, text, sizeof(text)), -EBADMSG);
		if (!strstr(text, row[i].text))
			fail_msg("%s: %s", row[i].make, text);
		run(&p->here, row[i].back);
		news(p, text, sizeof(text));
		if (compare(p, text, sizeof(text)))
			fail_msg("%s: %s", row[i].back, text);
		/* Both before anybody looks. */
		run(&p->here, row[i].make);
		run(&p->here, row[i].back);
		assert_int_equal(news(p, text, sizeof(text)), -EBADMSG);
	}
}

/* The other end comes and goes; neighbours; a group joined. */
static void test_noise(void **state)
{
	const struct pair *p = *state;
	char text[1024];

	for (int i = 0; i < 20; i++) {
		run(&p->there,
		    i % 2 ? "ip link set eth0 down" : "ip link set eth0 up");
		usleep(5000);
		if (compare(p, text, sizeof(text)))
			fail_msg("%s", text);
	}
	settle(p);
	run(&p->here, "ip neigh add 198.19.0.2 lladdr 02:00:00:00:00:01 dev "
		      "sp0; ip link set sp0 mtu 1400");
	if (compare(p, text, sizeof(text)))
		fail_msg("%s", text);
	if (news(p, text, sizeof(text)) != 1)
		fail_msg("%s", text);
	/* A look is no news. */
	run(&p->here, "(ip link; ip addr; ip route; ip rule; ip -6 route) >"
		      "/dev/null");
	assert_int_equal(news(p, text, sizeof(text)), 0);
}

static void test_gone(void **state)
{
	const struct pair *p = *state;
	char text[1024], tiny[8];

	assert_int_equal(link_view_interfaces(p->view), 2);
	run(&p->there, "ip link del eth0");
	assert_int_equal(news(p, text, sizeof(text)), -EBADMSG);
	assert_int_equal(compare(p, text, sizeof(text)), -EBADMSG);
	assert_non_null(strstr(text, "there is no longer: address 198.19.0.1"));
	assert_non_null(strstr(text, "there is no longer: interface 2 sp0"));
	assert_int_equal(compare(p, tiny, sizeof(tiny)), -EBADMSG);
	assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
}

/* More than anybody would look at: still a difference. */
static void test_many(void **state)
{
	const struct pair *p = *state;
	char text[1024];

	run(&p->here, "for i in $(seq 400); do echo addr add "
		      "10.$((i / 250)).$((i % 250)).1/32 dev sp0; done | "
		      "ip -b -");
	assert_int_equal(news(p, text, sizeof(text)), -EBADMSG);
	assert_int_equal(compare(p, text, sizeof(text)), -EBADMSG);
}

static void test_errors(void **state)
{
	struct link_view *view;
	int pair[2];

	(void)state;
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(link_view_listen(pair[0]), -ENOTSOCK);
	assert_int_equal(link_view_changed(pair[0], NULL, NULL, 0), -ENOTSOCK);
	assert_int_equal(link_view_read(pair[0], &view), -ENOTSOCK);
	close(pair[0]);
	close(pair[1]);
	link_view_free(NULL);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, settled, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_changes),
		TEST(test_noise),
		TEST(test_gone),
		TEST(test_many),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
