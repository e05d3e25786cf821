/* SPDX-License-Identifier: Apache-2.0
 *
 * build.c - from a bundle to a policy. Parts add to one draft; the first fault
 * drops it all, so there is no half-loaded policy.
 */
#include "policy/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/ceiling.h"
#include "policy/digest.h"
#include "policy/part.h"
#include "policy/presets.h"
#include "policy/tree.h"
#include "policy/words.h"

#define PERMIT_MAX 1024

static void *copy_of(const void *data, size_t n, size_t size)
{
	void *copy = calloc(n ? n : 1, size);

	if (copy && n)
		memcpy(copy, data, n * size);
	return copy;
}

int rule_set_ports(struct rule *rule, const struct port_range *range, size_t n)
{
	struct port_range *copy = copy_of(range, n, sizeof(*range));

	if (!copy)
		return -ENOMEM;
	free(rule->ports);
	rule->ports = copy;
	rule->port_count = ports_merge(copy, n);
	/* All ports by name are all ports: then DNS is denied as well. */
	if (rule->deny && rule->port_count == 1 && copy->first == 1 &&
	    copy->last == 65535)
		rule->port_count = 0;
	return 0;
}

int rule_set_addresses(struct rule *rule, const struct cidr *cidr, size_t n)
{
	struct cidr *copy = copy_of(cidr, n, sizeof(*cidr));

	if (!copy)
		return -ENOMEM;
	free(rule->addresses);
	rule->addresses = copy;
	rule->address_count = n;
	return 0;
}

/* A slot in the list first, so that a rule is owned as soon as it exists. */
static struct rule *new_rule(struct policy *policy)
{
	struct rule_list *all = &policy->all;
	struct rule *rule;

	if ((all->count & (all->count - 1)) == 0) {
		size_t cap = all->count ? all->count * 2 : 1;
		struct rule **grown =
			reallocarray(all->at, cap, sizeof(*grown));
		if (!grown)
			return NULL;
		all->at = grown;
	}
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return NULL;
	rule->index = (unsigned)all->count;
	all->at[all->count++] = rule;
	return rule;
}

int draft_add_rule(struct draft *draft, const struct target *target, bool deny,
		   const char *text, const char *origin, struct rule **ret_rule)
{
	static const struct port_range usual[] = { { 80, 80 }, { 443, 443 } };
	struct rule *rule;

	if (draft->policy->all.count >= RULES_MAX)
		return -EFBIG;
	rule = new_rule(draft->policy);
	if (!rule)
		return -ENOMEM;
	rule->deny = deny;
	rule->wildcard = target->wildcard;
	rule->literal = target->literal;
	rule->doors = DOORS_ALL;
	rule->text = strdup(text);
	rule->origin = strdup(origin);
	if (*target->host)
		rule->host = strdup(target->host);
	if (!rule->text || !rule->origin || (*target->host && !rule->host))
		return -ENOMEM;
	*ret_rule = rule;
	if (target->has_ports)
		return rule_set_ports(rule, &target->ports, 1);
	return deny ? 0 : rule_set_ports(rule, usual, ARRAY_SIZE(usual));
}

int draft_add_preset(struct draft *draft, const struct loader *parent, size_t i)
{
	uint64_t bit = UINT64_C(1) << (i % PRESETS_MAX);
	struct settings settings = { .limits = { 0 } };
	char origin[80];
	int ret;

	if (i >= PRESETS_MAX || draft->presets_loaded & bit)
		return 0;
	draft->presets_loaded |= bit;
	snprintf(origin, sizeof(origin), "preset %s", preset_table[i].name);
	ret = load_yaml(draft, parent, false, origin, preset_table[i].yaml,
			preset_table[i].len, &settings);
	/* A preset has rules only, and a name where nobody has another. */
	if (ret == 0 && !parent && !draft->any_file && !*draft->settings.name)
		memcpy(draft->settings.name, settings.name,
		       sizeof(settings.name));
	return ret;
}

bool draft_find_part(const struct draft *draft, enum bundle_kind kind,
		     const char *origin, const char **ret_text, size_t *ret_len)
{
	struct wire bundle = wire_of(draft->bundle, draft->bundle_len);
	size_t len = strlen(origin);
	struct part part;

	while (bundle.left && part_next(&bundle, &part)) {
		if (part.kind != kind || part.origin_len != len ||
		    memcmp(part.origin, origin, len) != 0)
			continue;
		*ret_text = part.text;
		*ret_len = part.len;
		return true;
	}
	return false;
}

static int part_fault(const struct draft *draft, const char *origin,
		      const char *text, const char *why)
{
	char shown[WORD_SHOWN_MAX];

	snprintf(draft->err->text, sizeof(draft->err->text), "%.200s %s: %s",
		 origin, word_show(text, strlen(text), shown), why);
	return -EINVAL;
}

/* A word without a dot or colon is a preset. Where it is none, saying so beats
 * allowing a host of that name which nobody meant. */
static int unknown_preset(const struct draft *draft, const char *origin,
			  const char *text)
{
	const char *guess = preset_guess(text);
	char why[120];

	if (!guess)
		return part_fault(draft, origin, text,
				  "unknown preset, write a host name with a "
				  "dot, or one that `sallyport presets` lists");
	snprintf(why, sizeof(why), "unknown preset, did you mean '%s'?", guess);
	return part_fault(draft, origin, text, why);
}

static int add_target(struct draft *draft, bool deny, const char *origin,
		      const char *text)
{
	struct target target;
	struct rule *rule;
	const char *why;
	int ret;

	if (!deny) {
		int i = preset_find(text);

		if (i >= 0)
			return draft_add_preset(draft, NULL, (size_t)i);
		if (*text && !strpbrk(text, ".:/*[@%"))
			return unknown_preset(draft, origin, text);
	}
	why = target_parse(text, &target);
	if (!why && !deny && preset_find(target.host) >= 0)
		why = "that is a preset, its ports are its own";
	if (!why && deny && !*target.host && target.has_ports)
		why = "a denied address range is denied on every port, leave "
		      "the port out";
	if (why)
		return part_fault(draft, origin, text, why);
	ret = draft_add_rule(draft, &target, deny, text, origin, &rule);
	return ret == -EFBIG ? part_fault(draft, origin, text, "too many rules")
			     : ret;
}

static int add_permit(struct draft *draft, const char *origin, const char *text)
{
	struct policy *policy = draft->policy;
	struct cidr cidr, *grown;
	const char *why = target_parse_cidr(text, &cidr);

	if (!why && policy->permit_count == PERMIT_MAX)
		why = "too many ranges, use larger ones";
	if (why)
		return part_fault(draft, origin, text, why);
	grown = reallocarray(policy->permit, policy->permit_count + 1,
			     sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	policy->permit = grown;
	grown[policy->permit_count++] = cidr;
	return 0;
}

static int bundle_fault(const struct draft *draft)
{
	snprintf(draft->err->text, sizeof(draft->err->text),
		 "the policy bundle is damaged, start again");
	return -EINVAL;
}

static int add_file(struct draft *draft, const char *origin,
		    const struct part *part)
{
	struct settings settings;
	int ret = load_yaml(draft, NULL, false, origin, part->text, part->len,
			    &settings);

	if (ret < 0)
		return ret;
	if (!draft->any_file) {
		draft->settings = settings;
	} else if (!settings_add(&draft->settings, &settings)) {
		struct source source = { .origin = origin, .err = draft->err };

		return source_fault(&source, settings.upstream_line,
				    settings.upstream_column,
				    "another file has another 'upstream', "
				    "keep one");
	}
	draft->any_file = true;
	return 0;
}

static int build(const void *data, size_t len, bool is_ceiling,
		 struct policy **ret_policy, struct policy_error *reterr);

static int add_ceiling(struct draft *draft, const char *origin,
		       const struct part *part)
{
	int ret;

	if (draft->is_ceiling || draft->ceiling)
		return bundle_fault(draft);
	ret = build(part->text, part->len, true, &draft->ceiling, draft->err);
	if (ret < 0)
		return ret;
	draft->ceiling_origin = strdup(origin);
	return draft->ceiling_origin ? 0 : -ENOMEM;
}

static int add_part(struct draft *draft, const struct part *part)
{
	AUTO_FREE char *origin = strndup(part->origin, part->origin_len);
	AUTO_FREE char *text = NULL;

	if (!origin)
		return -ENOMEM;
	if (part->kind == BUNDLE_FILE)
		return add_file(draft, origin, part);
	if (part->kind == BUNDLE_CEILING)
		return add_ceiling(draft, origin, part);
	if (part->kind == BUNDLE_INCLUDED || part->kind == BUNDLE_LIST)
		return 0; /* found where it is named */
	/* Options are short, and C strings by birth. */
	if (part->len > 4096 || memchr(part->text, '\0', part->len))
		return bundle_fault(draft);
	text = strndup(part->text, part->len);
	if (!text)
		return -ENOMEM;
	switch (part->kind) {
	case BUNDLE_ALLOW:
	case BUNDLE_DENY:
		return add_target(draft, part->kind == BUNDLE_DENY, origin,
				  text);
	case BUNDLE_PERMIT:
		return add_permit(draft, origin, text);
	case BUNDLE_OBSERVE:
		draft->observe = true;
		return 0;
	default:
		return bundle_fault(draft);
	}
}

static void digest(const void *data, size_t len, char *ret_hex)
{
	struct digest sum;

	digest_begin(&sum);
	digest_add(&sum, data, len);
	digest_end(&sum, ret_hex);
}

static int add_parts(struct draft *draft, const void *data, size_t len)
{
	struct wire bundle = wire_of(data, len);
	struct part part;
	int ret = 0;

	if (len > BUNDLE_MAX)
		return bundle_fault(draft);
	while (bundle.left && ret == 0) {
		if (!part_next(&bundle, &part))
			return bundle_fault(draft);
		if ((part.kind == BUNDLE_FILE ||
		     part.kind == BUNDLE_INCLUDED) &&
		    part.len > FILE_TEXT_MAX)
			return bundle_fault(draft);
		ret = add_part(draft, &part);
	}
	return ret;
}

static int apply(const struct draft *draft)
{
	struct policy *policy = draft->policy;

	settings_apply(&draft->settings, policy);
	if (draft->observe)
		policy->observes = true;
	if (!*draft->settings.name)
		return 0;
	policy->name = strdup(draft->settings.name);
	return policy->name ? 0 : -ENOMEM;
}

static void drop_draft(struct draft *draft)
{
	for (size_t i = 0; i < draft->files; i++)
		free(draft->loaded[i]);
	policy_unref(draft->ceiling);
	free(draft->ceiling_origin);
}

static void drop_policy(struct policy **policy)
{
	policy_unref(*policy);
}

/* Its whole use is that it can't be relaxed. */
static int no_observing(const struct draft *draft)
{
	if (!draft->is_ceiling || !draft->policy->observes)
		return 0;
	snprintf(draft->err->text, sizeof(draft->err->text),
		 "a ceiling enforces: take 'mode: observe' out of it, and put "
		 "it in the policies below");
	return -EINVAL;
}

static int go_below(struct draft *draft)
{
	int ret;

	if (!draft->ceiling)
		return 0;
	ret = ceiling_attach(draft->policy, STEAL(draft->ceiling),
			     draft->ceiling_origin);
	if (ret != -EFBIG)
		return ret;
	snprintf(draft->err->text, sizeof(draft->err->text),
		 "too many address ranges of the policy are within ranges of "
		 "the ceiling, use larger ones");
	return -EINVAL;
}

static int build(const void *data, size_t len, bool is_ceiling,
		 struct policy **ret_policy, struct policy_error *reterr)
{
	__attribute__((cleanup(drop_policy))) struct policy *policy =
		calloc(1, sizeof(*policy));
	__attribute__((cleanup(drop_draft))) struct draft draft = {
		.policy = policy,
		.err = reterr,
		.bundle = data,
		.bundle_len = len,
		.is_ceiling = is_ceiling,
	};
	int ret;

	if (!policy)
		return -ENOMEM;
	atomic_init(&policy->refs, 1);
	digest(data, len, policy->digest);
	ret = add_parts(&draft, data, len);
	if (ret == 0)
		ret = apply(&draft);
	if (ret == 0)
		ret = no_observing(&draft);
	if (ret == 0)
		ret = index_build(policy);
	if (ret == 0)
		ret = go_below(&draft);
	if (ret < 0)
		return ret;
	*ret_policy = STEAL(policy);
	return 0;
}

int policy_build(const void *data, size_t len, struct policy **ret_policy,
		 struct policy_error *reterr)
{
	return build(data, len, false, ret_policy, reterr);
}
