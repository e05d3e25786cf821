/* SPDX-License-Identifier: Apache-2.0
 *
 * build_helper.h - policies from texts, for tests.
 */
#ifndef TESTS_POLICY_BUILD_HELPER_H
#define TESTS_POLICY_BUILD_HELPER_H

#include <string.h>

#include "policy/bundle.h"
#include "policy/policy.h"

struct piece {
	enum bundle_kind kind;
	const char *text;
};

/* Ends at a piece without text. Returns policy_build()'s result. */
static inline int build_pieces(const struct piece *piece,
			       struct policy **ret_policy,
			       struct policy_error *reterr)
{
	static const char *const origin[] = {
		[BUNDLE_FILE] = "p.yaml",   [BUNDLE_ALLOW] = "--allow",
		[BUNDLE_DENY] = "--deny",   [BUNDLE_PERMIT] = "--permit",
		[BUNDLE_LIST] = "list.txt",
	};
	struct bundle bundle = { 0 };
	int ret = 0;

	for (; piece->text && ret == 0; piece++)
		ret = bundle_add(&bundle, piece->kind, origin[piece->kind],
				 piece->text, strlen(piece->text));
	if (ret == 0)
		ret = policy_build(bundle.data, bundle.len, ret_policy, reterr);
	bundle_free(&bundle);
	return ret;
}

static inline struct policy *build_yaml(const char *yaml)
{
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	struct piece piece[] = { { BUNDLE_FILE, yaml }, { 0, NULL } };
	int ret = build_pieces(piece, &policy, &err);

	if (ret != 0)
		print_error("%d: %s\n", ret, err.text);
	assert_int_equal(ret, 0);
	return policy;
}

/* @yaml may deny by the file list.txt, which has @list in it. */
static inline struct policy *build_with_list(const char *yaml, const char *list)
{
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	struct piece piece[] = { { BUNDLE_FILE, yaml },
				 { BUNDLE_LIST, list },
				 { 0, NULL } };
	int ret = build_pieces(piece, &policy, &err);

	if (ret != 0)
		print_error("%d: %s\n", ret, err.text);
	assert_int_equal(ret, 0);
	return policy;
}

/* @user's policy below @ceiling. */
static inline int build_below(const char *user, const char *ceiling,
			      struct policy **ret_policy,
			      struct policy_error *err)
{
	struct bundle bundle = { 0 }, over = { 0 };
	int ret;

	assert_int_equal(
		bundle_add(&bundle, BUNDLE_FILE, "p.yaml", user, strlen(user)),
		0);
	assert_int_equal(bundle_add(&over, BUNDLE_FILE, "/etc/c.yaml", ceiling,
				    strlen(ceiling)),
			 0);
	assert_int_equal(bundle_add_ceiling(&bundle, &over, "/etc/c.yaml"), 0);
	ret = policy_build(bundle.data, bundle.len, ret_policy, err);
	bundle_free(&bundle);
	bundle_free(&over);
	return ret;
}

static inline struct policy *below(const char *user, const char *ceiling)
{
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	int ret = build_below(user, ceiling, &policy, &err);

	if (ret != 0)
		print_error("%d: %s\n%s\n%s\n", ret, err.text, user, ceiling);
	assert_int_equal(ret, 0);
	return policy;
}

static inline struct ip ip_of(const char *text)
{
	struct ip ip = { 0 };

	assert_true(ip_parse(text, &ip));
	return ip;
}

#endif
