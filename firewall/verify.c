/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - reads back what the kernel holds, and compares it with the plan.
 *
 * The namespace is ours alone, so that any other table in it is a difference.
 * Of the sets, `links` and `doors` are compared element by element; `points`
 * and `flows` change with each name that is looked up and are left out.
 */
#include "firewall/ruleset.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <string.h>

#include "firewall/canon.h"
#include "firewall/element.h"
#include "firewall/nft.h"
#include "firewall/plan.h"
#include "firewall/readback.h"
#include "firewall/table.h"

struct element_target {
	struct canon *canon;
	const char *set;
	bool port;
};

static int element_cb(void *arg, const struct element_found *found)
{
	const struct element_target *target = arg;

	return canon_element(target->canon, target->set, target->port, found);
}

static int read_elements(struct nft *nft, struct canon *canon, const char *set,
			 bool port)
{
	struct element_target target = {
		.canon = canon,
		.set = set,
		.port = port,
	};

	int r = element_list(nft, set,
			     port ? ELEMENT_FLOW_KEY : ELEMENT_LINK_KEY,
			     element_cb, &target);
	/* No such set: the missing set's own line says so. */
	return r == -ENOENT ? 0 : r;
}

static int read_all(void *arg, struct nft *nft, struct canon *canon)
{
	int r = readback_table(nft, canon, NFPROTO_INET, RULESET_TABLE, true);

	(void)arg;
	if (r == 0)
		r = read_elements(nft, canon, SET_LINKS, false);
	if (r == 0)
		r = read_elements(nft, canon, SET_DOORS, true);
	return r;
}

static int read_published(void *arg, struct nft *nft, struct canon *canon)
{
	(void)arg;
	return read_elements(nft, canon, SET_PUBLISHED, false);
}

static int expect_link(struct canon *canon, const struct ruleset_link *link,
		       uint16_t proxy_port)
{
	struct element_found who = { .plain = true }, door = { .plain = true };

	if (!element_ifname_ok(link->ifname))
		return -EINVAL;
	memcpy(who.element.ifname, link->ifname, sizeof(link->ifname));
	memcpy(door.element.ifname, link->ifname, sizeof(link->ifname));
	who.element.ip = who.element.ip_last = ip_v4_value(&link->ip);
	door.element.ip = door.element.ip_last = ip_v4_value(&link->gateway);
	door.element.port = door.element.port_last = proxy_port;
	int r = canon_element(canon, SET_LINKS, false, &who);
	if (r == 0)
		r = canon_element(canon, SET_DOORS, true, &door);
	return r;
}

static int expect(struct canon *canon, const struct ruleset_spec *spec,
		  const struct ruleset_link *links, size_t n)
{
	struct table plan;

	int r = plan_make(&plan, spec);
	if (r == 0)
		r = table_expect(&plan, canon);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = expect_link(canon, &links[i], spec->proxy_port);
	table_free(&plan);
	return r;
}

static int expect_published(struct canon *canon,
			    const struct ruleset_link *links, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct element_found ours = { .plain = true };

		if (!links[i].published)
			continue;
		memcpy(ours.element.ifname, links[i].ifname,
		       sizeof(links[i].ifname));
		ours.element.ip = ours.element.ip_last =
			ip_v4_value(&links[i].gateway);
		r = canon_element(canon, SET_PUBLISHED, false, &ours);
	}
	return r;
}

static int verify_published(struct nft *nft, const struct ruleset_link *links,
			    size_t n, char *reterr, size_t cap)
{
	struct canon want = { 0 }, found = { 0 };

	int r = readback(nft, &found, read_published, NULL);
	if (r == 0)
		r = expect_published(&want, links, n);
	if (r == 0)
		r = readback_compare(&want, &found, reterr, cap);
	canon_free(&want);
	canon_free(&found);
	return r;
}

int ruleset_verify(struct nft *nft, const struct ruleset_spec *spec,
		   const struct ruleset_link *links, size_t n, char *ret_digest,
		   char *reterr, size_t cap)
{
	struct canon want = { 0 }, found = { 0 };

	int r = expect(&want, spec, links, n);
	if (r == 0)
		r = readback(nft, &found, read_all, NULL);
	if (r == 0)
		r = readback_compare(&want, &found, reterr, cap);
	if (r == 0)
		r = verify_published(nft, links, n, reterr, cap);
	if (r == 0 && ret_digest)
		r = canon_digest(&found, ret_digest);
	canon_free(&want);
	canon_free(&found);
	return r;
}
