/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset_case.h - lists of names, loaded from text.
 */
#ifndef TESTS_POLICY_NAMESET_CASE_H
#define TESTS_POLICY_NAMESET_CASE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/hostname.h"
#include "policy/nameset.h"
#include "tests/policy/list_text.h"

/* A copy of the exact size, so that AddressSanitizer sees one byte too far. */
static inline int load(const char *text, size_t len, struct nameset **ret_set,
		       struct nameset_report *ret_report)
{
	AUTO_FREE char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, text, len);
	return nameset_new(copy, len, ret_set, ret_report);
}

#define L63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"

/* @want: "" for no hit, else "LINE=NAME" or "LINE<NAME". */
static inline void expect(const struct nameset *set, const char *host,
			  const char *want)
{
	struct nameset_hit hit;
	char got[HOST_MAX + 32] = "";

	if (nameset_find(set, host, &hit))
		snprintf(got, sizeof(got), "%u%c%s", nameset_line(set, &hit),
			 hit.exact ? '=' : '<', hit.name);
	if (strcmp(got, want) != 0)
		print_error("%s\n", host);
	assert_string_equal(got, want);
}

#endif
