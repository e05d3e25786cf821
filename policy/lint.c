/* SPDX-License-Identifier: Apache-2.0
 *
 * lint.c - see lint.h. Every check looks at the finished policy, so that it
 * sees what decides rather than what was written.
 */
#include "policy/lint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/lint_impl.h"
#include "policy/nameset.h"

/* So many names can carry a file out, a few bytes each. */
#define NAMES_PER_WILDCARD_MANY 256

#define WARNING(word, about, hint)              \
	{                                       \
		word, LINT_WARNING, about, hint \
	}
#define NOTE(word, about, hint)              \
	{                                    \
		word, LINT_NOTE, about, hint \
	}

/* clang-format off */
static const struct lint_info infos[LINT_CODE_COUNT] = {
	[LINT_PUBLIC_SUFFIX] = WARNING("public-suffix",
		"a wildcard below which anybody can have a name",
		"name the one domain below it that is meant"),
	[LINT_STRANGERS] = WARNING("strangers",
		"a host where others can read or write what passes",
		"narrow it to what is needed, give it a small upload budget, "
		"or deny it"),
	[LINT_DOH] = WARNING("doh",
		"a resolver over HTTPS or TLS",
		"leave it out: the gate resolves names"),
	[LINT_SHARED_CDN] = WARNING("shared-cdn",
		"a name that unrelated sites share",
		"allow the one name that is needed"),
	[LINT_MIXED_SCRIPTS] = WARNING("mixed-scripts",
		"a name that looks like another one",
		"check who owns the name: letters of different scripts look "
		"alike"),
	[LINT_IDN] = NOTE("idn",
		"a name in letters of its own, shown",
		"check that this is the name that is meant"),
	[LINT_SINGLE_LABEL] = WARNING("single-label",
		"a name without a domain, or a whole top-level domain",
		"write the name with its domain"),
	[LINT_EXPIRED] = WARNING("expired",
		"a rule that has expired",
		"renew it or take it out"),
	[LINT_EXPIRES_SOON] = WARNING("expires-soon",
		"a rule that expires within a day",
		"renew it if it is needed longer"),
	[LINT_DENIED] = WARNING("denied",
		"a rule that is denied altogether",
		"take it out, or take the deny entry out"),
	[LINT_SHADOWED] = WARNING("shadowed",
		"a rule that another one always answers for",
		"take one of the two out"),
	[LINT_NOT_JUDGED] = WARNING("not-judged",
		"methods or paths that another rule makes meaningless",
		"take the rule without methods and paths out"),
	[LINT_NARROWER] = WARNING("narrower",
		"a name with fewer ports than the wildcard above it",
		"add the ports here too if they are meant to be open"),
	[LINT_NEEDLESS_DENY] = NOTE("needless-deny",
		"a deny entry for what nobody allows",
		"it does no harm: what is not allowed is refused anyway"),
	[LINT_LIST_LINES] = NOTE("list-lines",
		"lines of a deny list that deny nothing",
		"names, hosts files and ||name^ are understood; check that "
		"nothing else is meant"),
	[LINT_LIST_EMPTY] = WARNING("list-empty",
		"a deny list without a name",
		"fill it, or take it out of the policy"),
	[LINT_DNS_PORT] = WARNING("dns-port",
		"ports 53 and 853",
		"leave 53 and 853 out: the gate resolves names"),
	[LINT_MAIL_PORT] = WARNING("mail-port",
		"port 25",
		"use a submission port (465 or 587) of one mail server"),
	[LINT_MANY_PORTS] = WARNING("many-ports",
		"more than 1,024 ports",
		"name the ports that are needed"),
	[LINT_PROTOCOL_ANY] = WARNING("protocol-any",
		"`protocol: any` on 443 or 80",
		"leave 'protocol' out, or use another port"),
	[LINT_ECH] = WARNING("ech",
		"`tls.ech: allow` where encrypted ClientHellos are taken in",
		"leave 'tls' out: who is reached there is not seen"),
	[LINT_WIDE_RANGE] = WARNING("wide-range",
		"many addresses without names",
		"name the addresses that are needed, or use a host's name"),
	[LINT_SPECIAL_RANGE] = WARNING("special-range",
		"an address range with loopback, metadata, ... in it",
		"leave special addresses out of the range"),
	[LINT_WIDE_ANSWERS] = WARNING("wide-answers",
		"names that may resolve to nearly everything",
		"name the network that the service is in"),
	[LINT_SPECIAL_ANSWERS] = WARNING("special-answers",
		"names that may resolve to loopback, metadata, ...",
		"leave it out; a service of this machine is reached with "
		"'connect'"),
	[LINT_CONNECT] = WARNING("connect-service",
		"a local service that may own the machine",
		"whoever speaks to it may own the machine: put a narrower "
		"service in front of it"),
	[LINT_DNS_TYPES] = WARNING("dns-types",
		"TXT, MX or SRV records below a wildcard",
		"name the hosts whose records are needed"),
	[LINT_BUDGET] = WARNING("budget",
		"a rule's budget above the session's",
		"the session's limit ends it first: lower one or raise the "
		"other"),
	[LINT_NAMES] = WARNING("names-per-wildcard",
		"more than 256 names below one wildcard",
		"lower limits.names_per_wildcard: names carry data out"),
	[LINT_PUBLIC] = WARNING("public",
		"`default: public`",
		"name the hosts that are needed, with \"default: deny\""),
	[LINT_OBSERVE] = WARNING("observe",
		"`mode: observe`",
		"use \"mode: enforce\" when you know what is needed"),
	[LINT_SANDBOX_FILES] = WARNING("sandbox-files",
		"`sandbox:` with all files, or a home to write to",
		"name the directories that are needed under 'rw'"),
	[LINT_SANDBOX_SECRET] = WARNING("sandbox-secret",
		"`sandbox:` with credentials",
		"give it a key that can do little, and allow few hosts"),
	[LINT_SANDBOX_NEST] = NOTE("sandbox-nest",
		"`sandbox:` with namespaces of the command's own",
		"leave 'nest' out unless its tools sandbox themselves"),
	[LINT_SANDBOX_RUN] = NOTE("sandbox-run",
		"who looks at `sandbox:`",
		"elsewhere, limit the container or the service itself"),
};
/* clang-format on */

const struct lint_info *lint_info(size_t i)
{
	return i < LINT_CODE_COUNT ? &infos[i] : NULL;
}

/* "lint-ok: doh, shared-cdn because ..." */
static bool is_acknowledged(const char *note, const char *word)
{
	static const char mark[] = "lint-ok:";
	size_t len = strlen(word);

	while ((note = strstr(note, mark))) {
		note += strlen(mark) - 1;
		do {
			note++;
			note += strspn(note, " ");
			size_t n = strspn(note, "abcdefghijklmnopqrstuvwxyz-");

			if (n == len && memcmp(note, word, n) == 0)
				return true;
			note += n;
			note += strspn(note, " ");
		} while (*note == ',');
	}
	return false;
}

static bool is_silenced(const struct rule *rule, enum lint_code code)
{
	if (!rule || !rule->note)
		return false;
	if (code == LINT_STRANGERS &&
	    strncmp(rule->origin, "preset ", 7) == 0 &&
	    strstr(rule->note, "strangers"))
		return true;
	return is_acknowledged(rule->note, infos[code].word);
}

static int add(struct findings *found, const struct finding *finding)
{
	if ((found->count & (found->count - 1)) == 0) {
		size_t cap = found->count ? found->count * 2 : 1;
		struct finding *grown =
			reallocarray(found->at, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		found->at = grown;
	}
	found->at[found->count] = *finding;
	found->at[found->count].number = found->count;
	found->count++;
	return 0;
}

void lint_found(struct linter *l, const struct rule *rule, enum lint_code code,
		const char *format, ...)
{
	struct finding finding = { .rule = rule, .info = &infos[code] };
	va_list ap;
	int len;

	if (is_silenced(rule, code)) {
		l->found.silenced++;
		return;
	}
	va_start(ap, format);
	len = vasprintf(&finding.message, format, ap);
	va_end(ap);
	if (len < 0 || add(&l->found, &finding) < 0) {
		if (len >= 0)
			free(finding.message);
		l->error = -ENOMEM;
	}
}

bool lint_name_below(const char *apex, char *buf)
{
	int len = snprintf(buf, HOST_MAX + 1, "0lint.%s", apex);

	return len > 0 && len <= HOST_MAX;
}

static const struct rule *first_wildcard(const struct policy *policy)
{
	for (size_t i = 0; i < policy->allow.count; i++)
		if (policy->allow.at[i]->wildcard)
			return policy->allow.at[i];
	return NULL;
}

static void lint_whole(struct linter *l)
{
	const struct policy *policy = l->policy;
	const struct limits *limits = &policy->limits;

	if (policy->is_public)
		lint_found(l, NULL, LINT_PUBLIC,
			   "\"default: public\" resolves every name, and so "
			   "carries data out through DNS");
	if (policy->observes)
		lint_found(l, NULL, LINT_OBSERVE,
			   "\"mode: observe\" lets pass what the rules would "
			   "refuse");
	if (limits->names_per_wildcard > NAMES_PER_WILDCARD_MANY &&
	    (first_wildcard(policy) || policy->is_public))
		lint_found(l, NULL, LINT_NAMES,
			   "%u names below one wildcard are enough for a "
			   "tunnel through DNS",
			   limits->names_per_wildcard);
	for (size_t i = 0; i < policy->permit_count; i++)
		lint_permit(l, &policy->permit[i]);
	lint_cell(l);
}

static void lint_list(struct linter *l, const struct rule_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i]->host)
			lint_names(l, list->at[i]);
		lint_rule(l, list->at[i]);
	}
}

static void lint_deny_lists(struct linter *l)
{
	const struct rule_list *lists = &l->policy->lists;

	for (size_t i = 0; i < lists->count; i++) {
		if (!nameset_count(lists->at[i]->list))
			lint_found(l, lists->at[i], LINT_LIST_EMPTY,
				   "%s has no names, so it denies nothing",
				   lists->at[i]->text);
		if (lists->at[i]->skipped)
			lint_found(l, lists->at[i], LINT_LIST_LINES,
				   "%s: lines that are no names, so deny "
				   "nothing: %zu, the first is line %u",
				   lists->at[i]->text, lists->at[i]->skipped,
				   lists->at[i]->first_skipped_line);
	}
}

static int compare(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (!x->rule != !y->rule)
		return x->rule ? 1 : -1;
	if (x->rule && x->rule->index != y->rule->index)
		return x->rule->index < y->rule->index ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

int policy_lint(const struct policy *policy, int64_t now_s,
		struct findings *ret_findings)
{
	struct linter l = { .policy = policy, .now_s = now_s };

	lint_whole(&l);
	lint_list(&l, &policy->allow);
	lint_list(&l, &policy->allow_literal.rules);
	lint_reach(&l);
	lint_deny_lists(&l);
	if (l.error) {
		findings_free(&l.found);
		return l.error;
	}
	if (l.found.count)
		qsort(l.found.at, l.found.count, sizeof(*l.found.at), compare);
	*ret_findings = l.found;
	return 0;
}

void findings_free(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		free(findings->at[i].message);
	free(findings->at);
	*findings = (struct findings){ 0 };
}
