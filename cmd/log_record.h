/* SPDX-License-Identifier: Apache-2.0
 *
 * log_record.h - a line of the log as `sallyport log` shows it.
 */
#ifndef CMD_LOG_RECORD_H
#define CMD_LOG_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/hostlog.h"
#include "audit/observed.h"

/* What became of it. */
enum log_verdict {
	LOG_ALLOWED,
	LOG_REFUSED,
	LOG_FAILED,   /* allowed, but the network or its name server failed */
	LOG_OBSERVED, /* let through, and would be refused */
	LOG_CUT,      /* was let through, and ended by us */
	LOG_EVENT,    /* nobody asked for anything */
	LOG_VERDICT_COUNT
};

enum log_kind {
	LOG_KIND_DNS,
	LOG_KIND_FLOW,
	LOG_KIND_HTTP,
	LOG_KIND_PACKET,
	LOG_KIND_FINDING,
	LOG_KIND_SESSION, /* also those of the log of all sessions */
	LOG_KIND_POLICY,
	LOG_KIND_COUNT
};

/* Why a line is no record. */
enum log_fault {
	LOG_FINE,
	LOG_TOO_LONG,
	LOG_NOT_JSON,
	LOG_NOT_OURS,
	LOG_CUT_OFF,  /* the end of the log, without LF */
	LOG_CONTROLS, /* that a terminal would obey, with --json */
	LOG_FAULT_COUNT
};

struct log_record {
	struct observation seen; /* all of it or, for the kinds that
				    observed_parse() has no more of, what
				    all records have and .verdict, .door,
				    .host and .address */
	enum log_verdict verdict;
	enum log_kind kind;
	enum hostlog_event host; /* of the log of all sessions; 0: not */
	bool judged;		 /* .seen.verdict says something */
	bool through;		 /* .seen.door does */
	bool has_traffic;	 /* the three numbers do */
	uint64_t flow;		 /* 0: none */
	uint64_t up, down, duration_ms;
	/* Printable ASCII; "" if there is nothing to say. The first two
	 * without blanks. */
	char where[640], rule[640], detail[3072];
};

const char *log_verdict_word(enum log_verdict verdict);
const char *log_kind_word(enum log_kind kind);

/* One line, @len bytes, neither terminated nor trusted. @ret is filled with
 * LOG_FINE only. */
enum log_fault log_record_parse(const char *line, size_t len,
				struct log_record *ret);

#endif
