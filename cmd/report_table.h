/* SPDX-License-Identifier: Apache-2.0
 *
 * report_table.h - what is counted for each host, and over time; both within
 * bounds, whatever a sandbox asks for.
 */
#ifndef CMD_REPORT_TABLE_H
#define CMD_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/report_guess.h"

struct report;

#define REPORT_ROWS_MAX 10000 /* of one table; what comes later folds */
#define REPORT_BARS	120
#define REPORT_HOST_MAX 512 /* bytes; longer ones are cut */

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
	uint64_t ech; /* connections whose inner name nobody saw */
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

/* The row of @host in @table, made if there is none. */
struct report_row *report_row(struct report *report, enum report_table table,
			      const struct report_row *key);
void report_bar_add(struct report_timeline *timeline, uint64_t time_ms,
		    const struct report_bar *bar);

#endif
