/* SPDX-License-Identifier: Apache-2.0
 *
 * link_view.c - sorted lines of text, made of five dumps.
 *
 * Two views are compared, as messages may get lost; and each message is held
 * against the view of the beginning, as what it tells of may be gone again
 * before anybody looks.
 */
#include "launch/link_view.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "launch/rtnl.h"

#define LINE	    160
#define LINES_MAX   256 /* more is nothing that we made */
#define TRIES	    8
#define MESSAGE_MAX 16384

struct link_view {
	size_t n, interfaces;
	char line[LINES_MAX + 1][LINE];
};

static int add(struct link_view *view, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int add(struct link_view *view, const char *fmt, ...)
{
	va_list ap;

	/* The rest is not needed to see a difference. */
	if (view->n == LINES_MAX)
		return MNL_CB_OK;
	va_start(ap, fmt);
	vsnprintf(view->line[view->n++], LINE, fmt, ap);
	va_end(ap);
	return MNL_CB_OK;
}

/* "198.19.0.1", or "-" for an address that is absent. */
static const char *ip_text(const struct nlattr *attr, char buf[IP_TEXT_MAX])
{
	struct ip ip = { 0 };
	size_t len = attr ? mnl_attr_get_payload_len(attr) : 0;

	if (len != 4 && len != 16)
		return "-";
	ip.len = (uint8_t)len;
	memcpy(ip.byte, mnl_attr_get_payload(attr), len);
	return ip_format(&ip, buf);
}

static const char *family_text(unsigned char family)
{
	return family == AF_INET6 ? "ipv6" : family == AF_INET ? "ipv4" : "-";
}

/* --- the dumps ----------------------------------------------------------- */

/* A word of the kernel's, at most @cap - 1 bytes of it. */
static const char *word(const struct nlattr *attr, char *buf, size_t cap)
{
	size_t len = attr ? mnl_attr_get_payload_len(attr) : 0;

	if (len >= cap)
		len = cap - 1;
	if (len)
		memcpy(buf, mnl_attr_get_payload(attr), len);
	buf[len] = '\0';
	return *buf ? buf : "-";
}

static int kind_cb(const struct nlattr *attr, void *arg)
{
	if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
		*(const struct nlattr **)arg = attr;
	return MNL_CB_OK;
}

static int link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *body = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFLA_LINKINFO + 1], *kind = NULL;
	char name[IFNAMSIZ], type[32];
	struct link_view *view = arg;

	rtnl_attrs(nlh, sizeof(*body), tb, IFLA_LINKINFO);
	if (tb[IFLA_LINKINFO])
		(void)mnl_attr_parse_nested(tb[IFLA_LINKINFO], kind_cb, &kind);
	view->interfaces++;
	return add(view, "interface %d %s, %s, %s, part of %u", body->ifi_index,
		   word(tb[IFLA_IFNAME], name, sizeof(name)),
		   word(kind, type, sizeof(type)),
		   body->ifi_flags & IFF_UP ? "up" : "down",
		   rtnl_u32(tb[IFLA_MASTER]));
}

static int address_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifaddrmsg *body = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFA_LOCAL + 1];
	char local[IP_TEXT_MAX], peer[IP_TEXT_MAX];

	rtnl_attrs(nlh, sizeof(*body), tb, IFA_LOCAL);
	return add(arg, "address %s/%u (%s) of interface %u",
		   ip_text(tb[IFA_ADDRESS], peer), body->ifa_prefixlen,
		   ip_text(tb[IFA_LOCAL], local), body->ifa_index);
}

/* Groups of IPv6 get their routes when a carrier comes. */
static bool is_multicast6(const struct rtmsg *body, const struct nlattr *dst)
{
	return body->rtm_family == AF_INET6 && dst &&
	       mnl_attr_get_payload_len(dst) == 16 &&
	       *(const uint8_t *)mnl_attr_get_payload(dst) == 0xff;
}

static int route_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *body = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[RTA_VIA + 1];
	char to[IP_TEXT_MAX], via[IP_TEXT_MAX];

	rtnl_attrs(nlh, sizeof(*body), tb, RTA_VIA);
	/* Cloned: what the kernel learnt of a path. */
	if (body->rtm_flags & RTM_F_CLONED || is_multicast6(body, tb[RTA_DST]))
		return MNL_CB_OK;
	return add(arg,
		   "%s route to %s/%u via %s by interface %u, table %u, type "
		   "%u%s",
		   family_text(body->rtm_family),
		   tb[RTA_DST] ? ip_text(tb[RTA_DST], to) : "anywhere",
		   body->rtm_dst_len, ip_text(tb[RTA_GATEWAY], via),
		   rtnl_u32(tb[RTA_OIF]),
		   tb[RTA_TABLE] ? rtnl_u32(tb[RTA_TABLE]) : body->rtm_table,
		   body->rtm_type,
		   tb[RTA_MULTIPATH] || tb[RTA_VIA] ? ", and others" : "");
}

static int rule_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct fib_rule_hdr *body = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[FRA_FWMASK + 1];

	rtnl_attrs(nlh, sizeof(*body), tb, FRA_FWMASK);
	return add(arg,
		   "%s rule %u: mark %u, from /%u, to /%u, action %u, table %u",
		   family_text(body->family), rtnl_u32(tb[FRA_PRIORITY]),
		   rtnl_u32(tb[FRA_FWMARK]), body->src_len, body->dst_len,
		   body->action,
		   tb[FRA_TABLE] ? rtnl_u32(tb[FRA_TABLE]) : body->table);
}

static int setting_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct netconfmsg *body = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[NETCONFA_FORWARDING + 1];

	rtnl_attrs(nlh, sizeof(*body), tb, NETCONFA_FORWARDING);
	if (!rtnl_u32(tb[NETCONFA_FORWARDING]))
		return MNL_CB_OK;
	switch ((int)rtnl_u32(tb[NETCONFA_IFINDEX])) {
	case NETCONFA_IFINDEX_ALL:
		return add(arg, "%s forwarding (of all)",
			   family_text(body->ncm_family));
	case NETCONFA_IFINDEX_DEFAULT:
		return add(arg, "%s forwarding (of those to come)",
			   family_text(body->ncm_family));
	default:
		return add(arg, "%s forwarding (of interface %u)",
			   family_text(body->ncm_family),
			   rtnl_u32(tb[NETCONFA_IFINDEX]));
	}
}

static const struct {
	uint16_t type;
	unsigned char family;
	size_t len; /* of the request's own header */
	mnl_cb_t cb;
} part[] = {
	{ RTM_GETLINK, AF_UNSPEC, sizeof(struct ifinfomsg), link_cb },
	{ RTM_GETADDR, AF_UNSPEC, sizeof(struct ifaddrmsg), address_cb },
	{ RTM_GETROUTE, AF_UNSPEC, sizeof(struct rtmsg), route_cb },
	{ RTM_GETRULE, AF_UNSPEC, sizeof(struct fib_rule_hdr), rule_cb },
	{ RTM_GETNETCONF, AF_INET, sizeof(struct netconfmsg), setting_cb },
	{ RTM_GETNETCONF, AF_INET6, sizeof(struct netconfmsg), setting_cb },
};

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int read_once(int route, struct link_view *view)
{
	uint8_t body[32] = { 0 };
	struct rtnl m;
	int r = 0;

	view->n = view->interfaces = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(part); i++) {
		/* Each of these headers begins with the family. */
		body[0] = part[i].family;
		rtnl_start(&m, part[i].type, NLM_F_DUMP, body, part[i].len);
		r = rtnl_read(route, &m, part[i].cb, view);
		/* A kernel without IPv6. */
		if (r == -EOPNOTSUPP && part[i].family == AF_INET6)
			r = 0;
	}
	qsort(view->line, view->n, LINE, by_text);
	return r;
}

int link_view_read(int route, struct link_view **ret_view)
{
	struct link_view *view = malloc(sizeof(*view));
	int r = -EINTR;

	if (!view)
		return -ENOMEM;
	/* EINTR: they changed while they were read. */
	for (int i = 0; r == -EINTR && i < TRIES; i++)
		r = read_once(route, view);
	if (r < 0)
		free(view);
	else
		*ret_view = view;
	return r;
}

void link_view_free(struct link_view *view)
{
	free(view);
}

size_t link_view_interfaces(const struct link_view *view)
{
	return view->interfaces;
}

bool link_view_has(const struct link_view *view, const char *line)
{
	return bsearch(line, view->line, view->n, LINE, by_text);
}

int link_view_compare(const struct link_view *was, const struct link_view *is,
		      char *reterr, size_t cap)
{
	size_t i = 0, j = 0, len = 0;

	/* Both are sorted: the smaller line is missing on the other side. */
	while (i < was->n || j < is->n) {
		int order = i == was->n	 ? 1
			    : j == is->n ? -1
					 : strcmp(was->line[i], is->line[j]);

		if (order && len < cap)
			len += (size_t)snprintf(
				reterr + len, cap - len, "%s%s: %s",
				len ? "; " : "",
				order > 0 ? "there is now"
					  : "there is no longer",
				order > 0 ? is->line[j] : was->line[i]);
		i += order <= 0;
		j += order >= 0;
	}
	return len ? -EBADMSG : 0;
}

/* --- news ---------------------------------------------------------------- */

int link_view_listen(int fd)
{
	static const int groups[] = {
		RTNLGRP_LINK,	    RTNLGRP_IPV4_IFADDR,  RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,	  RTNLGRP_IPV4_RULE,
		RTNLGRP_IPV6_RULE,  RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF,
	};
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };

	if (bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
			       &groups[i], sizeof(groups[i])) < 0)
			return -errno;
	return 0;
}

/* What a message is about, as a line of a view; none if it is about what a view
 * leaves out. */
static void take_message(const struct nlmsghdr *nlh, struct link_view *ret)
{
	ret->n = ret->interfaces = 0;
	/* Each part has three types: new, gone, and the question. */
	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		if ((nlh->nlmsg_type | 3) == (part[i].type | 3) &&
		    mnl_nlmsg_get_payload_len(nlh) >= part[i].len) {
			part[i].cb(nlh, ret);
			return;
		}
}

/* Nobody but the kernel makes and takes back; but what it tells in passing of
 * that which is as it was, is no change. */
static bool is_change(const struct nlmsghdr *nlh, const struct link_view *was,
		      char *reterr, size_t cap)
{
	const bool gone = (nlh->nlmsg_type & 3) == (RTM_DELLINK & 3);
	struct link_view now;

	take_message(nlh, &now);
	if (!now.n || link_view_has(was, now.line[0]) != gone)
		return false;
	snprintf(reterr, cap, "there was %s: %s",
		 gone ? "for a moment no longer" : "for a moment", now.line[0]);
	return true;
}

/* Of one datagram. */
static bool find_change(const uint8_t *data, int len,
			const struct link_view *was, char *reterr, size_t cap)
{
	const struct nlmsghdr *nlh = (const void *)data;

	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
		if (is_change(nlh, was, reterr, cap))
			return true;
	return false;
}

int link_view_changed(int fd, const struct link_view *was, char *reterr,
		      size_t cap)
{
	uint8_t buf[MESSAGE_MAX] __attribute__((aligned(8)));
	struct sockaddr_nl from;
	int found = 0;

	for (;;) {
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &from_len);

		if (n < 0 && errno == EAGAIN)
			return found;
		if (n < 0 && errno != EINTR && errno != ENOBUFS)
			return -errno;
		if (n < 0 && errno == ENOBUFS && found >= 0) {
			snprintf(reterr, cap, "more than could be watched");
			found = -EBADMSG;
		}
		if (n < 0 || from.nl_pid || found < 0)
			continue;
		found = was && find_change(buf, (int)n, was, reterr, cap)
				? -EBADMSG
				: 1;
	}
}
