/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_read.h - the lines of a log, oldest part first, in the memory of a few
 * lines.
 */
#ifndef AUDIT_VERIFY_READ_H
#define AUDIT_VERIFY_READ_H

#include "audit/log_dir.h"
#include "audit/text.h"
#include "policy/digest.h"

/* Opens the directory that @path is, or that it is a log file of. Returns a
 * descriptor or -errno; -EINVAL of a file that is no log. */
int verify_open_dir(const char *path);

/* Whether there is anything in the directory that only a session leaves there:
 * its log may be what is missing. */
bool verify_has_log(int dirfd);

/* Opens a regular file of the directory to read, not through a link. */
int verify_open_file(int dirfd, const char *name);
/* Why that went wrong, for people. */
const char *verify_open_why(int error);

struct verify_reader {
	/* Read these. */
	char file[LOG_DIR_NAME_MAX]; /* of the last line, or part */
	uint64_t line;		     /* in that file, from 1 */
	uint64_t bytes, total;	     /* read so far; of all parts */
	unsigned parts;		     /* with the newest */
	unsigned lost; /* the first number that is not there; 0: none */
	char digest[DIGEST_HEX]; /* of the part that ended */

	/* May be set, once it is open: called now and then. False: stop. */
	bool (*progress)(void *arg, uint64_t bytes, uint64_t total);
	void *arg;

	int dirfd, fd, newest;
	unsigned part; /* 1: the oldest; 0: none yet */
	uint64_t left; /* of the open file, as it was at the beginning */
	struct digest sha;
	char *buf;
	size_t from, to;
	bool skipping;
};

/* Where a log ends is settled here; what is added later is not read. Returns 0
 * or -errno, of the newest part. */
int verify_reader_open(struct verify_reader *reader, int dirfd);
void verify_reader_close(struct verify_reader *reader);

enum verify_read {
	VERIFY_READ_LINE,
	VERIFY_READ_LONG, /* a line too long, which was passed over */
	VERIFY_READ_TORN, /* what follows the last LF of a part */
	VERIFY_READ_PART, /* a part ended */
	VERIFY_READ_END,
};

/* Returns one of those, or -errno (.file can't be read; -ECANCELED). @ret_line
 * is good until the next call. */
int verify_read(struct verify_reader *reader, struct text *ret_line);

/* Looks at the first line of a part, from 1 on, wherever .reader is. False if
 * there is none that fits @buf. */
bool verify_read_first(const struct verify_reader *reader, unsigned part,
		       char *buf, size_t cap, char ret_file[LOG_DIR_NAME_MAX],
		       struct text *ret_line);

#endif
