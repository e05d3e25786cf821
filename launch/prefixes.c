/* SPDX-License-Identifier: Apache-2.0
 *
 * prefixes.c - which addresses are the machine's own or its neighbours'.
 *
 * Sources are the addresses, with the prefix each is on, and routes without a
 * gateway on interfaces that have neighbours. Not those of point-to-point
 * interfaces: a VPN may route half the Internet to one, and nobody there is a
 * neighbour; nor a default route, for the same reason.
 */
#include <errno.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/link.h"
#include "launch/rtnl.h"

#define NEIGHBOURLESS_MAX 256

struct collector {
	struct cidr *ret;
	size_t max, n;
	/* Interfaces without neighbours, by their index. */
	uint32_t skip[NEIGHBOURLESS_MAX];
	size_t skips;
};

static struct cidr prefix_of(const struct ip *ip, uint8_t bits)
{
	struct cidr c = { .ip = *ip, .bits = bits };

	for (unsigned i = 0; i < ip->len; i++) {
		unsigned from = i * 8;
		unsigned keep = bits <= from ? 0 : bits - from;

		if (keep < 8)
			c.ip.byte[i] &= (uint8_t)(0xff00u >> keep);
	}
	return c;
}

/* A prefix that has no room is an error, not silence: it would be reachable. */
static int add(struct collector *c, const struct ip *ip, uint8_t bits)
{
	const struct cidr new = prefix_of(ip, bits);

	for (size_t i = 0; i < c->n; i++)
		if (c->ret[i].bits == new.bits &&
		    ip_equal(&c->ret[i].ip, &new.ip))
			return MNL_CB_OK;
	if (c->n == c->max) {
		errno = ENOSPC;
		return MNL_CB_ERROR;
	}
	c->ret[c->n++] = new;
	return MNL_CB_OK;
}

/* No address if the attribute is absent or odd. */
static struct ip ip_of(const struct nlattr *attr)
{
	struct ip ip = { 0 };
	uint16_t len = attr ? mnl_attr_get_payload_len(attr) : 0;

	if (len == 4 || len == 16) {
		ip.len = (uint8_t)len;
		memcpy(ip.byte, mnl_attr_get_payload(attr), len);
	}
	return ip;
}

static bool is_loopback(const struct ip *ip)
{
	static const uint8_t one[16] = { [15] = 1 };

	return ip->len == 4 ? ip->byte[0] == 127
			    : memcmp(ip->byte, one, sizeof(one)) == 0;
}

static bool has_neighbours(const struct collector *c, uint32_t index)
{
	for (size_t i = 0; i < c->skips; i++)
		if (c->skip[i] == index)
			return false;
	return true;
}

static int link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	struct collector *c = arg;

	if (nlh->nlmsg_type != RTM_NEWLINK ||
	    !(info->ifi_flags & (IFF_LOOPBACK | IFF_POINTOPOINT | IFF_NOARP)))
		return MNL_CB_OK;
	/* Past the limit an interface counts as one with neighbours: refusing
	 * too much is the safe side. */
	if (c->skips < NEIGHBOURLESS_MAX)
		c->skip[c->skips++] = (uint32_t)info->ifi_index;
	return MNL_CB_OK;
}

static int address_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifaddrmsg *body = mnl_nlmsg_get_payload(nlh);
	struct collector *c = arg;
	const struct nlattr *tb[IFA_MAX + 1];

	if (nlh->nlmsg_type != RTM_NEWADDR)
		return MNL_CB_OK;
	rtnl_attrs(nlh, sizeof(*body), tb, IFA_MAX);
	const struct ip address = ip_of(tb[IFA_ADDRESS]);
	struct ip local = ip_of(tb[IFA_LOCAL]);
	if (!local.len)
		local = address;
	if (!local.len || is_loopback(&local))
		return MNL_CB_OK;
	if (add(c, &local, (uint8_t)(local.len * 8)) < 0)
		return MNL_CB_ERROR;
	/* IFA_ADDRESS is the peer's on a point-to-point interface. */
	if (!address.len || !body->ifa_prefixlen ||
	    body->ifa_prefixlen > address.len * 8)
		return MNL_CB_OK;
	return add(c, &address, body->ifa_prefixlen);
}

static int route_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *body = mnl_nlmsg_get_payload(nlh);
	struct collector *c = arg;
	const struct nlattr *tb[RTA_MAX + 1];

	if (nlh->nlmsg_type != RTM_NEWROUTE || body->rtm_type != RTN_UNICAST ||
	    !body->rtm_dst_len || (body->rtm_flags & RTM_F_CLONED))
		return MNL_CB_OK;
	rtnl_attrs(nlh, sizeof(*body), tb, RTA_MAX);
	if (tb[RTA_GATEWAY] || tb[RTA_VIA] || tb[RTA_MULTIPATH])
		return MNL_CB_OK;
	const struct ip to = ip_of(tb[RTA_DST]);
	const uint32_t oif = rtnl_u32(tb[RTA_OIF]);
	if (!to.len || body->rtm_dst_len > to.len * 8 || is_loopback(&to) ||
	    !oif || !has_neighbours(c, oif))
		return MNL_CB_OK;
	return add(c, &to, body->rtm_dst_len);
}

/* @len: of the request's own header; zeroes mean "all". */
static int dump(int route, uint16_t type, size_t len, mnl_cb_t cb,
		struct collector *c)
{
	static const union {
		struct ifinfomsg link;
		struct ifaddrmsg address;
		struct rtmsg route;
	} zero;
	struct rtnl m;

	/* EINTR: the list changed while it was read. */
	for (int tries = 0; tries < 8; tries++) {
		rtnl_start(&m, type, NLM_F_DUMP, &zero, len);
		int r = rtnl_read(route, &m, cb, c);
		if (r != -EINTR)
			return r;
	}
	return -EAGAIN;
}

int link_prefixes(int route, struct cidr *ret, size_t max, size_t *ret_n)
{
	struct collector c = { .ret = ret, .max = max };

	int r = dump(route, RTM_GETLINK, sizeof(struct ifinfomsg), link_cb, &c);
	if (r == 0)
		r = dump(route, RTM_GETADDR, sizeof(struct ifaddrmsg),
			 address_cb, &c);
	if (r == 0)
		r = dump(route, RTM_GETROUTE, sizeof(struct rtmsg), route_cb,
			 &c);
	*ret_n = c.n;
	return r;
}

int link_watch(void)
{
	static const int groups[] = { RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
				      RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE };
	AUTO_FD int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       NETLINK_ROUTE);
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };

	/* A socket without an address of its own is not told anything: it looks
	 * like the sender. */
	if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
			       &groups[i], sizeof(groups[i])) < 0)
			return -errno;
	return steal_fd(&fd);
}
