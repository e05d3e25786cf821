/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_never_case.h - somebody who tries to have an attack allowed for good by
 * having it observed.
 */
#ifndef TESTS_CMD_LEARN_NEVER_CASE_H
#define TESTS_CMD_LEARN_NEVER_CASE_H

#include "cmd/learn_plan.h"

#include <errno.h>

#include "audit/observed.h"
#include "tests/cmd/learn_world.h"

/* By default and with --include-denied. */
static inline void assert_never(struct world *w, const char *host,
				uint16_t port, const char *why)
{
	for (int i = 0; i < 2; i++) {
		AUTO_LEARNED struct learned l =
			i ? LEARN(w, "LOG", "--include-denied")
			  : LEARN(w, "LOG");
		char line[400];

		assert_int_equal(l.status, 0);
		if (allows(&l, host, port))
			fail_msg("%s is allowed by:\n%s", host, l.yaml);
		snprintf(line, sizeof(line), "#- { host: %s,", host);
		assert_has_not(l.yaml, line);
		assert_has(l.yaml, "# Never a rule, and why:\n");
		assert_has(l.yaml, why);
		/* And the rest is learned nevertheless. */
		assert_true(allows(&l, "good.example", 443));
	}
}

#endif
