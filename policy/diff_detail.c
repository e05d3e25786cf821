/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_detail.c - two rules that both allow, on one port: what one of them
 * allows more.
 *
 * Wider and narrower are claimed only where it is certain; all else is
 * different.
 */
#include <stdio.h>
#include <string.h>

#include "policy/diff_impl.h"
#include "policy/explain_rule.h"
#include "policy/path.h"

/* --- requests ------------------------------------------------------------ */

static bool has_text(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strcmp(texts->at[i], text) == 0)
			return true;
	return false;
}

static bool ends_deep(const char *pattern)
{
	size_t len = strlen(pattern);

	return len > 2 && strcmp(pattern + len - 3, "/**") == 0;
}

/* Does @wide match whatever @narrow matches? '*' matches '*' as it matches any
 * other segment; "**" needs a "**". */
static bool path_covers(const char *wide, const char *narrow)
{
	return strcmp(wide, narrow) == 0 ||
	       ((ends_deep(wide) || !ends_deep(narrow)) &&
		path_matches(wide, narrow, strlen(narrow)));
}

static bool paths_cover(const struct texts *wide, const struct texts *narrow)
{
	if (!wide->count)
		return true;
	for (size_t i = 0; i < narrow->count; i++) {
		size_t j = 0;

		while (j < wide->count &&
		       !path_covers(wide->at[j], narrow->at[i]))
			j++;
		if (j == wide->count)
			return false;
	}
	return narrow->count;
}

static bool methods_cover(const struct texts *wide, const struct texts *narrow)
{
	if (!wide->count)
		return true;
	for (size_t i = 0; i < narrow->count; i++)
		if (!has_text(wide, narrow->at[i]))
			return false;
	return narrow->count;
}

static bool lets_all(struct fitting fitting)
{
	const struct rule *rule;

	while ((rule = fitting_next(&fitting)))
		if (!rule_judges_requests(rule))
			return true;
	return false;
}

/* May every request be sent that the rules of @narrow let pass? What is allowed
 * without a rule is public, and every request passes. */
static bool requests_cover(const struct fitting wide, struct fitting narrow)
{
	struct fitting any = wide;
	const struct rule *n = fitting_next(&narrow), *w;

	if (!fitting_next(&any))
		return true;
	if (!n)
		return lets_all(wide);
	for (; n; n = fitting_next(&narrow)) {
		struct fitting each = wide;

		while ((w = fitting_next(&each)))
			if (methods_cover(&w->methods, &n->methods) &&
			    paths_cover(&w->paths, &n->paths))
				break;
		if (!w)
			return false;
	}
	return true;
}

/* Returns how long the text is, which may be more than fits. */
static size_t rule_requests(const struct rule *rule, char *buf, size_t cap)
{
	size_t len =
		(size_t)snprintf(buf, cap, "%s",
				 rule->methods.count	      ? ""
				 : rule_judges_requests(rule) ? "any"
							      : "any request");

	for (size_t i = 0; i < rule->methods.count && len < cap; i++)
		len += (size_t)snprintf(buf + len, cap - len, "%s%s",
					i ? "," : "", rule->methods.at[i]);
	for (size_t i = 0; i < rule->paths.count && len < cap; i++)
		len += (size_t)snprintf(buf + len, cap - len, "%s%s",
					i ? "," : " ", rule->paths.at[i]);
	return len;
}

static void requests_text(struct fitting fitting, char *buf, size_t cap)
{
	size_t len = 0;
	const struct rule *rule;

	buf[0] = '\0';
	while ((rule = fitting_next(&fitting)) && len < cap) {
		if (!rule_judges_requests(rule)) {
			snprintf(buf, cap, "any request");
			return;
		}
		len += (size_t)snprintf(buf + len, cap - len, "%s",
					len ? " or " : "");
		if (len < cap)
			len += rule_requests(rule, buf + len, cap - len);
	}
	if (!len)
		snprintf(buf, cap, "any request");
}

static bool same_texts(const struct texts *a, const struct texts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->at[i], b->at[i]) != 0)
			return false;
	return true;
}

/* Written alike, one by one: the usual case, without comparing each to all. */
static bool same_requests(const struct fitting fitting[2])
{
	struct fitting was = fitting[WAS], is = fitting[IS];
	const struct rule *a, *b;

	do {
		a = fitting_next(&was);
		b = fitting_next(&is);
		if (a && b &&
		    (!same_texts(&a->methods, &b->methods) ||
		     !same_texts(&a->paths, &b->paths)))
			return false;
	} while (a && b);
	return !a && !b;
}

static void requests(const struct fitting fitting[2], struct change *c)
{
	bool wider, narrower;
	char was[300], is[300];

	if (same_requests(fitting))
		return;
	wider = requests_cover(fitting[IS], fitting[WAS]);
	narrower = requests_cover(fitting[WAS], fitting[IS]);
	if (wider && narrower)
		return;
	requests_text(fitting[WAS], was, sizeof(was));
	requests_text(fitting[IS], is, sizeof(is));
	change_add(c,
		   wider      ? DIFF_WIDER
		   : narrower ? DIFF_NARROWER
			      : DIFF_OTHERWISE,
		   "%s -> %s", was, is);
}

/* --- what a rule says beside that ---------------------------------------- */

static const struct endpoint *connect_of(const struct rule *rule)
{
	return rule ? rule_connect(rule) : NULL;
}

static void connects(const struct rule *was, const struct rule *is,
		     struct change *c)
{
	const struct endpoint *a = connect_of(was), *b = connect_of(is);
	char text[2][IP_TEXT_MAX + 10] = { "the name's address",
					   "the name's address" };
	char ip[IP_TEXT_MAX];

	if ((!a && !b) ||
	    (a && b && a->port == b->port && ip_equal(&a->ip, &b->ip)))
		return;
	if (a)
		snprintf(text[WAS], sizeof(text[WAS]), "%s port %u",
			 ip_format(&a->ip, ip), a->port);
	if (b)
		snprintf(text[IS], sizeof(text[IS]), "%s port %u",
			 ip_format(&b->ip, ip), b->port);
	change_add(c, DIFF_OTHERWISE, "connects to %s -> %s", text[WAS],
		   text[IS]);
}

static bool is_inside(const struct cidr *inner, const struct rule *rule)
{
	for (size_t i = 0; rule && i < rule->address_count; i++)
		if (rule->addresses[i].bits <= inner->bits &&
		    cidr_contains(&rule->addresses[i], &inner->ip))
			return true;
	return false;
}

/* The first range that @rule permits and @other does not; NULL: none. */
static const struct cidr *beyond(const struct rule *rule,
				 const struct rule *other)
{
	for (size_t i = 0; rule && i < rule->address_count; i++)
		if (!is_inside(&rule->addresses[i], other))
			return &rule->addresses[i];
	return NULL;
}

static void answers(const struct rule *was, const struct rule *is,
		    struct change *c)
{
	const struct cidr *gone = beyond(was, is), *new = beyond(is, was);
	char text[CIDR_TEXT_MAX];

	if (new)
		change_add(c, DIFF_WIDER, "may resolve to %s",
			   cidr_format(new, text));
	if (gone)
		change_add(c, DIFF_NARROWER, "may no longer resolve to %s",
			   cidr_format(gone, text));
}

/* 0 is without end. */
static enum diff_way more_is_wider(uint64_t was, uint64_t is)
{
	return !is || (was && is > was) ? DIFF_WIDER : DIFF_NARROWER;
}

static void budgets(const struct rule *was, const struct rule *is,
		    struct change *c)
{
	static const char *const word[] = {
		[UP] = "upload", [DOWN] = "download"
	};
	char a[40], b[40];

	for (int i = UP; i <= DOWN; i++) {
		uint64_t x = was ? was->budget[i] : 0;
		uint64_t y = is ? is->budget[i] : 0;

		if (x == y)
			continue;
		change_add(c, more_is_wider(x, y), "%s %s -> %s", word[i],
			   x ? size_format(x, a, sizeof(a)) : "unlimited",
			   y ? size_format(y, b, sizeof(b)) : "unlimited");
	}
}

static void expiry(const struct rule *was, const struct rule *is,
		   struct change *c)
{
	int64_t x = was ? was->expires_s : 0, y = is ? is->expires_s : 0;
	char a[40], b[40];

	if (x == y)
		return;
	change_add(c, more_is_wider((uint64_t)x, (uint64_t)y),
		   "expires %s -> %s",
		   x ? time_format(x, a, sizeof(a)) : "never",
		   y ? time_format(y, b, sizeof(b)) : "never");
}

static void types(const struct rule *was, const struct rule *is,
		  struct change *c)
{
	unsigned x = was ? was->dns_types : 0, y = is ? is->dns_types : 0;
	static const char *const word[] = { "TXT", "MX", "SRV" };

	for (unsigned i = 0; i < 3; i++) {
		if ((x ^ y) & 1u << i)
			change_add(c, y & 1u << i ? DIFF_WIDER : DIFF_NARROWER,
				   y & 1u << i ? "%s records too"
					       : "no %s records",
				   word[i]);
	}
}

static void details(const struct rule *was, const struct rule *is,
		    uint16_t port, struct change *c)
{
	diff_spoken(was, is, port, c);
	connects(was, is, c);
	answers(was, is, c);
	budgets(was, is, c);
	expiry(was, is, c);
}

/* --- several rules, of which the request decides ------------------------- */

/* The next rule that may decide about a request: none does behind one that
 * takes all. */
static const struct rule *judge_next(struct fitting *f, bool *done)
{
	const struct rule *rule = *done ? NULL : fitting_next(f);

	*done = !rule || !rule_judges_requests(rule);
	return rule;
}

static bool same_judges(const struct fitting fitting[2])
{
	struct fitting was = fitting[WAS], is = fitting[IS];
	bool was_done = false, is_done = false;
	const struct rule *a, *b;

	do {
		a = judge_next(&was, &was_done);
		b = judge_next(&is, &is_done);
		if (a && b &&
		    (!same_texts(&a->methods, &b->methods) ||
		     !same_texts(&a->paths, &b->paths)))
			return false;
	} while (a && b);
	return !a && !b;
}

static void each_judge(const struct reach reach[2],
		       const struct fitting fitting[2], struct change *ret)
{
	struct fitting was = fitting[WAS], is = fitting[IS];
	bool was_done = false, is_done = false;
	const struct rule *a, *b;

	while ((a = judge_next(&was, &was_done)) &&
	       (b = judge_next(&is, &is_done))) {
		struct change c = { .any = false };
		char what[120] = "";

		/* That one was looked at already. */
		if (a == reach[WAS].rule && b == reach[IS].rule)
			continue;
		details(a, b, fitting[IS].port, &c);
		if (!c.any)
			continue;
		rule_requests(b, what, sizeof(what));
		change_add(ret, c.way, "%.110s: %.300s", what, c.text);
	}
}

/* Do all of them, in both, say the same beside methods and paths? */
static bool all_alike(const struct fitting fitting[2])
{
	const struct rule *first = NULL, *rule;

	for (int i = WAS; i <= IS; i++) {
		struct fitting f = fitting[i];
		bool done = false;

		while ((rule = judge_next(&f, &done))) {
			struct change there = { .any = false };

			if (!first)
				first = rule;
			details(first, rule, f.port, &there);
			if (there.any)
				return false;
		}
	}
	return true;
}

/* Which rule decides about a request, and so what else holds for it. */
static void judges(const struct reach reach[2], const struct fitting fitting[2],
		   struct change *ret)
{
	if (same_judges(fitting))
		each_judge(reach, fitting, ret);
	else if (!all_alike(fitting))
		change_add(ret, DIFF_OTHERWISE,
			   "for some requests other rules decide, which differ "
			   "in more than requests");
}

void diff_detail(const struct reach reach[2], const struct fitting fitting[2],
		 struct change *ret)
{
	const struct rule *was = reach[WAS].rule, *is = reach[IS].rule;
	uint16_t port = fitting[IS].port;

	/* What is said of ports is compared on ports. */
	if (!port) {
		types(was, is, ret);
		return;
	}
	requests(fitting, ret);
	details(was, is, port, ret);
	judges(reach, fitting, ret);
}
