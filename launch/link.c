/* SPDX-License-Identifier: Apache-2.0
 *
 * link.c - the few requests that a sandbox's link takes.
 */
#include "launch/link.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>
#include <time.h>

#include "launch/rtnl.h"

#define MARK_PRIORITY 100 /* of the rule, after `local` and before `main` */
#define WAIT_MS	      2000

static int check_name(const char *name)
{
	size_t len = strnlen(name, IFNAMSIZ);

	return len == 0 || len == IFNAMSIZ ? -EINVAL : 0;
}

/* A message about the interface @name. */
static void start_link(struct rtnl *m, uint16_t type, uint16_t flags,
		       const char *name)
{
	const struct ifinfomsg body = { 0 };

	rtnl_start(m, type, flags, &body, sizeof(body));
	mnl_attr_put_strz(m->nlh, IFLA_IFNAME, name);
}

static int index_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == RTM_NEWLINK)
		*(int *)arg = info->ifi_index;
	return MNL_CB_OK;
}

/* No IPv6 address is made up for @name when it comes up. */
static int no_ipv6_address(int route, const char *name)
{
	struct rtnl m;

	start_link(&m, RTM_NEWLINK, 0, name);
	struct nlattr *spec = mnl_attr_nest_start(m.nlh, IFLA_AF_SPEC);
	struct nlattr *inet6 = mnl_attr_nest_start(m.nlh, AF_INET6);
	mnl_attr_put_u8(m.nlh, IFLA_INET6_ADDR_GEN_MODE,
			IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(m.nlh, inet6);
	mnl_attr_nest_end(m.nlh, spec);
	int r = rtnl_ask(route, &m);
	/* A kernel without IPv6 makes no address either. */
	return r == -EAFNOSUPPORT ? 0 : r;
}

static int make_veth(int route, const char *name, const char *peer, int peer_ns)
{
	const struct ifinfomsg body = { 0 };
	struct rtnl m;

	start_link(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name);
	struct nlattr *info = mnl_attr_nest_start(m.nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(m.nlh, IFLA_INFO_KIND, "veth");
	struct nlattr *data = mnl_attr_nest_start(m.nlh, IFLA_INFO_DATA);
	struct nlattr *other = mnl_attr_nest_start(m.nlh, VETH_INFO_PEER);
	memcpy(mnl_nlmsg_put_extra_header(m.nlh, sizeof(body)), &body,
	       sizeof(body));
	mnl_attr_put_strz(m.nlh, IFLA_IFNAME, peer);
	mnl_attr_put_u32(m.nlh, IFLA_NET_NS_FD, (uint32_t)peer_ns);
	mnl_attr_nest_end(m.nlh, other);
	mnl_attr_nest_end(m.nlh, data);
	mnl_attr_nest_end(m.nlh, info);
	return rtnl_ask(route, &m);
}

int link_veth(int route, const char *name, const char *peer, int peer_ns)
{
	if (check_name(name) < 0 || check_name(peer) < 0 || peer_ns < 0)
		return -EINVAL;
	int r = make_veth(route, name, peer, peer_ns);
	if (r < 0)
		return r;
	r = no_ipv6_address(route, name);
	if (r < 0)
		(void)link_delete(route, name);
	return r;
}

static int set_flags(int route, const char *name, unsigned flags)
{
	const struct ifinfomsg body = { .ifi_flags = flags,
					.ifi_change = IFF_UP };
	struct rtnl m;

	if (check_name(name) < 0)
		return -EINVAL;
	rtnl_start(&m, RTM_NEWLINK, 0, &body, sizeof(body));
	mnl_attr_put_strz(m.nlh, IFLA_IFNAME, name);
	return rtnl_ask(route, &m);
}

int link_up(int route, const char *name)
{
	return set_flags(route, name, IFF_UP);
}

int link_down(int route, const char *name)
{
	return set_flags(route, name, 0);
}

int link_group(int route, const char *name, uint32_t group)
{
	const struct ifinfomsg body = { 0 };
	struct rtnl m;

	if (check_name(name) < 0)
		return -EINVAL;
	rtnl_start(&m, RTM_NEWLINK, 0, &body, sizeof(body));
	mnl_attr_put_strz(m.nlh, IFLA_IFNAME, name);
	mnl_attr_put_u32(m.nlh, IFLA_GROUP, group);
	return rtnl_ask(route, &m);
}

struct others {
	uint32_t group, index;
	char (*ret)[16];
	size_t max, n;
};

static int others_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFLA_MAX + 1];
	struct others *others = arg;

	if (nlh->nlmsg_type != RTM_NEWLINK || info->ifi_flags & IFF_LOOPBACK)
		return MNL_CB_OK;
	rtnl_attrs(nlh, sizeof(*info), tb, IFLA_MAX);
	if (others->index ? (uint32_t)info->ifi_index == others->index
			  : rtnl_u32(tb[IFLA_GROUP]) == others->group)
		return MNL_CB_OK;
	if (others->n < others->max && tb[IFLA_IFNAME] &&
	    mnl_attr_get_payload_len(tb[IFLA_IFNAME]) <= 16 &&
	    mnl_attr_validate(tb[IFLA_IFNAME], MNL_TYPE_NUL_STRING) == 0)
		(void)stpcpy(others->ret[others->n],
			     mnl_attr_get_str(tb[IFLA_IFNAME]));
	others->n++;
	return MNL_CB_OK;
}

int link_others(int route, uint32_t group, uint32_t index, char (*ret)[16],
		size_t max, size_t *ret_n)
{
	const struct ifinfomsg body = { 0 };
	struct others others = {
		.group = group, .index = index, .ret = ret, .max = max
	};
	struct rtnl m;

	if (max)
		memset(ret, 0, max * sizeof(*ret));
	rtnl_start(&m, RTM_GETLINK, NLM_F_DUMP, &body, sizeof(body));
	int r = rtnl_read(route, &m, others_cb, &others);
	if (r == 0)
		*ret_n = others.n;
	return r;
}

static int operstate_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[IFLA_OPERSTATE + 1];

	rtnl_attrs(nlh, sizeof(struct ifinfomsg), tb, IFLA_OPERSTATE);
	if (tb[IFLA_OPERSTATE] &&
	    mnl_attr_validate(tb[IFLA_OPERSTATE], MNL_TYPE_U8) == 0)
		*(uint8_t *)arg = mnl_attr_get_u8(tb[IFLA_OPERSTATE]);
	return MNL_CB_OK;
}

int link_wait(int route, const char *name)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	struct rtnl m;

	if (check_name(name) < 0)
		return -EINVAL;
	for (int ms = 0; ms < WAIT_MS; ms++) {
		uint8_t state = IF_OPER_UNKNOWN;

		start_link(&m, RTM_GETLINK, 0, name);
		int r = rtnl_read(route, &m, operstate_cb, &state);
		if (r < 0 || state == IF_OPER_UP)
			return r;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

int link_delete(int route, const char *name)
{
	struct rtnl m;

	if (check_name(name) < 0)
		return -EINVAL;
	start_link(&m, RTM_DELLINK, 0, name);
	return rtnl_ask(route, &m);
}

int link_index(int route, const char *name, uint32_t *ret_index)
{
	struct rtnl m;
	int index = 0;

	if (check_name(name) < 0)
		return -EINVAL;
	start_link(&m, RTM_GETLINK, 0, name);
	int r = rtnl_read(route, &m, index_cb, &index);
	if (r < 0)
		return r;
	if (index <= 0)
		return -ENODEV;
	*ret_index = (uint32_t)index;
	return 0;
}

static unsigned char family_of(const struct ip *ip)
{
	return ip->len == 16 ? AF_INET6 : AF_INET;
}

int link_address(int route, const char *name, const struct cidr *address)
{
	struct ifaddrmsg body = { .ifa_family = family_of(&address->ip),
				  .ifa_prefixlen = address->bits };
	const uint8_t len = address->ip.len;
	struct rtnl m;
	uint32_t index;

	if (!len || address->bits > len * 8)
		return -EINVAL;
	int r = link_index(route, name, &index);
	if (r < 0)
		return r;
	body.ifa_index = index;
	rtnl_start(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body,
		   sizeof(body));
	mnl_attr_put(m.nlh, IFA_LOCAL, len, address->ip.byte);
	mnl_attr_put(m.nlh, IFA_ADDRESS, len, address->ip.byte);
	return rtnl_ask(route, &m);
}

int link_default_route(int route, const struct ip *gateway)
{
	const struct rtmsg body = { .rtm_family = family_of(gateway),
				    .rtm_table = RT_TABLE_MAIN,
				    .rtm_protocol = RTPROT_STATIC,
				    .rtm_scope = RT_SCOPE_UNIVERSE,
				    .rtm_type = RTN_UNICAST };
	struct rtnl m;

	if (!gateway->len)
		return -EINVAL;
	rtnl_start(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &body,
		   sizeof(body));
	mnl_attr_put(m.nlh, RTA_GATEWAY, gateway->len, gateway->byte);
	return rtnl_ask(route, &m);
}

static int add_mark_rule(int route, uint32_t mark, uint32_t table)
{
	const struct fib_rule_hdr body = { .family = AF_INET,
					   .action = FR_ACT_TO_TBL };
	struct rtnl m;

	rtnl_start(&m, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &body,
		   sizeof(body));
	/* Without a priority of its own, the same rule would be added twice. */
	mnl_attr_put_u32(m.nlh, FRA_PRIORITY, MARK_PRIORITY);
	mnl_attr_put_u32(m.nlh, FRA_FWMARK, mark);
	mnl_attr_put_u32(m.nlh, FRA_FWMASK, UINT32_MAX);
	mnl_attr_put_u32(m.nlh, FRA_TABLE, table);
	return rtnl_ask(route, &m);
}

int link_local_delivery(int route, uint32_t mark, uint32_t table)
{
	const struct rtmsg body = { .rtm_family = AF_INET,
				    .rtm_table = RT_TABLE_UNSPEC,
				    .rtm_protocol = RTPROT_STATIC,
				    .rtm_scope = RT_SCOPE_HOST,
				    .rtm_type = RTN_LOCAL };
	struct rtnl m;
	uint32_t index;

	int r = link_index(route, "lo", &index);
	if (r < 0)
		return r;
	r = add_mark_rule(route, mark, table);
	if (r < 0 && r != -EEXIST)
		return r;
	rtnl_start(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body,
		   sizeof(body));
	mnl_attr_put_u32(m.nlh, RTA_OIF, index);
	mnl_attr_put_u32(m.nlh, RTA_TABLE, table);
	return rtnl_ask(route, &m);
}
