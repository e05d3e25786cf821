/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_case.h - a container's namespace as an engine leaves it: our link, moved
 * and renamed, another network, and a resolver at 127.0.0.11.
 */
#ifndef TESTS_FIREWALL_LOCK_CASE_H
#define TESTS_FIREWALL_LOCK_CASE_H

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
#define WAIT_MS	 20000
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

static inline socklen_t address_of(const char *text, uint16_t port,
				   union sockaddr_any *ret)
{
	struct ip ip;

	assert_true(ip_parse(text, &ip));
	return ip_to_sockaddr(&ip, port, ret);
}

static inline int make_socket(void *arg, int *ret_fds, size_t *ret_n)
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

static inline int socket_in(const struct netns *ns, int domain, int type,
			    const char *address, uint16_t port)
{
	struct made wanted = { domain, type, address, port };
	int fds[8];
	size_t n = 0;

	assert_int_equal(netns_enter(ns->fd, make_socket, &wanted, fds, &n), 0);
	assert_int_equal(n, 1);
	return fds[0];
}

static inline int box_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	/* As an engine has it; and nothing is sent unasked. */
	int r = netns_sandbox_sysctls();
	return r < 0 ? r : netns_sysctl("ipv4/conf/all/route_localnet", "1");
}

static inline int exec_sh(void *arg)
{
	char *argv[] = { "sh", "-ec", arg, NULL };

	execv("/bin/sh", argv);
	return 253;
}

static inline void sh(const struct netns *ns, const char *script)
{
	if (lab_in(ns->fd, exec_sh, (void *)script) != 0)
		fail_msg("failed: %s", script);
}

static inline void add_address(const struct netns *ns, const char *ifname,
			       const char *text)
{
	struct cidr c = { .bits = 24 };

	assert_true(ip_parse(text, &c.ip));
	assert_int_equal(link_address(ns->route, ifname, &c), 0);
	assert_int_equal(link_up(ns->route, ifname), 0);
}

static inline void make_links(struct world *w)
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

static inline uint16_t port_of(int fd)
{
	union sockaddr_any sa;
	socklen_t len = sizeof(sa);

	assert_int_equal(getsockname(fd, &sa.sa, &len), 0);
	return port_from_sockaddr(&sa);
}

/* What the engine puts there for its own resolver. */
static inline void engine_rules(struct world *w)
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

static inline int setup(void **state)
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

static inline int teardown(void **state)
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

static inline void lock(struct world *w)
{
	char why[256] = "";

	assert_int_equal(lock_install(w->nft, &w->spec), 0);
	int r = lock_verify(w->nft, &w->spec, why, sizeof(why));
	if (r)
		fail_msg("%d: %s", r, why);
}

/* Is there something to be read, or accepted, in that time? */
static inline bool comes(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

#endif
