/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.h - what a session came to, for people or for programs.
 */
#ifndef CMD_SUMMARY_H
#define CMD_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

struct tally;

/* A table: hosts reached, what was refused, why and how to allow it, findings,
 * what the policy is, where the log is. With @json one line of JSON that has
 * every row. @policy and @log_path may be NULL. */
void summary_print(FILE *out, const struct tally *tally, const char *policy,
		   const char *log_path, bool json);

#endif
