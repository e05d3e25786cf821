/* SPDX-License-Identifier: Apache-2.0
 *
 * nflog.h - packets that the kernel dropped, as it reports them. The warden
 * binds the group (a privilege); the gate parses what comes (hostile bytes).
 */
#ifndef FIREWALL_NFLOG_H
#define FIREWALL_NFLOG_H

#include <stdint.h>

#include "base/addr.h"

/* Binds @group on @fd, a NETLINK_NETFILTER socket made in the gateway
 * namespace; packets are copied up to 128 bytes. 0 or -errno. */
int nflog_bind(int fd, uint16_t group);

struct nflog_packet {
	uint32_t ifindex; /* it came in by */
	char prefix[32]; /* of the rule that dropped it: "refused", "spoofed" */
	uint8_t l4;	 /* IPPROTO_*; 0 if unknown */
	uint16_t ethertype; /* of the packet: ETH_P_IP, ... */
	struct ip src, dst;
	uint16_t src_port, dst_port; /* 0 where none */
	uint8_t icmp_type;
	uint16_t payload; /* bytes behind the IP header, as that says */
};

typedef void nflog_fn(void *arg, const struct nflog_packet *packet);

/* Parses one datagram of @len bytes from the socket, aligned to four, which may
 * hold several packets. Malformed ones are skipped. -errno if the datagram is
 * no NFLOG. */
int nflog_parse(const void *data, size_t len, nflog_fn *fn, void *arg);

/* "tcp", "udp", "icmp", "sctp", ... or "ip-47" in @buf (16 bytes). */
const char *nflog_protocol(uint8_t l4, char *buf);

/* A guess at what was meant: "direct IP", "DNS over TLS", "QUIC", "NTP",
 * "ICMP", "SMTP", ... Static. @per_second: so many of them came within one; a
 * single one tells less. "ICMP tunnel?" has its mark since a large or frequent
 * ping looks the same. All of it is outbound: what a sandbox sent. */
const char *nflog_intent(const struct nflog_packet *packet,
			 uint32_t per_second);

#endif
