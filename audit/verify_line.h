/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_line.h - what verification needs of one line of a log.
 *
 * Strict: only what record_format() can have written is a record. No white
 * space between tokens, each character in its one spelling, no key twice.
 */
#ifndef AUDIT_VERIFY_LINE_H
#define AUDIT_VERIFY_LINE_H

#include "audit/text.h"
#include "policy/event.h"

/* Texts point into the line. They are as written there: one that contains a
 * backslash is none that we compare with. */
struct verify_line {
	uint64_t sequence, time_ms;
	uint64_t disposition;		    /* 0: it is about no verdict */
	struct text uid, session;	    /* metadata.uid, .correlation_uid */
	struct text product, event, reason; /* .at of the last may be NULL */
	struct text prev, ruleset, policy;  /* .at is NULL if there is none */
	uint64_t earlier_records, earlier_bytes; /* unmapped.earlier */
	struct text earlier_checkpoint;
	bool has_earlier;
	enum event_kind kind;
};

/* Returns NULL; or why @line is no record, for people. */
const char *verify_line_parse(struct text line, struct verify_line *ret);

/* The parts of "SESSION/NUMBER". False if it is not that. */
bool verify_line_uid(struct text uid, struct text *ret_session,
		     uint64_t *ret_number);

#endif
