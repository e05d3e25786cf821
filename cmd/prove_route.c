/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_route.c - packets from wrong addresses, to other sandboxes, and
 * attempts to change where they go.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ip.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

#define ARP_MS 5000

#define CONNECT_MS 700

/* --- from where it is not ------------------------------------------------- */

static struct ip own_address(const struct prove_try *t)
{
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union sockaddr_any at;
	socklen_t len = ip_to_sockaddr(&t->task->gateway, 53, &at);

	if (!len || connect(fd, &at.sa, len) < 0)
		return (struct ip){ 0 };
	len = sizeof(at);
	if (getsockname(fd, &at.sa, &len) < 0)
		return (struct ip){ 0 };
	return ip_from_sockaddr(&at);
}

/* The address that the next sandbox of this machine would have: links are
 * four addresses apart. */
static struct ip neighbour(const struct prove_try *t)
{
	struct ip own = own_address(t);

	return ip_v4(ip_v4_value(&own) + 4);
}

static void spoofed(struct prove_try *t)
{
	struct ip ip = prove_ip("9.9.9.9"), from = neighbour(t);
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int on = 1;
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(&from, 0, &to);

	prove_expect(t, &ip, 8200);
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on));
	if (bind(fd, &to.sa, len) < 0) {
		prove_saw_error(t, "bind", -errno);
		return;
	}
	len = ip_to_sockaddr(&ip, 8200, &to);
	if (sendto(fd, prove_message, PROVE_MESSAGE_LEN, 0, &to.sa, len) < 0)
		prove_saw_error(t, "sending from it", -errno);
	else
		prove_saw(t, PROVE_SILENT, "sent from another's address");
}

/* With a header of our own making. */
static void spoofed_raw(struct prove_try *t)
{
	struct ip from = neighbour(t), ip = prove_ip("9.9.9.9");
	AUTO_FD int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	struct {
		struct iphdr ip;
		struct udphdr udp;
		char data[16];
	} packet = { .ip = { .version = 4,
			     .ihl = 5,
			     .ttl = 64,
			     .protocol = IPPROTO_UDP } };
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(&ip, 0, &to);

	prove_expect(t, &ip, 8201);
	packet.ip.saddr = htonl(ip_v4_value(&from));
	packet.ip.daddr = htonl(ip_v4_value(&ip));
	packet.ip.tot_len = htons(sizeof(packet));
	packet.udp.dest = htons(8201);
	packet.udp.len = htons(sizeof(packet.udp) + sizeof(packet.data));
	if (fd < 0 || sendto(fd, &packet, sizeof(packet), 0, &to.sa, len) < 0)
		prove_saw_error(t, "raw socket", -errno);
	else
		prove_saw(t, PROVE_SILENT, "sent with a false source");
}

/* In a subnet of several, as engines make them, nobody is asked to pass it on.
 */
static bool is_on_link(const struct ip *ip)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next) {
		const struct sockaddr_in *own = (const void *)at->ifa_addr;
		const struct sockaddr_in *mask = (const void *)at->ifa_netmask;

		found = own && mask && own->sin_family == AF_INET &&
			!((ntohl(own->sin_addr.s_addr) ^ ip_v4_value(ip)) &
			  ntohl(mask->sin_addr.s_addr));
	}
	freeifaddrs(all);
	return found;
}

/* Whether somebody has it is known when nobody said so for three seconds. */
static void neighbour_on_link(struct prove_try *t, const struct ip *ip)
{
	AUTO_FD int fd = -1;

	if (!t->attack->number) {
		prove_saw(t, PROVE_SKIPPED,
			  "it is on the same link: TCP tells");
		return;
	}
	fd = prove_connect(ip, 22, ARP_MS);
	if (fd >= 0 || fd == -ECONNREFUSED)
		prove_saw(t, PROVE_OUT, "the link's next address answers");
	else if (fd == -EHOSTUNREACH)
		prove_saw(t, PROVE_UNABLE, "nobody on the link has it");
	else
		prove_saw_error(t, "the link's next address", fd);
}

static void next_sandbox(struct prove_try *t)
{
	struct ip ip = neighbour(t);

	if (is_on_link(&ip)) {
		neighbour_on_link(t, &ip);
		return;
	}
	if (!t->task->gateway.len) {
		prove_saw(t, PROVE_SKIPPED, "there is no gateway");
		return;
	}
	if (t->attack->number)
		prove_tcp(t, &ip, 22);
	else
		prove_udp(t, &ip, 8202, 0, PROVE_MESSAGE_LEN);
}

/* --- past the routing ----------------------------------------------------- */

/* Marks, devices, transparent sockets: then the same again. */
static void marked(struct prove_try *t)
{
	struct ip ip = prove_ip("9.9.9.9");
	AUTO_FD int fd =
		socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(&ip, 8203, &to);
	char answer[64];
	int done = 0;

	for (int mark = 1; mark < 4096 && mark > 0; mark *= 2)
		done += setsockopt(fd, SOL_SOCKET, SO_MARK, &mark,
				   sizeof(mark)) == 0;
	if (!done) {
		prove_saw_error(t, "SO_MARK", -errno);
		return;
	}
	prove_expect(t, &ip, 8203);
	if (connect(fd, &to.sa, len) < 0 ||
	    send(fd, prove_message, PROVE_MESSAGE_LEN, 0) < 0)
		prove_saw_error(t, "sending with a mark", -errno);
	else if (prove_read(fd, answer, sizeof(answer), 400))
		prove_saw(t, PROVE_OUT, "answered");
	else
		prove_saw(t, PROVE_SILENT, "sent with a mark");
}

/* Loose source routing, by way of the gateway. */
static void source_route(struct prove_try *t)
{
	uint8_t option[8] = { 131, 7, 4 };
	struct ip ip = prove_ip("9.9.9.9");
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval limit = { .tv_usec = CONNECT_MS * 1000 };
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(&ip, 8204, &to);

	memcpy(option + 3, t->task->gateway.byte, 4);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (setsockopt(fd, IPPROTO_IP, IP_OPTIONS, option, sizeof(option)) <
	    0) {
		prove_saw_error(t, "IP_OPTIONS", -errno);
		return;
	}
	if (connect(fd, &to.sa, len) < 0)
		prove_saw_error(t, "source route", -errno);
	else
		prove_saw(t, PROVE_OUT, "connected by a source route");
}

/* One request to the kernel's own network configuration. 0 or -errno. */
static int ask_netlink(int protocol, uint16_t type, const void *body,
		       size_t len)
{
	AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct {
		struct nlmsghdr head;
		uint8_t body[128];
	} m = { .head = { .nlmsg_len = NLMSG_LENGTH((uint32_t)len),
			  .nlmsg_type = type,
			  .nlmsg_flags =
				  NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE } };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		uint8_t rest[512];
	} answer = { 0 };

	memcpy(m.body, body, len);
	if (fd < 0 || send(fd, &m, m.head.nlmsg_len, 0) < 0)
		return -errno;
	if (recv(fd, &answer, sizeof(answer), 0) < 0)
		return -errno;
	return answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : 0;
}

static void change_route(struct prove_try *t)
{
	const struct {
		struct rtmsg route;
		struct rtattr attr;
		int oif;
	} body = { .route = { .rtm_family = AF_INET,
			      .rtm_table = RT_TABLE_MAIN,
			      .rtm_protocol = RTPROT_STATIC,
			      .rtm_scope = RT_SCOPE_LINK,
			      .rtm_type = RTN_UNICAST,
			      .rtm_dst_len = 0 },
		   .attr = { .rta_len = RTA_LENGTH(sizeof(int)),
			     .rta_type = RTA_OIF },
		   .oif = 2 };
	int err = ask_netlink(NETLINK_ROUTE, RTM_NEWROUTE, &body, sizeof(body));

	if (err)
		prove_saw_error(t, "RTM_NEWROUTE", err);
	else
		prove_saw(t, PROVE_OUT, "the routes could be changed");
}

static void change_link(struct prove_try *t)
{
	const struct ifinfomsg body = { .ifi_family = AF_UNSPEC,
					.ifi_index = 1,
					.ifi_flags = 0,
					.ifi_change = IFF_UP };
	int err = ask_netlink(NETLINK_ROUTE, RTM_NEWLINK, &body, sizeof(body));

	if (err)
		prove_saw_error(t, "RTM_NEWLINK", err);
	else
		prove_saw(t, PROVE_OUT, "an interface could be taken down");
}

/* Deleting a table that is not there is ENOENT for who may. */
static void change_rules(struct prove_try *t)
{
	const struct nfgenmsg body = { .nfgen_family = 1 /* inet */ };
	int err = ask_netlink(NETLINK_NETFILTER, 10 << 8 | 1 /* GETTABLE */,
			      &body, sizeof(body));

	if (err == -EPERM || err == -EACCES || err == -EPROTONOSUPPORT ||
	    err == -EAFNOSUPPORT)
		prove_saw_error(t, "nf_tables", err);
	else
		prove_saw(t, PROVE_OUT, "it may speak to the packet filter");
}

/* A sandbox has one link. */
static void one_link(struct prove_try *t)
{
	struct if_nameindex *all = if_nameindex(), *at;
	char names[64] = "";
	unsigned n = 0;

	for (at = all; at && at->if_index; at++) {
		size_t len = strlen(names);

		if (strcmp(at->if_name, "lo") == 0)
			continue;
		n++;
		snprintf(names + len, sizeof(names) - len, "%s%s",
			 len ? ", " : "", at->if_name);
	}
	if (all)
		if_freenameindex(all);
	if (n > 1)
		prove_saw(t, PROVE_OUT, "%u interfaces lead out: %s", n, names);
	else
		prove_saw(t, PROVE_UNABLE, "one interface: %s", names);
}

static const struct prove_attack attacks[] = {
	{ "neighbour-tcp", "L13", "another sandbox's address, TCP",
	  next_sandbox, NULL, 1, PROVE_ALONE },
	{ "neighbour-udp", "L13", "another sandbox's address, UDP",
	  next_sandbox, NULL, 0, PROVE_ALONE },
	{ "spoof", "L7", "from another sandbox's address", spoofed, NULL, 0,
	  PROVE_ALONE },
	{ "spoof-raw", "L7", "the same, by a raw socket", spoofed_raw, NULL, 0,
	  PROVE_ALONE },
	{ "mark", "L18", "a mark on a socket", marked, NULL, 0, 0 },
	{ "source-route", "L14", "IP source routing", source_route, NULL, 0,
	  0 },
	{ "one-link", "P1", "interfaces", one_link, NULL, 0, PROVE_ALONE },
	{ "route", "K8", "changing routes", change_route, NULL, 0, 0 },
	{ "link", "K8", "changing interfaces", change_link, NULL, 0, 0 },
	{ "rules", "L6", "the packet filter", change_rules, NULL, 0, 0 },
};

const struct prove_group prove_route = { attacks, ARRAY_SIZE(attacks) };
