/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.h - what becomes reachable from one policy to the next, and what stops
 * being so: by what they decide, not by how they are written.
 *
 * Names fall into classes that both policies treat alike: each exact name of
 * either, each wildcard of either but for what is more specific, and all other
 * names. One representative of each is asked about, on each range of ports that
 * rules tell apart. Literal addresses likewise. What expires is compared as of
 * one moment. `mode: observe` is one difference of its own: reach is compared
 * as if both enforced.
 */
#ifndef POLICY_DIFF_H
#define POLICY_DIFF_H

#include "policy/policy.h"

enum diff_sign { DIFF_ADDED, DIFF_REMOVED, DIFF_CHANGED };

enum diff_kind {
	DIFF_NAME,	/* what: "*.example.com", DIFF_OTHERS */
	DIFF_ADDRESS,	/* what: "198.51.100.0/24" */
	DIFF_ANSWER,	/* what: a range that names may resolve to, or no longer
			 */
	DIFF_DENY_LIST, /* what: its path; so many names of it */
	DIFF_SETTING,	/* what: "limits.names" */
};

#define DIFF_OTHERS "any other name"

/* Of what is reachable in both, or of a setting. */
enum diff_way { DIFF_WIDER, DIFF_NARROWER, DIFF_OTHERWISE };

/* Bits: proxy is CONNECT, HTTP and SOCKS. */
enum { DIFF_BY_PROXY = 1, DIFF_DIRECTLY = 2, DIFF_IN_DNS = 4, DIFF_BY_ALL = 7 };

struct difference {
	enum diff_sign sign;
	enum diff_kind kind;
	char *what;
	struct port_range ports; /* first is 0: not about ports */
	unsigned doors;		 /* DIFF_* bits; names and addresses only */
	enum diff_way way;	 /* DIFF_CHANGED only */
	char *detail;		 /* what is different, or NULL */
	/* That decide, in the old and the new one; NULL: none. Theirs. */
	const struct rule *was, *is;
};

struct differences {
	struct difference *at;
	size_t count;
};

/* 0, or -ENOMEM. @now_s as in struct question. */
int policy_diff(const struct policy *was, const struct policy *is,
		int64_t now_s, struct differences *ret);
void differences_free(struct differences *differences);

const char *diff_way_word(enum diff_way way); /* "wider" */

#endif
