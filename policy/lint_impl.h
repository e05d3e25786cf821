/* SPDX-License-Identifier: Apache-2.0
 *
 * lint_impl.h - what the files of lint share; nobody else's.
 *
 *	lint.c		codes, findings, what is said of the policy as a whole
 *	lint_listed.c	names that are known for what they are
 *	lint_names.c	patterns: suffixes, strangers, look-alikes
 *	lint_rule.c	one rule for itself: ports, addresses, times, budgets
 *	lint_cell.c	`sandbox:`
 *	lint_reach.c	rules beside each other: what never decides
 */
#ifndef POLICY_LINT_IMPL_H
#define POLICY_LINT_IMPL_H

#include "policy/lint.h"
#include "policy/rule.h"

enum lint_code {
	LINT_PUBLIC_SUFFIX,
	LINT_STRANGERS,
	LINT_DOH,
	LINT_SHARED_CDN,
	LINT_MIXED_SCRIPTS,
	LINT_IDN,
	LINT_SINGLE_LABEL,
	LINT_EXPIRED,
	LINT_EXPIRES_SOON,
	LINT_DENIED,
	LINT_SHADOWED,
	LINT_NOT_JUDGED,
	LINT_NARROWER,
	LINT_NEEDLESS_DENY,
	LINT_LIST_LINES,
	LINT_LIST_EMPTY,
	LINT_DNS_PORT,
	LINT_MAIL_PORT,
	LINT_MANY_PORTS,
	LINT_PROTOCOL_ANY,
	LINT_ECH,
	LINT_WIDE_RANGE,
	LINT_SPECIAL_RANGE,
	LINT_WIDE_ANSWERS,
	LINT_SPECIAL_ANSWERS,
	LINT_CONNECT,
	LINT_DNS_TYPES,
	LINT_BUDGET,
	LINT_NAMES,
	LINT_PUBLIC,
	LINT_OBSERVE,
	LINT_SANDBOX_FILES,
	LINT_SANDBOX_SECRET,
	LINT_SANDBOX_NEST,
	LINT_SANDBOX_RUN,
	LINT_CODE_COUNT
};

struct linter {
	const struct policy *policy;
	int64_t now_s;
	struct findings found;
	int error; /* -ENOMEM sticks */
};

/* @rule is NULL for the policy. */
void lint_found(struct linter *l, const struct rule *rule, enum lint_code code,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Is @i-th entry below the wildcard @apex? */
bool lint_below(size_t i, const char *apex);

void lint_names(struct linter *l, const struct rule *rule);
void lint_rule(struct linter *l, const struct rule *rule);
/* Of --permit. */
void lint_permit(struct linter *l, const struct cidr *cidr);
/* `sandbox:`. */
void lint_cell(struct linter *l);
/* All rules together. */
void lint_reach(struct linter *l);

/* A name below @apex, for asking: that is most probably not written out. False
 * if it would be too long. @buf holds HOST_MAX + 1 bytes. */
bool lint_name_below(const char *apex, char *buf);

#endif
