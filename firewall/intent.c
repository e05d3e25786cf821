/* SPDX-License-Identifier: Apache-2.0
 *
 * intent.c - words for people about a dropped packet.
 */
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "firewall/nflog.h"

#define NAME_MAX_LEN 16

static const struct {
	uint8_t l4;
	const char *name;
} protocol[] = {
	{ IPPROTO_ICMP, "icmp" },	{ IPPROTO_IGMP, "igmp" },
	{ IPPROTO_IPIP, "ipip" },	{ IPPROTO_TCP, "tcp" },
	{ IPPROTO_UDP, "udp" },		{ IPPROTO_DCCP, "dccp" },
	{ IPPROTO_IPV6, "ipv6" },	{ IPPROTO_GRE, "gre" },
	{ IPPROTO_ESP, "esp" },		{ IPPROTO_AH, "ah" },
	{ IPPROTO_ICMPV6, "icmpv6" },	{ IPPROTO_SCTP, "sctp" },
	{ IPPROTO_UDPLITE, "udplite" },
};

/* By destination port; 0 for the protocol as a whole. The first match holds. */
static const struct {
	uint8_t l4;
	uint16_t port;
	const char *text;
} meaning[] = {
	{ IPPROTO_UDP, 53, "DNS" },
	{ IPPROTO_TCP, 53, "DNS" },
	{ IPPROTO_TCP, 853, "DNS over TLS" },
	{ IPPROTO_UDP, 853, "DNS over QUIC" },
	{ IPPROTO_UDP, 443, "QUIC" },
	{ IPPROTO_UDP, 80, "QUIC" },
	{ IPPROTO_UDP, 123, "NTP" },
	{ IPPROTO_UDP, 67, "DHCP" },
	{ IPPROTO_UDP, 137, "NetBIOS" },
	{ IPPROTO_UDP, 138, "NetBIOS" },
	{ IPPROTO_UDP, 161, "SNMP" },
	{ IPPROTO_UDP, 514, "syslog" },
	{ IPPROTO_UDP, 1900, "SSDP" },
	{ IPPROTO_UDP, 3478, "STUN" },
	{ IPPROTO_UDP, 5353, "mDNS" },
	{ IPPROTO_UDP, 5355, "LLMNR" },
	{ IPPROTO_UDP, 51820, "WireGuard" },
	{ IPPROTO_UDP, 0, "UDP" },
	{ IPPROTO_TCP, 25, "SMTP" },
	{ IPPROTO_TCP, 465, "SMTP" },
	{ IPPROTO_TCP, 587, "SMTP" },
	{ IPPROTO_TCP, 6667, "IRC" },
	{ IPPROTO_TCP, 9050, "Tor" },
	{ IPPROTO_TCP, 0, "direct IP" },
	{ IPPROTO_ICMP, 0, "ICMP" },
	{ IPPROTO_ICMPV6, 0, "ICMP" },
	{ IPPROTO_IGMP, 0, "multicast" },
	{ IPPROTO_GRE, 0, "tunnel" },
	{ IPPROTO_IPIP, 0, "tunnel" },
	{ IPPROTO_IPV6, 0, "tunnel" },
	{ IPPROTO_ESP, 0, "VPN" },
	{ IPPROTO_AH, 0, "VPN" },
	{ IPPROTO_SCTP, 0, "SCTP" },
	{ IPPROTO_DCCP, 0, "DCCP" },
	{ IPPROTO_UDPLITE, 0, "UDP-Lite" },
};

const char *nflog_protocol(uint8_t l4, char *buf)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocol); i++)
		if (protocol[i].l4 == l4) {
			(void)snprintf(buf, NAME_MAX_LEN, "%s",
				       protocol[i].name);
			return buf;
		}
	(void)snprintf(buf, NAME_MAX_LEN, "ip-%u", l4);
	return buf;
}

static bool is_multicast(const struct ip *ip)
{
	if (ip->len == 4)
		return ip->byte[0] >= 224;
	return ip->len == 16 && ip->byte[0] == 0xff;
}

static const char *by_port(const struct nflog_packet *packet)
{
	for (size_t i = 0; i < ARRAY_SIZE(meaning); i++)
		if (meaning[i].l4 == packet->l4 &&
		    (!meaning[i].port || meaning[i].port == packet->dst_port))
			return meaning[i].text;
	return "unknown protocol";
}

const char *nflog_intent(const struct nflog_packet *packet)
{
	const char *text = by_port(packet);

	if (strcmp(packet->prefix, "spoofed") == 0)
		return "forged address";
	if (packet->ethertype == ETH_P_IPV6 && packet->l4 != IPPROTO_ICMPV6)
		return "IPv6";
	/* mDNS and the like say more than "multicast". */
	if (is_multicast(&packet->dst) && strcmp(text, "UDP") == 0)
		return "multicast";
	return text;
}
