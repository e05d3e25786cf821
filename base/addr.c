/* SPDX-License-Identifier: Apache-2.0
 *
 * addr.c - IP addresses, prefixes, and which of them are special-purpose.
 *
 * The tables are IANA's special-purpose address registries (RFC 6890 and
 * updates), multicast, and the metadata and platform addresses of clouds that
 * lie in otherwise ordinary space.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct special {
	uint32_t base;
	uint8_t bits;
	const char *word;
};

/* First match wins: the narrower ones stand first. */
static const struct special special4[] = {
	{ 0xa9fea9fe, 32, "metadata" }, /* 169.254.169.254 */
	{ 0x646464c8, 32, "metadata" }, /* 100.100.100.200 (Alibaba) */
	{ 0xa83f8110, 32, "metadata" }, /* 168.63.129.16 (Azure) */
	{ 0xc00000c0, 32, "metadata" }, /* 192.0.0.192 (Oracle) */
	{ 0x00000000, 8, "this network" },
	{ 0x0a000000, 8, "private" },
	{ 0x64400000, 10, "shared (carrier NAT)" },
	{ 0x7f000000, 8, "loopback" },
	{ 0xa9fe0000, 16, "link-local" },
	{ 0xac100000, 12, "private" },
	{ 0xc0000000, 24, "protocol assignments" },
	{ 0xc0000200, 24, "documentation" },
	{ 0xc01fc400, 24, "AS112" },
	{ 0xc034c100, 24, "AMT" },
	{ 0xc0586300, 24, "6to4 relay" },
	{ 0xc0a80000, 16, "private" },
	{ 0xc0af3000, 24, "AS112" },
	{ 0xc6120000, 15, "benchmarking" },
	{ 0xc6336400, 24, "documentation" },
	{ 0xcb007100, 24, "documentation" },
	{ 0xe0000000, 4, "multicast" },
	{ 0xf0000000, 4, "reserved" },
};

struct special6 {
	uint8_t base[16];
	uint8_t bits;
	const char *word;
};

/* Global unicast is 2000::/3; all else is refused by ip_special() itself, but
 * the common ones get a word of their own. */
static const struct special6 special6[] = {
	{ { [15] = 1 }, 128, "loopback" },
	{ { 0 }, 128, "unspecified" },
	{ { 0xfd, 0x00, 0x0e, 0xc2 }, 32, "metadata" }, /* fd00:ec2::254 */
	{ { 0xfe, 0x80 }, 10, "link-local" },
	{ { 0xfe, 0xc0 }, 10, "site-local" },
	{ { 0xfc }, 7, "private" },
	{ { 0xff }, 8, "multicast" },
	{ { 0x01, 0x00 }, 64, "discard-only" },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, "documentation" },
	{ { 0x20, 0x01, 0x00, 0x02 }, 48, "benchmarking" },
	{ { 0x20, 0x01, 0x00 }, 23, "protocol assignments" },
	{ { 0x26, 0x20, 0x00, 0x4f, 0x80, 0x00 }, 48, "AS112" },
	{ { 0x3f, 0xff, 0x00 }, 20, "documentation" },
	{ { 0x3f, 0xfe }, 16, "6bone" },
	{ { 0x5f, 0x00 }, 16, "segment routing" },
};

static bool prefix_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return !rest || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

bool ip_parse(const char *text, struct ip *ret_ip)
{
	struct ip ip = { 0 };

	if (inet_pton(AF_INET, text, ip.byte) == 1)
		ip.len = 4;
	else if (inet_pton(AF_INET6, text, ip.byte) == 1)
		ip.len = 16;
	else
		return false;
	*ret_ip = ip;
	return true;
}

/* inet_ntop() takes ten times as long: it is printf. */
static void ip4_format(const uint8_t byte[4], char *to)
{
	for (size_t i = 0; i < 4; i++) {
		if (byte[i] >= 100)
			*to++ = (char)('0' + byte[i] / 100);
		if (byte[i] >= 10)
			*to++ = (char)('0' + byte[i] / 10 % 10);
		*to++ = (char)('0' + byte[i] % 10);
		*to++ = i < 3 ? '.' : '\0';
	}
}

char *ip_format(const struct ip *ip, char *buf)
{
	buf[0] = '\0';
	if (ip->len == 4)
		ip4_format(ip->byte, buf);
	else if (ip->len == 16)
		inet_ntop(AF_INET6, ip->byte, buf, IP_TEXT_MAX);
	return buf;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return a->len == b->len && memcmp(a->byte, b->byte, a->len) == 0;
}

struct ip ip_v4(uint32_t host_order)
{
	return (struct ip){ .len = 4,
			    .byte = { (uint8_t)(host_order >> 24),
				      (uint8_t)(host_order >> 16),
				      (uint8_t)(host_order >> 8),
				      (uint8_t)host_order } };
}

uint32_t ip_v4_value(const struct ip *ip)
{
	if (ip->len != 4)
		return 0;
	return (uint32_t)ip->byte[0] << 24 | (uint32_t)ip->byte[1] << 16 |
	       (uint32_t)ip->byte[2] << 8 | ip->byte[3];
}

struct ip ip_from_sockaddr(const union sockaddr_any *sa)
{
	struct ip ip = { 0 };

	if (sa->sa.sa_family == AF_INET) {
		ip.len = 4;
		memcpy(ip.byte, &sa->in4.sin_addr, 4);
	} else if (sa->sa.sa_family == AF_INET6) {
		ip.len = 16;
		memcpy(ip.byte, &sa->in6.sin6_addr, 16);
	}
	return ip;
}

uint16_t port_from_sockaddr(const union sockaddr_any *sa)
{
	if (sa->sa.sa_family == AF_INET)
		return ntohs(sa->in4.sin_port);
	if (sa->sa.sa_family == AF_INET6)
		return ntohs(sa->in6.sin6_port);
	return 0;
}

socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port,
			 union sockaddr_any *ret_sa)
{
	memset(ret_sa, 0, sizeof(*ret_sa));
	if (ip->len == 4) {
		ret_sa->in4.sin_family = AF_INET;
		ret_sa->in4.sin_port = htons(port);
		memcpy(&ret_sa->in4.sin_addr, ip->byte, 4);
		return sizeof(ret_sa->in4);
	}
	if (ip->len == 16) {
		ret_sa->in6.sin6_family = AF_INET6;
		ret_sa->in6.sin6_port = htons(port);
		memcpy(&ret_sa->in6.sin6_addr, ip->byte, 16);
		return sizeof(ret_sa->in6);
	}
	return 0;
}

/* Decimal digits only, at most @max. */
static bool parse_number(const char *text, unsigned max, unsigned *ret)
{
	unsigned value = 0;

	if (!*text || strlen(text) > 5)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (unsigned)(*text - '0');
	}
	if (value > max)
		return false;
	*ret = value;
	return true;
}

bool cidr_parse(const char *text, struct cidr *ret_cidr)
{
	char host[IP_TEXT_MAX];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	struct cidr cidr;
	struct ip zero = { 0 };
	unsigned bits;

	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	if (!ip_parse(host, &cidr.ip))
		return false;
	bits = cidr.ip.len * 8u;
	if (slash && !parse_number(slash + 1, bits, &bits))
		return false;
	cidr.bits = (uint8_t)bits;
	/* No host bits: they are a typing error more often than not. */
	zero.len = cidr.ip.len;
	memcpy(zero.byte, cidr.ip.byte, bits / 8);
	if (bits % 8)
		zero.byte[bits / 8] = (uint8_t)(cidr.ip.byte[bits / 8] &
						(0xff00 >> (bits % 8)));
	if (!ip_equal(&zero, &cidr.ip))
		return false;
	*ret_cidr = cidr;
	return true;
}

char *cidr_format(const struct cidr *cidr, char *buf)
{
	ip_format(&cidr->ip, buf);
	size_t len = strlen(buf);

	snprintf(buf + len, CIDR_TEXT_MAX - len, "/%u", cidr->bits);
	return buf;
}

bool cidr_contains(const struct cidr *cidr, const struct ip *ip)
{
	return cidr->ip.len == ip->len &&
	       prefix_equal(cidr->ip.byte, ip->byte, cidr->bits);
}

bool endpoint_parse(const char *text, struct ip *ret_ip, uint16_t *ret_port)
{
	char host[IP_TEXT_MAX];
	const char *colon = strrchr(text, ':');
	const char *from = text;
	unsigned port;
	struct ip ip;

	if (!colon || !parse_number(colon + 1, 65535, &port) || port == 0)
		return false;
	size_t len = (size_t)(colon - text);
	bool bracket = len >= 2 && text[0] == '[' && colon[-1] == ']';
	if (bracket) {
		from++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return false;
	memcpy(host, from, len);
	host[len] = '\0';
	if (!ip_parse(host, &ip) || (ip.len == 16) != bracket)
		return false;
	*ret_ip = ip;
	*ret_port = (uint16_t)port;
	return true;
}

static const char *special_v4(const struct ip *ip)
{
	uint32_t value = ip_v4_value(ip);

	for (size_t i = 0; i < ARRAY_SIZE(special4); i++) {
		const struct special *s = &special4[i];

		if ((value ^ s->base) >> (32 - s->bits) == 0)
			return s->word;
	}
	return NULL;
}

struct ip ip_embedded(const struct ip *ip)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t compatible[12] = { 0 };
	static const uint8_t translated[12] = { [8] = 0xff, [9] = 0xff };
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	static const uint8_t local_nat64[6] = { 0x00, 0x64, 0xff, 0x9b, 0, 1 };
	struct ip v4 = { .len = 4 };
	const uint8_t *b = ip->byte;

	if (ip->len != 16)
		return *ip;
	if (memcmp(b, mapped, 12) == 0 || memcmp(b, nat64, 12) == 0 ||
	    memcmp(b, translated, 12) == 0 ||
	    memcmp(b, local_nat64, sizeof(local_nat64)) == 0) {
		memcpy(v4.byte, b + 12, 4);
	} else if (memcmp(b, compatible, 12) == 0 &&
		   (b[12] || b[13] || b[14] || b[15] > 1)) {
		memcpy(v4.byte, b + 12, 4);
	} else if (b[0] == 0x20 && b[1] == 0x02) { /* 6to4 */
		memcpy(v4.byte, b + 2, 4);
	} else if (b[0] == 0x20 && b[1] == 0x01 && !b[2] && !b[3]) {
		for (int i = 0; i < 4; i++) /* Teredo: obfuscated, RFC 4380 */
			v4.byte[i] = (uint8_t)~b[12 + i];
	} else {
		return *ip;
	}
	return v4;
}

const char *ip_special(const struct ip *ip)
{
	struct ip inner;
	const char *word;

	if (ip->len == 4)
		return special_v4(ip);
	if (ip->len != 16)
		return "no address";
	inner = ip_embedded(ip);
	if (inner.len == 4) {
		word = special_v4(&inner);
		return word ? word : "transition";
	}
	for (size_t i = 0; i < ARRAY_SIZE(special6); i++) {
		if (prefix_equal(ip->byte, special6[i].base, special6[i].bits))
			return special6[i].word;
	}
	if ((ip->byte[0] & 0xe0) != 0x20)
		return "reserved";
	return NULL;
}
