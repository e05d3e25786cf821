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
#include "cmd/report_guess.h"
#include "cmd/report_zone.h"
#include "policy/event.h"

#define REPORT_ROWS_MAX	    10000 /* of one table; what comes later folds */
#define REPORT_EVENTS_MAX   1000
#define REPORT_SESSIONS_MAX 4096
#define REPORT_BARS	    120
#define REPORT_HOST_MAX	    512 /* bytes; longer ones are cut */

enum report_table {
	REPORT_HOSTS,	/* reached, or at least allowed; one row a host */
	REPORT_REFUSED, /* one row a host and reason */
	REPORT_PACKETS, /* dropped by the kernel: address, protocol, port */
	REPORT_TABLES
};

struct report_row {
	char *host;   /* "*.ZONE": names below it, from so many on; ""; all
			 others */
	char *rule;   /* the first one, or "" */
	char *detail; /* packets: what it looked like; else "" */
	char protocol[16];
	enum reason reason;
	uint64_t observed_for; /* a bit for each reason it would be refused */
	uint16_t port;
	bool many_ports, many_rules, strange; /* no host name */
	uint64_t connections, requests, questions, observed, failed, cut;
	uint64_t packets, up, down;
	uint64_t first_ms, last_ms;
	uint32_t sessions, last_session;
	struct report_guess guess; /* report_finish() */
};

struct report_rows {
	struct report_row *at; /* report_finish() sorts them */
	uint32_t *index;
	size_t count;
	struct report_row others; /* .host is "" */
};

struct report_bar {
	uint64_t allowed, observed, refused;
};

/* Bars of equal width, the first at .start; few enough to be drawn. */
struct report_timeline {
	uint64_t width_ms, start; /* in widths since the epoch */
	size_t count;
	struct report_bar bar[REPORT_BARS];
};

/* Findings, policy changes, rules put back. */
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
/* Sorts, and guesses what was meant. 0 or -ENOMEM, also of what came before. */
int report_finish(struct report *report);

/* The row of @host in @table, made if there is none. */
struct report_row *report_row(struct report *report, enum report_table table,
			      const struct report_row *key);
void report_bar_add(struct report_timeline *timeline, uint64_t time_ms,
		    const struct report_bar *bar);

/* One line on what the boundary was and whether it can be proved that it held.
 * Returns @buf. */
const char *report_sentence(const struct report_session *session, char *buf,
			    size_t cap);
enum report_mark { REPORT_HELD, REPORT_NOT_PROVED, REPORT_BROKEN };
enum report_mark report_mark(const struct report_session *session);
const char *report_mark_word(enum report_mark mark);

void report_html(const struct report *report, FILE *out);
void report_md(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);
void report_csv(const struct report *report, FILE *out);

#endif
