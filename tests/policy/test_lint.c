/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/lint.h"
#include "tests/policy/build_helper.h"

#define NOW 1800000000 /* 2027-01-15T08:00:00Z */
#define V   "version: 1\n"

/* "code@line code@line", without what is expected to be boring. */
static void codes_of(const char *yaml, char *buf, size_t cap,
		     struct findings *ret_found)
{
	struct policy *policy = build_yaml(yaml);
	size_t len = 0;

	buf[0] = '\0';
	assert_int_equal(policy_lint(policy, NOW, ret_found), 0);
	for (size_t i = 0; i < ret_found->count; i++) {
		const struct finding *f = &ret_found->at[i];
		const char *line = f->rule ? rule_origin(f->rule) : "p.yaml:0";

		assert_true(*f->message && *f->info->hint);
		assert_null(strchr(f->message, '\n'));
		len += (size_t)snprintf(buf + len, cap - len, "%s%s@%s",
					len ? " " : "", f->info->word,
					strrchr(line, ':') + 1);
		assert_true(len < cap);
	}
	policy_unref(policy);
}

static const struct {
	const char *yaml, *codes;
} cases[] = {
	/* Nothing to say. */
	{ V, "" },
	{ V "allow: [api.fine.test, '*.fine.test']\n", "" },
	{ V "allow:\n - {host: db.fine.test, ports: [5432], addresses: "
	    "[10.0.0.0/8]}\n",
	  "" },
	{ V "allow:\n - {host: llm.internal, connect: 127.0.0.1:11434}\n", "" },
	{ V "allow:\n - {host: llm, connect: 127.0.0.1:11434}\n", "" },
	{ V "allow:\n - {address: 9.9.1.0/24, ports: [8443]}\n", "" },
	{ V "allow:\n - {address: 10.1.2.0/24, ports: [8443]}\n", "" },
	{ V "allow:\n - {address: 192.0.2.0/24, ports: [8443]}\n", "" },

	/* Suffixes. */
	{ V "allow: ['*.co.uk']\n", "public-suffix@2" },
	{ V "allow: ['*.com']\n", "public-suffix@2 doh@2 strangers@2 "
				  "shared-cdn@2" },
	{ V "allow: ['*.kawasaki.jp']\n", "public-suffix@2" },
	{ V "allow: ['*.s3.dualstack.us-east-1.amazonaws.com']\n",
	  "public-suffix@2 strangers@2" },
	{ V "allow: ['*.example.co.uk', co.uk]\n", "" },
	{ V "allow: [db]\n", "single-label@2" },
	{ V "allow: ['*.internal']\n", "single-label@2" },

	/* Names that are known. */
	{ V "allow: [pastebin.com]\n", "strangers@2" },
	{ V "allow: [a.b.pastebin.com]\n", "strangers@2" },
	{ V "allow: [notpastebin.com]\n", "" },
	{ V "allow: [dns.google]\n", "doh@2" },
	{ V "allow: [d1.cloudfront.net]\n", "shared-cdn@2" },
	{ V "allow: ['*.telegram.org']\n", "strangers@2" },
	{ V "allow: ['*.cloudflare.com']\n", "shared-cdn@2 doh@2 strangers@2" },
	{ V "allow: [pastebin.com]\ndeny: [pastebin.com]\n", "denied@2" },
	{ V "allow: [{host: llm.internal, connect: 10.0.0.1:8000}]\n"
	    "deny: [{address: 10.0.0.0/8}]\n",
	  "denied@2" },
	/* What it covers, others decide about. */
	{ V "allow:\n - '*.debian.org'\n", "strangers@3" },
	{ V "allow:\n - '*.debian.org'\ndeny: [paste.debian.net, "
	    "salsa.debian.org]\n",
	  "needless-deny@4" },

	/* Notes. */
	{ V "allow:\n - {host: pastebin.com, note: 'lint-ok: strangers'}\n",
	  "" },
	{ V "allow:\n - {host: pastebin.com, note: 'Ours. lint-ok: doh , "
	    "strangers: we read it'}\n",
	  "" },
	{ V "allow:\n - {host: pastebin.com, note: 'lint-ok: doh strangers'}\n",
	  "strangers@3" },
	{ V "allow:\n - {host: pastebin.com, note: strangers}\n",
	  "strangers@3" },
	{ V "allow:\n - {host: pastebin.com, note: 'lint-ok: stranger'}\n",
	  "strangers@3" },

	/* Scripts: xn--80ak6aa92e looks like apple, xn--pypal-4ve mixes. */
	{ V "allow: [xn--80ak6aa92e.test]\n", "mixed-scripts@2" },
	{ V "allow: [xn--pypal-4ve.test]\n", "mixed-scripts@2" },
	{ V "allow: [b\xc3\xbc"
	    "cher.test]\n",
	  "idn@2" },
	{ V "allow: [xn--e1afmkfd.xn--80akhbyknj4f]\n", "idn@2" },
	{ V "allow: [xn--fiqs8s.test]\n", "idn@2" },

	/* One rule. */
	{ V "allow:\n - {host: a.test, ports: [53]}\n", "dns-port@3" },
	{ V "allow:\n - {host: a.test, ports: [850-860]}\n", "dns-port@3" },
	{ V "allow:\n - {host: a.test, ports: [25, 465]}\n", "mail-port@3" },
	{ V "allow:\n - {host: a.test, ports: [1-65535]}\n", "many-ports@3" },
	{ V "allow:\n - {host: a.test, protocol: any}\n", "protocol-any@3" },
	{ V "allow:\n - {host: '*.defo.ie', tls: {ech: allow}}\n", "ech@3" },
	{ V "allow:\n - {host: a.test, protocol: any, ports: [22]}\n", "" },
	{ V "allow:\n - {address: 9.0.0.0/8, ports: [22]}\n", "wide-range@3" },
	{ V "allow:\n - {address: 0.0.0.0/0, ports: [22]}\n",
	  "wide-range@3 special-range@3" },
	{ V "allow:\n - {address: 169.254.169.254, ports: [80]}\n",
	  "special-range@3" },
	{ V "allow:\n - {address: '2600::/20', ports: [80]}\n",
	  "wide-range@3" },
	{ V "allow:\n - {address: '::1', ports: [80]}\n", "special-range@3" },
	{ V "allow:\n - {host: a.test, addresses: [0.0.0.0/0]}\n",
	  "wide-answers@3" },
	{ V "allow:\n - {host: a.test, addresses: [127.0.0.0/8]}\n",
	  "special-answers@3" },
	{ V "allow:\n - {host: a.test, addresses: [169.254.169.254]}\n",
	  "special-answers@3" },
	{ V "allow:\n - {host: a.test, connect: 127.0.0.1:2375}\n",
	  "connect-service@3" },
	{ V "allow:\n - {host: a.test, connect: '169.254.169.254:80'}\n",
	  "connect-service@3" },
	{ V "allow:\n - {host: '*.a.test', dns: {types: [TXT]}}\n",
	  "dns-types@3" },
	{ V "allow:\n - {host: a.test, dns: {types: [TXT]}}\n", "" },
	{ V "allow:\n - {host: a.test, expires: 2027-01-01}\n", "expired@3" },
	{ V "allow:\n - {host: a.test, expires: 2027-01-16}\n",
	  "expires-soon@3" },
	{ V "allow:\n - {host: a.test, expires: 2027-01-17}\n", "" },
	{ V "limits: {upload: 1 MB}\nallow:\n - {host: a.test, upload: 2 MB}\n",
	  "budget@4" },
	{ V "limits: {upload: 2 MB}\nallow:\n - {host: a.test, upload: 2 MB}\n",
	  "" },

	/* The whole. */
	{ V "default: public\n", "public@0" },
	{ V "mode: observe\n", "observe@0" },
	{ V "limits: {names_per_wildcard: 4000}\nallow: ['*.a.test']\n",
	  "names-per-wildcard@0" },
	{ V "limits: {names_per_wildcard: 4000}\nallow: [a.test]\n", "" },

	/* Rules beside each other. */
	{ V "allow:\n - a.test\n - a.test\n", "shadowed@4" },
	{ V "allow:\n - a.test\n - {host: a.test, ports: [443]}\n",
	  "shadowed@4" },
	{ V "allow:\n - {host: a.test, ports: [443]}\n - a.test\n", "" },
	{ V "allow:\n - {host: a.test, expires: 2028-01-01}\n - a.test\n", "" },
	{ V "allow:\n - a.test\n - {host: a.test, expires: 2028-01-01}\n",
	  "shadowed@4" },
	{ V "allow:\n - {host: a.test, doors: [proxy]}\n - a.test\n", "" },
	{ V "allow:\n - a.test\n - {host: a.test, ports: [80], methods: "
	    "[GET]}\n",
	  "not-judged@4" },
	{ V "allow:\n - {host: a.test, ports: [80], methods: [GET]}\n - "
	    "a.test\n",
	  "not-judged@3" },
	{ V "allow:\n - {host: a.test, ports: [80], paths: [/a/**]}\n"
	    " - {host: a.test, ports: [80], paths: [/b/**]}\n",
	  "" },
	{ V "allow:\n - {host: a.test, ports: [80], methods: [GET, PUT]}\n"
	    " - {host: a.test, ports: [80], methods: [GET], paths: [/b]}\n",
	  "shadowed@4" },
	{ V "allow:\n - '*.a.test'\n - {host: x.a.test, ports: [22]}\n",
	  "narrower@4" },
	{ V "allow:\n - '*.a.test'\n - {host: '*.b.a.test', ports: [443]}\n",
	  "narrower@4" },
	{ V "allow:\n - '*.a.test'\n - {host: x.a.test, ports: [22]}\n - "
	    "x.a.test\n",
	  "" },
	{ V
	  "allow:\n - {host: '*.a.test', ports: [1-65535], note: 'lint-ok: "
	  "many-ports'}\n - {host: x.a.test, ports: [80-1000], note: 'lint-ok: dns-port'}\n",
	  "narrower@4" },
	{ V "allow: [a.test]\ndeny: [a.test]\n", "denied@2" },
	{ V "allow: [x.a.test, '*.b.a.test']\ndeny: ['*.a.test']\n",
	  "denied@2 denied@2" },
	{ V "allow: ['*.a.test']\ndeny: [x.a.test]\n", "" },
	{ V "allow: [a.test]\ndeny:\n - {host: a.test, ports: [443]}\n", "" },
	{ V "allow: [a.test]\ndeny:\n - {host: a.test, ports: [443]}\n"
	    " - {host: a.test, ports: [1-100]}\n",
	  "denied@2" },
	{ V "allow:\n - {address: 9.9.9.0/24, ports: [22]}\ndeny:\n - "
	    "{address: 9.9.0.0/16}\n",
	  "denied@3" },
	{ V "allow:\n - {address: 9.9.9.0/24, ports: [22]}\ndeny:\n - "
	    "{address: 9.9.9.1}\n",
	  "" },
	{ V "allow: [a.test]\ndeny: [b.test]\n", "needless-deny@3" },
	{ V "allow: [x.b.test]\ndeny: ['*.b.test', '*.test']\n", "denied@2" },
	{ V "default: public\ndeny: [b.test]\n", "public@0" },
	/* That is how something of a preset is left out. */
	{ V "extends: [npm]\ndeny: [npmjs.org]\n", "" },
	{ V "sandbox: {fs: host}\n", "sandbox-files@0 sandbox-run@0" },
	{ V "sandbox: {rw: [~/.cache, /]}\n", "sandbox-files@0 sandbox-run@0" },
	{ V "sandbox: {ro: [/, ~/.sshd, ~/.ssh/known_hosts]}\n",
	  "sandbox-secret@0 sandbox-run@0" },
	{ V "sandbox: {env: [A_TOKEN]}\n", "sandbox-secret@0 sandbox-run@0" },
	{ V "sandbox: {nest: true, memory: 1G}\n",
	  "sandbox-nest@0 sandbox-run@0" },
	{ V "sandbox: {hide: [~/.ssh]}\n", "sandbox-run@0" },
	{ V "sandbox: {}\n", "" },
};

static void test_cases(void **state)
{
	char codes[1024];
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct findings found;

		codes_of(cases[i].yaml, codes, sizeof(codes), &found);
		if (strcmp(codes, cases[i].codes) != 0) {
			print_error("%swanted %s\nhave %s\n", cases[i].yaml,
				    cases[i].codes, codes);
			wrong++;
		}
		findings_free(&found);
	}
	assert_int_equal(wrong, 0);
}

/* Every code can be had. */
static void test_codes(void **state)
{
	const struct lint_info *info;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; (info = lint_info(i)); i++) {
		/* Those need a file. */
		bool seen = strncmp(info->word, "list-", 5) == 0;

		for (size_t j = 0; j < ARRAY_SIZE(cases); j++)
			if (strstr(cases[j].codes, info->word))
				seen = true;
		if (!seen)
			print_error("%s\n", info->word);
		assert_true(seen);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(lint_info(j)->word, info->word);
		n++;
	}
	assert_true(n > 20);
}

/* What is unwise in a preset is said in its notes. */
static void test_presets(void **state)
{
	const char *name;
	size_t silenced = 0, wrong = 0;

	(void)state;
	for (size_t i = 0; (name = preset_name(i)); i++) {
		struct piece piece[] = { { BUNDLE_ALLOW, name }, { 0, NULL } };
		struct policy *policy = NULL;
		struct policy_error err;
		struct findings found;

		assert_int_equal(build_pieces(piece, &policy, &err), 0);
		assert_int_equal(policy_lint(policy, NOW, &found), 0);
		for (size_t j = 0; j < found.count; j++) {
			if (found.at[j].info->level != LINT_WARNING)
				continue;
			print_error("%s: %s\n", name, found.at[j].message);
			wrong++;
		}
		silenced += found.silenced;
		findings_free(&found);
		policy_unref(policy);
	}
	assert_int_equal(wrong, 0);
	assert_true(silenced > 10);
}

static const char list_yaml[] =
	V "allow: [a.test, b.test]\ndeny: [{file: list.txt}]\n";

static void test_deny_lists(void **state)
{
	struct policy *policy = build_with_list(list_yaml, "b.test\n");
	struct findings found;

	(void)state;
	assert_int_equal(policy_lint(policy, NOW, &found), 0);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.at[0].info->word, "denied");
	assert_string_equal(found.at[0].message,
			    "b.test is denied by list.txt (p.yaml:3)");
	findings_free(&found);
	policy_unref(policy);

	policy = build_with_list(list_yaml, "c.test\n@@x\n/x/\n");
	assert_int_equal(policy_lint(policy, NOW, &found), 0);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.at[0].info->word, "list-lines");
	assert_non_null(strstr(found.at[0].message, "2, the first is line 2"));
	findings_free(&found);
	policy_unref(policy);

	/* As after a download that failed. */
	policy = build_with_list(list_yaml, "# names\n\n");
	assert_int_equal(policy_lint(policy, NOW, &found), 0);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.at[0].info->word, "list-empty");
	findings_free(&found);
	policy_unref(policy);
}

static void test_messages(void **state)
{
	char codes[100];
	struct findings found;

	(void)state;
	codes_of(V "allow:\n - '*.a.test'\n"
		   " - {host: x.a.test, ports: [22, 80]}\n",
		 codes, sizeof(codes), &found);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.at[0].message,
			    "x.a.test decides alone, so ports of *.a.test "
			    "(p.yaml:3) are closed here: 443");
	findings_free(&found);
	codes_of(V "allow: [xn--80ak6aa92e.test]\n", codes, sizeof(codes),
		 &found);
	assert_non_null(strstr(found.at[0].message, "\xd0\xb0\xd1\x80"));
	findings_free(&found);
}

static void test_list(void **state)
{
	char host[HOST_MAX + 1];

	(void)state;
	assert_true(lint_table_count >= 200);
	for (size_t i = 0; i < lint_table_count; i++) {
		const struct lint_entry *e = &lint_table[i];

		if (i)
			assert_true(strcmp(e[-1].domain, e->domain) < 0);
		assert_true(host_canonical(e->domain, strlen(e->domain), host));
		assert_string_equal(host, e->domain);
		assert_true(strchr(e->domain, '.') && *e->reason);
		assert_true(strcmp(e->class, "stranger-writable") == 0 ||
			    strcmp(e->class, "doh") == 0 ||
			    strcmp(e->class, "shared-cdn") == 0);
		assert_ptr_equal(lint_lookup(e->domain), e);
	}
}

static void test_lookup(void **state)
{
	static const struct {
		const char *host, *domain;
	} wanted[] = {
		{ "gist.github.com", "gist.github.com" },
		{ "x.gist.github.com", "gist.github.com" },
		{ "api.github.com", "github.com" },
		{ "github.com", "github.com" },
		{ "hub.com", NULL },
		{ "com", NULL },
		{ "", NULL },
		{ "xgithub.com", NULL },
		{ "b.s3.amazonaws.com", "s3.amazonaws.com" },
		{ "b.s3.eu-west-1.amazonaws.com", "amazonaws.com" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct lint_entry *e = lint_lookup(wanted[i].host);

		if (wanted[i].domain) {
			assert_non_null(e);
			assert_string_equal(e->domain, wanted[i].domain);
		} else {
			assert_null(e);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_deny_lists),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_lookup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
