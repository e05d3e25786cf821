/* SPDX-License-Identifier: Apache-2.0
 *
 * addr.h - IP addresses, prefixes, and which of them are special-purpose.
 */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define IP_TEXT_MAX   INET6_ADDRSTRLEN
#define CIDR_TEXT_MAX (INET6_ADDRSTRLEN + 4)

/* @len is 4 or 16; 0 means "no address". Bytes past @len are zero, so that
 * two addresses compare by memcmp(). */
struct ip {
	uint8_t len;
	uint8_t byte[16];
};

struct cidr {
	struct ip ip;
	uint8_t bits;
};

struct endpoint {
	struct ip ip;
	uint16_t port;
};

union sockaddr_any {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

/* Strict inet_pton() forms only: no octal, hex or short spellings. */
bool ip_parse(const char *text, struct ip *ret_ip);
/* @buf holds IP_TEXT_MAX bytes; returns @buf ("" for no address). */
char *ip_format(const struct ip *ip, char *buf);
bool ip_equal(const struct ip *a, const struct ip *b);
struct ip ip_v4(uint32_t host_order);
/* Host byte order; 0 if not IPv4. */
uint32_t ip_v4_value(const struct ip *ip);

struct ip ip_from_sockaddr(const union sockaddr_any *sa);
uint16_t port_from_sockaddr(const union sockaddr_any *sa);
/* Fills @ret_sa, returns its length (0 for no address). */
socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port,
			 union sockaddr_any *ret_sa);

/* "ADDR" or "ADDR/BITS"; host bits past the prefix must be zero. */
bool cidr_parse(const char *text, struct cidr *ret_cidr);
/* @buf holds CIDR_TEXT_MAX bytes; returns @buf. */
char *cidr_format(const struct cidr *cidr, char *buf);
bool cidr_contains(const struct cidr *cidr, const struct ip *ip);

/* "ADDR:PORT" or "[ADDR]:PORT", port 1-65535. */
bool endpoint_parse(const char *text, struct ip *ret_ip, uint16_t *ret_port);

/* Why @ip is no ordinary global unicast address, or NULL if it is one: IANA's
 * special-purpose registries (RFC 6890), multicast, cloud metadata and platform
 * addresses. IPv4-mapped, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), 6to4 and
 * Teredo addresses have the word of the IPv4 address inside, or "transition" if
 * that one is ordinary: they are another way to it, which an operator may
 * permit. The text is static: "private", "loopback", "link-local", "metadata",
 * ... */
const char *ip_special(const struct ip *ip);

/* The IPv4 address inside an IPv4-mapped, NAT64, 6to4 or Teredo address, or
 * @ip itself: what a permitted range has to be compared with too. */
struct ip ip_embedded(const struct ip *ip);

#endif
