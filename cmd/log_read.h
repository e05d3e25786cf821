/* SPDX-License-Identifier: Apache-2.0
 *
 * log_read.h - the lines of a log, through one buffer, whatever its size; of
 * all its parts; and of one that grows.
 */
#ifndef CMD_LOG_READ_H
#define CMD_LOG_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/log_record.h"

struct log_reader;

/* What is done with lines. */
struct log_sink {
	/* A line without its LF; @fault is LOG_FINE, or why it can't be a
	 * record (and @line is NULL). @number counts from 1. */
	void (*line)(void *arg, const char *line, size_t len, uint64_t number,
		     enum log_fault fault);
	/* The lines so far were of the file @path; those that come are of
	 * another, and counted from 1. Not called for the last file. */
	void (*part)(void *arg, const char *path);
	/* Everything that was there was given: a good moment to show it. True:
	 * go on. */
	bool (*rest)(void *arg);
	/* At the end of a file: nothing more is wanted from one that grows. */
	bool (*done)(void *arg);
	void *arg;
};

/* All lines of @fd. 0, also when .rest() said no; or -errno. */
int log_read(int fd, const struct log_sink *sink);

/* All lines of PATH.000001, ..., @path. 0 or -errno: -ENOENT if there is no
 * @path, also after the lines of the others. */
int log_read_parts(const char *path, const struct log_sink *sink);

/* The lines of the file @path (@all: and of the parts before it), and those
 * that are appended, also when it is rotated or another log takes its place;
 * until .done(), until .rest() says no, or until SIGINT, SIGTERM or SIGHUP. 0
 * or -errno. */
int log_follow(const char *path, bool all, const struct log_sink *sink);

#endif
