/* SPDX-License-Identifier: Apache-2.0
 *
 * ceiling.h - a policy below another one: inside policy/ only. What a user's
 * policy allows holds only as far as the operator's ceiling allows it too.
 *
 * The ceiling always enforces: `mode: observe` relaxes the user's own words.
 * Where both allow by rules, the verdict's rule is a joint of the two: it looks
 * like the user's, and every answer it gives is the stricter one.
 */
#ifndef POLICY_CEILING_H
#define POLICY_CEILING_H

#include "policy/rule.h"

/* Private to ceiling.c and ceiling_decide.c. */
/* Two rules that decided. @shown is the user's for the record; whether it has
 * a say is another question: one that is only observed has none. */
struct joint {
	struct rule rule; /* borrows its texts */
	const struct rule *shown;
	bool says;
	struct joint *next;
};

struct meeting {
	struct cidr cidr;
	struct port_range *ports;
	size_t count;
};

struct ceiling {
	struct policy *policy;
	struct rule by_default;
	struct joint **bucket;
	size_t buckets, joints;
	struct meeting *literal;
	size_t literals, literals_cap;
};

/* 0 is no limit. */
uint64_t ceiling_smaller(uint64_t a, uint64_t b);

/* Puts @policy, which is built, below @ceiling, which it then owns, whatever
 * happens. @origin: where the ceiling comes from, for people. 0, -ENOMEM, or
 * -EFBIG if their address ranges meet too often. */
int ceiling_attach(struct policy *policy, struct policy *ceiling,
		   const char *origin);
/* NULL is fine. */
void ceiling_free(struct ceiling *ceiling);

/* What is left of @own, which the policy says alone. */
struct verdict ceiling_decide(const struct policy *policy,
			      const struct question *question,
			      const struct verdict *own);

/* The user's and the ceiling's part of a verdict's @rule, for whichever of them
 * it speaks: each may be NULL. */
struct rule_sides {
	const struct rule *user, *ceiling;
};
struct rule_sides rule_sides(const struct rule *rule);

const struct policy *ceiling_policy(const struct ceiling *ceiling);
/* Stands for what the ceiling does not mention. */
const struct rule *ceiling_default(const struct ceiling *ceiling);
bool ceiling_literal(const struct ceiling *ceiling, size_t i, struct cidr *ret,
		     const struct port_range **ret_ports, size_t *ret_count);

#endif
