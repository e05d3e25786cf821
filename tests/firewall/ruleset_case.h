/* SPDX-License-Identifier: Apache-2.0
 *
 * ruleset_case.h - a table in a lab, and what nft shows of it.
 */
#ifndef TESTS_FIREWALL_RULESET_CASE_H
#define TESTS_FIREWALL_RULESET_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "firewall/element.h"
#include "lab.h"

static inline int setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	lab_make(lab);
	*state = lab;
	return 0;
}

static inline int teardown(void **state)
{
	lab_free(*state);
	free(*state);
	return 0;
}

static inline int verify(struct lab *lab, char *digest, char *text)
{
	text[0] = '\0';
	return ruleset_verify(lab->nft, &lab->spec, lab->link, 2, digest, text,
			      512);
}

static inline void assert_verified(struct lab *lab)
{
	char text[512];
	int r = verify(lab, NULL, text);

	if (r)
		fail_msg("%d: %s", r, text);
}

static inline bool set_has(struct lab *lab, char *set, const char *wanted)
{
	char *argv[] = { "nft", "list", "set", "inet", "sallyport", set, NULL };
	char text[4096];

	lab_output(lab->gateway.fd, argv, text, sizeof(text));
	if (strlen(wanted) == 0)
		return strstr(text, "elements") != NULL;
	return strstr(text, wanted) != NULL;
}

/* The elements of `points` and `flows`, as nft lists them. */
static inline bool has_flow(struct lab *lab, const char *wanted)
{
	return set_has(lab, "points", wanted) || set_has(lab, "flows", wanted);
}

#endif
