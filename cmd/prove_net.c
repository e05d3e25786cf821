/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_net.c - packets: to addresses, by all protocols, from wrong addresses,
 * and attempts to change where they go.
 *
 * Each goes to an address and port of its own, so that the log's records can be
 * told apart.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

#define CONNECT_MS 700

static const char message[] = "sallyport prove: this must not arrive";

static void try_tcp(struct prove_try *t, const struct ip *ip, uint16_t port)
{
	char text[IP_TEXT_MAX];
	AUTO_FD int fd = prove_connect(ip, port, CONNECT_MS);

	prove_expect(t, ip, port);
	ip_format(ip, text);
	if (fd >= 0)
		prove_saw(t, PROVE_OUT, "connected to %s port %u", text, port);
	else
		prove_saw_error(t, text, fd);
}

static void try_udp(struct prove_try *t, const struct ip *ip, uint16_t port,
		    uint16_t from, size_t len)
{
	char text[IP_TEXT_MAX], data[4000] = "", answer[512];
	ssize_t n;

	memcpy(data, message, sizeof(message));
	prove_expect(t, ip, port);
	ip_format(ip, text);
	n = prove_exchange(ip, port, from, data, len, answer, sizeof(answer));
	if (n >= 0)
		prove_saw(t, PROVE_OUT, "%s port %u answered", text, port);
	else
		prove_saw_error(t, text, (int)n);
}

static void tcp(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	try_tcp(t, &ip, (uint16_t)t->attack->number);
}

static void udp(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	try_udp(t, &ip, (uint16_t)t->attack->number, 0, sizeof(message));
}

/* As long as the first packet of QUIC. */
static void quic(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	try_udp(t, &ip, (uint16_t)t->attack->number, 0, 1200);
}

static void fragments(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	try_udp(t, &ip, (uint16_t)t->attack->number, 0, 4000);
}

static void from_port(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	try_udp(t, &ip, (uint16_t)t->attack->number, 53, sizeof(message));
	if (t->result->seen == PROVE_UNABLE)
		try_udp(t, &ip, (uint16_t)t->attack->number, 5353,
			sizeof(message));
}

/* Data with the SYN. */
static void fast_open(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);
	uint16_t port = (uint16_t)t->attack->number;
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval limit = { .tv_usec = CONNECT_MS * 1000 };
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(&ip, port, &to);

	prove_expect(t, &ip, port);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (sendto(fd, message, sizeof(message), MSG_FASTOPEN, &to.sa, len) < 0)
		prove_saw_error(t, "TCP Fast Open", -errno);
	else
		prove_saw(t, PROVE_OUT, "connected");
}

/* --- other protocols ------------------------------------------------------ */

/* An echo request, by the kernel's own way for it, else by a raw socket. */
static void ping(struct prove_try *t)
{
	static const uint8_t echo[] = { 8, 0, 0xf7, 0xff, 0, 0, 0, 0 };
	struct ip ip = prove_ip(t->attack->text);
	uint8_t answer[256];
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(&ip, 0, &to);
	AUTO_FD int fd =
		socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);

	prove_expect(t, &ip, 0);
	if (fd < 0)
		fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	if (fd < 0 || connect(fd, &to.sa, len) < 0 ||
	    send(fd, echo, sizeof(echo), 0) < 0)
		prove_saw_error(t, "ICMP", -errno);
	else if (prove_read(fd, answer, sizeof(answer), 400))
		prove_saw(t, PROVE_OUT, "the echo came back");
	else
		prove_saw(t, PROVE_SILENT, "ICMP: no answer");
}

/* Sends a raw packet of protocol .number. */
static void raw(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(&ip, 0, &to);
	AUTO_FD int fd =
		socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, t->attack->number);

	prove_expect(t, &ip, 0);
	if (fd < 0 || sendto(fd, message, sizeof(message), 0, &to.sa, len) < 0)
		prove_saw_error(t, "raw socket", -errno);
	else
		prove_saw(t, PROVE_SILENT, "sent by a raw socket");
}

/* SCTP, DCCP, UDP-Lite, MPTCP: other sockets of the same kernel. */
static void transport(struct prove_try *t)
{
	static const struct {
		int type, protocol;
	} kinds[] = { { SOCK_STREAM, IPPROTO_SCTP },
		      { SOCK_DCCP, IPPROTO_DCCP },
		      { SOCK_DGRAM, IPPROTO_UDPLITE },
		      { SOCK_STREAM, 262 /* MPTCP */ } };
	struct ip ip = ip_v4(0x9570700cu + (uint32_t)t->attack->number);
	const struct timeval limit = { .tv_usec = CONNECT_MS * 1000 };
	union sockaddr_any to;
	socklen_t len =
		ip_to_sockaddr(&ip, (uint16_t)(8100 + t->attack->number), &to);
	AUTO_FD int fd =
		socket(AF_INET, kinds[t->attack->number].type | SOCK_CLOEXEC,
		       kinds[t->attack->number].protocol);
	char byte;

	prove_expect(t, &ip, 0);
	if (fd < 0) {
		prove_saw_error(t, t->attack->text, -errno);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, &to.sa, len) < 0 || send(fd, "x", 1, 0) < 0 ||
	    recv(fd, &byte, 1, 0) < 0)
		prove_saw_error(t, t->attack->text, -errno);
	else
		prove_saw(t, PROVE_OUT, "%s: connected", t->attack->text);
}

/* A frame past all rules for IP: to everybody on the link. */
static void packet_socket(struct prove_try *t)
{
	AUTO_FD int fd =
		socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_IP),
				  .sll_halen = ETH_ALEN,
				  .sll_ifindex = 2,
				  .sll_addr = { 255, 255, 255, 255, 255,
						255 } };

	if (fd < 0 || sendto(fd, message, sizeof(message), 0,
			     (struct sockaddr *)&to, sizeof(to)) < 0)
		prove_saw_error(t, "packet socket", -errno);
	else
		prove_saw(t, PROVE_OUT, "a packet socket sent a frame");
}

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
	if (sendto(fd, message, sizeof(message), 0, &to.sa, len) < 0)
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

static void next_sandbox(struct prove_try *t)
{
	struct ip ip = neighbour(t);

	if (!t->task->gateway.len) {
		prove_saw(t, PROVE_SKIPPED, "there is no gateway");
		return;
	}
	if (t->attack->number)
		try_tcp(t, &ip, 22);
	else
		try_udp(t, &ip, 8202, 0, sizeof(message));
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
	    send(fd, message, sizeof(message), 0) < 0)
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

/* --- what there is -------------------------------------------------------- */

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

static void gateway_ports(struct prove_try *t)
{
	static const uint16_t ports[] = { 22,	25,   80,   111,  443,
					  2375, 2376, 3000, 5000, 6443,
					  8000, 8080, 9090, 10250 };

	if (!t->task->gateway.len) {
		prove_saw(t, PROVE_SKIPPED, "there is no gateway");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
		try_tcp(t, &t->task->gateway, ports[i]);
	try_udp(t, &t->task->gateway, 161, 0, sizeof(message));
}

/* This machine's own addresses, where something of ours listens. */
static void machine(struct prove_try *t)
{
	const struct prove_task *task = t->task;

	if (task->witnesses < 2)
		prove_saw(t, PROVE_SKIPPED,
			  "this machine has no address but loopback's, or they "
			  "are its own side here");
	for (uint32_t i = 1; i < task->witnesses; i++) {
		if (t->attack->number)
			try_tcp(t, &task->witness[i].ip, task->witness[i].port);
		else
			try_udp(t, &task->witness[i].ip, task->witness[i].port,
				0, sizeof(message));
	}
}

static const struct prove_attack attacks[] = {
	{ "tcp", "L1", "TCP to an address", tcp, "9.9.9.9", 80, 0 },
	{ "tcp-ssh", "L5", "SSH to an address", tcp, "1.1.1.1", 22, 0 },
	{ "tcp-fastopen", "L1", "data in a SYN", fast_open, "9.9.9.9", 81, 0 },
	{ "udp", "L3", "UDP to an address", udp, "9.9.9.9", 33434, 0 },
	{ "udp-ntp", "L3", "NTP", udp, "9.9.9.9", 123, 0 },
	{ "quic", "L3", "QUIC", quic, "1.1.1.1", 443, 0 },
	{ "udp-from-53", "L5", "UDP from a name server's port", from_port,
	  "9.9.9.9", 8205, 0 },
	{ "udp-fragments", "L14", "a datagram in fragments", fragments,
	  "9.9.9.9", 8206, 0 },
	{ "udp-broadcast", "L9", "broadcast", udp, "255.255.255.255", 67, 0 },
	{ "udp-multicast", "L9", "multicast DNS", udp, "224.0.0.251", 5353, 0 },
	{ "icmp", "L4", "ping", ping, "149.112.112.112", 0, 0 },
	{ "gre", "L4", "GRE, by a raw socket", raw, "149.112.112.10",
	  IPPROTO_GRE, 0 },
	{ "ipip", "L4", "IP in IP", raw, "149.112.112.11", IPPROTO_IPIP, 0 },
	{ "sctp", "L4", "SCTP", transport, "SCTP", 0, 0 },
	{ "dccp", "L4", "DCCP", transport, "DCCP", 1, 0 },
	{ "udplite", "L4", "UDP-Lite", transport, "UDP-Lite", 2, 0 },
	{ "mptcp", "L1", "multipath TCP", transport, "MPTCP", 3, 0 },
	{ "packet-socket", "K7", "a packet socket", packet_socket, NULL, 0, 0 },
	{ "ipv6-tcp", "L2", "TCP over IPv6", tcp, "2620:fe::fe", 80, 0 },
	{ "ipv6-udp", "L2", "UDP over IPv6", udp, "2620:fe::fe", 8207, 0 },
	{ "ipv6-mapped", "L2", "IPv4 in an IPv6 socket", tcp, "::ffff:9.9.9.9",
	  8208, 0 },
	{ "ipv6-metadata", "L12", "metadata over IPv6", tcp, "fd00:ec2::254",
	  80, 0 },
	{ "metadata", "L12", "cloud metadata", tcp, "169.254.169.254", 80, 0 },
	{ "metadata-azure", "L12", "Azure's platform address", tcp,
	  "168.63.129.16", 80, 0 },
	{ "metadata-alibaba", "L12", "Alibaba's metadata", tcp,
	  "100.100.100.200", 80, 0 },
	{ "private", "L1", "a private network", tcp, "10.0.0.1", 80, 0 },
	{ "docker-bridge", "L11", "the engine's bridge", tcp, "172.17.0.1",
	  2375, 0 },
	{ "no-lease", "P2", "a synthetic address nobody leased", tcp,
	  "198.18.255.254", 443, 0 },
	{ "gateway-ports", "L11", "the gateway's other ports", gateway_ports,
	  NULL, 0, 1 },
	{ "machine-tcp", "L11", "this machine's own addresses, TCP", machine,
	  NULL, 1, 0 },
	{ "machine-udp", "L11", "this machine's own addresses, UDP", machine,
	  NULL, 0, 0 },
	{ "neighbour-tcp", "L13", "another sandbox's address, TCP",
	  next_sandbox, NULL, 1, 1 },
	{ "neighbour-udp", "L13", "another sandbox's address, UDP",
	  next_sandbox, NULL, 0, 1 },
	{ "spoof", "L7", "from another sandbox's address", spoofed, NULL, 0,
	  1 },
	{ "spoof-raw", "L7", "the same, by a raw socket", spoofed_raw, NULL, 0,
	  1 },
	{ "mark", "L18", "a mark on a socket", marked, NULL, 0, 0 },
	{ "source-route", "L14", "IP source routing", source_route, NULL, 0,
	  0 },
	{ "one-link", "P1", "interfaces", one_link, NULL, 0, 1 },
	{ "route", "K8", "changing routes", change_route, NULL, 0, 0 },
	{ "link", "K8", "changing interfaces", change_link, NULL, 0, 0 },
	{ "rules", "L6", "the packet filter", change_rules, NULL, 0, 0 },
};

const struct prove_group prove_net = { attacks, ARRAY_SIZE(attacks) };
