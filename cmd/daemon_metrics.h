/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_metrics.h - what GET /metrics says: all sandboxes together, in the
 * text format of Prometheus or in that of OpenMetrics.
 *
 * No label has a name of a host or of a sandbox: who counts must not learn who
 * talks to whom, and the number of series stays the same.
 */
#ifndef CMD_DAEMON_METRICS_H
#define CMD_DAEMON_METRICS_H

#include <stdbool.h>

struct daemon;
struct msg_keep_counts;

/* The text, from the .counts of all sandboxes; the caller frees it. NULL
 * without memory. */
char *daemon_metrics(struct daemon *daemon, bool openmetrics);

/* A keeper is gone, with its sandbox or without: these were its .counts, which
 * the caller now forgets (a keeper that takes its place begins at 0). Counters
 * go on from there: they never go backwards while the daemon lives. */
void daemon_metrics_departed(const struct msg_keep_counts *counts);

/* Is OpenMetrics what an Accept field (NULL: there is none) asks for, rather
 * than the other? RFC 9110 section 12.5.1. */
bool daemon_metrics_accepts(const char *accept);

/* The Content-Type of either. */
const char *daemon_metrics_type(bool openmetrics);

#endif
