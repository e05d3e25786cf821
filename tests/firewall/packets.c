/* SPDX-License-Identifier: Apache-2.0
 *
 * packets.c - real packets: what is let through arrives where it should, what
 * is refused is answered at once, counted and logged.
 */
#include "packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "firewall/nflog.h"
#include "frame.h"
#include "lab.h"
#include "launch/link.h"

static int setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	lab_make(lab);
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	lab_free(*state);
	free(*state);
	return 0;
}

static struct ruleset_counters counters(struct lab *lab)
{
	struct ruleset_counters c;

	assert_int_equal(ruleset_counters(lab->nft, &c), 0);
	return c;
}

/* What the log of dropped packets said. */
struct seen {
	struct nflog_packet last;
	unsigned n;
};

static void see(void *arg, const struct nflog_packet *packet)
{
	struct seen *seen = arg;

	seen->last = *packet;
	seen->n++;
}

static struct seen read_log(struct lab *lab)
{
	struct seen seen = { 0 };
	uint8_t buf[16384] __attribute__((aligned(8)));
	ssize_t n;

	while ((n = recv(lab->nflog, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		assert_int_equal(nflog_parse(buf, (size_t)n, see, &seen), 0);
	return seen;
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* One attempt from inside: how it ends, and within which time. */
struct attempt {
	int type, protocol;
	const char *address;
	uint16_t port;
};

#define SLOW 100 /* added to the result if it took 200 ms or more */

/* An error number, or 0. */
static int try(void *arg)
{
	const struct attempt *a = arg;
	struct timespec t0, t1;
	union sockaddr_any sa;
	int error = 0;
	char c = 'x';
	struct ip ip;

	if (!ip_parse(a->address, &ip))
		return EINVAL;
	socklen_t len = ip_to_sockaddr(&ip, a->port, &sa);
	AUTO_FD int fd = socket(AF_INET, a->type, a->protocol);
	const struct timeval limit = { .tv_sec = 2 };
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	clock_gettime(CLOCK_MONOTONIC, &t0);
	if (connect(fd, &sa.sa, len) < 0)
		error = errno;
	else if (a->type != SOCK_STREAM &&
		 (send(fd, &c, 1, 0) < 0 || recv(fd, &c, 1, 0) < 0))
		error = errno;
	clock_gettime(CLOCK_MONOTONIC, &t1);
	long ms = (t1.tv_sec - t0.tv_sec) * 1000 +
		  (t1.tv_nsec - t0.tv_nsec) / 1000000;
	return ms < 200 ? error : error + SLOW;
}

static int attempt(struct lab *lab, int box, int type, const char *address,
		   uint16_t port)
{
	struct attempt a = { .type = type, .address = address, .port = port };

	return lab_in(lab->box[box].fd, try, &a);
}

/* Accepts, and checks where it was going and by which link it came. */
static void assert_accepted(struct lab *lab, int listener, const char *address,
			    uint16_t port, const char *ifname)
{
	union sockaddr_any sa;
	socklen_t len = sizeof(sa);
	char text[IP_TEXT_MAX];
	uint32_t index, wanted;

	assert_true(readable(listener, 1000));
	AUTO_FD int fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, &sa.sa, &len), 0);
	const struct ip local = ip_from_sockaddr(&sa);
	assert_string_equal(ip_format(&local, text), address);
	assert_int_equal(port_from_sockaddr(&sa), port);
	assert_int_equal(sock_ingress(fd, &index), 0);
	assert_int_equal(link_index(lab->gateway.route, ifname, &wanted), 0);
	assert_int_equal(index, wanted);
}

static void test_flow(void **state)
{
	struct lab *lab = *state;

	lab_flow(lab, "spA", "198.18.0.7", 443);
	lab_flow(lab, "spB", "198.18.0.7", 22);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.18.0.7", 443), 0);
	assert_accepted(lab, lab->transparent, "198.18.0.7", 443, "spA");
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.18.0.7", 22), 0);
	assert_accepted(lab, lab->transparent, "198.18.0.7", 22, "spB");
	assert_int_equal(counters(lab).refused, 0);
	/* What is the other's is not ours. */
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.18.0.7", 22),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.18.0.7", 443),
			 ECONNREFUSED);
	/* UDP to a leased address and port is no flow. */
	assert_int_equal(attempt(lab, 0, SOCK_DGRAM, "198.18.0.7", 443),
			 ECONNREFUSED);
	assert_false(readable(lab->transparent, 50));
}

static void test_ranges(void **state)
{
	const struct port_range ports = { 8000, 8010 };
	struct lab *lab = *state;
	struct cidr net;

	assert_true(cidr_parse("198.51.100.64/26", &net));
	assert_int_equal(ruleset_flow_add(lab->nft, "spA", &net, &ports, 1), 0);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.64", 8000),
			 0);
	assert_accepted(lab, lab->transparent, "198.51.100.64", 8000, "spA");
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.127", 8010),
			 0);
	assert_accepted(lab, lab->transparent, "198.51.100.127", 8010, "spA");
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.63", 8000),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.128", 8000),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.64", 7999),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.64", 8011),
			 ECONNREFUSED);
}

static void test_explicit(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.19.0.1", LAB_PROXY),
			 0);
	assert_accepted(lab, lab->proxy, "198.19.0.1", LAB_PROXY, "spA");
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.19.0.5", LAB_PROXY),
			 0);
	assert_accepted(lab, lab->proxy, "198.19.0.5", LAB_PROXY, "spB");
}

/* Every other door of the gateway, and every other way, is shut at once. */
static void test_refused(void **state)
{
	static const struct {
		int type;
		const char *address;
		uint16_t port;
		const char *intent;
	} row[] = {
		{ SOCK_STREAM, "198.19.0.1", LAB_TRANSPARENT, "direct IP" },
		{ SOCK_STREAM, "198.19.0.1", 22, "SSH" },
		{ SOCK_STREAM, "198.19.0.5", LAB_PROXY, "direct IP" },
		{ SOCK_STREAM, "198.19.0.6", 80, "direct IP" },
		{ SOCK_STREAM, "198.18.0.9", LAB_TRANSPARENT, "direct IP" },
		{ SOCK_STREAM, "1.1.1.1", 443, "direct IP" },
		{ SOCK_STREAM, "1.1.1.1", 853, "DNS over TLS" },
		{ SOCK_STREAM, "169.254.169.254", 80, "cloud metadata" },
		{ SOCK_STREAM, "10.0.0.1", 25, "SMTP" },
		{ SOCK_STREAM, "1.1.1.1", LAB_PROXY, "direct IP" },
		{ SOCK_DGRAM, "198.19.0.1", LAB_PROXY, "UDP" },
		{ SOCK_DGRAM, "198.19.0.1", 54, "UDP" },
		{ SOCK_DGRAM, "8.8.8.8", 443, "QUIC" },
		{ SOCK_DGRAM, "8.8.8.8", 123, "NTP" },
	};
	struct lab *lab = *state;
	char text[IP_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		uint64_t before = counters(lab).refused;
		int r = attempt(lab, 0, row[i].type, row[i].address,
				row[i].port);

		if (r != ECONNREFUSED)
			fail_msg("%s:%u: %d", row[i].address, row[i].port, r);
		assert_int_equal(counters(lab).refused, before + 1);
		const struct seen seen = read_log(lab);
		assert_int_equal(seen.n, 1);
		assert_string_equal(seen.last.prefix, "refused");
		assert_string_equal(ip_format(&seen.last.dst, text),
				    row[i].address);
		assert_string_equal(ip_format(&seen.last.src, text),
				    "198.19.0.2");
		assert_int_equal(seen.last.dst_port, row[i].port);
		assert_int_equal(seen.last.l4, row[i].type == SOCK_STREAM
						       ? IPPROTO_TCP
						       : IPPROTO_UDP);
		assert_string_equal(nflog_intent(&seen.last, 1), row[i].intent);
	}
	assert_false(readable(lab->transparent, 20));
	assert_false(readable(lab->proxy, 0));
	assert_int_equal(counters(lab).forwarded, 0);
}

static int many_refusals(void *arg)
{
	struct attempt a = { .type = SOCK_DGRAM,
			     .address = "8.8.8.8",
			     .port = 9000 };

	(void)arg;
	for (int i = 0; i < 300; i++)
		if (try(&a) != ECONNREFUSED)
			return i < 255 ? i + 1 : 255;
	return 0;
}

/* No limit of ICMP errors makes the second try of a program hang. */
static void test_no_rate_limit(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(lab_in(lab->box[0].fd, many_refusals, NULL), 0);
	assert_int_equal(counters(lab).refused, 300);
	assert_int_equal(read_log(lab).n, 300);
}

/* Sends one packet of a protocol and waits for an ICMP error with the code. */
static int raw_refused(void *arg)
{
	const int protocol = *(int *)arg;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(0x08080808) };
	const struct timeval limit = { .tv_usec = 500000 };
	uint8_t data[16] = { 8 }, answer[256];

	AUTO_FD int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, protocol);
	AUTO_FD int icmp =
		socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	setsockopt(icmp, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (protocol == IPPROTO_ICMP) {
		data[2] = 0xf7; /* checksum of an echo request of zeroes */
		data[3] = 0xff;
	}
	if (sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to,
		   sizeof(to)) < 0)
		return 1;
	ssize_t n = recv(icmp, answer, sizeof(answer), 0);
	if (n < 28 || answer[20] != ICMP_DEST_UNREACH)
		return 2;
	return answer[21] == ICMP_PKT_FILTERED ? 0 : 3;
}

static void test_protocols(void **state)
{
	/* The kernel answers no packet whose checksum it finds wrong, and looks
	 * for one where some protocols, for some kernels, have none. */
	static const struct {
		int protocol;
		const char *name;
		bool either;
	} row[] = {
		{ IPPROTO_ICMP, "icmp", false },
		{ IPPROTO_SCTP, "sctp", false },
		{ IPPROTO_GRE, "gre", false },
		{ IPPROTO_DCCP, "dccp", true },
		{ IPPROTO_UDPLITE, "udplite", true },
		{ IPPROTO_ESP, "esp", false },
		{ IPPROTO_IPV6, "ipv6", true },
		{ IPPROTO_IPIP, "ipip", true },
		{ 253, "ip-253", true },
	};
	struct lab *lab = *state;
	char name[16];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		int protocol = row[i].protocol;
		int r = lab_in(lab->box[0].fd, raw_refused, &protocol);

		if (r && !row[i].either)
			fail_msg("%s: %d", row[i].name, r);
		assert_int_equal(counters(lab).refused, i + 1);
		const struct seen seen = read_log(lab);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.last.l4, protocol);
		assert_string_equal(nflog_protocol(seen.last.l4, name),
				    row[i].name);
	}
}

static int ask_dns(void *arg)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(53),
				  .sin_addr.s_addr = htonl(0x08080808) };
	const struct timeval limit = { .tv_sec = 3 };
	char answer[16];

	(void)arg;
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	/* Connected: an answer from any other address would not be taken. */
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    send(fd, "query", 5, 0) != 5)
		return 1;
	ssize_t n = recv(fd, answer, sizeof(answer), 0);
	return n == 5 && memcmp(answer, "reply", 5) == 0 ? 0 : 2;
}

/* Answers one question on @fd from the address it was sent to. */
static void answer_dns(int fd, const char *wanted, const char *ifname,
		       struct lab *lab)
{
	union {
		char buf[256];
		struct cmsghdr align;
	} control;
	union sockaddr_any peer;
	char data[64], text[IP_TEXT_MAX];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = { .msg_name = &peer,
			      .msg_namelen = sizeof(peer),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct in_pktinfo info = { 0 };
	uint32_t index;

	assert_true(readable(fd, 2000));
	ssize_t n = recvmsg(fd, &msg, 0);
	assert_int_equal(n, 5);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&info, CMSG_DATA(c), sizeof(info));
	const struct ip dst = ip_v4(ntohl(info.ipi_addr.s_addr));
	assert_string_equal(ip_format(&dst, text), wanted);
	assert_int_equal(link_index(lab->gateway.route, ifname, &index), 0);
	assert_int_equal(info.ipi_ifindex, index);

	info.ipi_spec_dst = info.ipi_addr;
	iov.iov_len = 5;
	memcpy(data, "reply", 5);
	memset(&control, 0, sizeof(control));
	msg.msg_controllen = CMSG_SPACE(sizeof(info));
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	assert_int_equal(sendmsg(fd, &msg, 0), 5);
}

static void test_dns(void **state)
{
	struct lab *lab = *state;
	int status;

	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(lab_in(lab->box[0].fd, ask_dns, NULL));
	answer_dns(lab->dns_udp, "8.8.8.8", "spA", lab);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "9.9.9.9", 53), 0);
	assert_accepted(lab, lab->dns_tcp, "9.9.9.9", 53, "spB");
	/* Also at the gateway's own address. */
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.19.0.1", 53), 0);
	assert_accepted(lab, lab->dns_tcp, "198.19.0.1", 53, "spA");
	assert_int_equal(counters(lab).refused, 0);
}

static void test_spoofed(void **state)
{
	static const char *const src[] = {
		"198.19.0.6", "198.19.0.1", "198.19.0.3", "10.0.0.1",
		"127.0.0.1",  "0.0.0.0",    "224.0.0.1",  "255.255.255.255",
	};
	static const struct {
		const char *dst;
		uint8_t l4;
		uint16_t port;
	} to[] = {
		{ "8.8.8.8", IPPROTO_UDP, 53 },
		{ "198.19.0.1", IPPROTO_UDP, 53 },
		{ "8.8.8.8", IPPROTO_UDP, 4444 },
		{ "255.255.255.255", IPPROTO_UDP, 67 },
		{ "198.19.0.6", IPPROTO_ICMP, 0x0800 },
	};
	struct lab *lab = *state;
	AUTO_FD int capture = frame_capture(lab, 0);
	AUTO_FD int victim = frame_capture(lab, 1);
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(src); i++)
		for (size_t j = 0; j < ARRAY_SIZE(to); j++) {
			const struct frame frame = { .src = src[i],
						     .dst = to[j].dst,
						     .l4 = to[j].l4,
						     .port = to[j].port };
			frame_send(lab, 0, &frame);
			assert_int_equal(counters(lab).spoofed, ++n);
			const struct seen seen = read_log(lab);
			assert_int_equal(seen.n, 1);
			assert_string_equal(seen.last.prefix, "spoofed");
			assert_string_equal(nflog_intent(&seen.last, 1),
					    "forged address");
		}
	assert_false(readable(lab->dns_udp, 20));
	assert_int_equal(frame_count(capture), 0);
	assert_int_equal(frame_count(victim), 0);
	assert_int_equal(counters(lab).refused, 0);
}

/* Destinations that must not even be answered. */
static void test_martians(void **state)
{
	static const struct {
		const char *dst;
		bool broadcast;
	} row[] = {
		{ "127.0.0.1", false },	      { "0.0.0.0", false },
		{ "0.1.2.3", false },	      { "224.0.0.251", false },
		{ "239.1.1.1", true },	      { "255.255.255.255", true },
		{ "255.255.255.255", false }, { "240.0.0.1", false },
		{ "198.19.0.3", true },	      { "8.8.8.8", true },
	};
	static const uint16_t port[] = { 53, 3128, 4000 };
	struct lab *lab = *state;
	AUTO_FD int capture = frame_capture(lab, 0);
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		for (size_t j = 0; j < ARRAY_SIZE(port); j++) {
			const struct frame frame = {
				.src = "198.19.0.2",
				.dst = row[i].dst,
				.l4 = IPPROTO_UDP,
				.port = port[j],
				.broadcast = row[i].broadcast,
			};
			frame_send(lab, 0, &frame);
			if (counters(lab).refused != ++n)
				fail_msg("%s:%u not counted", row[i].dst,
					 port[j]);
			assert_int_equal(read_log(lab).n, 1);
		}
	assert_false(readable(lab->dns_udp, 20));
	assert_int_equal(frame_count(capture), 0);
}

/* A question in two fragments is never put together. */
static void test_fragments(void **state)
{
	static const struct frame row[] = {
		/* More fragments follow: whole header, then the rest. */
		{ .fragment = 0x2000, .payload = 16 },
		{ .fragment = 3, .payload = 8, .bare = true },
		/* Overlapping the header. */
		{ .fragment = 0x2000, .payload = 0 },
		{ .fragment = 1, .payload = 32, .bare = true },
		/* The only one, and yet marked. */
		{ .fragment = 0x2001, .payload = 8, .bare = true },
	};
	struct lab *lab = *state;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct frame frame = row[i];

		frame.src = "198.19.0.2";
		frame.dst = "8.8.8.8";
		frame.l4 = IPPROTO_UDP;
		frame.port = 53;
		frame_send(lab, 0, &frame);
		assert_int_equal(counters(lab).refused, i + 1);
		const struct seen seen = read_log(lab);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.last.dst_port, frame.bare ? 0 : 53);
	}
	assert_false(readable(lab->dns_udp, 20));
	/* The same without the mark arrives. "Don't fragment" is none. */
	const struct frame whole = { .src = "198.19.0.2",
				     .dst = "8.8.8.8",
				     .l4 = IPPROTO_UDP,
				     .port = 53,
				     .fragment = 0x4000 };
	frame_send(lab, 0, &whole);
	assert_true(readable(lab->dns_udp, 1000));
}

static void test_ipv6(void **state)
{
	static const char *const dst[] = { "2606:4700::1111", "fe80::1",
					   "ff02::1", "::1", "::ffff:8.8.8.8" };
	struct lab *lab = *state;
	char *argv[] = { "ip", "-6", "addr", NULL };
	char text[1024];
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dst); i++) {
		uint64_t before = counters(lab).ipv6;

		frame_send_ipv6(lab, 0, "2001:db8::1", dst[i], 53);
		/* The kernel itself drops loopback and mapped addresses that
		 * come by a link, before any rule. */
		if (counters(lab).ipv6 == before)
			continue;
		n++;
		const struct seen seen = read_log(lab);
		assert_int_equal(seen.n, 1);
		assert_string_equal(seen.last.prefix, "ipv6");
		assert_int_equal(seen.last.ethertype, ETH_P_IPV6);
		assert_int_equal(seen.last.dst_port, 53);
	}
	assert_in_range(n, 3, 5);
	assert_false(readable(lab->dns_udp, 20));
	assert_int_equal(counters(lab).refused, 0);
	assert_int_equal(counters(lab).spoofed, 0);
	/* Nobody has an IPv6 address but the gateway's loopback. */
	lab_output(lab->box[0].fd, argv, text, sizeof(text));
	assert_string_equal(text, "");
	lab_output(lab->gateway.fd, argv, text, sizeof(text));
	assert_null(strstr(text, "fe80"));
}

/* Other ethertypes reach nothing and hurt nothing. */
static void test_ethertypes(void **state)
{
	static const uint16_t type[] = { 0x8100, 0x88a8, 0x8847, 0x8863,
					 0x88cc, 0x0800, 0x86dd, 0x0806 };
	static const uint8_t junk[64] = { 0x46, 0, 0xff };
	struct lab *lab = *state;

	for (size_t i = 0; i < ARRAY_SIZE(type); i++)
		frame_send_raw(lab, 0, type[i], junk, sizeof(junk));
	assert_int_equal(counters(lab).forwarded, 0);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.19.0.1", LAB_PROXY),
			 0);
	assert_accepted(lab, lab->proxy, "198.19.0.1", LAB_PROXY, "spA");
}

/* TPROXY without a listener must not let the packet go on. */
static void test_no_listener(void **state)
{
	struct lab *lab = *state;

	lab_flow(lab, "spA", "198.18.0.7", 443);
	close(lab->transparent);
	close(lab->dns_tcp);
	close(lab->dns_udp);
	lab->transparent = lab->dns_tcp = lab->dns_udp = -1;
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.18.0.7", 443),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "8.8.8.8", 53),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_DGRAM, "8.8.8.8", 53),
			 ECONNREFUSED);
	assert_int_equal(counters(lab).refused, 3);
}

/* A link that is gone is nobody's: silence, also for the proxy's port. */
static void test_link_gone(void **state)
{
	const struct frame frame = { .src = "198.19.0.2",
				     .dst = "8.8.8.8",
				     .l4 = IPPROTO_UDP,
				     .port = 53 };
	struct lab *lab = *state;

	assert_int_equal(ruleset_link_del(lab->nft, &lab->link[0], LAB_PROXY),
			 0);
	frame_send(lab, 0, &frame);
	assert_int_equal(counters(lab).spoofed, 1);
	assert_false(readable(lab->dns_udp, 20));
	/* The other one is not concerned. */
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.19.0.5", LAB_PROXY),
			 0);
	/* Nor may it use the address that is free now. */
	frame_send(lab, 1, &frame);
	assert_int_equal(counters(lab).spoofed, 2);
}

static int forwarding_on(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_sysctl("ipv4/ip_forward", "1");
}

/* With a hole in the first chain and forwarding on, there is the second. */
static void test_forward(void **state)
{
	struct lab *lab = *state;
	AUTO_FD int victim = frame_capture(lab, 1);

	assert_int_equal(lab_nft(lab, "insert rule inet sallyport pre "
				      "ip daddr 198.19.0.6 accept"),
			 0);
	assert_int_equal(
		netns_enter(lab->gateway.fd, forwarding_on, NULL, NULL, NULL),
		0);
	assert_int_not_equal(attempt(lab, 0, SOCK_DGRAM, "198.19.0.6", 9), 0);
	assert_int_equal(counters(lab).forwarded, 1);
	const struct seen seen = read_log(lab);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.last.prefix, "forwarded");
	assert_int_equal(frame_count(victim), 0);
}

/* Without the table the namespace still leads nowhere. */
static void test_no_rules(void **state)
{
	struct lab *lab = *state;
	AUTO_FD int victim = frame_capture(lab, 1);

	assert_int_equal(lab_nft(lab, "flush ruleset"), 0);
	assert_int_not_equal(attempt(lab, 0, SOCK_STREAM, "1.1.1.1", 443), 0);
	assert_int_not_equal(attempt(lab, 0, SOCK_DGRAM, "198.19.0.6", 9), 0);
	assert_int_equal(frame_count(victim), 0);
	struct ruleset_counters c;
	assert_int_not_equal(ruleset_counters(lab->nft, &c), 0);
}

#define LAB_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* --- what is published --------------------------------------------------- */

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define URG 0x20

struct place {
	const char *address;
	uint16_t port;
	bool listens;
};

/* A socket bound there, in whichever namespace this is run. */
static int bound_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct place *place = arg;
	union sockaddr_any sa;
	const int on = 1;
	struct ip ip;
	int fd;

	if (!ip_parse(place->address, &ip))
		return -EINVAL;
	if (place->listens) {
		fd = sock_listen_tcp(&ip, place->port, false);
	} else {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, &sa.sa, ip_to_sockaddr(&ip, place->port, &sa)) < 0)
			return -errno;
	}
	if (fd < 0)
		return fd;
	ret_fds[0] = fd;
	*ret_n = 1;
	return 0;
}

static int bound_in(int ns_fd, const char *address, uint16_t port, bool listens)
{
	struct place place = { address, port, listens };
	int fds[8];
	size_t n = 0;

	assert_int_equal(netns_enter(ns_fd, bound_inside, &place, fds, &n), 0);
	assert_int_equal(n, 1);
	return fds[0];
}

/* Is @fd connected to @address soon? */
static bool connects(int fd, const char *address, uint16_t port)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	union sockaddr_any sa;
	socklen_t len = sizeof(int);
	int error = 0;
	struct ip ip;

	assert_true(ip_parse(address, &ip));
	if (connect(fd, &sa.sa, ip_to_sockaddr(&ip, port, &sa)) < 0 &&
	    errno != EINPROGRESS)
		return false;
	if (poll(&p, 1, 500) != 1)
		return false;
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return !error;
}

static void publish(struct lab *lab, int box)
{
	lab->link[box].published = true;
	assert_int_equal(ruleset_link_publish(lab->nft, &lab->link[box]), 0);
}

static void test_published(void **state)
{
	struct lab *lab = *state;
	AUTO_FD int server = bound_in(lab->box[0].fd, "0.0.0.0", 3000, true);
	AUTO_FD int other = bound_in(lab->box[1].fd, "0.0.0.0", 3000, true);
	AUTO_FD int before = bound_in(lab->gateway.fd, "198.19.0.1",
				      RULESET_DIAL_FIRST, false);
	char data[8];

	/* Nothing comes back where nothing is published. */
	assert_false(connects(before, "198.19.0.2", 3000));
	assert_true(counters(lab).refused > 0);
	publish(lab, 0);

	AUTO_FD int first = bound_in(lab->gateway.fd, "198.19.0.1",
				     RULESET_DIAL_FIRST + 1, false);
	AUTO_FD int last = bound_in(lab->gateway.fd, "198.19.0.1",
				    RULESET_DIAL_LAST, false);
	AUTO_FD int below = bound_in(lab->gateway.fd, "198.19.0.1",
				     RULESET_DIAL_FIRST - 1, false);
	AUTO_FD int above = bound_in(lab->gateway.fd, "198.19.0.1",
				     RULESET_DIAL_LAST + 1, false);
	AUTO_FD int to_other = bound_in(lab->gateway.fd, "198.19.0.5",
					RULESET_DIAL_FIRST, false);

	assert_true(connects(first, "198.19.0.2", 3000));
	assert_true(connects(last, "198.19.0.2", 3000));
	assert_false(connects(below, "198.19.0.2", 3000));
	assert_false(connects(above, "198.19.0.2", 3000));
	assert_false(connects(to_other, "198.19.0.6", 3000));
	assert_true(readable(server, 1000));
	AUTO_FD int accepted = accept(server, NULL, NULL);
	assert_int_equal(send(first, "hello", 5, 0), 5);
	(void)send(last, "hello", 5, 0);
	assert_true(readable(accepted, 1000));
	assert_int_equal(recv(accepted, data, sizeof(data), 0), 5);
	assert_int_equal(send(accepted, "world", 5, 0), 5);
	/* A RST comes through, so that it fails at once. */
	AUTO_FD int closed = bound_in(lab->gateway.fd, "198.19.0.1",
				      RULESET_DIAL_FIRST + 2, false);
	assert_false(connects(closed, "198.19.0.2", 3001));
	assert_false(readable(other, 0));
}

/* A gate that was taken over may even listen there: the sandbox still can't
 * begin a connection, with whatever flags. */
static void test_published_lets_none_begin(void **state)
{
	static const uint8_t flags[] = {
		SYN,	    SYN | FIN,	SYN | RST,
		SYN | PSH,  SYN | URG,	SYN | FIN | PSH | URG,
		SYN | 0x40, SYN | 0x80, SYN | 0xc0,
	};
	static const uint8_t harmless[] = {
		ACK, ACK | PSH, ACK | FIN, SYN | ACK, SYN | ACK | PSH, FIN, 0
	};
	const uint16_t port = RULESET_DIAL_FIRST + 56;
	struct lab *lab = *state;

	publish(lab, 0);
	AUTO_FD int listener =
		bound_in(lab->gateway.fd, "198.19.0.1", port, true);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		uint64_t before = counters(lab).refused;

		frame_send_tcp(lab, 0, "198.19.0.2", 4000, "198.19.0.1", port,
			       flags[i]);
		for (int ms = 0; ms < 1000 && counters(lab).refused == before;
		     ms++)
			usleep(1000);
		if (counters(lab).refused != before + 1)
			fail_msg("flags %02x were let in", flags[i]);
	}
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.19.0.1", port),
			 ECONNREFUSED);
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		frame_send_tcp(lab, 0, "198.19.0.2", (uint16_t)(5000 + i),
			       "198.19.0.1", port, harmless[i]);
	assert_false(readable(listener, 100));
}

/* Both ends send a SYN: TCP would make that a connection. */
static void test_published_simultaneous(void **state)
{
	const uint16_t port = RULESET_DIAL_FIRST + 57;
	struct lab *lab = *state;
	union sockaddr_any sa;
	char *flush[] = { "ip", "addr", "flush", "dev", "eth0", NULL };
	struct ip ip = ip_v4(0xc6130002);
	char text[64];
	int error = 0;
	socklen_t len = sizeof(error);

	publish(lab, 0);
	/* Nobody answers, and nobody refuses. */
	lab_output(lab->box[0].fd, flush, text, sizeof(text));
	AUTO_FD int fd = bound_in(lab->gateway.fd, "198.19.0.1", port, false);
	assert_int_equal(connect(fd, &sa.sa, ip_to_sockaddr(&ip, 4001, &sa)),
			 -1);
	assert_int_equal(errno, EINPROGRESS);
	uint64_t before = counters(lab).refused;
	frame_send_tcp(lab, 0, "198.19.0.2", 4001, "198.19.0.1", port, SYN);
	for (int ms = 0; ms < 1000 && counters(lab).refused == before; ms++)
		usleep(1000);
	assert_true(counters(lab).refused > before);
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size),
			 0);
	assert_int_equal(info.tcpi_state, TCP_SYN_SENT);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	assert_int_equal(error, 0);
}

/* Nor does anything else of it become reachable. */
static void test_published_is_narrow(void **state)
{
	static const struct {
		int box;
		const char *src, *dst;
		uint16_t port;
		bool spoofed;
	} row[] = {
		{ 0, "198.19.0.2", "198.19.0.1", RULESET_DIAL_FIRST - 1,
		  false },
		{ 0, "198.19.0.2", "198.19.0.1", RULESET_DIAL_LAST + 1, false },
		{ 0, "198.19.0.2", "198.19.0.1", 3129, false },
		{ 0, "198.19.0.2", "198.19.0.5", RULESET_DIAL_FIRST, false },
		{ 0, "198.19.0.2", "198.19.0.6", RULESET_DIAL_FIRST, false },
		{ 0, "198.19.0.2", "93.184.216.34", RULESET_DIAL_FIRST, false },
		{ 0, "198.19.0.6", "198.19.0.1", RULESET_DIAL_FIRST, true },
		{ 1, "198.19.0.6", "198.19.0.5", RULESET_DIAL_FIRST, false },
		{ 1, "198.19.0.6", "198.19.0.1", RULESET_DIAL_FIRST, false },
		{ 1, "198.19.0.2", "198.19.0.1", RULESET_DIAL_FIRST, true },
	};
	struct lab *lab = *state;

	publish(lab, 0);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const struct ruleset_counters was = counters(lab);
		struct ruleset_counters is = was;

		frame_send_tcp(lab, row[i].box, row[i].src, 4000, row[i].dst,
			       row[i].port, ACK);
		for (int ms = 0; ms < 1000 && is.refused == was.refused &&
				 is.spoofed == was.spoofed;
		     ms++) {
			usleep(1000);
			is = counters(lab);
		}
		if (is.refused - was.refused != !row[i].spoofed ||
		    is.spoofed - was.spoofed != row[i].spoofed)
			fail_msg("row %zu", i);
	}
	/* UDP to such a port is refused as ever. */
	assert_int_equal(
		attempt(lab, 0, SOCK_DGRAM, "198.19.0.1", RULESET_DIAL_FIRST),
		ECONNREFUSED);
}

int packets_run(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(test_flow),
		LAB_TEST(test_ranges),
		LAB_TEST(test_explicit),
		LAB_TEST(test_refused),
		LAB_TEST(test_no_rate_limit),
		LAB_TEST(test_protocols),
		LAB_TEST(test_dns),
		LAB_TEST(test_spoofed),
		LAB_TEST(test_martians),
		LAB_TEST(test_fragments),
		LAB_TEST(test_ipv6),
		LAB_TEST(test_ethertypes),
		LAB_TEST(test_no_listener),
		LAB_TEST(test_link_gone),
		LAB_TEST(test_forward),
		LAB_TEST(test_no_rules),
		LAB_TEST(test_published),
		LAB_TEST(test_published_lets_none_begin),
		LAB_TEST(test_published_simultaneous),
		LAB_TEST(test_published_is_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
