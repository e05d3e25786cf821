/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cell.c - the `sandbox:` section: what it says, whose word counts.
 */
#include "policy/cell.h"
#include "policy/values.h"
#include "tests/policy/language_case.h"

static struct policy *build_good(const struct file *files)
{
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	int ret = build_files(files, &policy, &err);

	if (ret)
		print_error("%d: %s\n", ret, err.text);
	assert_int_equal(ret, 0);
	return policy;
}

static void refused(const struct file *files, const char *why)
{
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	assert_int_equal(build_files(files, &policy, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("%s, not %s", err.text, why);
}

static void test_all(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "d/p.yaml",
		  V "sandbox:\n  fs: host\n  nest: true\n"
		    "  rw: [~/.cache, ../up, .]\n  ro: [/srv/x]\n"
		    "  hide: [\"~\"]\n  env: [A_TOKEN]\n  memory: 2G\n"
		    "  pids: 7\n  cpus: 0.5\n  fsize: 1 MB\n  nofile: 64\n"
		    "  timeout: 30m\n" },
		{ 0, NULL, NULL },
	};
	static const char *const paths[] = { "~/.cache", "up", "d", "/srv/x",
					     "~" };
	struct policy *policy = build_good(files);
	const struct cell *cell = policy_cell(policy);
	char text[400];

	(void)state;
	assert_int_equal(cell->said.host_files, SAID_YES);
	assert_int_equal(cell->said.nest, SAID_YES);
	assert_int_equal(cell->said.memory, 2ull << 30);
	assert_int_equal(cell->said.pids, 7);
	assert_int_equal(cell->said.cpus, 500);
	assert_int_equal(cell->said.fsize, 1000000);
	assert_int_equal(cell->said.nofile, 64);
	assert_int_equal(cell->said.timeout_s, 1800);
	assert_int_equal(cell->path.count, ARRAY_SIZE(paths));
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_string_equal(cell->path.at[i].text, paths[i]);
	assert_string_equal(cell->path.at[1].origin, "d/p.yaml:5:18");
	assert_int_equal(cell->path.at[0].access, CELL_RW);
	assert_int_equal(cell->path.at[3].access, CELL_RO);
	assert_int_equal(cell->path.at[4].access, CELL_HIDE);
	assert_string_equal(cell->env.at[0].text, "A_TOKEN");
	cell_describe(cell, text, sizeof(text));
	assert_string_equal(text, "fs host; nest true; rw ~/.cache, up, d; "
				  "ro /srv/x; hide ~; env A_TOKEN; "
				  "memory 2 GiB; pids 7; cpus 0.500; "
				  "fsize 1 MB; nofile 64; timeout 1800s");
	cell_describe(cell, text, 20);
	assert_string_equal(text, "fs host; nest true;");
	policy_unref(policy);

	policy = build_yaml(V "allow: [a.example]\n");
	assert_true(cell_is_empty(policy_cell(policy)));
	assert_null(policy_ceiling_cell(policy));
	policy_unref(policy);
}

/* Beside the working directory's own policy "." is that directory. */
static void test_dot(void **state)
{
	struct policy *policy = build_yaml(V "sandbox: {rw: [., ./a/..]}\n");

	(void)state;
	assert_string_equal(policy_cell(policy)->path.at[0].text, ".");
	assert_string_equal(policy_cell(policy)->path.at[1].text, ".");
	policy_unref(policy);
}

/* Nobody whom our user did not name opens his files. */
static void test_inherited_opens_nothing(void **state)
{
	static const struct {
		const char *says, *why;
	} cases[] = {
		{ "rw: [/srv]", "b.yaml:2:15: 'rw' opens the sandbox" },
		{ "ro: [/srv]", "b.yaml:2:15: 'ro' opens the sandbox" },
		{ "env: [A_TOKEN]", "b.yaml:2:16: 'env' opens" },
		{ "fs: host", "b.yaml:2:15: 'fs: host' opens" },
		{ "nest: true", "b.yaml:2:17: 'nest: true' opens" },
	};
	char base[200];
	struct file files[] = {
		{ BUNDLE_FILE, "p.yaml", V "extends: [./b.yaml]\n" },
		{ BUNDLE_INCLUDED, "b.yaml", base },
		{ 0, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(base, sizeof(base), V "sandbox: {%s}\n",
			 cases[i].says);
		refused(files, cases[i].why);
	}
}

/* What narrows adds up from everywhere, and a child lifts nothing. */
static void test_inherited_narrows(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "p.yaml",
		  V "extends: [d/b.yaml, d/b.yaml]\n"
		    "sandbox: {fs: host, nest: true, memory: 1G, pids: 50,\n"
		    "  hide: [own]}\n" },
		{ BUNDLE_INCLUDED, "d/b.yaml",
		  V "sandbox: {fs: private, nest: false, memory: 2G, pids: 5,\n"
		    "  timeout: 1h, hide: [theirs]}\n" },
		{ 0, NULL, NULL },
	};
	struct policy *policy = build_good(files);
	const struct cell *cell = policy_cell(policy);

	(void)state;
	assert_int_equal(cell->said.host_files, SAID_NO);
	assert_int_equal(cell->said.nest, SAID_NO);
	assert_int_equal(cell->said.memory, 1ull << 30);
	assert_int_equal(cell->said.pids, 5);
	assert_int_equal(cell->said.timeout_s, 3600);
	assert_int_equal(cell->path.count, 2);
	assert_string_equal(cell->path.at[1].text, "d/theirs");
	policy_unref(policy);
}

/* Our user named both. */
static void test_side_by_side(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "a.yaml",
		  V "sandbox: {rw: [x], cpus: 2, nest: true, env: [A]}\n" },
		{ BUNDLE_FILE, "b.yaml",
		  V "sandbox: {rw: [y], cpus: 1, fsize: 5, env: [B]}\n" },
		{ 0, NULL, NULL },
	};
	struct policy *policy = build_good(files);
	const struct cell *cell = policy_cell(policy);

	(void)state;
	assert_int_equal(cell->path.count, 2);
	assert_int_equal(cell->env.count, 2);
	assert_int_equal(cell->said.cpus, 1000);
	assert_int_equal(cell->said.fsize, 5);
	assert_int_equal(cell->said.nest, SAID_YES);
	policy_unref(policy);
}

static void test_same(void **state)
{
	static const char *const texts[] = {
		V "sandbox: {rw: [x, y]}\n",
		V "sandbox: {rw: [x]}\n",
		V "sandbox: {ro: [x, y]}\n",
		V "sandbox: {rw: [x, y], env: [A]}\n",
		V "sandbox: {rw: [x, y], pids: 1}\n",
	};
	struct policy *first = build_yaml(texts[0]);
	struct policy *turned = build_yaml(V "note: a\nsandbox:\n"
					     "  rw: [y, x]\n");

	(void)state;
	assert_true(cell_same(policy_cell(first), policy_cell(turned)));
	for (size_t i = 1; i < ARRAY_SIZE(texts); i++) {
		struct policy *other = build_yaml(texts[i]);

		assert_false(cell_same(policy_cell(first), policy_cell(other)));
		policy_unref(other);
	}
	policy_unref(turned);
	policy_unref(first);
}

static void test_presets_have_none(void **state)
{
	const char *name;

	(void)state;
	for (size_t i = 0; (name = preset_name(i)); i++) {
		struct piece piece[] = { { BUNDLE_ALLOW, name }, { 0, NULL } };
		struct policy *policy = NULL;
		struct policy_error err = { "" };

		assert_int_equal(build_pieces(piece, &policy, &err), 0);
		assert_true(cell_is_empty(policy_cell(policy)));
		policy_unref(policy);
	}
}

static void test_values(void **state)
{
	static const char *const bad[] = { "",	     ".5",   "1.",     "0",
					   "0.009",  "4097", "4096.1", "-1",
					   "1.2345", "1e3" };
	uint64_t bytes;
	unsigned milli;

	(void)state;
	assert_null(value_amount("512m", 1, &bytes));
	assert_int_equal(bytes, 512u << 20);
	assert_null(value_amount("1 MB", 1, &bytes));
	assert_int_equal(bytes, 1000000);
	assert_non_null(value_amount("1K", 1025, &bytes));
	assert_non_null(value_amount("G", 1, &bytes));
	assert_non_null(value_amount("", 1, &bytes));
	assert_true(value_cpus("4096", &milli));
	assert_true(value_cpus("0.01", &milli));
	assert_int_equal(milli, 10);
	assert_true(value_cpus("1.25", &milli));
	assert_int_equal(milli, 1250);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (value_cpus(bad[i], &milli))
			fail_msg("%s is taken", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_dot),
		cmocka_unit_test(test_inherited_opens_nothing),
		cmocka_unit_test(test_inherited_narrows),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_presets_have_none),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
