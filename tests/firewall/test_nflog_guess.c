/* SPDX-License-Identifier: Apache-2.0
 *
 * test_nflog_guess.c - what is said of a packet to those who read: its protocol
 * in words, and what it may have been for.
 */
#include "tests/firewall/nflog_case.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_pings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
