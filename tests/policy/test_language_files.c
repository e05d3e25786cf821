/* SPDX-License-Identifier: Apache-2.0
 *
 * test_language_files.c - policies of several files: those that extend each
 * other, and lists of names.
 */
#include "tests/policy/language_case.h"

/* --- files that extend each other ---------------------------------------- */

static void test_extends(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "d/child.yaml",
		  V "extends: [./base.yaml, ../team.yml, github]\n"
		    "limits: {connections: 9}\nallow: [c.example]\n" },
		{ BUNDLE_INCLUDED, "d/base.yaml",
		  V "name: base\nextends: [sub/deep.yaml]\n"
		    "limits: {connections: 3, names: 50, upload: 1 MB}\n"
		    "dns: {answers: real, upstream: [192.0.2.53]}\n"
		    "allow: [b.example]\ndeny: [no.example]\n" },
		{ BUNDLE_INCLUDED, "d/sub/deep.yaml",
		  V "limits: {names: 10, dns_per_second: 5}\n"
		    "allow: [deep.example]\n" },
		{ BUNDLE_INCLUDED, "team.yml",
		  V "extends: [d/base.yaml]\nlimits: {names: 40}\n"
		    "allow: [t.example]\n" },
		{ 0, NULL, NULL },
	};
	static const char *const hosts[] = { "c.example", "b.example",
					     "deep.example", "t.example",
					     "github.com" };
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	struct ip ip;
	uint16_t port;

	(void)state;
	struct file other[ARRAY_SIZE(files)];
	memcpy(other, files, sizeof(files));
	other[3].text = V "dns: {upstream: [system]}\n";
	assert_int_equal(build_files(other, &policy, &err), -EINVAL);
	assert_non_null(strstr(err.text, "d/child.yaml:2:24: another file"));
	/* Two ways to one file are no contradiction. */
	assert_int_equal(build_files(files, &policy, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		assert_non_null(rule_for(policy, hosts[i], 443));
	assert_string_equal(rule_origin(rule_for(policy, "deep.example", 443)),
			    "d/sub/deep.yaml:3");
	assert_string_equal(policy_name(policy), "base");
	/* The child's word, then the stricter of its parents'. */
	assert_int_equal(policy_limits(policy)->connections, 9);
	assert_int_equal(policy_limits(policy)->names, 40);
	assert_int_equal(policy_limits(policy)->dns_per_second, 5);
	assert_int_equal(policy_limits(policy)->budget[UP], 1000000);
	assert_true(policy_answers_real(policy));
	assert_true(policy_upstream(policy, 0, &ip, &port));
	assert_false(policy_upstream_system(policy));
	struct ask no = { "no.example", NULL, 443 };
	assert_int_equal(decide(policy, &no).reason, REASON_DENY_RULE);
	policy_unref(policy);
}

/* Files on one level: what one of them does not say, nobody says for it. */
static void test_side_by_side(void **state)
{
	static const struct file both[] = {
		{ BUNDLE_FILE, "a.yaml",
		  V "default: public\nmode: observe\nlimits: {names: 5}\n" },
		{ BUNDLE_FILE, "b.yaml",
		  V "default: public\nmode: observe\nlimits: {names: 9}\n" },
		{ 0, NULL, NULL },
	};
	struct file one[ARRAY_SIZE(both)];
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	assert_int_equal(build_files(both, &policy, &err), 0);
	assert_true(policy_is_public(policy));
	assert_true(policy_observes(policy));
	assert_int_equal(policy_limits(policy)->names, 5);
	policy_unref(policy);
	for (size_t i = 0; i < 2; i++) {
		memcpy(one, both, sizeof(both));
		one[i].text = V "allow: []\n";
		assert_int_equal(build_files(one, &policy, &err), 0);
		assert_false(policy_is_public(policy));
		assert_false(policy_observes(policy));
		policy_unref(policy);
	}
}

static void test_lists(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "d/p.yaml",
		  V "default: public\nallow: [{host: ok.ads.example, ports: "
		    "[22]}]\ndeny:\n- file: ads.txt\n- file: ../hosts\n"
		    "- file: ./ads.txt\n" },
		{ BUNDLE_LIST, "d/ads.txt", "ads.example\n||trk.example^\n" },
		{ BUNDLE_LIST, "hosts", "0.0.0.0 h.example\n" },
		{ 0, NULL, NULL },
	};
	static const struct row rows[] = {
		{ { "ads.example", 0, 443 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "ads.example", 0, 0 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "x.ads.example", 0, 443 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "ok.ads.example", 0, 22 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "a.trk.example", 0, 443 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "h.example", 0, 443 }, false, REASON_DENY_RULE, 0, 6 },
		{ { "x.h.example", 0, 443 }, true, REASON_PUBLIC, 0, 0 },
		{ { "badsads.example", 0, 443 }, true, REASON_PUBLIC, 0, 0 },
	};
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	struct port_range range[2];

	(void)state;
	assert_int_equal(build_files(files, &policy, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct verdict v = decide(policy, &rows[i].ask);

		assert_int_equal(v.allow, rows[i].allow);
		assert_int_equal(v.reason, rows[i].reason);
		assert_int_equal(line_of(v.rule), rows[i].line);
	}
	assert_string_equal(rule_text(rule_for(policy, "ads.example", 443)),
			    "d/ads.txt");
	assert_int_equal(policy_ports(policy, "ads.example", NOW, range, 2), 0);
	policy_unref(policy);

	struct file without[ARRAY_SIZE(files)];
	memcpy(without, files, sizeof(files));
	without[2] = without[3];
	assert_int_equal(build_files(without, &policy, &err), -EINVAL);
	assert_string_equal(err.text,
			    "d/p.yaml:6:9: bad file '../hosts', it was not "
			    "read");
}

static void add_many(struct bundle *bundle, enum bundle_kind kind,
		     const char *name, const char *head, const char *line,
		     unsigned n)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fputs(head, f);
	while (n--)
		fputs(line, f);
	fclose(f);
	assert_int_equal(bundle_add(bundle, kind, name, text, len), 0);
}

/* One list, named again and again behind many rules. */
static void test_one_list_often(void **state)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	clock_t before = clock();

	(void)state;
	add_many(&bundle, BUNDLE_FILE, "p.yaml",
		 V "extends: [./a.yaml]\ndeny:\n", "- {file: l}\n", 30000);
	add_many(&bundle, BUNDLE_INCLUDED, "a.yaml", V "deny:\n", "- a.b\n",
		 80000);
	add_many(&bundle, BUNDLE_LIST, "l", "", "a.b\n", 1);
	assert_int_equal(policy_build(bundle.data, bundle.len, &policy, &err),
			 0);
	assert_true(clock() - before < 3 * CLOCKS_PER_SEC);
	assert_int_equal(policy_rules(policy), 80001);
	policy_unref(policy);
	bundle_free(&bundle);
}

/* Ten files that each extend the next one many times: refused, not waited for.
 */
static void test_fan_out(void **state)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	for (int i = 0; i < 7; i++) {
		AUTO_FREE char *text = NULL;
		char name[16];
		size_t len = 0;
		FILE *f = open_memstream(&text, &len);

		snprintf(name, sizeof(name), "f%d.yaml", i);
		fputs(V "extends: [", f);
		for (int j = 0; j < 50; j++)
			fprintf(f, "%s./f%d.yaml", j ? ", " : "", i + 1);
		fputs("]\n", f);
		fclose(f);
		if (i == 6) {
			free(text);
			text = strdup(V);
			len = strlen(V);
		}
		assert_int_equal(bundle_add(&bundle,
					    i ? BUNDLE_INCLUDED : BUNDLE_FILE,
					    name, text, len),
				 0);
	}
	assert_int_equal(policy_build(bundle.data, bundle.len, &policy, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "more than 256 files"));
	bundle_free(&bundle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extends),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_one_list_often),
		cmocka_unit_test(test_fan_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
