/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_text.h - a policy from YAML in a test.
 */
#ifndef TESTS_DNS_POLICY_TEXT_H
#define TESTS_DNS_POLICY_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/bundle.h"
#include "policy/policy.h"

static inline struct policy *policy_text(const char *yaml)
{
	struct bundle bundle = { .data = NULL };
	struct policy_error error;
	struct policy *policy = NULL;

	assert_int_equal(bundle_add(&bundle, BUNDLE_FILE, "test.yaml", yaml,
				    strlen(yaml)),
			 0);
	if (policy_build(bundle.data, bundle.len, &policy, &error))
		fail_msg("%s", error.text);
	bundle_free(&bundle);
	return policy;
}

/* Sets limits that YAML has no words for. The policy is the test's own. */
static inline void policy_text_limits(struct policy *policy,
				      struct limits limits)
{
	*(struct limits *)(uintptr_t)policy_limits(policy) = limits;
}

#endif
