/* SPDX-License-Identifier: Apache-2.0
 *
 * lint.h - what is legal in a policy, and unwise.
 *
 * Who means it says so in the rule's note: "lint-ok: CODE" or "lint-ok: CODE,
 * CODE" silences those codes for that rule. In a preset a note with the word
 * "strangers" stands for "lint-ok: strangers".
 */
#ifndef POLICY_LINT_H
#define POLICY_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;
struct rule;

/* A line of policy/lint/listed.txt: about @domain and all names below it. */
struct lint_entry {
	const char *domain, *class, *reason;
};

/* Sorted by domain. */
extern const struct lint_entry lint_table[];
extern const size_t lint_table_count;

/* The longest listed domain that is @host, which is canonical, or above it.
 * NULL: none. */
const struct lint_entry *lint_lookup(const char *host);

enum lint_level { LINT_NOTE, LINT_WARNING };

struct lint_info {
	const char *word; /* stable: for notes and programs */
	enum lint_level level;
	const char *about; /* what it is about */
	const char *hint;  /* what to do */
};
/* The @i-th code there is; NULL past the end. */
const struct lint_info *lint_info(size_t i);

struct finding {
	const struct rule *rule; /* NULL: the policy as a whole */
	const struct lint_info *info;
	char *message; /* what is written in files may be in it: for terminals
			  it has to be cleaned */
	size_t number;
};

struct findings {
	struct finding *at; /* the policy first, then rules as written */
	size_t count, silenced;
};

/* 0 and what there is to say about @policy, whose rules it points to; or
 * -ENOMEM. @now_s: as in struct question. */
int policy_lint(const struct policy *policy, int64_t now_s,
		struct findings *ret_findings);
void findings_free(struct findings *findings);

#endif
