/* SPDX-License-Identifier: Apache-2.0
 *
 * link_grouped.c - an interface by its group: whatever an engine made of its
 * name, and wherever it moved it.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>

#include "launch/link.h"
#include "launch/rtnl.h"

struct search {
	uint32_t group;
	char (*name)[16];
	size_t found;
};

static int link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[IFLA_GROUP + 1];
	struct search *search = arg;
	const struct nlattr *name;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	rtnl_attrs(nlh, sizeof(struct ifinfomsg), tb, IFLA_GROUP);
	name = tb[IFLA_IFNAME];
	if (rtnl_u32(tb[IFLA_GROUP]) != search->group || !name ||
	    mnl_attr_validate2(name, MNL_TYPE_NUL_STRING, 16) < 0)
		return MNL_CB_OK;
	snprintf(*search->name, sizeof(*search->name), "%s",
		 mnl_attr_get_str(name));
	search->found++;
	return MNL_CB_OK;
}

int link_grouped(int route, uint32_t group, char (*ret_name)[16])
{
	const struct ifinfomsg all = { 0 };
	char name[16] = "";
	struct search search = { .group = group, .name = &name };
	struct rtnl m;
	int r;

	rtnl_start(&m, RTM_GETLINK, NLM_F_DUMP, &all, sizeof(all));
	r = rtnl_read(route, &m, link_cb, &search);
	if (r < 0)
		return r;
	if (search.found != 1)
		return search.found ? -ENOTUNIQ : -ENODEV;
	snprintf(*ret_name, sizeof(*ret_name), "%s", name);
	return 0;
}
