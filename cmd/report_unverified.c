/* SPDX-License-Identifier: Apache-2.0
 *
 * report_unverified.c - the lines of a log without a verdict on it: until
 * audit/verify.c is there. Says "incomplete" of every log.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>

#include "audit/log_dir.h"
#include "audit/verify.h"
#include "base/cleanup.h"
#include "cmd/log_read.h"

struct reading {
	const struct verify_options *options;
	struct verify_result *result;
};

static void on_line(void *arg, const char *line, size_t len, uint64_t number,
		    enum log_fault fault)
{
	struct reading *reading = arg;

	(void)number;
	if (fault == LOG_FINE)
		reading->options->line(reading->options->arg, line, len,
				       reading->result->records++);
}

static bool on_rest(void *arg)
{
	(void)arg;
	return true;
}

const char *verify_word(enum verify_fault fault)
{
	return fault == VERIFY_FINE ? "fine" : "fault";
}

int verify_log(const char *path, const struct verify_options *options,
	       struct verify_result *ret)
{
	struct reading reading = { options, ret };
	const struct log_sink sink = { .line = on_line,
				       .rest = on_rest,
				       .arg = &reading };
	AUTO_FD int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD int fd =
		openat(dir < 0 ? AT_FDCWD : dir,
		       dir < 0 ? path : LOG_DIR_RECORDS, O_RDONLY | O_CLOEXEC);

	*ret = (struct verify_result){ .verdict = VERIFY_INCOMPLETE };
	return fd < 0 ? -errno : log_read(fd, &sink);
}

void verify_free(struct verify_result *result)
{
	json_decref(result->receipt);
}
