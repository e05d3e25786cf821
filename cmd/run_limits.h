/* SPDX-License-Identifier: Apache-2.0
 *
 * run_limits.h - the resources of a command, and what is said of them.
 */
#ifndef CMD_RUN_LIMITS_H
#define CMD_RUN_LIMITS_H

#include "launch/limits.h"

struct process_spec;
struct warden;

/* Makes the groups, which @spec then joins. Dies (EXIT_SALLYPORT) where a limit
 * can't be had. */
void run_limits_make(struct limits_groups *groups,
		     const struct resources *limits, struct process_spec *spec);

/* The command has ended: a finding for each limit that it reached (without a
 * @warden, a message); the groups go. */
void run_limits_settle(struct limits_groups *groups,
		       const struct resources *limits, struct warden *warden);

#endif
