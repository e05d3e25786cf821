/* SPDX-License-Identifier: Apache-2.0
 *
 * report_case.h - a session's log, and the report on it.
 */
#ifndef TESTS_CMD_REPORT_CASE_H
#define TESTS_CMD_REPORT_CASE_H

#include <jansson.h>

#include "cmd/report.h"
#include "cmd/report_text.h"
#include "cmd/report_words.h"
#include "tests/cmd/log_world.h"

struct made {
	struct report *report;
	struct report_session *session;
	uint64_t lines;
};

static inline void begin(struct made *m)
{
	struct report_session *s = calloc(1, sizeof(*s));

	m->lines = 0;
	assert_int_equal(report_new(&m->report), 0);
	assert_non_null(s);
	s->path = strdup("log");
	s->name = strdup("");
	s->policy = strdup("");
	s->digest = strdup("");
	s->boundary = strdup("");
	s->result.verdict = VERIFY_INCOMPLETE;
	m->report->session[m->report->sessions++] = s;
	m->session = s;
}

static inline void add(struct made *m, struct audit_event event)
{
	static char line[RECORD_LINE_MAX + 1];
	size_t len = format(&event, "run", line);

	report_line(m->report, m->session, line, len - 1, m->lines++);
}

static inline char *written(const struct made *m,
			    void (*write_as)(const struct report *, FILE *))
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	write_as(m->report, file);
	assert_int_equal(fclose(file), 0);
	return text;
}

static inline struct audit_event flow(enum event_kind kind, const char *host,
				      enum reason reason, uint64_t up,
				      uint64_t down)
{
	struct audit_event event = event_of(kind, reason);

	event.host = host;
	event.bytes_up = up;
	event.bytes_down = down;
	return event;
}

#endif
