/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_policy.h - the policy that questions are judged by.
 */
#ifndef TESTS_DNS_FILTER_POLICY_H
#define TESTS_DNS_FILTER_POLICY_H

#include "filter_case.h"

static const char policy_yaml[] = "version: 1\n"
				  "allow:\n"
				  "  - ok.com\n"
				  "  - '*.wild.com'\n"
				  "  - a.deep.below.org\n"
				  "  - host: lab.com\n"
				  "    addresses: [10.0.0.0/8]\n"
				  "  - secret.onion\n"
				  "deny:\n"
				  "  - no.wild.com\n";

static inline int setup(void **state)
{
	(void)state;
	return case_setup(policy_yaml);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
