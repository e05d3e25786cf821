/* SPDX-License-Identifier: Apache-2.0
 *
 * log_options.h - the command line of `sallyport log`.
 */
#ifndef CMD_LOG_OPTIONS_H
#define CMD_LOG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/log_filter.h"
#include "cmd/log_row.h"

enum log_follow {
	LOG_FOLLOW_NO,
	LOG_FOLLOW_SESSION, /* until its last record */
	LOG_FOLLOW_ALWAYS,
};

struct log_options {
	struct log_filter filter;
	enum log_follow follow;
	bool json, wide, colour;
	bool tty;     /* standard output is a terminal */
	bool tailing; /* only the last .tail rows */
	uint64_t tail;
	char *const *log; /* .logs of them; none: the newest session */
	size_t logs;
};

/* Dies with a message (EXIT_SALLYPORT), or ends after --help. */
void log_options_parse(int argc, char **argv, struct log_options *ret);

/* The columns for the terminal as it is now. */
struct log_layout log_options_layout(const struct log_options *options);

#endif
