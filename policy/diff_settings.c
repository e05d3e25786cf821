/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_settings.c - what a policy says once, about everything: defaults,
 * limits, how it is recorded, which answers are permitted or denied.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/diff_impl.h"
#include "policy/explain_rule.h"

static void changed(struct differ *d, const char *what, enum diff_way way,
		    const char *was, const char *is)
{
	char detail[400];

	snprintf(detail, sizeof(detail), "%s -> %s", was, is);
	diff_add(d, &(struct difference){ .sign = DIFF_CHANGED,
					  .kind = DIFF_SETTING,
					  .what = (char *)what,
					  .way = way,
					  .detail = detail });
}

static void flag(struct differ *d, const char *what, bool was, bool is,
		 const char *no, const char *yes)
{
	if (was != is)
		changed(d, what, is ? DIFF_WIDER : DIFF_NARROWER,
			was ? yes : no, is ? yes : no);
}

static void number(struct differ *d, const char *what, unsigned was,
		   unsigned is)
{
	char a[16], b[16];

	if (was == is)
		return;
	snprintf(a, sizeof(a), "%u", was);
	snprintf(b, sizeof(b), "%u", is);
	changed(d, what, is > was ? DIFF_WIDER : DIFF_NARROWER, a, b);
}

static void bytes(struct differ *d, const char *what, uint64_t was, uint64_t is)
{
	char a[40], b[40];

	if (was == is)
		return;
	changed(d, what, !is || (was && is > was) ? DIFF_WIDER : DIFF_NARROWER,
		was ? size_format(was, a, sizeof(a)) : "unlimited",
		is ? size_format(is, b, sizeof(b)) : "unlimited");
}

static void limits(struct differ *d, const struct limits *was,
		   const struct limits *is)
{
	number(d, "limits.connections", was->connections, is->connections);
	number(d, "limits.connections_per_second", was->connections_per_second,
	       is->connections_per_second);
	number(d, "limits.names", was->names, is->names);
	number(d, "limits.names_per_wildcard", was->names_per_wildcard,
	       is->names_per_wildcard);
	number(d, "limits.dns_per_second", was->dns_per_second,
	       is->dns_per_second);
	bytes(d, "limits.upload", was->budget[UP], is->budget[UP]);
	bytes(d, "limits.download", was->budget[DOWN], is->budget[DOWN]);
}

/* How it is recorded makes no host reachable. */
static void otherwise(struct differ *d, const char *what, const char *was,
		      const char *is)
{
	if (strcmp(was, is) != 0)
		changed(d, what, DIFF_OTHERWISE, was, is);
}

static const char *age(uint32_t s, char *buf, size_t cap)
{
	if (!s)
		return "any age";
	snprintf(buf, cap, "%us", s);
	return buf;
}

static void records(struct differ *d, const struct log_settings *was,
		    const struct log_settings *is)
{
	char a[40], b[40];

	otherwise(d, "log.sign", was->sign_every ? "every" : "batch",
		  is->sign_every ? "every" : "batch");
	otherwise(d, "log.durability", was->durable ? "record" : "batch",
		  is->durable ? "record" : "batch");
	otherwise(d, "log.rotate", size_format(was->rotate_bytes, a, sizeof(a)),
		  size_format(is->rotate_bytes, b, sizeof(b)));
	otherwise(d, "log.rotate_after", age(was->rotate_s, a, sizeof(a)),
		  age(is->rotate_s, b, sizeof(b)));
}

static void upstream_text(const struct policy *policy, char *buf, size_t cap)
{
	size_t len = (size_t)snprintf(buf, cap, "%s",
				      policy->upstream_system ? "system" : "");
	char ip[IP_TEXT_MAX];

	for (size_t i = 0; i < policy->upstream_count && len < cap; i++)
		len += (size_t)snprintf(
			buf + len, cap - len,
			policy->upstream[i].len == 16 ? "%s[%s]:%u" : "%s%s:%u",
			len ? ", " : "", ip_format(&policy->upstream[i], ip),
			policy->upstream_port[i]);
}

static void upstream(struct differ *d)
{
	/* Room for all of them. */
	char text[2][(UPSTREAM_MAX + 1) * (IP_TEXT_MAX + 12)];
	char detail[2][180];

	for (int i = WAS; i <= IS; i++) {
		upstream_text(d->policy[i], text[i], sizeof(text[i]));
		snprintf(detail[i], sizeof(detail[i]), "%.170s", text[i]);
	}
	if (strcmp(text[WAS], text[IS]) != 0)
		changed(d, "dns.upstream", DIFF_OTHERWISE, detail[WAS],
			detail[IS]);
}

/* --- answers ------------------------------------------------------------- */

static void answer(struct differ *d, const struct cidr *cidr, bool opens,
		   const char *detail, const struct rule *was,
		   const struct rule *is)
{
	char what[CIDR_TEXT_MAX];

	cidr_format(cidr, what);
	diff_add(d, &(struct difference){ .sign = opens ? DIFF_ADDED
							: DIFF_REMOVED,
					  .kind = DIFF_ANSWER,
					  .what = what,
					  .detail = (char *)detail,
					  .was = was,
					  .is = is });
}

static bool is_permitted(const struct policy *policy, const struct cidr *cidr)
{
	for (size_t i = 0; i < policy->permit_count; i++)
		if (policy->permit[i].bits <= cidr->bits &&
		    cidr_contains(&policy->permit[i], &cidr->ip))
			return true;
	return false;
}

static void permits(struct differ *d, int of)
{
	const struct policy *policy = d->policy[of];

	for (size_t i = 0; i < policy->permit_count; i++)
		if (!is_permitted(d->policy[!of], &policy->permit[i]))
			answer(d, &policy->permit[i], of == IS,
			       "any name may resolve to it", NULL, NULL);
}

/* The rule that denies all of @cidr. */
static const struct rule *denied_range(const struct policy *policy,
				       const struct cidr *cidr)
{
	struct group group;

	for (size_t i = 0;
	     index_literal(&policy->deny_literal, &cidr->ip, i, &group); i++)
		if (group.count && group.at[0]->literal.bits <= cidr->bits)
			return group.at[0];
	return NULL;
}

static void denials(struct differ *d, int of)
{
	const struct rule_list *list = &d->policy[of]->deny_literal.rules;

	for (size_t i = 0; i < list->count; i++) {
		const struct rule *rule = list->at[i];

		if (!denied_range(d->policy[!of], &rule->literal))
			answer(d, &rule->literal, of == WAS,
			       "denied, whatever resolves to it",
			       of == WAS ? rule : NULL, of == IS ? rule : NULL);
	}
}

void diff_settings(struct differ *d)
{
	const struct policy *was = d->policy[WAS], *is = d->policy[IS];

	flag(d, "default", was->is_public, is->is_public, "deny", "public");
	flag(d, "mode", was->observes, is->observes, "enforce", "observe");
	if (was->answers_real != is->answers_real)
		changed(d, "dns.answers", DIFF_OTHERWISE,
			was->answers_real ? "real" : "synthetic",
			is->answers_real ? "real" : "synthetic");
	upstream(d);
	limits(d, &was->limits, &is->limits);
	records(d, &was->log, &is->log);
	diff_cell(d);
	for (int of = WAS; of <= IS; of++) {
		permits(d, of);
		denials(d, of);
		diff_lists(d, of);
	}
}
