/* SPDX-License-Identifier: Apache-2.0
 *
 * lint_names.c - whom an allowed name belongs to: nobody in particular (public
 * suffixes), whoever likes to (policy/lint/listed.txt), or somebody who looks
 * like somebody else.
 */
#include <idn2.h>
#include <libpsl.h>
#include <string.h>

#include "policy/lint_impl.h"

static void suffix(struct linter *l, const struct rule *rule)
{
	/* Debian's list, in the library; without "*", by which every unknown
	 * top-level domain would be one. */
	const psl_ctx_t *psl = psl_builtin();

	if (!rule->wildcard || !psl)
		return;
	if (psl_is_public_suffix2(psl, rule->host,
				  PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE))
		lint_found(l, rule, LINT_PUBLIC_SUFFIX,
			   "%s is a public suffix: anybody can register a name "
			   "below it",
			   rule->host);
	else if (psl_is_public_suffix2(psl, rule->host,
				       PSL_TYPE_PRIVATE |
					       PSL_TYPE_NO_STAR_RULE))
		lint_found(l, rule, LINT_PUBLIC_SUFFIX,
			   "%s gives names below it to its customers",
			   rule->host);
}

static enum lint_code code_of(const struct lint_entry *entry)
{
	if (strcmp(entry->class, "doh") == 0)
		return LINT_DOH;
	return strcmp(entry->class, "shared-cdn") == 0 ? LINT_SHARED_CDN
						       : LINT_STRANGERS;
}

static bool is_refused(const struct linter *l, const char *host)
{
	return denied_name(l->policy, host, 0);
}

/* Is @domain covered by @rule, or does a longer pattern decide? */
static bool decides(const struct linter *l, const struct rule *rule,
		    const char *domain)
{
	struct cover cover = { .at = domain };
	struct group group;

	return index_next(&l->policy->allow, &cover, &group) &&
	       group.at[0]->wildcard &&
	       strcmp(group.at[0]->host, rule->host) == 0;
}

static void listed(struct linter *l, const struct rule *rule)
{
	const struct lint_entry *entry = lint_lookup(rule->host);
	bool said[LINT_CODE_COUNT] = { false };

	if (entry && !is_refused(l, rule->host)) {
		said[code_of(entry)] = true;
		lint_found(
			l, rule, code_of(entry), "%s%s%s: %s", rule->text,
			strcmp(entry->domain, rule->host) ? " is below " : "",
			strcmp(entry->domain, rule->host) ? entry->domain : "",
			entry->reason);
	}
	for (size_t i = 0; rule->wildcard && i < lint_table_count; i++) {
		enum lint_code code = code_of(&lint_table[i]);

		/* One example of each kind will do. */
		if (said[code] || !lint_below(i, rule->host) ||
		    is_refused(l, lint_table[i].domain) ||
		    !decides(l, rule, lint_table[i].domain))
			continue;
		said[code] = true;
		lint_found(l, rule, code, "%s covers %s: %s", rule->text,
			   lint_table[i].domain, lint_table[i].reason);
	}
}

/* Scripts that are told apart here; letters of others count as ALONE, which
 * mixes with none. */
enum script {
	COMMON = 0,
	LATIN = 1,
	GREEK = 2,
	CYRILLIC = 4,
	EAST_ASIAN = 8, /* these are written together, and with LATIN */
	ALONE = 16,
};

static const struct {
	uint32_t first, last;
	enum script script;
} blocks[] = {
	{ 0x61, 0x7a, LATIN },
	{ 0xaa, 0x24f, LATIN },
	{ 0x250, 0x2af, LATIN },
	{ 0x300, 0x36f, COMMON },
	{ 0x370, 0x3ff, GREEK },
	{ 0x400, 0x52f, CYRILLIC },
	{ 0x1100, 0x11ff, EAST_ASIAN },
	{ 0x1c80, 0x1c8f, CYRILLIC },
	{ 0x1d00, 0x1dbf, LATIN },
	{ 0x1e00, 0x1eff, LATIN },
	{ 0x1f00, 0x1fff, GREEK },
	{ 0x2c60, 0x2c7f, LATIN },
	{ 0x2de0, 0x2dff, CYRILLIC },
	{ 0x2e80, 0x9fff, EAST_ASIAN },
	{ 0xa640, 0xa69f, CYRILLIC },
	{ 0xa720, 0xa7ff, LATIN },
	{ 0xac00, 0xd7ff, EAST_ASIAN },
	{ 0xf900, 0xfaff, EAST_ASIAN },
	{ 0x20000, 0x3ffff, EAST_ASIAN },
};

static unsigned script_of(uint32_t code)
{
	if (code < 0x80 && !(code >= 'a' && code <= 'z'))
		return COMMON;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (code >= blocks[i].first && code <= blocks[i].last)
			return blocks[i].script;
	return ALONE;
}

/* Cyrillic letters that look like Latin ones (Unicode's confusables): a name of
 * these alone mixes nothing and still is no Latin name. */
static bool looks_latin(uint32_t code)
{
	static const uint16_t alike[] = { 0x430, 0x441, 0x435, 0x43e, 0x440,
					  0x445, 0x443, 0x455, 0x456, 0x458,
					  0x44c, 0x501, 0x51b, 0x51d, 0x4bb,
					  0x4cf, 0x4bd, 0x461, 0x475 };

	for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
		if (code == alike[i])
			return true;
	return false;
}

/* The library's output is valid UTF-8. */
static uint32_t next_code(const unsigned char **at)
{
	const unsigned char *p = *at;
	uint32_t code = *p++;
	unsigned more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : code >= 0xc0;

	if (more)
		code &= 0x3fu >> more;
	while (more-- && (*p & 0xc0) == 0x80)
		code = code << 6 | (*p++ & 0x3fu);
	*at = p;
	return code;
}

/* Does a label of @name, UTF-8, pass for what it is not? */
static bool misleads(const char *name)
{
	const unsigned char *at = (const unsigned char *)name;

	while (*at) {
		unsigned scripts = 0;
		bool alike = true;

		while (*at && *at != '.') {
			uint32_t code = next_code(&at);

			scripts |= script_of(code);
			if (code >= 0x80 && !looks_latin(code))
				alike = false;
		}
		if (*at)
			at++;
		if (scripts == (LATIN | EAST_ASIAN))
			continue;
		if ((scripts & (scripts - 1)) || (scripts == CYRILLIC && alike))
			return true;
	}
	return false;
}

static void scripts(struct linter *l, const struct rule *rule)
{
	char *name = NULL;

	if (strncmp(rule->host, "xn--", 4) != 0 && !strstr(rule->host, ".xn--"))
		return;
	if (idn2_to_unicode_8z8z(rule->host, &name, 0) != IDN2_OK) {
		lint_found(l, rule, LINT_MIXED_SCRIPTS,
			   "%s is no valid internationalised name", rule->host);
		return;
	}
	if (misleads(name))
		lint_found(l, rule, LINT_MIXED_SCRIPTS,
			   "%s (%s) looks like another name", rule->host, name);
	else
		lint_found(l, rule, LINT_IDN, "%s is %s", rule->host, name);
	idn2_free(name);
}

void lint_names(struct linter *l, const struct rule *rule)
{
	suffix(l, rule);
	listed(l, rule);
	scripts(l, rule);
	if (strchr(rule->host, '.') || rule_connect(rule))
		return;
	if (!rule->wildcard)
		lint_found(l, rule, LINT_SINGLE_LABEL,
			   "'%s' has no domain: what it is depends on the "
			   "machine's search list",
			   rule->host);
	else if (!psl_is_public_suffix2(psl_builtin(), rule->host,
					PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE))
		lint_found(l, rule, LINT_SINGLE_LABEL,
			   "%s is everything below a top-level domain",
			   rule->text);
}
