/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.c - puts the guard's tables into the kernel, reads them back, counts,
 * and takes them away.
 */
#include "firewall/guard.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
/* these want stdio.h */
#include <libnftnl/object.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "firewall/canon.h"
#include "firewall/guard_plan.h"
#include "firewall/nft.h"
#include "firewall/readback.h"
#include "firewall/ruleset.h"
#include "firewall/table.h"

/* Others change their rules meanwhile, and then each look begins anew. */
#define RETRIES 64

void guard_use(struct nft *nft)
{
	nft_use_table(nft, GUARD_TABLE);
}

/* --- interfaces ---------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

int guard_find_devices(struct guard_spec *spec)
{
	struct if_nameindex *all = if_nameindex();
	int r = 0;

	if (!all)
		return -errno;
	memset(spec->device, 0, sizeof(spec->device));
	spec->devices = 0;
	for (size_t i = 0; r == 0 && all[i].if_name; i++) {
		if (strcmp(all[i].if_name, "lo") == 0)
			continue;
		if (spec->devices == GUARD_DEVICES_MAX)
			r = -E2BIG;
		else
			memcpy(spec->device[spec->devices++], all[i].if_name,
			       strnlen(all[i].if_name, IFNAMSIZ - 1));
	}
	if_freenameindex(all);
	qsort(spec->device, spec->devices, sizeof(spec->device[0]), by_name);
	return r;
}

/* --- in and out ---------------------------------------------------------- */

static int install(struct nft *nft, const struct guard_spec *spec, bool all)
{
	struct guard_plan plan;
	int r = guard_plan_make(&plan, spec);

	if (r == 0) {
		nft_begin(nft);
		if (all) {
			table_clear(nft, &plan.inet);
			table_create(nft, &plan.inet);
		}
		table_clear(nft, &plan.netdev);
		if (plan.netdev.chains)
			table_create(nft, &plan.netdev);
		r = nft_commit(nft);
	}
	guard_plan_free(&plan);
	return r;
}

int guard_install(struct nft *nft, const struct guard_spec *spec)
{
	return install(nft, spec, true);
}

int guard_install_devices(struct nft *nft, const struct guard_spec *spec)
{
	return install(nft, spec, false);
}

struct found {
	uint8_t family[2];
	size_t n;
};

static int found_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nfgenmsg *gen = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[NFTA_TABLE_MAX + 1];
	struct found *found = arg;

	if (nft_attrs(nlh, tb, NFTA_TABLE_MAX) == 0 && tb[NFTA_TABLE_NAME] &&
	    strcmp(mnl_attr_get_str(tb[NFTA_TABLE_NAME]), GUARD_TABLE) == 0 &&
	    (gen->nfgen_family == NFPROTO_INET ||
	     gen->nfgen_family == NFPROTO_NETDEV) &&
	    found->n < ARRAY_SIZE(found->family))
		found->family[found->n++] = gen->nfgen_family;
	return MNL_CB_OK;
}

int guard_remove(struct nft *nft, bool *ret_any)
{
	struct found found;
	int r = -EINTR;

	for (int tries = 0; r == -EINTR && tries < RETRIES; tries++) {
		found = (struct found){ .n = 0 };
		r = nft_read(nft,
			     nft_ask(nft, NFT_MSG_GETTABLE, NLM_F_DUMP,
				     NFPROTO_UNSPEC),
			     found_cb, &found);
	}
	if (r < 0)
		return r;
	*ret_any = found.n > 0;
	if (!found.n)
		return 0;
	nft_begin(nft);
	for (size_t i = 0; i < found.n; i++)
		table_delete(nft, &(struct table){ .name = GUARD_TABLE,
						   .family = found.family[i] });
	return nft_commit(nft);
}

/* --- reading back -------------------------------------------------------- */

static int expect(struct canon *canon, const struct guard_spec *spec)
{
	struct guard_plan plan;
	int r = guard_plan_make(&plan, spec);

	if (r == 0)
		r = table_expect(&plan.inet, canon);
	if (r == 0 && plan.netdev.chains)
		r = table_expect(&plan.netdev, canon);
	guard_plan_free(&plan);
	return r;
}

static int read_back(struct nft *nft, struct canon *canon)
{
	for (int tries = 0; tries < RETRIES; tries++) {
		int r = readback_table(nft, canon, NFPROTO_INET, GUARD_TABLE,
				       false);

		if (r == 0)
			r = readback_table(nft, canon, NFPROTO_NETDEV,
					   GUARD_TABLE, false);
		if (r != -EINTR)
			return r;
		canon_free(canon);
	}
	return -EAGAIN;
}

/* Of what was just found to be there, but for the interfaces, which come and
 * go. */
static int digest(const struct guard_spec *spec, char *ret_digest)
{
	struct guard_spec bare = *spec;
	struct canon canon = { 0 };

	bare.egress = false;
	int r = expect(&canon, &bare);
	if (r == 0 && spec->egress)
		r = canon_add(&canon, "egress of every interface but lo");
	if (r == 0) {
		canon_sort(&canon);
		r = canon_digest(&canon, ret_digest);
	}
	canon_free(&canon);
	return r;
}

int guard_verify(struct nft *nft, const struct guard_spec *spec,
		 char *ret_digest, char *reterr, size_t cap)
{
	struct canon want = { 0 }, found = { 0 };

	int r = expect(&want, spec);
	if (r == 0)
		r = read_back(nft, &found);
	if (r == 0) {
		r = readback_compare(&want, &found, reterr, cap);
	} else {
		(void)snprintf(reterr, cap, "they can't be read: %s",
			       strerror(-r));
	}
	if (r == 0 && ret_digest)
		r = digest(spec, ret_digest);
	canon_free(&want);
	canon_free(&found);
	return r;
}

/* --- counters ------------------------------------------------------------ */

static int packets_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_obj *o = nftnl_obj_alloc();

	if (!o) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	if (nftnl_obj_nlmsg_parse(nlh, o) == 0 &&
	    strcmp(nftnl_obj_get_str(o, NFTNL_OBJ_TABLE), GUARD_TABLE) == 0 &&
	    strcmp(nftnl_obj_get_str(o, NFTNL_OBJ_NAME), GUARD_COUNT_PACKETS) ==
		    0)
		*(uint64_t *)arg += nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_PKTS);
	nftnl_obj_free(o);
	return MNL_CB_OK;
}

int guard_counters(struct nft *nft, struct ruleset_counters *ret)
{
	uint64_t packets = 0;
	int r = -EINTR;

	for (int tries = 0; r == -EINTR && tries < RETRIES; tries++) {
		packets = 0;
		r = nft_read(nft,
			     nft_ask(nft, NFT_MSG_GETOBJ, NLM_F_DUMP,
				     NFPROTO_NETDEV),
			     packets_cb, &packets);
	}
	if (r == 0)
		r = ruleset_counters(nft, ret);
	if (r == 0)
		ret->refused += packets;
	return r;
}

/* --- connections --------------------------------------------------------- */

int guard_forget_connections(int fd)
{
	struct {
		struct nlmsghdr nlh;
		struct nfgenmsg gen;
	} all = {
		.nlh = { .nlmsg_len = sizeof(all),
			 .nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 |
				       IPCTNL_MSG_CT_DELETE,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			 .nlmsg_seq = 1 },
		.gen = { .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0 },
	};
	uint8_t buf[512] __attribute__((aligned(8)));
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;

	if (send(fd, &all, sizeof(all), 0) < 0)
		return -errno;
	ssize_t n = recv(fd, buf, sizeof(buf), 0);
	if (n < 0)
		return -errno;
	if (!mnl_nlmsg_ok(nlh, (int)n) || nlh->nlmsg_type != NLMSG_ERROR ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nlmsgerr))
		return -EBADMSG;
	return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error;
}
