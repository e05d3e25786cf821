/* SPDX-License-Identifier: Apache-2.0
 *
 * door_case.h - the policy of a door, and another in its place.
 */
#ifndef TESTS_DNS_DOOR_CASE_H
#define TESTS_DNS_DOOR_CASE_H

#include "door.h"

static inline int setup(void **state)
{
	(void)state;
	return door_setup(
		"version: 1\nallow:\n"
		"  - ok.com\n  - '*.wild.com'\n"
		"  - {host: '*.txt.com', dns: {types: [TXT]}}\n"
		"  - {host: '*.mail.com', dns: {types: [MX, SRV]}}\n"
		"  - {host: llm.com, ports: [80], connect: 127.0.0.1:9}\n"
		"deny: [no.wild.com]\n");
}

static inline void replace_policy(const char *yaml)
{
	stop();
	policy_unref(fake.sandbox.policy);
	fake.sandbox.policy = policy_text(yaml);
	dns_server_recheck(server, &fake.sandbox);
	assert_int_equal(go_on(), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
