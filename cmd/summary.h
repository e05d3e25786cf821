/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.h - what a session came to, for people or for programs.
 */
#ifndef CMD_SUMMARY_H
#define CMD_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/privsep.h"

struct tally;

/* Beside the tally. Any text may be NULL. */
struct summary {
	const char *policy;
	const char *log, *dir; /* audit.jsonl, and what it is in */
	const char *daemon;    /* the sandbox of a daemon that it was */
	bool nest;	       /* it could make namespaces */
	bool boundary;	       /* there was one of ours: */
	enum boundary_held held;
	bool receipt;
};

/* @tally may be NULL: nobody knows, and then nothing is claimed.
 *
 * A table: hosts reached, what was refused, why and how to allow it, findings,
 * what the policy is, whether the boundary held, where the log and the receipt
 * are. With @json one line of JSON that has every row; what is not known is
 * null.
 */
void summary_print(FILE *out, const struct tally *tally,
		   const struct summary *summary, bool json);

#endif
