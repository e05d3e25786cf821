/* SPDX-License-Identifier: Apache-2.0
 *
 * run_limits.c - see run_limits.h.
 */
#include "cmd/run_limits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cmd/command.h"
#include "cmd/warden.h"
#include "launch/process.h"

/* Of a session that dies before its command began. */
static struct limits_groups *made;

static void remove_made(void)
{
	if (made)
		limits_groups_remove(made);
	made = NULL;
}

void run_limits_make(struct limits_groups *groups,
		     const struct resources *limits, struct process_spec *spec)
{
	char why[200], how[160];

	made = groups;
	if (limits_groups_make(limits, groups, why, sizeof(why))) {
		remove_made();
		die(EXIT_SALLYPORT, "%s", why);
	}
	atexit(remove_made);
	spec->limits = limits;
	spec->groups = groups;
	limits_describe(limits, groups, how, sizeof(how));
	if (*how)
		log_info("limits: %s", how);
}

void run_limits_settle(struct limits_groups *groups,
		       const struct resources *limits, struct warden *warden)
{
	char said[LIMITS_GROUPS][LIMITS_SAID];
	size_t n = limits_reached(limits, groups, said, LIMITS_GROUPS);

	for (size_t i = 0; i < n; i++)
		if (warden)
			warden_finding(warden, said[i]);
		else
			log_err("%s", said[i]);
	remove_made();
}
