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

/* Numbers that <netinet/in.h> lacks, or some of them. */
#define PROTOCOL_ETHERIP 97
#define PROTOCOL_L2TP	 115

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

/* By destination port; the first match holds. A port is a habit, no proof: each
 * of these is a guess. */
static const struct {
	uint8_t l4;
	uint16_t first, last;
	const char *text;
} meaning[] = {
	{ IPPROTO_UDP, 53, 53, "DNS" },
	{ IPPROTO_UDP, 853, 853, "DNS over QUIC" },
	{ IPPROTO_UDP, 443, 443, "QUIC" },
	{ IPPROTO_UDP, 80, 80, "QUIC" },
	{ IPPROTO_UDP, 123, 123, "NTP" },
	{ IPPROTO_UDP, 67, 68, "DHCP" },
	{ IPPROTO_UDP, 69, 69, "TFTP" },
	{ IPPROTO_UDP, 88, 88, "Kerberos" },
	{ IPPROTO_UDP, 137, 138, "NetBIOS" },
	{ IPPROTO_UDP, 161, 162, "SNMP" },
	{ IPPROTO_UDP, 389, 389, "LDAP" },
	{ IPPROTO_UDP, 500, 500, "IPsec" },
	{ IPPROTO_UDP, 4500, 4500, "IPsec" },
	{ IPPROTO_UDP, 514, 514, "syslog" },
	{ IPPROTO_UDP, 1194, 1194, "OpenVPN" },
	{ IPPROTO_UDP, 1701, 1701, "L2TP" },
	{ IPPROTO_UDP, 1812, 1813, "RADIUS" },
	{ IPPROTO_UDP, 1900, 1900, "SSDP" },
	{ IPPROTO_UDP, 3478, 3481, "STUN" },
	{ IPPROTO_UDP, 5349, 5349, "STUN" },
	{ IPPROTO_UDP, 19302, 19309, "STUN" },
	{ IPPROTO_UDP, 3389, 3389, "RDP" },
	{ IPPROTO_UDP, 3702, 3702, "WS-Discovery" },
	{ IPPROTO_UDP, 4789, 4789, "tunnel" },
	{ IPPROTO_UDP, 6081, 6081, "tunnel" },
	{ IPPROTO_UDP, 5353, 5353, "mDNS" },
	{ IPPROTO_UDP, 5355, 5355, "LLMNR" },
	{ IPPROTO_UDP, 6881, 6889, "BitTorrent" },
	{ IPPROTO_UDP, 9993, 9993, "VPN" },
	{ IPPROTO_UDP, 41641, 41641, "WireGuard" },
	{ IPPROTO_UDP, 51820, 51820, "WireGuard" },
	{ IPPROTO_UDP, 33434, 33534, "traceroute" },
	{ IPPROTO_UDP, 0, 65535, "UDP" },
	{ IPPROTO_TCP, 53, 53, "DNS" },
	{ IPPROTO_TCP, 853, 853, "DNS over TLS" },
	{ IPPROTO_TCP, 20, 21, "FTP" },
	{ IPPROTO_TCP, 22, 22, "SSH" },
	{ IPPROTO_TCP, 23, 23, "Telnet" },
	{ IPPROTO_TCP, 25, 25, "SMTP" },
	{ IPPROTO_TCP, 465, 465, "SMTP" },
	{ IPPROTO_TCP, 587, 587, "SMTP" },
	{ IPPROTO_TCP, 88, 88, "Kerberos" },
	{ IPPROTO_TCP, 110, 110, "POP3" },
	{ IPPROTO_TCP, 995, 995, "POP3" },
	{ IPPROTO_TCP, 143, 143, "IMAP" },
	{ IPPROTO_TCP, 993, 993, "IMAP" },
	{ IPPROTO_TCP, 135, 135, "Windows RPC" },
	{ IPPROTO_TCP, 139, 139, "SMB" },
	{ IPPROTO_TCP, 445, 445, "SMB" },
	{ IPPROTO_TCP, 389, 389, "LDAP" },
	{ IPPROTO_TCP, 636, 636, "LDAP" },
	{ IPPROTO_TCP, 3268, 3269, "LDAP" },
	{ IPPROTO_TCP, 873, 873, "rsync" },
	{ IPPROTO_TCP, 1080, 1080, "SOCKS" },
	{ IPPROTO_TCP, 1194, 1194, "OpenVPN" },
	{ IPPROTO_TCP, 1723, 1723, "PPTP" },
	{ IPPROTO_TCP, 2049, 2049, "NFS" },
	{ IPPROTO_TCP, 2375, 2376, "Docker" },
	{ IPPROTO_TCP, 3389, 3389, "RDP" },
	{ IPPROTO_TCP, 3478, 3478, "STUN" },
	{ IPPROTO_TCP, 5349, 5349, "STUN" },
	{ IPPROTO_TCP, 5222, 5223, "XMPP" },
	{ IPPROTO_TCP, 5900, 5900, "VNC" },
	{ IPPROTO_TCP, 5985, 5986, "WinRM" },
	{ IPPROTO_TCP, 6443, 6443, "Kubernetes" },
	{ IPPROTO_TCP, 6660, 6669, "IRC" },
	{ IPPROTO_TCP, 6697, 6697, "IRC" },
	{ IPPROTO_TCP, 6881, 6889, "BitTorrent" },
	{ IPPROTO_TCP, 9001, 9001, "Tor" },
	{ IPPROTO_TCP, 9030, 9030, "Tor" },
	{ IPPROTO_TCP, 9050, 9050, "Tor" },
	{ IPPROTO_TCP, 9150, 9150, "Tor" },
	{ IPPROTO_TCP, 9418, 9418, "git" },
	{ IPPROTO_TCP, 1433, 1433, "SQL Server" },
	{ IPPROTO_TCP, 1521, 1521, "Oracle" },
	{ IPPROTO_TCP, 2379, 2379, "etcd" },
	{ IPPROTO_TCP, 3306, 3306, "MySQL" },
	{ IPPROTO_TCP, 5432, 5432, "PostgreSQL" },
	{ IPPROTO_TCP, 6379, 6379, "Redis" },
	{ IPPROTO_TCP, 9042, 9042, "Cassandra" },
	{ IPPROTO_TCP, 9200, 9200, "Elasticsearch" },
	{ IPPROTO_TCP, 11211, 11211, "memcached" },
	{ IPPROTO_TCP, 27017, 27017, "MongoDB" },
	{ IPPROTO_TCP, 0, 65535, "direct IP" },
	{ IPPROTO_ICMP, 0, 65535, "ICMP" },
	{ IPPROTO_ICMPV6, 0, 65535, "ICMP" },
	{ IPPROTO_IGMP, 0, 65535, "multicast" },
	{ IPPROTO_GRE, 0, 65535, "tunnel" },
	{ IPPROTO_IPIP, 0, 65535, "tunnel" },
	{ IPPROTO_IPV6, 0, 65535, "tunnel" },
	{ PROTOCOL_ETHERIP, 0, 65535, "tunnel" },
	{ IPPROTO_MPLS, 0, 65535, "tunnel" },
	{ PROTOCOL_L2TP, 0, 65535, "tunnel" },
	{ IPPROTO_ESP, 0, 65535, "IPsec" },
	{ IPPROTO_AH, 0, 65535, "IPsec" },
	{ IPPROTO_PIM, 0, 65535, "multicast" },
	{ IPPROTO_SCTP, 0, 65535, "SCTP" },
	{ IPPROTO_DCCP, 0, 65535, "DCCP" },
	{ IPPROTO_UDPLITE, 0, 65535, "UDP-Lite" },
};

/* Where clouds tell a machine its own secrets. */
static const uint32_t metadata[] = {
	0xa9fea9fe, /* 169.254.169.254: nearly all of them */
	0xa9feaa02, /* 169.254.170.2: tasks of ECS */
	0xa9feaa17, /* 169.254.170.23: pods of EKS */
	0xa83f8110, /* 168.63.129.16: Azure */
	0x646464c8, /* 100.100.100.200: Alibaba */
	0xc00000c0, /* 192.0.0.192: Oracle */
};

/* What ping(8) sends is less, also on other systems; and a person sends one a
 * second. */
#define ECHO_BIG	128
#define ECHO_FREQUENT	10
#define ECHO_HEADER	8
#define ICMP_ECHO_TYPE	8
#define ICMP6_ECHO_TYPE 128

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
		    packet->dst_port >= meaning[i].first &&
		    packet->dst_port <= meaning[i].last)
			return meaning[i].text;
	return "unknown protocol";
}

static bool is_metadata(const struct ip *ip)
{
	for (size_t i = 0; ip->len == 4 && i < ARRAY_SIZE(metadata); i++) {
		const struct ip one = ip_v4(metadata[i]);

		if (ip_equal(&one, ip))
			return true;
	}
	return false;
}

/* An answer that nobody asked for, and other kinds of ICMP, carry data too; but
 * those who tunnel begin with a question. */
static bool is_tunnel(const struct nflog_packet *packet, uint32_t per_second)
{
	const bool echo =
		packet->l4 == IPPROTO_ICMP
			? packet->icmp_type == ICMP_ECHO_TYPE
			: packet->l4 == IPPROTO_ICMPV6 &&
				  packet->icmp_type == ICMP6_ECHO_TYPE;

	return echo && (packet->payload > ECHO_HEADER + ECHO_BIG ||
			per_second > ECHO_FREQUENT);
}

const char *nflog_intent(const struct nflog_packet *packet, uint32_t per_second)
{
	const char *text = by_port(packet);

	if (strcmp(packet->prefix, "spoofed") == 0)
		return "forged address";
	if (is_tunnel(packet, per_second))
		return "ICMP tunnel?";
	if (packet->ethertype == ETH_P_IPV6 && packet->l4 != IPPROTO_ICMPV6)
		return "IPv6";
	/* Whatever the port. */
	if (is_metadata(&packet->dst))
		return "cloud metadata";
	/* mDNS and the like say more than "multicast". */
	if (is_multicast(&packet->dst) && strcmp(text, "UDP") == 0)
		return "multicast";
	return text;
}
