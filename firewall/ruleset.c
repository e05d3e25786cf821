/* SPDX-License-Identifier: Apache-2.0
 *
 * ruleset.c - puts the plan into the kernel, and reads the counters.
 */
#include "firewall/ruleset.h"

#include "firewall/nft.h"
#include "firewall/plan.h"
#include "firewall/table.h"

int ruleset_install(struct nft *nft, const struct ruleset_spec *spec)
{
	struct table plan;

	int r = plan_make(&plan, spec);
	if (r == 0)
		r = table_install(nft, &plan);
	table_free(&plan);
	return r;
}

int ruleset_counters(struct nft *nft, struct ruleset_counters *ret)
{
	uint64_t packets[PLAN_COUNTERS];
	int r = table_counts(nft, nft_table(nft), plan_counter, PLAN_COUNTERS,
			     packets);

	if (r < 0)
		return r;
	*ret = (struct ruleset_counters){
		.spoofed = packets[0],
		.refused = packets[1],
		.ipv6 = packets[2],
		.forwarded = packets[3],
	};
	return 0;
}
