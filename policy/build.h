/* SPDX-License-Identifier: Apache-2.0
 *
 * build.h - a policy under construction: inside policy/ only. policy_build() of
 * bundle.h is the door.
 */
#ifndef POLICY_BUILD_H
#define POLICY_BUILD_H

#include "policy/bundle.h"
#include "policy/rule.h"
#include "policy/target.h"

struct draft {
	struct policy *policy;
	struct policy_error *err;
	uint64_t presets_loaded; /* a bit for each */
	bool upstream_given;
};

/* A new rule for @target; the draft owns it. Ports are those of the target, or
 * 443 and 80, or (deny) all. 0, -ENOMEM, or -EFBIG past RULES_MAX. */
int draft_add_rule(struct draft *draft, const struct target *target, bool deny,
		   const char *text, const char *origin,
		   struct rule **ret_rule);

/* Replaces the ports of @rule by copies. 0 or -ENOMEM. */
int rule_set_ports(struct rule *rule, const struct port_range *range, size_t n);
int rule_set_addresses(struct rule *rule, const struct cidr *cidr, size_t n);

/* Adds the preset number @i, once. */
int draft_add_preset(struct draft *draft, size_t i);

/* Adds a YAML text: load.c. 0, -EINVAL and draft->err, or -ENOMEM. */
int load_yaml(struct draft *draft, const char *origin, const char *text,
	      size_t len);

#endif
