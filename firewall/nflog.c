/* SPDX-License-Identifier: Apache-2.0
 *
 * nflog.c - binding is the warden's; the rest runs in the gate, on bytes that a
 * sandbox chose.
 *
 * A datagram holds messages, a message attributes, and one of those the first
 * bytes of the packet. Lengths of the kernel's own headers are in host byte
 * order, so they are copied out of the cursor.
 */
#include "firewall/nflog.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/wire.h"

#define COPY_RANGE	128
#define RECEIVE_BUFFER	(4 * 1024 * 1024)
#define KERNEL_BUFFER	8192
#define EXTENSIONS_MAX	8 /* IPv6 headers before the transport's */
#define IP_HEADER	20
#define IPV6_HEADER	40
#define FRAGMENT_OFFSET 0x1fff

/* One request on a socket of ours, and its acknowledgement. */
static int ask(int fd, struct nlmsghdr *nlh)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct {
		struct nlmsghdr nlh;
		struct nlmsgerr error;
		uint8_t rest[512];
	} answer;
	ssize_t n;

	n = sendto(fd, nlh, nlh->nlmsg_len, 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel));
	if (n < 0)
		return -errno;
	/* The kernel answers before sendto() returns; packets may be first. */
	do {
		n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
		if (n < 0 && errno != EINTR)
			return -errno;
	} while (n < (ssize_t)(sizeof(answer.nlh) + sizeof(answer.error)) ||
		 answer.nlh.nlmsg_type != NLMSG_ERROR);
	return answer.error.error;
}

int nflog_bind(int fd, uint16_t group)
{
	const struct nfulnl_msg_config_mode mode = {
		.copy_range = htonl(COPY_RANGE),
		.copy_mode = NFULNL_COPY_PACKET,
	};
	const struct nfulnl_msg_config_cmd cmd = {
		.command = NFULNL_CFG_CMD_BIND,
	};
	const int size = RECEIVE_BUFFER, on = 1;
	uint8_t buf[256] __attribute__((aligned(8)));

	/* A burst must not be an error of recv(): the kernel's counters tell
	 * how many packets there were. More room only with the right to it. */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size,
				 sizeof(size));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	struct nfgenmsg *gen = mnl_nlmsg_put_extra_header(nlh, sizeof(*gen));
	gen->nfgen_family = AF_UNSPEC;
	gen->version = NFNETLINK_V0;
	gen->res_id = htons(group);
	mnl_attr_put(nlh, NFULA_CFG_CMD, sizeof(cmd), &cmd);
	mnl_attr_put(nlh, NFULA_CFG_MODE, sizeof(mode), &mode);
	mnl_attr_put_u32(nlh, NFULA_CFG_NLBUFSIZ, htonl(KERNEL_BUFFER));
	mnl_attr_put_u32(nlh, NFULA_CFG_TIMEOUT, htonl(1));
	mnl_attr_put_u32(nlh, NFULA_CFG_QTHRESH, htonl(1));
	return ask(fd, nlh);
}

static struct ip take_ip(struct wire *w, uint8_t len)
{
	const uint8_t *p = wire_take(w, len);
	struct ip ip = { 0 };

	if (p) {
		ip.len = len;
		memcpy(ip.byte, p, len);
	}
	return ip;
}

/* The transport header, of which little may have been copied: what is missing
 * stays 0. */
static void parse_transport(struct wire *w, struct nflog_packet *packet)
{
	switch (packet->l4) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP: {
		uint16_t src = wire_u16(w), dst = wire_u16(w);

		if (wire_ok(w)) {
			packet->src_port = src;
			packet->dst_port = dst;
		}
		break;
	}
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		packet->icmp_type = wire_u8(w);
		break;
	}
}

static bool parse_ipv4(struct wire *w, struct nflog_packet *packet)
{
	const uint8_t first = wire_u8(w);
	const size_t header = (first & 15u) * 4;

	(void)wire_take(w, 1); /* service */
	const uint16_t total = wire_u16(w);
	(void)wire_take(w, 2); /* identification */
	const uint16_t fragment = wire_u16(w);
	(void)wire_take(w, 1); /* hops left */
	packet->l4 = wire_u8(w);
	(void)wire_take(w, 2); /* checksum */
	packet->src = take_ip(w, 4);
	packet->dst = take_ip(w, 4);
	if (!wire_ok(w) || first >> 4 != 4 || header < IP_HEADER)
		return false;
	if (total > header)
		packet->payload = (uint16_t)(total - header);
	(void)wire_take(w, header - IP_HEADER);
	if (wire_ok(w) && !(fragment & FRAGMENT_OFFSET))
		parse_transport(w, packet);
	return true;
}

/* Walks over extension headers. True if @w is at the header of packet->l4. */
static bool skip_extensions(struct wire *w, struct nflog_packet *packet)
{
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		uint8_t next, len;
		uint16_t fragment;

		switch (packet->l4) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
			next = wire_u8(w);
			len = wire_u8(w);
			(void)wire_take(w, len * 8u + 6);
			break;
		case IPPROTO_FRAGMENT:
			next = wire_u8(w);
			(void)wire_take(w, 1);
			fragment = wire_u16(w);
			(void)wire_take(w, 4);
			if (fragment & 0xfff8) {
				if (wire_ok(w))
					packet->l4 = next;
				return false;
			}
			break;
		default:
			return true;
		}
		if (!wire_ok(w))
			return false;
		packet->l4 = next;
	}
	return false;
}

static bool parse_ipv6(struct wire *w, struct nflog_packet *packet)
{
	const uint32_t first = wire_u32(w);

	packet->payload = wire_u16(w);
	packet->l4 = wire_u8(w);
	(void)wire_take(w, 1); /* hops left */
	packet->src = take_ip(w, 16);
	packet->dst = take_ip(w, 16);
	if (!wire_ok(w) || first >> 28 != 6)
		return false;
	if (skip_extensions(w, packet))
		parse_transport(w, packet);
	return true;
}

/* A packet whose header makes no sense is still one that was dropped. */
static void parse_payload(struct wire w, struct nflog_packet *packet)
{
	struct nflog_packet parsed = *packet;
	bool good = false;

	if (packet->ethertype == ETH_P_IP)
		good = parse_ipv4(&w, &parsed);
	else if (packet->ethertype == ETH_P_IPV6)
		good = parse_ipv6(&w, &parsed);
	if (good)
		*packet = parsed;
}

/* Packets that an interface was about to send begin with its own header, if it
 * has one; what kind it is, is not said. */
static struct wire skip_link(struct wire w, uint16_t ethertype)
{
	struct wire after = w;

	(void)wire_take(&after, ETH_HLEN - sizeof(ethertype));
	return wire_u16(&after) == ethertype && wire_ok(&after) ? after : w;
}

static struct wire value_of(const struct nlattr *attr)
{
	return wire_of(mnl_attr_get_payload(attr),
		       mnl_attr_get_payload_len(attr));
}

static void take_prefix(const struct nlattr *attr, struct nflog_packet *packet)
{
	size_t n = mnl_attr_get_payload_len(attr);

	if (n > sizeof(packet->prefix) - 1)
		n = sizeof(packet->prefix) - 1;
	memset(packet->prefix, 0, sizeof(packet->prefix));
	memcpy(packet->prefix, mnl_attr_get_payload(attr), n);
}

/* Do the attributes fill the message? The library stops at one that does not
 * fit, and takes what came before; and it rounds the message's length up. */
static bool is_whole(const struct nlmsghdr *nlh)
{
	const uint8_t *end = (const uint8_t *)nlh + nlh->nlmsg_len;
	const struct nlattr *attr =
		mnl_nlmsg_get_payload_offset(nlh, sizeof(struct nfgenmsg));

	while (mnl_attr_ok(attr, (int)(end - (const uint8_t *)attr)))
		attr = mnl_attr_next(attr);
	return (const uint8_t *)attr >= end;
}

/* Keeps what we read, if it has the size that the kernel gives it. */
static int keep_attr(const struct nlattr *attr, void *arg)
{
	const struct nlattr **tb = arg;
	const uint16_t type = mnl_attr_get_type(attr);
	int bad = 0;

	switch (type) {
	case NFULA_PACKET_HDR:
		bad = mnl_attr_validate2(attr, MNL_TYPE_UNSPEC,
					 sizeof(struct nfulnl_msg_packet_hdr));
		break;
	case NFULA_IFINDEX_INDEV:
		bad = mnl_attr_validate(attr, MNL_TYPE_U32);
		break;
	case NFULA_PREFIX:
		bad = mnl_attr_validate(attr, MNL_TYPE_NUL_STRING);
		break;
	case NFULA_PAYLOAD:
		break;
	default:
		return MNL_CB_OK;
	}
	if (bad < 0)
		return MNL_CB_ERROR;
	tb[type] = attr;
	return MNL_CB_OK;
}

static bool parse_message(const struct nlmsghdr *nlh,
			  struct nflog_packet *packet)
{
	const struct nfgenmsg *gen = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[NFULA_MAX + 1] = { 0 };
	struct wire payload;

	*packet = (struct nflog_packet){ 0 };
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nfgenmsg) ||
	    !is_whole(nlh) ||
	    mnl_attr_parse(nlh, sizeof(*gen), keep_attr, tb) < 0 ||
	    !tb[NFULA_PACKET_HDR])
		return false;
	const struct nfulnl_msg_packet_hdr *header =
		mnl_attr_get_payload(tb[NFULA_PACKET_HDR]);
	packet->ethertype = ntohs(header->hw_protocol);
	if (tb[NFULA_IFINDEX_INDEV])
		packet->ifindex =
			ntohl(mnl_attr_get_u32(tb[NFULA_IFINDEX_INDEV]));
	if (tb[NFULA_PREFIX])
		take_prefix(tb[NFULA_PREFIX], packet);
	if (!tb[NFULA_PAYLOAD])
		return true;
	payload = value_of(tb[NFULA_PAYLOAD]);
	if (gen->nfgen_family == NFPROTO_NETDEV)
		payload = skip_link(payload, packet->ethertype);
	parse_payload(payload, packet);
	return true;
}

/* Takes what pads @len bytes to four; at the end it may be absent. */
static void skip_padding(struct wire *w, size_t len)
{
	size_t pad = -len & 3;

	(void)wire_take(w, pad < w->left ? pad : w->left);
}

/* Not with mnl_nlmsg_ok(), which takes lengths from 2^31 on for negative ones,
 * and so for good. */
static const struct nlmsghdr *next_message(struct wire *w)
{
	const struct nlmsghdr *nlh = (const void *)w->at;

	if (w->left < sizeof(*nlh) || nlh->nlmsg_len < sizeof(*nlh) ||
	    !wire_take(w, nlh->nlmsg_len))
		return NULL;
	skip_padding(w, nlh->nlmsg_len);
	return nlh;
}

int nflog_parse(const void *data, size_t len, nflog_fn *fn, void *arg)
{
	struct wire w = wire_of(data, len);
	const struct nlmsghdr *nlh;
	struct nflog_packet packet;
	bool any = false;

	while ((nlh = next_message(&w))) {
		/* The kernel's word that a full queue was sent. */
		if (nlh->nlmsg_type == NLMSG_DONE) {
			any = true;
			continue;
		}
		if (nlh->nlmsg_type !=
		    (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
			continue;
		any = true;
		if (parse_message(nlh, &packet))
			fn(arg, &packet);
	}
	return any ? 0 : -EBADMSG;
}
