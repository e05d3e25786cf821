/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_record.h - the lines of the log of all sessions.
 */
#ifndef AUDIT_HOSTLOG_RECORD_H
#define AUDIT_HOSTLOG_RECORD_H

#include "audit/hostlog.h"
#include "audit/hostlog_state.h"

/* The line that goes on from @state: without LF, below HOSTLOG_LINE_MAX, which
 * is the size of @ret_line. Returns its length, or 0 if it does not fit. */
size_t hostlog_record(const struct hostlog_entry *entry,
		      const struct hostlog_state *state, uint64_t time_ms,
		      char *ret_line);

#endif
