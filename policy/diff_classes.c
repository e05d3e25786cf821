/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_classes.c - names and addresses that stand for all that two policies
 * treat alike.
 *
 * What covers a name is known from the longest wildcard above it: all other
 * wildcards that cover it are above that one. So a name below a wildcard that
 * nothing more specific covers stands for all such names. Ranges of addresses
 * are nested or apart, so an address that is in a range and in none inside it
 * stands for the rest of the range.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/diff_impl.h"
#include "policy/nameset.h"

/* --- names --------------------------------------------------------------- */

struct pattern {
	const char *host;
	bool wildcard;
};

struct patterns {
	struct pattern *at;
	size_t count;
};

static int compare_patterns(const void *a, const void *b)
{
	const struct pattern *x = a, *y = b;
	int c = strcmp(x->host, y->host);

	return c ? c : (int)x->wildcard - (int)y->wildcard;
}

static void take_names(struct patterns *to, const struct rule_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		to->at[to->count++] = (struct pattern){ list->at[i]->host,
							list->at[i]->wildcard };
}

static int collect_names(const struct differ *d, struct patterns *ret)
{
	size_t n = 0, kept = 0;

	for (int i = WAS; i <= IS; i++)
		n += d->policy[i]->allow.count + d->policy[i]->deny.count;
	ret->at = calloc(n + 1, sizeof(*ret->at));
	if (!ret->at)
		return -ENOMEM;
	for (int i = WAS; i <= IS; i++) {
		take_names(ret, &d->policy[i]->allow);
		take_names(ret, &d->policy[i]->deny);
	}
	qsort(ret->at, n, sizeof(*ret->at), compare_patterns);
	for (size_t i = 0; i < n; i++)
		if (!kept ||
		    compare_patterns(&ret->at[kept - 1], &ret->at[i]) != 0)
			ret->at[kept++] = ret->at[i];
	ret->count = kept;
	return 0;
}

static bool is_listed(const struct policy *policy, const char *name)
{
	struct nameset_hit hit;

	for (size_t i = 0; i < policy->lists.count; i++)
		if (nameset_find(policy->lists.at[i]->list, name, &hit) &&
		    strcmp(hit.name, name) == 0)
			return true;
	return false;
}

static bool has_rule(const struct rule_list *list, const char *name)
{
	struct cover cover = { .at = name };
	struct group group;

	return index_next(list, &cover, &group) && !group.at[0]->wildcard;
}

bool diff_is_named(const struct policy *policy, const char *name)
{
	return has_rule(&policy->allow, name) ||
	       has_rule(&policy->deny, name) || is_listed(policy, name);
}

/* Also a list could name what would stand for all others, to hide them. */
static bool stands_for_others(const struct differ *d, const char *name)
{
	return !diff_is_named(d->policy[WAS], name) &&
	       !diff_is_named(d->policy[IS], name);
}

/* The @i-th label, of any that there may be: the short ones first. */
static void label_of(size_t i, char *buf)
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz_";
	const size_t base = sizeof(letters) - 1;
	size_t n = 0;

	for (i++; i; i /= base)
		buf[n++] = letters[--i % base];
	buf[n] = '\0';
}

bool diff_name_below(const struct differ *d, const char *host, char *buf)
{
	char label[16];

	for (size_t i = 0;; i++) {
		int len;

		label_of(i, label);
		len = snprintf(buf, HOST_MAX + 1, "%s.%s", label, host);
		if (len < 0 || len > HOST_MAX)
			return false;
		if (stands_for_others(d, buf))
			return true;
	}
}

static void diff_pattern(struct differ *d, const struct pattern *pattern)
{
	char what[HOST_MAX + 3], name[HOST_MAX + 1];
	struct subject subject = { .kind = DIFF_NAME,
				   .what = pattern->host,
				   .host = pattern->host };

	if (pattern->wildcard) {
		if (!diff_name_below(d, pattern->host, name))
			return;
		snprintf(what, sizeof(what), "*.%s", pattern->host);
		subject.what = what;
		subject.host = name;
	}
	diff_subject(d, &subject);
}

/* A name below a top-level domain that nobody speaks of. */
static void name_of_others(const struct differ *d, const struct patterns *all,
			   char *buf)
{
	bool taken = true;

	for (unsigned i = 0; taken; i++) {
		char top[24];
		const struct pattern exact = { top, false };
		const struct pattern wildcard = { top, true };

		snprintf(top, sizeof(top), "others%u", i);
		taken = is_listed(d->policy[WAS], top) ||
			is_listed(d->policy[IS], top) ||
			bsearch(&exact, all->at, all->count, sizeof(*all->at),
				compare_patterns) ||
			bsearch(&wildcard, all->at, all->count,
				sizeof(*all->at), compare_patterns) ||
			!diff_name_below(d, top, buf);
	}
}

void diff_names(struct differ *d)
{
	struct patterns all = { 0 };
	char name[HOST_MAX + 1];

	if (collect_names(d, &all) < 0) {
		d->error = -ENOMEM;
		return;
	}
	name_of_others(d, &all, name);
	diff_subject(d, &(struct subject){ .kind = DIFF_NAME,
					   .what = DIFF_OTHERS,
					   .host = name });
	for (size_t i = 0; i < all.count; i++)
		diff_pattern(d, &all.at[i]);
	free(all.at);
}

/* --- addresses ----------------------------------------------------------- */

struct ranges {
	struct cidr *at;
	size_t count;
};

/* Inner ranges right behind the outer one. */
static int compare_ranges(const void *a, const void *b)
{
	const struct cidr *x = a, *y = b;
	int c;

	if (x->ip.len != y->ip.len)
		return x->ip.len - y->ip.len;
	c = memcmp(x->ip.byte, y->ip.byte, sizeof(x->ip.byte));
	return c ? c : x->bits - y->bits;
}

static void take_ranges(struct ranges *to, const struct literal_list *list)
{
	for (size_t i = 0; i < list->rules.count; i++)
		to->at[to->count++] = list->rules.at[i]->literal;
}

static int collect_ranges(const struct differ *d, struct ranges *ret)
{
	size_t n = 0, kept = 0;

	for (int i = WAS; i <= IS; i++)
		n += d->policy[i]->allow_literal.rules.count +
		     d->policy[i]->deny_literal.rules.count;
	ret->at = calloc(n + 1, sizeof(*ret->at));
	if (!ret->at)
		return -ENOMEM;
	for (int i = WAS; i <= IS; i++) {
		take_ranges(ret, &d->policy[i]->allow_literal);
		take_ranges(ret, &d->policy[i]->deny_literal);
	}
	qsort(ret->at, n, sizeof(*ret->at), compare_ranges);
	for (size_t i = 0; i < n; i++)
		if (!kept ||
		    compare_ranges(&ret->at[kept - 1], &ret->at[i]) != 0)
			ret->at[kept++] = ret->at[i];
	ret->count = kept;
	return 0;
}

/* The first address behind @range; false past the end of all addresses. */
static bool address_behind(const struct cidr *range, struct ip *ret)
{
	struct ip ip = range->ip;
	unsigned carry = 1;

	if (!range->bits)
		return false;
	/* One is added to the last bit of the prefix. */
	for (int i = (range->bits - 1) / 8; i >= 0 && carry; i--) {
		unsigned add = i == (range->bits - 1) / 8
				       ? 1u << (7 - (range->bits - 1) % 8)
				       : 1;
		unsigned sum = ip.byte[i] + add;

		ip.byte[i] = (uint8_t)sum;
		carry = sum >> 8;
	}
	if (carry)
		return false;
	*ret = ip;
	return true;
}

/* An address of the @i-th range that is in no range inside it. */
static bool address_of(const struct ranges *all, size_t i, struct ip *ret)
{
	const struct cidr *range = &all->at[i];
	struct ip ip = range->ip;

	for (size_t j = i + 1; j < all->count; j++) {
		const struct cidr *inner = &all->at[j];

		if (!cidr_contains(range, &inner->ip))
			break;
		if (cidr_contains(inner, &ip) &&
		    (!address_behind(inner, &ip) || !cidr_contains(range, &ip)))
			return false;
	}
	*ret = ip;
	return true;
}

static bool in_any(const struct ranges *all, size_t from, const struct ip *ip)
{
	for (size_t i = from; i < all->count; i++)
		if (cidr_contains(&all->at[i], ip))
			return true;
	return false;
}

/* Behind a translator's address is another one, which is judged too: the first
 * of a range often has one that is special. An ordinary one, of which no range
 * speaks, stands for the rest. Each bit is tried: what is special is nowhere
 * near to all that differs in one. */
static void choose_inner(const struct ranges *all, size_t i, struct ip *ip)
{
	for (unsigned bit = all->at[i].bits; bit < ip->len * 8u; bit++) {
		struct ip inner = ip_embedded(ip), other = *ip;

		if (ip_equal(&inner, ip) ||
		    (!ip_special(&inner) && !in_any(all, 0, &inner)))
			return;
		other.byte[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		inner = ip_embedded(&other);
		if (inner.len == 4 && !ip_special(&inner) &&
		    !in_any(all, 0, &inner) && !in_any(all, i + 1, &other))
			*ip = other;
	}
}

void diff_addresses(struct differ *d)
{
	struct ranges all = { 0 };
	char what[CIDR_TEXT_MAX];
	struct ip ip;

	if (collect_ranges(d, &all) < 0) {
		d->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < all.count; i++) {
		if (!address_of(&all, i, &ip))
			continue;
		choose_inner(&all, i, &ip);
		cidr_format(&all.at[i], what);
		diff_subject(d, &(struct subject){ .kind = DIFF_ADDRESS,
						   .what = what,
						   .address = ip });
	}
	free(all.at);
}
