/* SPDX-License-Identifier: Apache-2.0
 *
 * nflog_case.h - messages of the kernel's, written by hand.
 */
#ifndef TESTS_FIREWALL_NFLOG_CASE_H
#define TESTS_FIREWALL_NFLOG_CASE_H

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

static inline void put(struct datagram *d, const void *data, size_t len)
{
	assert_true(d->len + len + 4 <= sizeof(d->data));
	memcpy(d->data + d->len, data, len);
	d->len += len;
	while (d->len % 4)
		d->data[d->len++] = 0;
}

static inline void message(struct datagram *d, uint16_t type)
{
	const struct nlmsghdr nlh = { .nlmsg_type = type };
	const struct nfgenmsg gen = { .nfgen_family = AF_INET };

	d->message = d->len;
	put(d, &nlh, sizeof(nlh));
	put(d, &gen, sizeof(gen));
}

static inline void end(struct datagram *d)
{
	uint32_t len = (uint32_t)(d->len - d->message);

	memcpy(d->data + d->message, &len, sizeof(len));
}

static inline void attr(struct datagram *d, uint16_t type, const void *data,
			size_t len)
{
	const struct nlattr head = { .nla_len = (uint16_t)(4 + len),
				     .nla_type = type };

	put(d, &head, sizeof(head));
	put(d, data, len);
}

#define ULOG_PACKET (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)

/* One whole message about @len bytes of @packet. */
static inline void packet(struct datagram *d, uint16_t ethertype,
			  const void *packet, size_t len)
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

static inline void keep(void *arg, const struct nflog_packet *p)
{
	struct result *result = arg;

	assert_non_null(memchr(p->prefix, 0, sizeof(p->prefix)));
	result->last = *p;
	result->n++;
}

static inline struct result parse(const struct datagram *d)
{
	struct result result = { 0 };

	assert_int_equal(nflog_parse(d->data, d->len, keep, &result), 0);
	return result;
}

#endif
