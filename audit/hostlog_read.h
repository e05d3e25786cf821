/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_read.h - is a log of all sessions what was written, and what does it
 * say? One log; hostlog_check.h follows those that were put aside.
 */
#ifndef AUDIT_HOSTLOG_READ_H
#define AUDIT_HOSTLOG_READ_H

#include "audit/hostlog.h"
#include "audit/hostlog_state.h"

/* A record; good until the next one. */
struct hostlog_line {
	enum hostlog_event event;
	const char *session;
	const char *directory, *vkey; /* NULL if there is none */
	const char *receipt;	      /* "sha256:HEX", or NULL */
};

struct hostlog_read {
	uint64_t records, bytes;
	uint64_t covered; /* records, by the last good checkpoint */
	bool torn;	  /* it ends within a line: somebody was killed */
	uint8_t sha256[MERKLE_HASH];	/* of audit.jsonl */
	struct vkey vkey;		/* that verified, NAME/host */
	struct hostlog_earlier earlier; /* as quoted in the first record, or,
					   before there is one, in `tree` */
	/* The first thing that is wrong, and in which line of what; "". */
	char problem[200];
};

/* Reads the log in @dir. @key: of NAME; NULL: the one beside the log is
 * believed. @line is called with each record that could be read. Returns 0,
 * whatever is wrong with it; -ENOENT if there is none; -ENOMEM; what reading
 * says. */
int hostlog_read(int dir, const struct vkey *key,
		 void (*line)(void *arg, const struct hostlog_line *line),
		 void *arg, struct hostlog_read *ret);

#endif
