/* SPDX-License-Identifier: Apache-2.0
 *
 * What several reports of attacks come to, and what is no report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/attacks.h"

static struct attacks report(uint32_t user, const char *name, const char *word)
{
	struct attacks r = {
		.duration_ms = 10, .reports = 1, .users = 1, .user = { user }
	};

	assert_true(attacks_take(&r, name, word));
	return r;
}

static enum attack_result of(const struct attacks *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->at[i].name, name) == 0)
			return (enum attack_result)all->at[i].result;
	fail_msg("no %s", name);
	return ATTACK_SKIPPED;
}

/* Whoever comes last: what got out once did, and nobody hides it. */
static void test_worst_counts(void **state)
{
	static const char *const words[] = { "skipped", "held", "got_out" };

	(void)state;
	for (size_t a = 0; a < 3; a++)
		for (size_t b = 0; b < 3; b++) {
			struct attacks all = report(0, "tcp", words[a]);
			struct attacks more = report(0, "tcp", words[b]);

			attacks_add(&all, &more);
			assert_int_equal(all.n, 1);
			assert_string_equal(attack_word(of(&all, "tcp")),
					    words[a > b ? a : b]);
		}
}

static void test_who_and_how_often(void **state)
{
	struct attacks all = { 0 }, more = report(1000, "tcp", "held");

	(void)state;
	attacks_add(&all, &more);
	more = report(0, "udp", "held");
	attacks_add(&all, &more);
	attacks_add(&all, &more);
	assert_int_equal(all.n, 2);
	assert_int_equal(all.reports, 3);
	assert_int_equal(all.duration_ms, 30);
	assert_int_equal(all.users, 2);
	assert_int_equal(all.user[0], 1000);
	assert_int_equal(all.user[1], 0);
	/* More than there is room for. */
	for (uint32_t i = 0; i < 2 * ATTACKS_USERS_MAX; i++) {
		more = report(i, "udp", "held");
		attacks_add(&all, &more);
	}
	assert_int_equal(all.users, ATTACKS_USERS_MAX);
	more.duration_ms = more.reports = UINT32_MAX;
	attacks_add(&all, &more);
	assert_int_equal(all.duration_ms, UINT32_MAX);
	assert_int_equal(all.reports, UINT32_MAX);
	assert_true(attacks_ok(&all));
}

static void test_no_report(void **state)
{
	static const char *const names[] = {
		"", "Tcp", "a b", "a\"", "a/b", "abcdefghijklmnopqrstuvwx"
	};
	struct attacks all = { 0 };
	char name[ATTACK_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_false(attacks_take(&all, names[i], "held"));
	assert_false(attacks_take(&all, "tcp", "fine"));
	assert_false(attacks_take(&all, "tcp", NULL));
	assert_int_equal(all.n, 0);
	for (unsigned i = 0; i < ATTACKS_MAX; i++) {
		snprintf(name, sizeof(name), "a-%u", i);
		assert_true(attacks_take(&all, name, "held"));
		assert_false(attacks_take(&all, name, "held"));
	}
	assert_false(attacks_take(&all, "one-more", "held"));
	assert_true(attacks_ok(&all));
	all.at[3].result = ATTACK_RESULTS;
	assert_false(attacks_ok(&all));
	all.at[3].result = ATTACK_HELD;
	memset(all.at[4].name, 'a', ATTACK_NAME_MAX);
	assert_false(attacks_ok(&all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worst_counts),
		cmocka_unit_test(test_who_and_how_often),
		cmocka_unit_test(test_no_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
