/* SPDX-License-Identifier: Apache-2.0
 *
 * packets_frames.c - packets that no socket of a sandbox sends: of others, in
 * pieces, of other families.
 */
#include "tests/firewall/packets_case.h"

/* The kernel answers no packet whose checksum it finds wrong, and looks for one
 * where some protocols, for some kernels, have none: @either. */
struct raw {
	int protocol;
	const char *name;
	bool either;
};

/* Sends one packet of a protocol and waits for an ICMP error with the code. */
static int raw_refused(void *arg)
{
	const struct raw *raw = arg;
	const int protocol = raw->protocol;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(0x08080808) };
	const struct timeval limit = { .tv_sec = raw->either ? 0 : 10,
				       .tv_usec = 500000 };
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
	static const struct raw row[] = {
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
		struct raw raw = row[i];
		int r = lab_in(lab->box[0].fd, raw_refused, &raw);

		if (r && !row[i].either)
			fail_msg("%s: %d", row[i].name, r);
		assert_int_equal(COUNTED(lab, refused, i + 1), i + 1);
		const struct seen seen = read_log(lab);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.last.l4, raw.protocol);
		assert_string_equal(nflog_protocol(seen.last.l4, name),
				    row[i].name);
	}
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
			n++;
			assert_int_equal(COUNTED(lab, spoofed, n), n);
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
			n++;
			if (COUNTED(lab, refused, n) != n)
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
		assert_int_equal(COUNTED(lab, refused, i + 1), i + 1);
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
	assert_true(readable(lab->dns_udp, 10000));
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
		if ((i < 3 ? COUNTED(lab, ipv6, before + 1)
			   : counters(lab).ipv6) == before)
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

int packets_frames_run(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(test_protocols), LAB_TEST(test_spoofed),
		LAB_TEST(test_martians),  LAB_TEST(test_fragments),
		LAB_TEST(test_ipv6),	  LAB_TEST(test_ethertypes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
