/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_lint.c - two policies, apart by a line "%%": what lint says of each, and
 * how they differ. A policy does not differ from itself, and there and back are
 * the same differences.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/bundle.h"
#include "policy/diff.h"
#include "policy/explain.h"
#include "policy/explain_rule.h"
#include "policy/lint.h"
#include "policy/policy.h"

#define NOW 1800000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct policy *build(const char *text, size_t len)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err;

	/* Also where the policy names a list. */
	if (bundle_add(&bundle, BUNDLE_FILE, "fuzz", text, len) < 0 ||
	    bundle_add(&bundle, BUNDLE_LIST, "list", "a.example\n", 10) < 0 ||
	    policy_build(bundle.data, bundle.len, &policy, &err) < 0)
		policy = NULL;
	bundle_free(&bundle);
	return policy;
}

static void lint(const struct policy *policy)
{
	const struct rule *rule;
	struct findings found;
	char text[64];

	if (policy_lint(policy, NOW, &found) < 0)
		abort();
	for (size_t i = 0; i < found.count; i++)
		if (!found.at[i].info || !*found.at[i].message)
			abort();
	findings_free(&found);
	for (size_t i = 0; (rule = policy_rule(policy, i)); i++)
		if (strlen(rule_describe(rule, text, sizeof(text))) >=
		    sizeof(text))
			abort();
}

static void count(const struct policy *was, const struct policy *is,
		  size_t ret_n[3])
{
	struct differences all;

	memset(ret_n, 0, 3 * sizeof(*ret_n));
	if (policy_diff(was, is, NOW, &all) < 0)
		abort();
	for (size_t i = 0; i < all.count; i++)
		ret_n[all.at[i].sign]++;
	differences_free(&all);
}

static void compare(const struct policy *a, const struct policy *b)
{
	size_t there[3], back[3];

	count(a, a, there);
	if (there[DIFF_ADDED] || there[DIFF_REMOVED] || there[DIFF_CHANGED])
		abort();
	count(a, b, there);
	count(b, a, back);
	if (there[DIFF_ADDED] != back[DIFF_REMOVED] ||
	    there[DIFF_REMOVED] != back[DIFF_ADDED] ||
	    there[DIFF_CHANGED] != back[DIFF_CHANGED])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *mark = size ? memmem(text, size, "%%\n", 3) : NULL;
	size_t len = mark ? (size_t)(mark - text) : size;
	struct policy *was = build(text, len), *is = NULL;

	if (mark)
		is = build(mark + 3, size - len - 3);
	if (was)
		lint(was);
	if (was && is)
		compare(was, is);
	policy_unref(was);
	policy_unref(is);
	return 0;
}
