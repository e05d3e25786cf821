/* SPDX-License-Identifier: Apache-2.0
 *
 * words_case.h - a row is a policy, a question and all that was done.
 */
#ifndef TESTS_DNS_WORDS_CASE_H
#define TESTS_DNS_WORDS_CASE_H

#include "filter_case.h"

struct row {
	const char *policy, *name;
	uint16_t type;
	const char *reply, *log;
};

static inline void check(const struct row *row)
{
	char got[2000];

	assert_int_equal(case_setup(row->policy), 0);
	ask(row->name, row->type, NULL);
	describe_reply(got, sizeof(got));
	if (strcmp(got, row->reply) != 0 || strcmp(fake.log, row->log) != 0)
		fail_msg("%s type %u:\n%s\n%s", row->name, row->type, got,
			 fake.log);
	assert_int_equal(replies, 1);
	teardown(NULL);
}

#define CHECK_ALL(rows)                                       \
	do {                                                  \
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) \
			check(&(rows)[i]);                    \
	} while (0)

#endif
