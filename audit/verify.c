/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - is a log what was written, all of it, and by whom?
 *
 * The order of opening matters, as a session may go on meanwhile: its receipt
 * comes after its checkpoints, and those after the records that they are about.
 * Whatever was there when we looked is complete if we look the other way round.
 */
#include "audit/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "audit/verify_state.h"
#include "base/cleanup.h"
#include "base/text.h"

const char *verify_word(enum verify_fault fault)
{
	static const char *const words[VERIFY_FAULT_COUNT] = {
		[VERIFY_FINE] = "fine",
		[VERIFY_UNREADABLE] = "unreadable",
		[VERIFY_NOT_A_RECORD] = "not_a_record",
		[VERIFY_TOO_LONG] = "too_long",
		[VERIFY_TORN] = "torn",
		[VERIFY_EDITED] = "edited",
		[VERIFY_MISSING] = "missing",
		[VERIFY_REPEATED] = "repeated",
		[VERIFY_ORDER] = "order",
		[VERIFY_OTHER_SESSION] = "other_session",
		[VERIFY_TRUNCATED] = "truncated",
		[VERIFY_AFTER_THE_END] = "after_the_end",
		[VERIFY_ROOT] = "root",
		[VERIFY_CHECKPOINT] = "checkpoint",
		[VERIFY_FORKED] = "forked",
		[VERIFY_SIGNATURE] = "signature",
		[VERIFY_WRONG_KEY] = "wrong_key",
		[VERIFY_RECEIPT] = "receipt",
	};

	return fault < VERIFY_FAULT_COUNT ? words[fault] : "unknown";
}

static void fill_problem(struct verify_problem *ret, enum verify_fault fault,
			 const char *file, uint64_t line, const char *format,
			 va_list ap)
{
	*ret = (struct verify_problem){ .fault = fault, .line = line };
	snprintf(ret->file, sizeof(ret->file), "%.60s", file);
	text_clean(ret->file);
	vsnprintf(ret->text, sizeof(ret->text), format, ap);
	text_clean(ret->text);
}

void verify_say_in(struct verify_problem *ret, enum verify_fault fault,
		   const char *file, uint64_t line, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fill_problem(ret, fault, file, line, format, ap);
	va_end(ap);
}

void verify_say(struct verify *v, enum verify_fault fault, const char *file,
		uint64_t line, const char *format, ...)
{
	struct verify_result *result = v->result;
	size_t n = result->problems;
	va_list ap;

	if (n && n <= VERIFY_PROBLEMS_MAX &&
	    result->problem[n - 1].line == line &&
	    strcmp(result->problem[n - 1].file, file) == 0)
		return;
	result->problems++;
	if (n >= VERIFY_PROBLEMS_MAX)
		return;
	va_start(ap, format);
	fill_problem(&result->problem[n], fault, file, line, format, ap);
	va_end(ap);
}

/* What follows the last LF. */
static void take_torn(struct verify *v)
{
	/* Within the newest part that is how a process ends that is killed. */
	if (v->reader.part == v->reader.parts && !v->receipt.present &&
	    !v->result->closed) {
		v->result->torn = true;
		return;
	}
	verify_say(v, VERIFY_TORN, v->reader.file, v->reader.line,
		   "the file ends within this line");
	v->tree_bad = true;
}

static void say_unreadable(struct verify *v, int r)
{
	if (r == -ENOENT && v->reader.part < v->reader.parts)
		verify_say(v, VERIFY_MISSING, v->reader.file, 0,
			   "this part of the log is missing");
	else
		verify_say(v, VERIFY_UNREADABLE, v->reader.file, 0,
			   "the records: %s", verify_open_why(r));
	v->tree_bad = true;
}

static int read_records(struct verify *v)
{
	struct text line;
	int r;

	while ((r = verify_read(&v->reader, &line)) != VERIFY_READ_END) {
		if (r == -ECANCELED || r == -ENOMEM)
			return r;
		if (r < 0) {
			say_unreadable(v, r);
			return 1;
		}
		if (r == VERIFY_READ_LINE)
			verify_take_line(v, line);
		else if (r == VERIFY_READ_LONG)
			verify_take_long(v);
		else if (r == VERIFY_READ_TORN)
			take_torn(v);
		else
			verify_end_part(v);
	}
	return 0;
}

static void judge(struct verify *v)
{
	struct verify_result *result = v->result;

	result->bytes = v->reader.bytes;
	result->parts = v->reader.parts;
	if (result->problems)
		result->verdict = VERIFY_BROKEN;
	else if (result->known_key && result->opened && result->closed &&
		 result->has_receipt && result->covered == result->records)
		result->verdict = VERIFY_HOLDS;
	else
		result->verdict = VERIFY_INCOMPLETE;
}

static int verify_all(struct verify *v)
{
	int r;

	verify_find_key(v);
	verify_begin_receipt(v);
	snprintf(v->uncovered.file, sizeof(v->uncovered.file), "%s",
		 LOG_DIR_RECORDS);
	v->wants_uncovered = true;
	verify_begin_notes(v);
	r = read_records(v);
	if (r < 0)
		return r;
	/* What comes behind a part that can't be read is anybody's guess. */
	if (!r) {
		verify_end_lines(v);
		if (!v->result->records && !v->result->torn)
			verify_say(v, VERIFY_TRUNCATED, v->reader.file, 0,
				   "there is no record in it");
		verify_end_notes(v);
	}
	verify_end_receipt(v);
	judge(v);
	return 0;
}

static int open_all(struct verify *v)
{
	int r = verify_open_receipt(v);

	if (!r && v->options->checkpoint)
		r = verify_open_kept(v, v->options->checkpoint);
	if (!r)
		r = verify_open_notes(v);
	if (!r)
		r = verify_reader_open(&v->reader, v->dirfd);
	return r;
}

/* A log that is not there, or is none, is not a broken log; a link or the like
 * in its place is. */
static int no_records(struct verify *v, int r)
{
	if (r == -ENOENT && !verify_has_log(v->dirfd))
		return r;
	if (r == -ENOMEM || r == -EACCES)
		return r;
	v->reader.parts = v->reader.part = 1;
	verify_find_key(v);
	say_unreadable(v, r);
	judge(v);
	return 0;
}

int verify_log(const char *path, const struct verify_options *options,
	       struct verify_result *ret)
{
	AUTO_FD int dirfd = verify_open_dir(path);
	struct verify v = { .options = options,
			    .result = ret,
			    .dirfd = dirfd,
			    .reader = { .fd = -1, .newest = -1 } };
	int r;

	memset(ret, 0, sizeof(*ret));
	if (dirfd < 0)
		return dirfd;
	r = open_all(&v);
	v.reader.progress = options->progress;
	v.reader.arg = options->arg;
	if (!r)
		r = verify_all(&v);
	else if (v.reader.dirfd == dirfd && !v.reader.buf)
		r = no_records(&v, r);
	verify_reader_close(&v.reader);
	verify_close_notes(&v);
	verify_close_receipt(&v);
	if (r < 0)
		verify_free(ret);
	return r;
}

void verify_free(struct verify_result *result)
{
	json_decref(result->receipt);
	result->receipt = NULL;
}
