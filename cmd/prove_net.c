/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_net.c - packets to addresses, by all protocols.
 *
 * Each goes to an address and port of its own, so that the log's records can be
 * told apart.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

#define CONNECT_MS 700

static void tcp(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	prove_tcp(t, &ip, (uint16_t)t->attack->number);
}

static void udp(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	prove_udp(t, &ip, (uint16_t)t->attack->number, 0, PROVE_MESSAGE_LEN);
}

/* As long as the first packet of QUIC. */
static void quic(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	prove_udp(t, &ip, (uint16_t)t->attack->number, 0, 1200);
}

static void fragments(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	prove_udp(t, &ip, (uint16_t)t->attack->number, 0, 4000);
}

static void from_port(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);

	prove_udp(t, &ip, (uint16_t)t->attack->number, 53, PROVE_MESSAGE_LEN);
	if (t->result->seen == PROVE_UNABLE)
		prove_udp(t, &ip, (uint16_t)t->attack->number, 5353,
			  PROVE_MESSAGE_LEN);
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
	if (sendto(fd, prove_message, PROVE_MESSAGE_LEN, MSG_FASTOPEN, &to.sa,
		   len) < 0)
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
	if (fd < 0 ||
	    sendto(fd, prove_message, PROVE_MESSAGE_LEN, 0, &to.sa, len) < 0)
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

	if (fd < 0 || sendto(fd, prove_message, PROVE_MESSAGE_LEN, 0,
			     (struct sockaddr *)&to, sizeof(to)) < 0)
		prove_saw_error(t, "packet socket", -errno);
	else
		prove_saw(t, PROVE_OUT, "a packet socket sent a frame");
}

/* --- what there is -------------------------------------------------------- */

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
		prove_tcp(t, &t->task->gateway, ports[i]);
	prove_udp(t, &t->task->gateway, 161, 0, PROVE_MESSAGE_LEN);
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
			prove_tcp(t, &task->witness[i].ip,
				  task->witness[i].port);
		else
			prove_udp(t, &task->witness[i].ip,
				  task->witness[i].port, 0, PROVE_MESSAGE_LEN);
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
	  NULL, 0, PROVE_ALONE },
	{ "machine-tcp", "L11", "this machine's own addresses, TCP", machine,
	  NULL, 1, 0 },
	{ "machine-udp", "L11", "this machine's own addresses, UDP", machine,
	  NULL, 0, 0 },
};

const struct prove_group prove_net = { attacks, ARRAY_SIZE(attacks) };
