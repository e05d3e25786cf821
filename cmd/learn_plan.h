/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_plan.h - a policy for a table of hosts: in few lines, then as text, and
 * the proof that it is right.
 */
#ifndef CMD_LEARN_PLAN_H
#define CMD_LEARN_PLAN_H

#include <stdio.h>

#include "cmd/learn_table.h"

struct learn_preset {
	const char *name;
	size_t covers; /* hosts */
};

struct learn_wildcard {
	const char *parent;	       /* in a host's name */
	const struct learn_host *like; /* its ports are those of the rule */
	size_t covers;
};

struct learn_plan {
	struct learn_preset preset[64];
	size_t presets;
	struct learn_wildcard *wildcard;
	size_t wildcards;
	size_t rules; /* hosts and literals with a rule of their own */
};

/* @table was judged. 0, -ENOMEM, -ENODATA as learn_judge(), or -EINVAL: a
 * preset can't be built. */
int learn_plan(struct learn_table *table, const struct learn_options *options,
	       struct learn_plan **ret_plan);
void learn_plan_free(struct learn_plan *plan);

void learn_write(FILE *out, const struct learn_table *table,
		 const struct learn_plan *plan,
		 const struct learn_options *options);
/* One JSON text, which has @yaml too. 0 or -ENOMEM. */
int learn_write_json(FILE *out, const struct learn_table *table,
		     const struct learn_plan *plan, const char *yaml);

/* Would the policy in @yaml do to each host of @table what its fate says? 0, or
 * -EINVAL and the first that it would not in @reterr, or -ENOMEM. */
int learn_replay(const struct learn_table *table, const char *yaml, size_t len,
		 char *reterr, size_t cap);

#endif
