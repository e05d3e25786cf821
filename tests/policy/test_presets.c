/* SPDX-License-Identifier: Apache-2.0
 *
 * test_presets.c - what every preset has to keep: it says where it comes from,
 * opens no more than it says, and adds up with all others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/hostname.h"
#include "policy/presets.h"
#include "policy/tree.h"
#include "tests/policy/build_helper.h"

#define SUFFIXES  "/usr/share/publicsuffix/public_suffix_list.dat"
#define STRANGERS "strangers can write here: "

/* Names below these belong to whoever rents one, or serve files of anyone. */
/* clang-format off */
static const char *const shared[] = {
	"akamai.net", "akamaiedge.net", "akamaihd.net", "akamaized.net",
	"amazonaws.com", "appspot.com", "azureedge.net", "azurefd.net",
	"azurewebsites.net", "backblazeb2.com", "blob.core.windows.net",
	"cdn77.org", "cloudapp.azure.com", "cloudfront.net",
	"cloudfunctions.net", "digitaloceanspaces.com", "fastly.net",
	"fastlylb.net", "firebaseio.com", "gist.github.com", "github.io",
	"githubusercontent.com", "gitlab.io", "googleapis.com",
	"googleusercontent.com", "herokuapp.com", "hf.space",
	"linodeobjects.com", "netlify.app", "ngrok.io", "ngrok-free.app",
	"pages.dev", "play.rust-lang.org", "r2.cloudflarestorage.com", "r2.dev",
	"run.app", "trafficmanager.net", "vercel.app", "wasabisys.com",
	"web.app", "www.microsoft.com", "workers.dev",
};
/* clang-format on */

/* Below a shared domain, but all of it one owner's. */
static const char *const owned[] = { "actions.githubusercontent.com" };

/* Whoever has an account there, or none, can leave something: a preset that
 * allows one of these says so. */
/* clang-format off */
static const char *const strangers[] = {
	"api.github.com", "api.openai.com", "bitbucket.org", "codeberg.org",
	"crates.io", "docker.io", "generativelanguage.googleapis.com",
	"ghcr.io", "github.com", "gitlab.com", "*.golang.org", "huggingface.co",
	"maven.org", "npmjs.org", "*.openai.azure.com", "openrouter.ai",
	"*.pkg.dev", "pypi.org", "pythonhosted.org", "quay.io",
	"raw.githubusercontent.com", "rubygems.org", "sentry.io", "statsig.com",
	"marketplace.visualstudio.com",
};
/* clang-format on */

/* Who needs what beside 443. */
static const struct {
	uint16_t port;
	const char *preset;
} other_port[] = {
	{ 80, "debian" }, { 80, "ubuntu" },	  { 80, "alpine" },
	{ 80, "fedora" }, { 80, "certificates" }, { 22, "github" },
	{ 22, "gitlab" }, { 22, "bitbucket" },	  { 22, "codeberg" },
};

static const struct {
	const char *name, *has[16];
} composite[] = {
	{ "claude-code",
	  { "anthropic", "github", "npm", "sentry", "statsig", "vscode" } },
	{ "ci",
	  { "github", "gitlab", "bitbucket", "npm", "pypi", "crates", "go",
	    "maven", "rubygems" } },
	{ "github-actions", { "github", "ghcr" } },
};

static struct node *parse(const char *name)
{
	struct policy_error err = { "" };
	struct source source = { .origin = name, .err = &err };
	struct node *root = NULL;
	size_t len;
	const char *text = preset_yaml(name, &len);

	assert_non_null(text);
	assert_int_equal(tree_parse(text, len, &source, &root), 0);
	assert_non_null(root);
	return root;
}

/* The value of @key in @map, or NULL. */
static const struct node *value_of(const struct node *map, const char *key)
{
	assert_int_equal(map->kind, NODE_MAP);
	for (const struct node *k = map->child; k; k = k->next->next)
		if (strcmp(k->text, key) == 0)
			return k->next;
	return NULL;
}

static const struct node *first_of(const struct node *map, const char *key)
{
	const struct node *list = value_of(map, key);

	return list ? list->child : NULL;
}

/* Calls @check for each rule of each preset that allows. */
static void each_rule(void (*check)(const char *preset,
				    const struct node *rule))
{
	const char *name;

	for (size_t i = 0; (name = preset_name(i)); i++) {
		struct node *root = parse(name);

		for (const struct node *rule = first_of(root, "allow"); rule;
		     rule = rule->next)
			check(name, rule);
		tree_free(root);
	}
}

static const char *host_of(const struct node *rule)
{
	const struct node *host = value_of(rule, "host");

	assert_non_null(host);
	return host->text;
}

static bool is_wildcard(const char *host)
{
	return strncmp(host, "*.", 2) == 0;
}

static const char *apex_of(const char *host)
{
	return is_wildcard(host) ? host + 2 : host;
}

/* Fails with the preset's and the rule's name. */
static void complain(const char *preset, const char *host, const char *why)
{
	fail_msg("preset %s: %s %s", preset, host, why);
}

static bool is_in(const char *name, const char *const list[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

static struct policy *build(const char *const name[], size_t n)
{
	struct piece piece[PRESETS_MAX + 1] = { { 0, NULL } };
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	assert_true(n <= PRESETS_MAX);
	for (size_t i = 0; i < n; i++)
		piece[i] = (struct piece){ BUNDLE_ALLOW, name[i] };
	if (build_pieces(piece, &policy, &err) != 0)
		fail_msg("%s", err.text);
	return policy;
}

/* Nobody lists this name, so that only a wildcard can cover it. */
static const char *sample_of(const char *host, char buf[HOST_MAX + 1])
{
	snprintf(buf, HOST_MAX + 1, "%s%s",
		 is_wildcard(host) ? "sample-of-a-test." : "", apex_of(host));
	return buf;
}

/* Does @policy allow everything that the preset @name allows? */
static void expect_all_of(const struct policy *policy, const char *name)
{
	struct node *root = parse(name);
	char host[HOST_MAX + 1];

	for (const struct node *rule = first_of(root, "allow"); rule;
	     rule = rule->next) {
		struct question q = {
			.host = sample_of(host_of(rule), host),
			.door = DOOR_CONNECT,
		};

		for (const struct node *port = first_of(rule, "ports"); port;
		     port = port->next) {
			q.port = (uint16_t)atoi(port->text);
			if (!policy_decide(policy, &q).allow)
				complain(name, host_of(rule), port->text);
		}
	}
	for (const struct node *n = first_of(root, "extends"); n; n = n->next)
		expect_all_of(policy, n->text);
	tree_free(root);
}

static void test_names(void **state)
{
	const char *name, *last = "";

	(void)state;
	for (size_t i = 0; (name = preset_name(i)); i++) {
		assert_true(name[0] >= 'a' && name[0] <= 'z');
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz"
					      "0123456789-"),
				 strlen(name));
		assert_true(strlen(name) <= 24);
		assert_true(strcmp(last, name) < 0);
		last = name;
	}
	assert_true(preset_count >= 40 && preset_count <= PRESETS_MAX);
}

/* The comment in front says what, from where and when. */
static void test_headers(void **state)
{
	const char *name;

	(void)state;
	for (size_t i = 0; (name = preset_name(i)); i++) {
		size_t len;
		const char *text = preset_yaml(name, &len);
		const char *body = strstr(text, "version: 1\n");
		const char *from = strstr(text, "# Provenance: ");
		const char *date = strstr(text, "Date: 2026-");
		char line[64];

		if (!body || !from || !date || from > date || date > body ||
		    text[0] != '#' || from == text)
			complain(name, "", "has no proper header");
		snprintf(line, sizeof(line), "name: %s\n", name);
		assert_non_null(strstr(body, line));
		for (const char *p = text; p < body; p = strchr(p, '\n') + 1)
			assert_int_equal(*p, '#');
	}
}

static void test_alone(void **state)
{
	const char *name;

	(void)state;
	for (size_t i = 0; (name = preset_name(i)); i++) {
		struct policy *policy = build(&name, 1);

		assert_string_equal(policy_name(policy), name);
		expect_all_of(policy, name);
		struct question q = { .host = "example.com", .port = 443 };
		assert_false(policy_decide(policy, &q).allow);
		q.host = "gist.github.com";
		assert_false(policy_decide(policy, &q).allow);
		policy_unref(policy);
	}
}

/* The most specific pattern decides alone: no preset's exact rule may take
 * away what another one's wildcard allows. */
static void test_together(void **state)
{
	const char *name[PRESETS_MAX];
	size_t n = 0;

	(void)state;
	while ((name[n] = preset_name(n)))
		n++;
	struct policy *policy = build(name, n);
	for (size_t i = 0; i < n; i++)
		expect_all_of(policy, name[i]);
	policy_unref(policy);
}

static void test_composites(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(composite); i++) {
		struct policy *policy = build(&composite[i].name, 1);

		for (size_t j = 0; composite[i].has[j]; j++)
			expect_all_of(policy, composite[i].has[j]);
		policy_unref(policy);
	}
}

/* The hosts that the firewall script of Claude Code's container names. */
static void test_claude_code(void **state)
{
	static const char *const host[] = {
		"api.anthropic.com",
		"statsig.anthropic.com",
		"github.com",
		"api.github.com",
		"npmjs.org",
		"sentry.io",
		"statsig.com",
		"marketplace.visualstudio.com",
		"vscode.blob.core.windows.net",
		"update.code.visualstudio.com",
	};
	const char *name = "claude-code";
	struct policy *policy = build(&name, 1);
	struct question q = { .port = 443, .door = DOOR_TRANSPARENT };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(host); i++) {
		q.host = host[i];
		assert_true(policy_decide(policy, &q).allow);
	}
	q.host = "anyone.blob.core.windows.net";
	assert_false(policy_decide(policy, &q).allow);
	policy_unref(policy);
}

static void check_ports(const char *preset, const struct node *rule)
{
	const struct node *port = first_of(rule, "ports");

	if (!port)
		complain(preset, host_of(rule), "names no ports");
	for (; port; port = port->next) {
		bool fine = strcmp(port->text, "443") == 0;

		for (size_t i = 0; i < ARRAY_SIZE(other_port) && !fine; i++)
			fine = strcmp(other_port[i].preset, preset) == 0 &&
			       other_port[i].port == atoi(port->text);
		if (!fine)
			complain(preset, host_of(rule), port->text);
	}
}

static void check_shared(const char *preset, const struct node *rule)
{
	const char *host = host_of(rule), *apex = apex_of(host);

	if (!is_wildcard(host) || is_in(apex, owned, ARRAY_SIZE(owned)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		if (strcmp(apex, shared[i]) == 0 ||
		    host_below(apex, shared[i]) || host_below(shared[i], apex))
			complain(preset, host, shared[i]);
}

static void check_strangers(const char *preset, const struct node *rule)
{
	const char *host = host_of(rule);
	const struct node *note = value_of(rule, "note");
	bool said =
		note && strncmp(note->text, STRANGERS, strlen(STRANGERS)) == 0;

	if (is_in(host, strangers, ARRAY_SIZE(strangers)) && !said)
		complain(preset, host, "needs a note");
	if (note && strncmp(note->text, "lint-ok: ", 9) == 0)
		return;
	if (note && (!said || strlen(note->text) < strlen(STRANGERS) + 4))
		complain(preset, host, "has a note of another form");
}

/* The list as it is: one suffix a line, "*.x" for all below x but "!y". */
static char *suffixes;

static bool has_line(const char *prefix, const char *name)
{
	char line[HOST_MAX + 8];

	snprintf(line, sizeof(line), "\n%s%s\n", prefix, name);
	return strstr(suffixes, line);
}

static void check_suffix(const char *preset, const struct node *rule)
{
	const char *apex = apex_of(host_of(rule));
	const char *dot = strchr(apex, '.');

	if (!dot || has_line("", apex) ||
	    (has_line("*.", dot + 1) && !has_line("!", apex)))
		complain(preset, host_of(rule), "is a public suffix");
}

static int read_suffixes(void **state)
{
	FILE *file = fopen(SUFFIXES, "re");
	size_t cap = 0;

	(void)state;
	if (!file) {
		print_error("%s: install publicsuffix\n", SUFFIXES);
		return -1;
	}
	ssize_t n = getdelim(&suffixes, &cap, '\0', file);
	fclose(file);
	return n > 0 && has_line("", "co.uk") && has_line("*.", "ck") ? 0 : -1;
}

static int drop_suffixes(void **state)
{
	(void)state;
	free(suffixes);
	return 0;
}

static void test_ports(void **state)
{
	(void)state;
	each_rule(check_ports);
}

static void test_shared(void **state)
{
	(void)state;
	each_rule(check_shared);
}

static void test_strangers(void **state)
{
	(void)state;
	each_rule(check_strangers);
}

static void test_suffix(void **state)
{
	(void)state;
	each_rule(check_suffix);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_composites),
		cmocka_unit_test(test_claude_code),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test_setup_teardown(test_suffix, read_suffixes,
						drop_suffixes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
