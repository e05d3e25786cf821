/* SPDX-License-Identifier: Apache-2.0
 *
 * link_peer.c - which interface of a namespace is the other end of ours.
 *
 * A name proves nothing: who may rename one interface may give its name to
 * another. The kernel tells of each veth the index of its other end, and in
 * which namespace that is: by a number that is good in the namespace that is
 * asked alone, and that it makes up when it is first needed, by a dump.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>

#include "launch/link.h"
#include "launch/rtnl.h"

#define TRIES 8

struct search {
	uint32_t link;
	int32_t ns;
	uint32_t found; /* its index, or 0 */
};

static int32_t s32(const struct nlattr *attr)
{
	if (!attr || mnl_attr_get_payload_len(attr) != sizeof(int32_t))
		return NETNSA_NSID_NOT_ASSIGNED;
	return (int32_t)mnl_attr_get_u32(attr);
}

static int ns_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[NETNSA_MAX + 1];

	if (nlh->nlmsg_type != RTM_NEWNSID)
		return MNL_CB_OK;
	rtnl_attrs(nlh, sizeof(struct rtgenmsg), tb, NETNSA_MAX);
	*(int32_t *)arg = s32(tb[NETNSA_NSID]);
	return MNL_CB_OK;
}

static int link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *body = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFLA_LINK_NETNSID + 1];
	struct search *search = arg;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	rtnl_attrs(nlh, sizeof(*body), tb, IFLA_LINK_NETNSID);
	if (search->ns >= 0 && rtnl_u32(tb[IFLA_LINK]) == search->link &&
	    s32(tb[IFLA_LINK_NETNSID]) == search->ns)
		search->found = (uint32_t)body->ifi_index;
	return MNL_CB_OK;
}

static int dump(int route, struct search *search)
{
	const struct ifinfomsg all = { 0 };
	struct rtnl m;
	int r = -EINTR;

	/* EINTR: the list changed while it was read. */
	for (int i = 0; r == -EINTR && i < TRIES; i++) {
		search->found = 0;
		rtnl_start(&m, RTM_GETLINK, NLM_F_DUMP, &all, sizeof(all));
		r = rtnl_read(route, &m, link_cb, search);
	}
	return r;
}

int link_peer(int route, int ns, uint32_t index, uint32_t *ret_index)
{
	const struct rtgenmsg any = { 0 };
	struct search search = { .link = index,
				 .ns = NETNSA_NSID_NOT_ASSIGNED };
	struct rtnl m;
	/* The first dump has the kernel number the namespaces. */
	int r = dump(route, &search);

	if (r < 0)
		return r;
	rtnl_start(&m, RTM_GETNSID, 0, &any, sizeof(any));
	mnl_attr_put_u32(m.nlh, NETNSA_FD, (uint32_t)ns);
	r = rtnl_read(route, &m, ns_cb, &search.ns);
	if (r == 0)
		r = dump(route, &search);
	if (r < 0)
		return r;
	if (!search.found)
		return -ENODEV;
	*ret_index = search.found;
	return 0;
}
