/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_nflog.c - datagrams of the packet log. The input is one datagram; and
 * once more the payload of a packet in a datagram that is well formed, so that
 * the headers inside are reached at once.
 */
#include <linux/if_ether.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "firewall/nflog.h"

#define PAYLOAD_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *arg, const struct nflog_packet *packet)
{
	char protocol[16], text[IP_TEXT_MAX];

	(void)arg;
	if (!memchr(packet->prefix, 0, sizeof(packet->prefix)) ||
	    (packet->src.len != 0 && packet->src.len != 4 &&
	     packet->src.len != 16) ||
	    packet->src.len != packet->dst.len)
		abort();
	if (strlen(nflog_protocol(packet->l4, protocol)) >= sizeof(protocol) ||
	    !nflog_intent(packet, 1))
		abort();
	(void)ip_format(&packet->src, text);
	(void)ip_format(&packet->dst, text);
}

static void wrapped(const uint8_t *data, size_t size, uint16_t ethertype)
{
	struct {
		struct nlmsghdr nlh;
		struct nfgenmsg gen;
		struct nlattr hdr_attr;
		struct nfulnl_msg_packet_hdr hdr;
		struct nlattr payload_attr;
		uint8_t payload[PAYLOAD_MAX];
	} d = { 0 };
	const size_t len = offsetof(__typeof__(d), payload) + size;

	d.nlh.nlmsg_len = (uint32_t)len;
	d.nlh.nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
	d.hdr_attr.nla_len = sizeof(d.hdr_attr) + sizeof(d.hdr);
	d.hdr_attr.nla_type = NFULA_PACKET_HDR;
	d.hdr.hw_protocol = htons(ethertype);
	d.payload_attr.nla_len = (uint16_t)(sizeof(d.payload_attr) + size);
	d.payload_attr.nla_type = NFULA_PAYLOAD;
	memcpy(d.payload, data, size);
	if (nflog_parse(&d, len, check, NULL) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)nflog_parse(data, size, check, NULL);
	if (size && size <= PAYLOAD_MAX) {
		wrapped(data, size, ETH_P_IP);
		wrapped(data, size, ETH_P_IPV6);
	}
	return 0;
}
