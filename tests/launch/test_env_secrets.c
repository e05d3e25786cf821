/* SPDX-License-Identifier: Apache-2.0
 *
 * test_env_secrets.c - which variables a sandbox does not inherit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/env_secrets.h"

static void test_names(void **state)
{
	static const struct {
		const char *name;
		bool secret;
	} row[] = {
		{ "ANTHROPIC_API_KEY", true },
		{ "anthropic_api_key", true },
		{ "_API_KEY", true },
		{ "API_KEY", true },
		{ "GITHUB_TOKEN", true },
		{ "TOKEN", true },
		{ "AWS_", true },
		{ "AWS_PROFILE", true },
		{ "npm_config__authtoken", true },
		{ "npm_config_//registry.test/:_auth", true },
		{ "AWS_REGION", false },
		{ "API_KEYS", false },
		{ "TOKENS", false },
		{ "MY_TOKEN_FILE", false },
		{ "AWS", false },
		{ "KEY", false },
		{ "PATH", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (env_is_secret(row[i].name, strlen(row[i].name)) !=
		    row[i].secret)
			fail_msg("%s", row[i].name);
	/* No more than its length is looked at. */
	assert_false(env_is_secret("A_TOKEN=x", 3));
	assert_true(env_is_secret("A_TOKEN=x", 7));
}

static void test_passing(void **state)
{
	char *from[] = { (char[]){ "A=1" },	  (char[]){ "B_TOKEN=2" },
			 (char[]){ "C_TOKEN=3" }, (char[]){ "D_TOKEN=" },
			 (char[]){ "E_TOKEN=5" }, NULL };
	const char *pass[] = { "B_TOKEN", "C_TOKEN=9", "A=old", "A=7", "NONE" };
	char left[64];
	char **env = env_without_secrets(from, pass, ARRAY_SIZE(pass), left,
					 sizeof(left));

	(void)state;
	assert_non_null(env);
	assert_string_equal(env[0], "B_TOKEN=2");
	assert_string_equal(env[1], "C_TOKEN=9");
	assert_string_equal(env[2], "A=7");
	assert_null(env[3]);
	assert_string_equal(left, "E_TOKEN");
	free(env);
}

static void test_many_names(void **state)
{
	char entry[64], left[32];
	char *from[200] = { 0 };
	char **env;

	(void)state;
	for (int i = 0; i < 199; i++) {
		snprintf(entry, sizeof(entry), "NUMBER_%d_TOKEN=x", i);
		from[i] = strdup(entry);
		assert_non_null(from[i]);
	}
	env = env_without_secrets(from, NULL, 0, left, sizeof(left));
	assert_non_null(env);
	assert_null(env[0]);
	assert_int_equal(strlen(left), sizeof(left) - 1);
	free(env);
	for (int i = 0; i < 199; i++)
		free(from[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_passing),
		cmocka_unit_test(test_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
