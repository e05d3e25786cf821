/* SPDX-License-Identifier: Apache-2.0
 *
 * recheck_case.h - another policy while connections stand.
 */
#ifndef TESTS_PROXY_RECHECK_CASE_H
#define TESTS_PROXY_RECHECK_CASE_H

#include <time.h>

#include "tests/proxy/doors.h"

#define RULE(rest) "version: 1\nallow:\n  - host: ok.test\n" rest
#define OK	   RULE("    ports: [80, 443, 8443]\n")
#define OTHER	   "version: 1\nallow:\n  - host: other.test\n"

/* ok.test by another rule */
#define WILD \
	"version: 1\nallow:\n  - host: \"*.test\"\n    ports: [80, 443, 8443]\n"

static inline void recheck(struct world *w)
{
	for (size_t i = 0; i < w->listeners; i++)
		listener_recheck(w->listener[i], &w->sandbox);
}

/* All of it happened within the call. */
static inline void take_away(struct world *w, const char *yaml)
{
	const struct note *n;

	w->notes = 0;
	if (yaml)
		world_policy(w, yaml);
	recheck(w);
	assert_note(w, EVENT_FLOW_CLOSE, false, REASON_POLICY_REVOKED);
	n = note_find(w, EVENT_FLOW_CLOSE);
	assert_string_equal(n->rule_text, "ok.test");
	assert_string_equal(n->host, "ok.test");
}

static inline void assert_both_reset(struct world *w, int client, int server)
{
	assert_reset(w, client);
	if (server >= 0)
		assert_reset(w, server);
	part(w, client, server);
}

#endif
