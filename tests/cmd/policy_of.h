/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_of.h - the policy that a text says; to be included after cmocka.h.
 */
#ifndef TESTS_CMD_POLICY_OF_H
#define TESTS_CMD_POLICY_OF_H

#include <string.h>

#include "policy/bundle.h"
#include "policy/policy.h"

/* To be unreferenced. Fails the test if it is none. */
static inline struct policy *policy_of(const char *yaml)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error error = { .text = "" };

	assert_int_equal(
		bundle_add(&bundle, BUNDLE_FILE, "policy", yaml, strlen(yaml)),
		0);
	if (policy_build(bundle.data, bundle.len, &policy, &error) < 0)
		fail_msg("%s in:\n%s", error.text, yaml);
	bundle_free(&bundle);
	return policy;
}

#endif
