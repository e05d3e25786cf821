/* SPDX-License-Identifier: Apache-2.0
 *
 * test_nflog.c - messages as the kernel makes them, and as it never would.
 */
#include "tests/firewall/nflog_case.h"

static const uint8_t syn[] = {
	0x45, 0,  0, 40, 0, 0, 0x40, 0, 64,   IPPROTO_TCP, 0,	 0,
	198,  19, 0, 2,	 8, 8, 4,    4, 0x9c, 0x40,	   0x01, 0xbb,
	0,    0,  0, 0,	 0, 0, 0,    0, 0x50, 2,	   0,	 0,
};

static const uint8_t quic6[] = {
	0x60, 0,    0,	  0,	0,    16,	   IPPROTO_HOPOPTS,
	64,   0x20, 1,	  0xd,	0xb8, 0,	   0,
	0,    0,    0,	  0,	0,    0,	   0,
	0,    0,    1,	  0x26, 6,    0x47,	   0,
	0,    0,    0,	  0,	0,    0,	   0,
	0,    0,    0,	  0x11, 0x11, IPPROTO_UDP, 0,
	1,    4,    0,	  0,	0,    0,	   0x9c,
	0x40, 0x01, 0xbb, 0,	8,    0,	   0,
};

static void test_fields(void **state)
{
	struct datagram d = { .len = 0 };
	char a[IP_TEXT_MAX];

	(void)state;
	packet(&d, ETH_P_IP, syn, sizeof(syn));
	struct result r = parse(&d);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.last.prefix, "refused");
	assert_int_equal(r.last.ifindex, 42);
	assert_int_equal(r.last.ethertype, ETH_P_IP);
	assert_int_equal(r.last.l4, IPPROTO_TCP);
	assert_string_equal(ip_format(&r.last.src, a), "198.19.0.2");
	assert_string_equal(ip_format(&r.last.dst, a), "8.8.4.4");
	assert_int_equal(r.last.src_port, 40000);
	assert_int_equal(r.last.dst_port, 443);
	/* Several in one datagram, another kind between, the end's word. */
	message(&d, NFNL_SUBSYS_NFTABLES << 8);
	end(&d);
	packet(&d, ETH_P_IPV6, quic6, sizeof(quic6));
	message(&d, NLMSG_DONE);
	end(&d);
	r = parse(&d);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.last.l4, IPPROTO_UDP);
	assert_int_equal(r.last.dst_port, 443);
	assert_string_equal(ip_format(&r.last.dst, a), "2606:4700::1111");
}

/* Whatever is cut off, what was there before it is still told. */
/* What an interface was about to send: its header comes first, if it has one.
 */
static void test_frames(void **state)
{
	static const struct {
		uint8_t before[20];
		size_t len;
		bool read;
	} link[] = {
		{ { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0 }, 14, true },
		{ { 0 }, 0, true },
		{ { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 6 }, 14, false },
		{ { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8 }, 13, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(link); i++) {
		uint8_t frame[64];
		struct datagram d = { .len = 0 };

		memcpy(frame, link[i].before, link[i].len);
		memcpy(frame + link[i].len, syn, sizeof(syn));
		packet(&d, ETH_P_IP, frame, link[i].len + sizeof(syn));
		d.data[sizeof(struct nlmsghdr)] = NFPROTO_NETDEV;
		struct result r = parse(&d);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.last.dst_port, link[i].read ? 443 : 0);
		assert_int_equal(r.last.l4, link[i].read ? IPPROTO_TCP : 0);
		/* Of IP it is what it always was. */
		d.data[sizeof(struct nlmsghdr)] = AF_INET;
		r = parse(&d);
		assert_int_equal(r.last.dst_port, link[i].len ? 0 : 443);
	}
	/* Nothing but the header, and less. */
	for (size_t n = 0; n <= 14; n++) {
		struct datagram d = { .len = 0 };

		packet(&d, ETH_P_IP, link[0].before, n);
		d.data[sizeof(struct nlmsghdr)] = NFPROTO_NETDEV;
		assert_int_equal(parse(&d).last.l4, 0);
	}
}

static void test_short_packets(void **state)
{
	(void)state;
	for (size_t len = 0; len <= sizeof(syn); len++) {
		struct datagram d = { .len = 0 };

		packet(&d, ETH_P_IP, syn, len);
		const struct result r = parse(&d);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.last.l4, len < 20 ? 0 : IPPROTO_TCP);
		assert_int_equal(r.last.dst.len, len < 20 ? 0 : 4);
		assert_int_equal(r.last.dst_port, len < 24 ? 0 : 443);
	}
	for (size_t len = 0; len <= sizeof(quic6); len++) {
		struct datagram d = { .len = 0 };

		packet(&d, ETH_P_IPV6, quic6, len);
		const struct result r = parse(&d);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.last.dst.len, len < 40 ? 0 : 16);
		assert_int_equal(r.last.dst_port,
				 len < sizeof(quic6) - 4 ? 0 : 443);
	}
}

static void test_odd_packets(void **state)
{
	struct datagram d = { .len = 0 };
	uint8_t odd[sizeof(syn)];

	(void)state;
	/* A header length below 20, and another version. */
	memcpy(odd, syn, sizeof(odd));
	odd[0] = 0x44;
	packet(&d, ETH_P_IP, odd, sizeof(odd));
	assert_int_equal(parse(&d).last.l4, 0);
	odd[0] = 0x65;
	d.len = 0;
	packet(&d, ETH_P_IP, odd, sizeof(odd));
	assert_int_equal(parse(&d).last.dst.len, 0);
	/* A later fragment has no ports. */
	memcpy(odd, syn, sizeof(odd));
	odd[7] = 1;
	d.len = 0;
	packet(&d, ETH_P_IP, odd, sizeof(odd));
	assert_int_equal(parse(&d).last.l4, IPPROTO_TCP);
	assert_int_equal(parse(&d).last.dst_port, 0);
	/* Options are skipped: these reach past the end. */
	memcpy(odd, syn, sizeof(odd));
	odd[0] = 0x4f;
	d.len = 0;
	packet(&d, ETH_P_IP, odd, sizeof(odd));
	assert_int_equal(parse(&d).last.dst_port, 0);
	/* Some other ethertype is told as it is. */
	d.len = 0;
	packet(&d, ETH_P_ARP, syn, sizeof(syn));
	assert_int_equal(parse(&d).n, 1);
	assert_int_equal(parse(&d).last.ethertype, ETH_P_ARP);
	assert_int_equal(parse(&d).last.l4, 0);
}

static void test_extension_chain(void **state)
{
	uint8_t chain[40 + 30 * 8] = { 0x60, 0, 0, 0, 0, 0, IPPROTO_DSTOPTS };
	struct datagram d = { .len = 0 };

	(void)state;
	for (size_t i = 40; i < sizeof(chain); i += 8)
		chain[i] = IPPROTO_DSTOPTS;
	packet(&d, ETH_P_IPV6, chain, sizeof(chain));
	assert_int_equal(parse(&d).last.l4, IPPROTO_DSTOPTS);
	assert_int_equal(parse(&d).last.dst_port, 0);
	/* A later fragment: the protocol, but no ports. */
	chain[6] = IPPROTO_FRAGMENT;
	chain[40] = IPPROTO_UDP;
	chain[42] = 1;
	d.len = 0;
	packet(&d, ETH_P_IPV6, chain, sizeof(chain));
	assert_int_equal(parse(&d).last.l4, IPPROTO_UDP);
	assert_int_equal(parse(&d).last.dst_port, 0);
}

static void test_long_prefix(void **state)
{
	const struct nfulnl_msg_packet_hdr hdr = { 0 };
	struct datagram d = { .len = 0 };
	char prefix[128];

	(void)state;
	memset(prefix, 'a', sizeof(prefix));
	prefix[sizeof(prefix) - 1] = '\0'; /* as the kernel ends it */
	message(&d, ULOG_PACKET);
	attr(&d, NFULA_PACKET_HDR, &hdr, sizeof(hdr));
	attr(&d, NFULA_PREFIX, prefix, sizeof(prefix));
	end(&d);
	assert_int_equal(strlen(parse(&d).last.prefix), 31);
}

/* Lengths that lie: skipped, and never read past. */
static void test_malformed(void **state)
{
	struct datagram good = { .len = 0 };
	struct result r = { 0 };

	(void)state;
	packet(&good, ETH_P_IP, syn, sizeof(syn));
	for (size_t len = 0; len < good.len; len++) {
		/* On the heap, so that a sanitizer sees the end. */
		uint8_t *copy = malloc(len + 1);

		assert_non_null(copy);
		memcpy(copy, good.data, len);
		assert_int_equal(nflog_parse(copy, len, keep, &r), -EBADMSG);
		free(copy);
	}
	assert_int_equal(r.n, 0);
	static const struct {
		size_t at; /* which length */
		uint16_t value;
	} lie[] = {
		{ 0, 0 },	{ 0, 15 }, { 0, 16 },	   { 0, 19 },
		{ 0, 4096 },	{ 20, 0 }, { 20, 3 },	   { 20, 5 },
		{ 20, 0xffff }, { 28, 2 }, { 28, 0x7fff }, { 40, 5 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(lie); i++) {
		struct datagram d = good;

		memcpy(d.data + lie[i].at, &lie[i].value, sizeof(lie[i].value));
		(void)nflog_parse(d.data, d.len, keep, &r);
		assert_int_equal(r.n, 0);
	}
	/* Lengths that a signed number has no room for. */
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t huge[] = { UINT32_MAX, 0x8e8e8e8e, 0x80000000 };
		struct datagram d = good;

		memcpy(d.data, &huge[i], sizeof(huge[i]));
		assert_int_equal(nflog_parse(d.data, d.len, keep, &r),
				 -EBADMSG);
		assert_int_equal(r.n, 0);
	}
	/* After a bad message a good one is still seen. */
	struct datagram both = { .len = 0 };
	message(&both, ULOG_PACKET);
	attr(&both, NFULA_PREFIX, "x", 1); /* no packet header */
	end(&both);
	packet(&both, ETH_P_IP, syn, sizeof(syn));
	assert_int_equal(parse(&both).n, 1);
}

static void test_bind_errors(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(nflog_bind(-1, 1), -EBADF);
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(nflog_bind(pair[1], 1), -ENOTSOCK);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_short_packets),
		cmocka_unit_test(test_odd_packets),
		cmocka_unit_test(test_extension_chain),
		cmocka_unit_test(test_long_prefix),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_bind_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
