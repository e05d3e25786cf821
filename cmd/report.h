/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - what sessions come to, for a security review: collected from
 * their logs in bounded memory, then written in one of four forms.
 *
 * Texts are as they were in the logs: any UTF-8, made by whoever was in the
 * sandbox. They are made harmless when they are written, see report_text.h.
 */
#ifndef CMD_REPORT_H
#define CMD_REPORT_H

#include <stdio.h>

#include "audit/verify.h"
#include "cmd/report_table.h"
#include "cmd/report_zone.h"
#include "policy/event.h"

#define REPORT_EVENTS_MAX   1000
#define REPORT_SESSIONS_MAX 4096

/* Findings, policy changes, rules put back, commands by `exec` and `run`. */
struct report_event {
	enum event_kind kind;
	uint64_t time_ms, sequence;
	uint32_t session; /* index */
	uint32_t pid;
	char *text, *process; /* process: "" if not known */
};

struct report_counts {
	uint64_t records, bad;
	uint64_t allowed, observed, refused, failed, cut; /* verdicts */
	uint64_t packets, up, down, findings, changes, restored;
};

struct report_session {
	char *path;
	char *name, *policy, *digest, *boundary; /* of the first record */
	struct verify_result result;
	struct report_counts counts;
	uint64_t first_ms, last_ms;
};

struct report {
	struct report_rows table[REPORT_TABLES];
	struct report_timeline timeline;
	struct report_zones zones;
	struct report_flows *flows; /* see report_line.c */
	struct report_event event[REPORT_EVENTS_MAX];
	size_t events;
	uint64_t events_left_out;
	struct report_session **session;
	size_t sessions;
	struct report_counts counts; /* of all */
	uint64_t first_ms, last_ms, made_s;
	bool no_memory; /* sticks */
};

int report_new(struct report **ret_report);
void report_free(struct report *report);
/* Reads and verifies the log at @path. @key may be NULL. 0, -errno as
 * verify_log() says, or -ENOSPC: there are too many. */
int report_add_log(struct report *report, const char *path,
		   const struct vkey *key);
/* One line of the last session added; for report_add_log(). */
void report_line(struct report *report, struct report_session *session,
		 const char *line, size_t len, uint64_t sequence);
/* Copies @text and @process; counts what finds no room. */
void report_event_add(struct report *report, const struct report_event *from,
		      const char *text, const char *process);
/* "finding", "policy", "ruleset", "command". */
const char *report_event_name(enum event_kind kind);
/* Sorts, and guesses what was meant. 0 or -ENOMEM, also of what came before. */
int report_finish(struct report *report);

#endif
