/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_case.h - two policies and what is said of them.
 */
#ifndef TESTS_POLICY_DIFF_CASE_H
#define TESTS_POLICY_DIFF_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/diff.h"
#include "tests/policy/build_helper.h"

#define NOW 1800000000 /* 2027-01-15T08:00:00Z */
#define V   "version: 1\n"

/* "+api.test:443/7" for each: sign, what, ports, doors; of what is changed, way
 * and detail instead. */
static inline void show(const struct differences *all, char *buf, size_t cap)
{
	static const char signs[] = "+-~";
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < all->count; i++) {
		const struct difference *at = &all->at[i];
		char ports[40] = "", rest[400] = "";

		if (at->ports.first)
			snprintf(ports, sizeof(ports), ":%u-%u",
				 at->ports.first, at->ports.last);
		if (at->kind == DIFF_DENY_LIST)
			snprintf(rest, sizeof(rest), " %s", at->detail);
		if (at->sign == DIFF_CHANGED)
			snprintf(rest, sizeof(rest), " %s %s",
				 diff_way_word(at->way), at->detail);
		len += (size_t)snprintf(buf + len, cap - len, "%s%c%s%s/%u%s",
					len ? "\n" : "", signs[at->sign],
					at->what, ports, at->doors, rest);
		assert_true(len < cap);
	}
}

static inline struct policy *build(const char *body)
{
	char text[4096];

	assert_true((size_t)snprintf(text, sizeof(text), V "%s", body) <
		    sizeof(text));
	return build_yaml(text);
}

/* --- whatever is decided differently is reported ------------------------- */

static const char *const ports[] = {
	"22", "80", "443", "1-1000", "79-81", "400-500, 22", "8080", "1-65535"
};

#endif
