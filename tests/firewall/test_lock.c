/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lock.c - a container's namespace as an engine leaves it: our link, moved
 * and renamed, another network, and a resolver at 127.0.0.11. Each test shows
 * first that a packet would arrive, and then that it does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "firewall/lock.h"
#include "lab.h"
#include "launch/link.h"

#define GATEWAY	 "10.77.0.1"
#define BOX	 "10.77.0.2"
#define OTHER	 "172.30.0.1"
#define BOX_TOO	 "172.30.0.2"
#define RESOLVER "127.0.0.11"
#define WAIT_MS	 1000
#define QUIET_MS 60

struct world {
	struct netns box, gateway, other;
	struct nft *nft;
	struct lock_spec spec;
	int gateway_udp, gateway_tcp;	/* port 53 */
	int resolver_udp, resolver_tcp; /* in the box */
	int other_udp, box_udp;		/* port 9 of all addresses */
	uint16_t port;			/* the resolver's */
};

/* A socket made in a namespace, bound. */
struct made {
	int domain, type;
	const char *address; /* NULL: not bound */
	uint16_t port;
};

static socklen_t address_of(const char *text, uint16_t port,
			    union sockaddr_any *ret)
{
	struct ip ip;

	assert_true(ip_parse(text, &ip));
	return ip_to_sockaddr(&ip, port, ret);
}

static int make_socket(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct made *wanted = arg;
	union sockaddr_any sa;

	int fd = socket(wanted->domain,
			wanted->type | SOCK_CLOEXEC | SOCK_NONBLOCK,
			wanted->domain == AF_PACKET ? htons(ETH_P_ALL) : 0);
	if (fd < 0)
		return -errno;
	ret_fds[0] = fd;
	*ret_n = 1;
	if (!wanted->address)
		return 0;
	socklen_t len = address_of(wanted->address, wanted->port, &sa);
	if (bind(fd, &sa.sa, len) < 0)
		return -errno;
	return wanted->type == SOCK_STREAM && listen(fd, 8) < 0 ? -errno : 0;
}

static int socket_in(const struct netns *ns, int domain, int type,
		     const char *address, uint16_t port)
{
	struct made wanted = { domain, type, address, port };
	int fds[8];
	size_t n = 0;

	assert_int_equal(netns_enter(ns->fd, make_socket, &wanted, fds, &n), 0);
	assert_int_equal(n, 1);
	return fds[0];
}

static int box_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	/* As an engine has it; and nothing is sent unasked. */
	int r = netns_sandbox_sysctls();
	return r < 0 ? r : netns_sysctl("ipv4/conf/all/route_localnet", "1");
}

static int exec_sh(void *arg)
{
	char *argv[] = { "sh", "-ec", arg, NULL };

	execv("/bin/sh", argv);
	return 253;
}

static void sh(const struct netns *ns, const char *script)
{
	if (lab_in(ns->fd, exec_sh, (void *)script) != 0)
		fail_msg("failed: %s", script);
}

static void add_address(const struct netns *ns, const char *ifname,
			const char *text)
{
	struct cidr c = { .bits = 24 };

	assert_true(ip_parse(text, &c.ip));
	assert_int_equal(link_address(ns->route, ifname, &c), 0);
	assert_int_equal(link_up(ns->route, ifname), 0);
}

static void make_links(struct world *w)
{
	struct ip gateway;

	/* Ours is known before an engine moves and renames it. */
	assert_int_equal(
		link_veth(w->gateway.route, "gw0", "sb0", w->gateway.fd), 0);
	assert_int_equal(link_group(w->gateway.route, "sb0", LOCK_GROUP), 0);
	assert_int_equal(link_veth(w->other.route, "br0", "eth0", w->box.fd),
			 0);
	int pin = fcntl(w->box.fd, F_DUPFD, 100);
	char script[256];
	assert_true(pin >= 0);
	(void)snprintf(script, sizeof(script),
		       "ip link set sb0 netns /proc/self/fd/%d", pin);
	sh(&w->gateway, script);
	close(pin);
	sh(&w->box, "ip link set sb0 name eth1");
	add_address(&w->gateway, "gw0", GATEWAY);
	add_address(&w->box, "eth1", BOX);
	add_address(&w->other, "br0", OTHER);
	add_address(&w->box, "eth0", BOX_TOO);
	assert_int_equal(link_wait(w->gateway.route, "gw0"), 0);
	assert_int_equal(link_wait(w->other.route, "br0"), 0);
	assert_true(ip_parse(GATEWAY, &gateway));
	assert_int_equal(link_default_route(w->box.route, &gateway), 0);
}

static uint16_t port_of(int fd)
{
	union sockaddr_any sa;
	socklen_t len = sizeof(sa);

	assert_int_equal(getsockname(fd, &sa.sa, &len), 0);
	return port_from_sockaddr(&sa);
}

/* What the engine puts there for its own resolver. */
static void engine_rules(struct world *w)
{
	char script[512];

	(void)snprintf(script, sizeof(script),
		       "nft 'table ip nat { chain OUTPUT { "
		       "type nat hook output priority -100; "
		       "ip daddr 127.0.0.11 udp dport 53 dnat to "
		       "127.0.0.11:%u; "
		       "ip daddr 127.0.0.11 tcp dport 53 dnat to "
		       "127.0.0.11:%u; }; }'",
		       w->port, w->port);
	sh(&w->box, script);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	*state = w;
	assert_int_equal(netns_create(&w->box, box_inside, NULL, NULL, NULL),
			 0);
	assert_int_equal(netns_create(&w->gateway, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(netns_create(&w->other, NULL, NULL, NULL, NULL), 0);
	make_links(w);
	w->gateway_udp =
		socket_in(&w->gateway, AF_INET, SOCK_DGRAM, GATEWAY, 53);
	w->gateway_tcp =
		socket_in(&w->gateway, AF_INET, SOCK_STREAM, GATEWAY, 53);
	w->resolver_udp = socket_in(&w->box, AF_INET, SOCK_DGRAM, RESOLVER, 0);
	w->port = port_of(w->resolver_udp);
	w->resolver_tcp =
		socket_in(&w->box, AF_INET, SOCK_STREAM, RESOLVER, w->port);
	w->other_udp = socket_in(&w->other, AF_INET6, SOCK_DGRAM, "::", 9);
	w->box_udp = socket_in(&w->box, AF_INET6, SOCK_DGRAM, "::", 9);
	engine_rules(w);
	assert_int_equal(nft_open(w->box.filter, &w->nft), 0);
	w->box.filter = -1;
	assert_true(ip_parse(GATEWAY, &w->spec.gateway));
	w->spec.netdev = w->spec.early = true;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	const int fds[] = { w->gateway_udp,  w->gateway_tcp, w->resolver_udp,
			    w->resolver_tcp, w->other_udp,   w->box_udp };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	nft_close(w->nft);
	netns_close(&w->box);
	netns_close(&w->gateway);
	netns_close(&w->other);
	free(w);
	return 0;
}

static void lock(struct world *w)
{
	char why[256] = "";

	assert_int_equal(lock_install(w->nft, &w->spec), 0);
	int r = lock_verify(w->nft, &w->spec, why, sizeof(why));
	if (r)
		fail_msg("%d: %s", r, why);
}

static struct lock_counters counters(struct world *w)
{
	struct lock_counters c;

	assert_int_equal(lock_counters(w->nft, &c), 0);
	return c;
}

/* Is there something to be read, or accepted, in that time? */
static bool comes(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* 0 or the errno of sendto(). */
static int send_to(int fd, const char *address, uint16_t port)
{
	union sockaddr_any sa;
	socklen_t len = address_of(address, port, &sa);

	return sendto(fd, "q", 1, 0, &sa.sa, len) == 1 ? 0 : errno;
}

/* Takes one datagram, and answers it. */
static void answer(int fd)
{
	union sockaddr_any from;
	socklen_t len = sizeof(from);
	char buf[16];

	assert_int_equal(recvfrom(fd, buf, sizeof(buf), 0, &from.sa, &len), 1);
	assert_int_equal(sendto(fd, "a", 1, 0, &from.sa, len), 1);
}

static void ask_udp(struct world *w, uint16_t port, bool connected)
{
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	union sockaddr_any sa, from;
	socklen_t len = address_of(RESOLVER, port, &sa), from_len;
	char buf[16];

	if (connected)
		assert_int_equal(connect(fd, &sa.sa, len), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_to(fd, RESOLVER, port), 0);
		assert_true(comes(w->gateway_udp, WAIT_MS));
		answer(w->gateway_udp);
		assert_true(comes(fd, WAIT_MS));
		from_len = sizeof(from);
		assert_int_equal(
			recvfrom(fd, buf, sizeof(buf), 0, &from.sa, &from_len),
			1);
		/* The answer is from whom was asked. */
		assert_memory_equal(&from.in4.sin_addr, &sa.in4.sin_addr, 4);
		assert_int_equal(from.in4.sin_port, sa.in4.sin_port);
	}
}

static void ask_tcp(struct world *w, uint16_t port)
{
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_STREAM, NULL, 0);
	union sockaddr_any sa;
	socklen_t len = address_of(RESOLVER, port, &sa);
	char buf[16];

	assert_int_equal(connect(fd, &sa.sa, len), -1);
	assert_int_equal(errno, EINPROGRESS);
	assert_true(comes(w->gateway_tcp, WAIT_MS));
	AUTO_FD int peer = accept(w->gateway_tcp, NULL, NULL);
	assert_true(peer >= 0);
	assert_int_equal(write(peer, "a", 1), 1);
	assert_true(comes(fd, WAIT_MS));
	assert_int_equal(read(fd, buf, sizeof(buf)), 1);
}

/* Whatever port of the engine's resolver is asked: the gateway answers. */
static void test_names(void **state)
{
	struct world *w = *state;
	AUTO_FD int before = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_to(before, RESOLVER, i ? w->port : 53),
				 0);
		assert_true(comes(w->resolver_udp, WAIT_MS));
		answer(w->resolver_udp);
	}
	lock(w);
	const uint16_t ports[] = { 53, w->port, 1, 65535 };
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		ask_udp(w, ports[i], false);
		ask_udp(w, ports[i], true);
		ask_tcp(w, ports[i]);
	}
	assert_int_equal(counters(w).names, 3 * ARRAY_SIZE(ports));
	assert_false(comes(w->resolver_udp, QUIET_MS));
	assert_false(comes(w->resolver_tcp, 0));
	assert_int_equal(counters(w).stray, 0);
	assert_int_equal(counters(w).left, 0);
}

/* A socket that spoke to the resolver before the table came. */
static void test_old_flow(void **state)
{
	struct world *w = *state;
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int direct = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(send_to(fd, RESOLVER, 53), 0);
	assert_int_equal(send_to(direct, RESOLVER, w->port), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(comes(w->resolver_udp, WAIT_MS));
		answer(w->resolver_udp);
	}
	lock(w);
	assert_int_equal(send_to(fd, RESOLVER, 53), EPERM);
	assert_int_equal(send_to(direct, RESOLVER, w->port), EPERM);
	assert_false(comes(w->resolver_udp, QUIET_MS));
	assert_int_equal(counters(w).stray, 2);
}

/* An engine whose rules come after ours, at whatever priority it likes. */
static void test_rules_after_ours(void **state)
{
	struct world *w = *state;
	char script[256];

	lock(w);
	(void)snprintf(script, sizeof(script),
		       "nft 'table ip early { chain OUTPUT { "
		       "type nat hook output priority -180; "
		       "ip daddr 127.0.0.11 udp dport 53 dnat to "
		       "127.0.0.11:%u; ip daddr 192.0.2.1 dnat to " OTHER
		       "; }; }'",
		       w->port);
	sh(&w->box, script);
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	assert_int_equal(send_to(fd, RESOLVER, 53), EPERM);
	assert_false(comes(w->resolver_udp, QUIET_MS));
	assert_int_equal(counters(w).stray, 1);
	/* By our link at first, by the other one then. */
	assert_int_equal(send_to(fd, "192.0.2.1", 9), EPERM);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_int_equal(counters(w).left, 1);
}

static void drain(int fd)
{
	char buf[2048];

	while (recv(fd, buf, sizeof(buf), 0) >= 0)
		;
}

static void test_other_network(void **state)
{
	struct world *w = *state;
	AUTO_FD int in = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int out = socket_in(&w->other, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(send_to(in, OTHER, 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
	assert_int_equal(send_to(out, BOX_TOO, 9), 0);
	assert_true(comes(w->box_udp, WAIT_MS));
	drain(w->other_udp);
	drain(w->box_udp);
	lock(w);
	/* What spoke before, and what is new. */
	AUTO_FD int fresh = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	assert_int_equal(send_to(in, OTHER, 9), EPERM);
	assert_int_equal(send_to(fresh, OTHER, 9), EPERM);
	assert_int_equal(send_to(out, BOX_TOO, 9), 0);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_false(comes(w->box_udp, QUIET_MS));
	struct lock_counters c = counters(w);
	assert_int_equal(c.left, 2);
	assert_int_equal(c.entered, 1);
	/* Ours goes both ways. */
	assert_int_equal(send_to(fresh, GATEWAY, 53), 0);
	assert_true(comes(w->gateway_udp, WAIT_MS));
	answer(w->gateway_udp);
	assert_true(comes(fresh, WAIT_MS));
	/* And it is by its group that it is ours. */
	assert_int_equal(link_group(w->box.route, "eth1", 0), 0);
	assert_int_equal(send_to(fresh, GATEWAY, 53), EPERM);
}

/* What the box would forward between its networks. */
static void test_forwarding(void **state)
{
	struct world *w = *state;

	sh(&w->box, "echo 1 >/proc/sys/net/ipv4/ip_forward");
	sh(&w->gateway, "ip route add 172.30.0.0/24 via " BOX);
	sh(&w->other, "ip route add 10.77.0.0/24 via " BOX_TOO);
	AUTO_FD int fd = socket_in(&w->gateway, AF_INET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int back = socket_in(&w->other, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(send_to(fd, OTHER, 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
	drain(w->other_udp);
	lock(w);
	assert_int_equal(send_to(fd, OTHER, 9), 0);
	assert_int_equal(send_to(back, GATEWAY, 53), 0);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_false(comes(w->gateway_udp, QUIET_MS));
	assert_int_equal(counters(w).left, 1);
	assert_int_equal(counters(w).entered, 1);
}

static void test_ipv6(void **state)
{
	struct world *w = *state;
	AUTO_FD int fd = socket_in(&w->box, AF_INET6, SOCK_DGRAM, NULL, 0);
	AUTO_FD int self = socket_in(&w->box, AF_INET6, SOCK_DGRAM, NULL, 0);

	sh(&w->box, "for i in all eth0 eth1 lo; do"
		    " echo 0 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done;"
		    "ip -6 addr add fd00:1::2/64 dev eth0 nodad;"
		    "ip -6 addr add fd00:2::2/64 dev eth1 nodad");
	sh(&w->other, "ip -6 addr add fd00:1::1/64 dev br0 nodad");
	sh(&w->gateway, "ip -6 addr add fd00:2::1/64 dev gw0 nodad");
	AUTO_FD int gateway =
		socket_in(&w->gateway, AF_INET6, SOCK_DGRAM, "::", 9);
	assert_int_equal(send_to(fd, "fd00:1::1", 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
	assert_int_equal(send_to(fd, "fd00:2::1", 9), 0);
	assert_true(comes(gateway, WAIT_MS));
	drain(w->other_udp);
	drain(gateway);
	lock(w);
	assert_int_equal(send_to(fd, "fd00:1::1", 9), EPERM);
	assert_int_equal(send_to(fd, "fd00:2::1", 9), EPERM);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_false(comes(gateway, QUIET_MS));
	/* To itself it may speak. */
	drain(w->box_udp);
	assert_int_equal(send_to(self, "::1", 9), 0);
	assert_true(comes(w->box_udp, WAIT_MS));
}

/* route_localnet must not let others in to what listens on loopback. */
static void test_martians(void **state)
{
	struct world *w = *state;
	AUTO_FD int local =
		socket_in(&w->box, AF_INET, SOCK_DGRAM, "127.0.0.1", 9000);

	/* By way of the box: 127.0.0.0/8 is a network as any other there. */
	sh(&w->gateway, "echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet;"
			"ip route del local 127.0.0.0/8 dev lo table local;"
			"ip route del local 127.0.0.1 dev lo table local;"
			"ip route add 127.0.0.0/8 via " BOX);
	AUTO_FD int fd =
		socket_in(&w->gateway, AF_INET, SOCK_DGRAM, GATEWAY, 0);
	assert_int_equal(send_to(fd, "127.0.0.1", 9000), 0);
	assert_true(comes(local, WAIT_MS));
	drain(local);
	lock(w);
	assert_int_equal(send_to(fd, "127.0.0.1", 9000), 0);
	assert_false(comes(local, QUIET_MS));
	assert_int_equal(counters(w).entered, 1);
}

static int send_frame(int fd, int index)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(0x88b5),
		.sll_ifindex = index,
		.sll_halen = 6,
		.sll_addr = { 255, 255, 255, 255, 255, 255 },
	};

	return sendto(fd, "secret", 6, 0, (struct sockaddr *)&to, sizeof(to)) ==
			       6
		       ? 0
		       : errno;
}

/* Does a frame of ours come? There may be others, such as ARP. */
static bool frame_comes(int fd, int ms)
{
	char buf[256];

	while (comes(fd, ms)) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n >= 6 && memcmp(buf, "secret", 6) == 0)
			return true;
	}
	return false;
}

static int shut(struct world *w, const char *name)
{
	char names[1][16] = { "" };

	(void)stpcpy(names[0], name);
	return lock_shut(w->nft, &w->spec, (const char(*)[16])names, 1);
}

static void test_packet_sockets(void **state)
{
	struct world *w = *state;
	AUTO_FD int from = socket_in(&w->box, AF_PACKET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int other =
		socket_in(&w->other, AF_PACKET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int gateway =
		socket_in(&w->gateway, AF_PACKET, SOCK_DGRAM, NULL, 0);
	char name[4][16];
	uint32_t theirs, ours;
	size_t n;

	/* A name that no engine gives, as long as it likes. */
	sh(&w->box, "ip link set eth0 down; ip link set eth0 name net0 up");
	assert_int_equal(link_wait(w->box.route, "net0"), 0);
	lock(w);
	assert_int_equal(link_index(w->box.route, "net0", &theirs), 0);
	assert_int_equal(link_index(w->box.route, "eth1", &ours), 0);
	/* This is what lock_shut() is for. */
	assert_int_equal(send_frame(from, (int)theirs), 0);
	assert_true(frame_comes(other, WAIT_MS));
	assert_int_equal(link_others(w->box.route, LOCK_GROUP, 0, name, 4, &n),
			 0);
	assert_int_equal(n, 1);
	assert_string_equal(name[0], "net0");
	for (int i = 0; i < 2; i++)
		assert_int_equal(shut(w, "net0"), 0);
	(void)send_frame(from, (int)theirs);
	/* Also past the queueing discipline. */
	const int on = 1;
	assert_int_equal(setsockopt(from, SOL_PACKET, PACKET_QDISC_BYPASS, &on,
				    sizeof(on)),
			 0);
	(void)send_frame(from, (int)theirs);
	assert_false(frame_comes(other, QUIET_MS));
	assert_int_equal(send_frame(from, (int)ours), 0);
	assert_true(frame_comes(gateway, WAIT_MS));
	/* Another of the same name is another one. */
	assert_int_equal(link_delete(w->other.route, "br0"), 0);
	assert_int_equal(link_veth(w->other.route, "br0", "eth0", w->box.fd),
			 0);
	assert_int_equal(link_up(w->other.route, "br0"), 0);
	assert_int_equal(link_up(w->box.route, "eth0"), 0);
	assert_int_equal(link_wait(w->other.route, "br0"), 0);
	/* Since Linux 6.16 a chain may wait for its interface: then that one
	 * is shut already. */
	int r = shut(w, "none");
	assert_true(r == 0 || r == -ENOENT);
	assert_int_equal(r == 0 ? 0 : shut(w, "eth0"), 0);
	assert_int_equal(link_index(w->box.route, "eth0", &theirs), 0);
	(void)send_frame(from, (int)theirs);
	assert_false(frame_comes(other, QUIET_MS));
	assert_int_equal(send_frame(from, (int)ours), 0);
	assert_true(frame_comes(gateway, WAIT_MS));
	assert_int_equal(shut(w, "eth0"), 0);
	assert_int_equal(shut(w, ""), -EINVAL);
}

static void test_listing(void **state)
{
	static const char *const wanted[] = {
		"type filter hook prerouting priority -400; policy drop;",
		"type filter hook output priority -400; policy drop;",
		"type filter hook postrouting priority 300; policy drop;",
		"type nat hook output priority -150; policy accept;",
		"type filter hook output priority -90; policy accept;",
		"type nat hook postrouting priority 90; policy accept;",
		"iif \"lo\" accept",
		"oif \"lo\" accept",
		"meta nfproto ipv4 iifgroup 21328 accept",
		"meta nfproto ipv4 oifgroup 21328 accept",
		"ip daddr 127.0.0.0/8 counter name \"entered\" drop",
		"ip daddr 127.0.0.11 meta l4proto udp counter name \"names\" "
		"dnat ip to " GATEWAY ":53",
		"ip daddr 127.0.0.11 counter name \"stray\" drop",
		"ip saddr 127.0.0.0/8 masquerade",
	};
	char *argv[] = {
		"nft", "-y", "list", "table", "inet", LOCK_TABLE, NULL
	};
	static char text[16384];
	struct world *w = *state;

	lock(w);
	lab_output(w->box.fd, argv, text, sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!strstr(text, wanted[i]))
			fail_msg("no \"%s\" in:\n%s", wanted[i], text);
}

static void test_tampering(void **state)
{
	static const char *const change[] = {
		"insert rule inet sallyport_lock in accept",
		"insert rule inet sallyport_lock out accept",
		"insert rule inet sallyport_lock last accept",
		"insert rule inet sallyport_lock stray accept",
		"insert rule inet sallyport_lock names accept",
		"insert rule inet sallyport_lock source accept",
		"flush chain inet sallyport_lock in",
		"flush chain inet sallyport_lock names",
		"flush chain inet sallyport_lock stray",
		"flush chain inet sallyport_lock source",
		"chain inet sallyport_lock in { policy accept; }",
		"chain inet sallyport_lock out { policy accept; }",
		"chain inet sallyport_lock last { policy accept; }",
		"add chain inet sallyport_lock more",
		"add set inet sallyport_lock other { type ipv4_addr; }",
		"add table inet sallyport_lock { flags dormant; }",
		"delete table inet sallyport_lock",
		"flush ruleset",
	};
	struct world *w = *state;
	char why[256] = "", script[256];

	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		lock(w);
		(void)snprintf(script, sizeof(script), "nft '%s'", change[i]);
		sh(&w->box, script);
		if (lock_verify(w->nft, &w->spec, why, sizeof(why)) != -EBADMSG)
			fail_msg("unseen: %s", change[i]);
		assert_true(strlen(why) > 10);
		/* A new table heals it, whoever made what is there. */
		sh(&w->box, "nft 'table inet sallyport_lock; "
			    "delete table inet sallyport_lock'");
	}
	/* Tables of others are theirs. */
	lock(w);
	sh(&w->box, "nft 'add table ip theirs; add table inet theirs; "
		    "add table inet sallyport_locks'");
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
	/* Another gateway is another table. */
	struct lock_spec spec = w->spec;
	spec.gateway.byte[3]++;
	assert_int_equal(lock_verify(w->nft, &spec, why, sizeof(why)),
			 -EBADMSG);
	spec.gateway.len = 16;
	assert_int_equal(lock_install(w->nft, &spec), -EINVAL);
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
}

static void test_tampering_early(void **state)
{
	static const char *const change[] = {
		"insert rule netdev sallyport_lock early accept",
		"flush chain netdev sallyport_lock early",
		"insert rule netdev sallyport_lock eth0 accept",
		"chain netdev sallyport_lock eth0 { policy accept; }",
		"delete chain netdev sallyport_lock eth0",
		"add chain netdev sallyport_lock more",
		"delete table netdev sallyport_lock",
	};
	static const char name[1][16] = { "eth0" };
	struct world *w = *state;
	char why[256] = "", script[256];

	lock(w);
	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		if (!w->spec.early && strstr(change[i], " early"))
			continue;
		assert_int_equal(lock_shut(w->nft, &w->spec, name, 1), 0);
		assert_int_equal(lock_verify_shut(w->nft, &w->spec, name, 1,
						  why, sizeof(why)),
				 0);
		(void)snprintf(script, sizeof(script), "nft '%s'", change[i]);
		sh(&w->box, script);
		if (lock_verify_shut(w->nft, &w->spec, name, 1, why,
				     sizeof(why)) != -EBADMSG)
			fail_msg("unseen: %s", change[i]);
		assert_true(strlen(why) > 10);
		assert_int_equal(
			lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
	}
	assert_int_equal(lock_shut(w->nft, &w->spec, NULL, 0), 0);
	assert_int_equal(
		lock_verify_shut(w->nft, &w->spec, name, 1, why, sizeof(why)),
		-EBADMSG);
}

static int filter_socket(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	*ret_n = 1;
	return ret_fds[0] < 0 ? -errno : 0;
}

/* As long as the socket is there; then it is anybody's, and stays. */
static void test_owned(void **state)
{
	static const char *const change[] = {
		"insert rule inet sallyport_lock out accept",
		"flush chain inet sallyport_lock in",
		"delete table inet sallyport_lock",
		"add table inet sallyport_lock { flags dormant; }",
		"delete table netdev sallyport_lock",
	};
	struct world *w = *state;
	char why[256] = "", script[256];
	int fds[8];
	size_t n = 0;

	w->spec.owned = true;
	lock(w);
	if (!w->spec.owned) {
		print_message("not before Linux 6.9\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		(void)snprintf(script, sizeof(script), "! nft '%s' 2>&1",
			       change[i]);
		sh(&w->box, script);
	}
	sh(&w->box, "nft flush ruleset");
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
	assert_int_equal(
		lock_verify_shut(w->nft, &w->spec, NULL, 0, why, sizeof(why)),
		0);
	/* By its owner. */
	lock(w);
	assert_int_equal(netns_enter(w->box.fd, filter_socket, NULL, fds, &n),
			 0);
	nft_close(w->nft);
	assert_int_equal(nft_open(fds[0], &w->nft), 0);
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)),
			 -EBADMSG);
	sh(&w->box, "nft list table inet sallyport_lock | grep -q entered");
	lock(w);
	sh(&w->box, "! nft delete table inet sallyport_lock 2>&1");
}

/* Any link can get our group, but not our index. */
static void test_group_taken(void **state)
{
	struct world *w = *state;
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(link_index(w->box.route, "eth1", &w->spec.link), 0);
	lock(w);
	assert_int_equal(link_group(w->box.route, "eth0", LOCK_GROUP), 0);
	(void)send_to(fd, OTHER, 9);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_int_equal(counters(w).left, 1);
	assert_int_equal(send_to(fd, GATEWAY, 53), 0);
	assert_true(comes(w->gateway_udp, WAIT_MS));
	/* What it is for. */
	w->spec.link = 0;
	lock(w);
	assert_int_equal(send_to(fd, OTHER, 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
}

int main(void)
{
#define LOCK_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		LOCK_TEST(test_listing),
		LOCK_TEST(test_tampering_early),
		LOCK_TEST(test_owned),
		LOCK_TEST(test_group_taken),
		LOCK_TEST(test_names),
		LOCK_TEST(test_old_flow),
		LOCK_TEST(test_rules_after_ours),
		LOCK_TEST(test_other_network),
		LOCK_TEST(test_forwarding),
		LOCK_TEST(test_ipv6),
		LOCK_TEST(test_martians),
		LOCK_TEST(test_packet_sockets),
		LOCK_TEST(test_tampering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
