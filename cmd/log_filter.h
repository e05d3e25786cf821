/* SPDX-License-Identifier: Apache-2.0
 *
 * log_filter.h - which records `sallyport log` shows.
 */
#ifndef CMD_LOG_FILTER_H
#define CMD_LOG_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/log_record.h"

/* All that is set must fit; of what may be repeated, one. All zero: every
 * record. */
struct log_filter {
	uint32_t verdicts; /* bits: enum log_verdict */
	uint32_t kinds;	   /* bits: enum log_kind */
	uint64_t reasons;  /* bits: enum reason */
	bool has_sandbox, has_flow;
	uint64_t sandbox, flow;
	uint64_t since_ms, until_ms; /* until_ms: not included, 0: none */
	bool has_host, below;	     /* below: names below .host */
	char host[HOST_MAX + 1];
	struct ip address; /* instead of a .host */
};

/* One option's value each. NULL, or what is wrong with it, in @buf. */
#define LOG_WHY_MAX 256
const char *log_filter_verdict(struct log_filter *filter, const char *text,
			       char buf[LOG_WHY_MAX]);
const char *log_filter_kind(struct log_filter *filter, const char *text,
			    char buf[LOG_WHY_MAX]);
const char *log_filter_reason(struct log_filter *filter, const char *text,
			      char buf[LOG_WHY_MAX]);
const char *log_filter_host(struct log_filter *filter, const char *text,
			    char buf[LOG_WHY_MAX]);

/* A decimal number up to @max; false if it is none. */
bool log_number(const char *text, uint64_t max, uint64_t *ret);
/* "2027-01-01T00:00:00Z", "2027-01-01", "10m" or "10m ago" (s, m, h, d) before
 * @now_s. False if it is none. */
bool log_moment(const char *text, int64_t now_s, uint64_t *ret_ms);

bool log_filter_match(const struct log_filter *filter,
		      const struct log_record *record);

#endif
