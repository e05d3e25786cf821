/* SPDX-License-Identifier: Apache-2.0
 *
 * test_nflog.c - messages as the kernel makes them, and as it never would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
/* wants netinet/in.h */
#include <linux/netfilter.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/wire.h"
#include "firewall/nflog.h"

/* A datagram being written; host byte order as netlink wants it. */
struct datagram {
	uint8_t data[2048];
	size_t len, message;
};

static void put(struct datagram *d, const void *data, size_t len)
{
	assert_true(d->len + len + 4 <= sizeof(d->data));
	memcpy(d->data + d->len, data, len);
	d->len += len;
	while (d->len % 4)
		d->data[d->len++] = 0;
}

static void message(struct datagram *d, uint16_t type)
{
	const struct nlmsghdr nlh = { .nlmsg_type = type };
	const struct nfgenmsg gen = { .nfgen_family = AF_INET };

	d->message = d->len;
	put(d, &nlh, sizeof(nlh));
	put(d, &gen, sizeof(gen));
}

static void end(struct datagram *d)
{
	uint32_t len = (uint32_t)(d->len - d->message);

	memcpy(d->data + d->message, &len, sizeof(len));
}

static void attr(struct datagram *d, uint16_t type, const void *data,
		 size_t len)
{
	const struct nlattr head = { .nla_len = (uint16_t)(4 + len),
				     .nla_type = type };

	put(d, &head, sizeof(head));
	put(d, data, len);
}

#define ULOG_PACKET (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)

/* One whole message about @len bytes of @packet. */
static void packet(struct datagram *d, uint16_t ethertype, const void *packet,
		   size_t len)
{
	const struct nfulnl_msg_packet_hdr hdr = { .hw_protocol =
							   htons(ethertype) };
	const uint32_t index = htonl(42);

	message(d, ULOG_PACKET);
	attr(d, NFULA_PACKET_HDR, &hdr, sizeof(hdr));
	attr(d, NFULA_PREFIX, "refused", 8);
	attr(d, NFULA_IFINDEX_INDEV, &index, sizeof(index));
	attr(d, NFULA_PAYLOAD, packet, len);
	end(d);
}

struct result {
	struct nflog_packet last;
	unsigned n;
};

static void keep(void *arg, const struct nflog_packet *p)
{
	struct result *result = arg;

	assert_non_null(memchr(p->prefix, 0, sizeof(p->prefix)));
	result->last = *p;
	result->n++;
}

static struct result parse(const struct datagram *d)
{
	struct result result = { 0 };

	assert_int_equal(nflog_parse(d->data, d->len, keep, &result), 0);
	return result;
}

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

static void test_words(void **state)
{
	static const struct {
		struct nflog_packet packet;
		const char *intent, *protocol;
	} row[] = {
		{ { .l4 = IPPROTO_TCP, .dst_port = 443 }, "direct IP", "tcp" },
		{ { .l4 = IPPROTO_TCP, .dst_port = 853 },
		  "DNS over TLS",
		  "tcp" },
		{ { .l4 = IPPROTO_TCP, .dst_port = 25 }, "SMTP", "tcp" },
		{ { .l4 = IPPROTO_UDP, .dst_port = 443 }, "QUIC", "udp" },
		{ { .l4 = IPPROTO_UDP, .dst_port = 123 }, "NTP", "udp" },
		{ { .l4 = IPPROTO_UDP, .dst_port = 9 }, "UDP", "udp" },
		{ { .l4 = IPPROTO_ICMP }, "ICMP", "icmp" },
		{ { .l4 = IPPROTO_GRE }, "tunnel", "gre" },
		{ { .l4 = 200 }, "unknown protocol", "ip-200" },
		{ { .l4 = 0 }, "unknown protocol", "ip-0" },
		{ { .l4 = IPPROTO_UDP,
		    .dst_port = 53,
		    .ethertype = ETH_P_IPV6 },
		  "IPv6",
		  "udp" },
		{ { .l4 = IPPROTO_TCP, .prefix = "spoofed" },
		  "forged address",
		  "tcp" },
		{ { .l4 = IPPROTO_UDP,
		    .dst_port = 9,
		    .dst = { .len = 4, .byte = { 239, 1, 1, 1 } } },
		  "multicast",
		  "udp" },
		{ { .l4 = IPPROTO_UDP,
		    .dst_port = 5353,
		    .dst = { .len = 4, .byte = { 224, 0, 0, 251 } } },
		  "mDNS",
		  "udp" },
	};
	char buf[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_string_equal(nflog_intent(&row[i].packet, 1),
				    row[i].intent);
		assert_string_equal(nflog_protocol(row[i].packet.l4, buf),
				    row[i].protocol);
	}
}

static void test_guesses(void **state)
{
	static const struct {
		uint8_t l4;
		uint16_t port;
		const char *intent;
	} row[] = {
		{ IPPROTO_UDP, 853, "DNS over QUIC" },
		{ IPPROTO_TCP, 22, "SSH" },
		{ IPPROTO_TCP, 23, "Telnet" },
		{ IPPROTO_TCP, 587, "SMTP" },
		{ IPPROTO_TCP, 445, "SMB" },
		{ IPPROTO_TCP, 139, "SMB" },
		{ IPPROTO_TCP, 3389, "RDP" },
		{ IPPROTO_TCP, 6660, "IRC" },
		{ IPPROTO_TCP, 6669, "IRC" },
		{ IPPROTO_TCP, 6697, "IRC" },
		{ IPPROTO_TCP, 6670, "direct IP" },
		{ IPPROTO_TCP, 9001, "Tor" },
		{ IPPROTO_TCP, 636, "LDAP" },
		{ IPPROTO_TCP, 5432, "PostgreSQL" },
		{ IPPROTO_TCP, 6379, "Redis" },
		{ IPPROTO_TCP, 0, "direct IP" },
		{ IPPROTO_TCP, 65535, "direct IP" },
		{ IPPROTO_UDP, 500, "IPsec" },
		{ IPPROTO_UDP, 1194, "OpenVPN" },
		{ IPPROTO_UDP, 51820, "WireGuard" },
		{ IPPROTO_UDP, 3478, "STUN" },
		{ IPPROTO_UDP, 19302, "STUN" },
		{ IPPROTO_UDP, 33434, "traceroute" },
		{ IPPROTO_UDP, 65535, "UDP" },
		{ IPPROTO_ESP, 0, "IPsec" },
		{ IPPROTO_SCTP, 22, "SCTP" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const struct nflog_packet packet = { .l4 = row[i].l4,
						     .dst_port = row[i].port };

		assert_string_equal(nflog_intent(&packet, 1), row[i].intent);
	}
	/* Whatever the port. */
	const struct nflog_packet metadata = { .l4 = IPPROTO_TCP,
					       .dst_port = 22,
					       .dst = ip_v4(0xa9fea9fe) };
	assert_string_equal(nflog_intent(&metadata, 1), "cloud metadata");
}

/* A ping is a ping; what is large, or comes more often than one a second, may
 * be more. */
static void test_pings(void **state)
{
	static const struct {
		uint8_t type;
		uint16_t data;
		uint32_t per_second;
		const char *intent;
	} row[] = {
		{ 8, 56, 1, "ICMP" },	       { 8, 56, 10, "ICMP" },
		{ 8, 128, 1, "ICMP" },	       { 8, 129, 1, "ICMP tunnel?" },
		{ 8, 56, 11, "ICMP tunnel?" }, { 0, 1400, 100, "ICMP" },
		{ 3, 1400, 1, "ICMP" },
	};
	uint8_t ping[128] = { 0x45, 0, 0,   0,	0, 0, 0, 0, 64, IPPROTO_ICMP,
			      0,    0, 198, 19, 0, 2, 8, 8, 8,	8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const uint16_t total = htons((uint16_t)(28 + row[i].data));
		struct datagram d = { .len = 0 };

		memcpy(ping + 2, &total, sizeof(total));
		ping[20] = row[i].type;
		/* What the kernel copied is less than what was sent. */
		packet(&d, ETH_P_IP, ping, sizeof(ping));
		const struct nflog_packet p = parse(&d).last;
		assert_int_equal(p.payload, 8 + row[i].data);
		assert_string_equal(nflog_intent(&p, row[i].per_second),
				    row[i].intent);
	}
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
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_pings),
		cmocka_unit_test(test_bind_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
