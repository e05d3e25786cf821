/* SPDX-License-Identifier: Apache-2.0
 *
 * report_view_impl.h - for the files that make tables.
 */
#ifndef CMD_REPORT_VIEW_IMPL_H
#define CMD_REPORT_VIEW_IMPL_H

#include "cmd/report_view.h"

#define CELL(name)                                              \
	static void name(const struct report *report, size_t i, \
			 char buf[CELL_MAX])

#define COLUMNS(of) .column = (of), .columns = ARRAY_SIZE(of)

void cell_put(char buf[CELL_MAX], const char *text);

extern const struct report_view view_events, view_hosts, view_refused,
	view_tunnels, view_packets, view_counters, view_observed, view_sessions;

#endif
