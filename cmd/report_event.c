/* SPDX-License-Identifier: Apache-2.0
 *
 * report_event.c - findings, and what was changed and begun, by time.
 *
 * A user starts as many commands as he likes; there is always room for what
 * speaks against him.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/report.h"

#define COMMANDS_MAX (REPORT_EVENTS_MAX / 2)

const char *report_event_name(enum event_kind kind)
{
	switch (kind) {
	case EVENT_FINDING:
		return "finding";
	case EVENT_POLICY:
		return "policy";
	case EVENT_EXEC:
		return "command";
	default:
		return "ruleset";
	}
}

static bool is_full(const struct report *report, enum event_kind kind)
{
	size_t commands = 0;

	if (report->events == REPORT_EVENTS_MAX)
		return true;
	if (kind != EVENT_EXEC)
		return false;
	for (size_t i = 0; i < report->events; i++)
		commands += report->event[i].kind == EVENT_EXEC;
	return commands >= COMMANDS_MAX;
}

void report_event_add(struct report *report, const struct report_event *from,
		      const char *text, const char *process)
{
	struct report_event *event = &report->event[report->events];

	if (is_full(report, from->kind)) {
		report->events_left_out++;
		return;
	}
	*event = *from;
	event->text = strndup(text, REPORT_HOST_MAX);
	event->process = strndup(process, 64);
	if (event->text && event->process) {
		report->events++;
		return;
	}
	free(event->text);
	free(event->process);
	report->no_memory = true;
}
