/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - `sallyport log [LOG|DIR|SESSION]...`: an audit log for people.
 *
 *	find	log_find.c: which file
 *	read	log_read.c: lines, also those that are still to come;
 *		log_parts.c: of all files of a log that was rotated
 *	record	log_record.c: a line -> what it says, log_text.c: harmless
 *	filter	log_filter.c: is it wanted?
 *	row	log_row.c: columns; log_tail.c: the last ones only
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/log_find.h"
#include "cmd/log_options.h"
#include "cmd/log_read.h"
#include "cmd/log_row.h"
#include "cmd/log_tail.h"

#define EXIT_NO_RECORDS 1 /* some lines are none */

struct fault {
	uint64_t first, count; /* line, lines */
};

struct view {
	const struct log_options *options;
	struct log_layout layout;
	struct log_tail tail;
	bool tailing; /* rows are kept back until the end */
	bool closed;  /* the session's last record was read */
	bool bad;     /* some lines of some log */
	struct fault faults[LOG_FAULT_COUNT]; /* of this file */
	char row[LOG_ROW_MAX];
	char line[OBSERVED_LINE_MAX + 1];
};

/* --- output -------------------------------------------------------------- */

/* Who has seen enough, as head(1), need not be told. */
static void check_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return;
	if (errno == EPIPE)
		_exit(0);
	die(EXIT_SALLYPORT, "cannot write: %s", strerror(errno));
}

static void put_out(struct view *view, const char *row, size_t len)
{
	if (!view->tailing)
		fwrite(row, 1, len, stdout);
	else if (log_tail_add(&view->tail, row, len) < 0)
		die(EXIT_SALLYPORT, "out of memory");
	if (ferror(stdout))
		check_output();
}

static void end_tail(struct view *view)
{
	if (!view->tailing)
		return;
	view->tailing = false;
	log_tail_flush(&view->tail, stdout);
	check_output();
	if (view->tail.short_of)
		log_warn("--tail keeps %u MiB: these are less rows than that",
			 LOG_TAIL_BYTES >> 20);
}

/* The ledger writes none of what a terminal obeys; others may have made the
 * log. C1, separators of lines and directions are told by their UTF-8. */
static bool is_harmless(const char *line, size_t len)
{
	const unsigned char *s = (const unsigned char *)line;

	for (size_t i = 0; i < len; i++) {
		unsigned next = i + 1 < len ? s[i + 1] : 0;
		unsigned last = i + 2 < len ? s[i + 2] : 0;

		if (s[i] < 0x20 || s[i] == 0x7f ||
		    (s[i] == 0xc2 && next < 0xa0) ||
		    (s[i] == 0xe2 && next == 0x80 && last >= 0xa8 &&
		     last <= 0xae) ||
		    (s[i] == 0xe2 && next == 0x81 && last >= 0xa6 &&
		     last <= 0xa9))
			return false;
	}
	return true;
}

static void put_json(struct view *view, const char *line, size_t len)
{
	memcpy(view->line, line, len);
	view->line[len] = '\n';
	put_out(view, view->line, len + 1);
}

/* --- lines --------------------------------------------------------------- */

static void on_line(void *arg, const char *line, size_t len, uint64_t number,
		    enum log_fault fault)
{
	struct view *view = arg;
	struct log_record record;

	if (fault == LOG_FINE)
		fault = log_record_parse(line, len, &record);
	if (fault == LOG_FINE && view->options->json && view->options->tty &&
	    !is_harmless(line, len))
		fault = LOG_CONTROLS;
	if (fault != LOG_FINE) {
		if (!view->faults[fault].count++)
			view->faults[fault].first = number;
		view->bad = true;
		return;
	}
	if (record.seen.kind == EVENT_SESSION_CLOSE)
		view->closed = true;
	if (!log_filter_match(&view->options->filter, &record))
		return;
	if (view->options->json)
		put_json(view, line, len);
	else
		put_out(view, view->row,
			log_row(&view->layout, &record, view->row));
}

static bool on_rest(void *arg)
{
	struct view *view = arg;

	if (view->options->follow)
		end_tail(view);
	check_output();
	view->layout = log_options_layout(view->options);
	return true;
}

static bool on_done(void *arg)
{
	const struct view *view = arg;

	return view->closed && view->options->follow != LOG_FOLLOW_ALWAYS;
}

static void report(struct view *view, const char *name)
{
	static const char *const words[LOG_FAULT_COUNT] = {
		[LOG_TOO_LONG] = "too long",
		[LOG_NOT_JSON] = "not JSON",
		[LOG_NOT_OURS] = "not as sallyport writes it",
		[LOG_CUT_OFF] = "cut off",
		[LOG_CONTROLS] = "has what a terminal would obey",
	};

	for (size_t i = 1; i < LOG_FAULT_COUNT; i++) {
		struct fault *fault = &view->faults[i];

		if (fault->count == 1)
			log_err("%s: line %llu: not a record: %s", name,
				(unsigned long long)fault->first, words[i]);
		else if (fault->count)
			log_err("%s: line %llu: not a record: %s; so are %llu "
				"lines",
				name, (unsigned long long)fault->first,
				words[i], (unsigned long long)fault->count);
		*fault = (struct fault){ .count = 0 };
	}
}

static void on_part(void *arg, const char *path)
{
	report(arg, path);
}

static int read_file(const char *path, const struct log_sink *sink)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : log_read(fd, sink);
}

static void read_one(struct view *view, const char *what)
{
	const struct log_sink sink = { .line = on_line,
				       .part = on_part,
				       .rest = on_rest,
				       .done = on_done,
				       .arg = view };
	bool all;
	char path[PATH_MAX] = "standard input";
	int r;

	if (what && strcmp(what, "-") == 0) {
		r = log_read(STDIN_FILENO, &sink);
	} else {
		all = log_find(what, path);
		r = view->options->follow ? log_follow(path, all, &sink)
		    : all		  ? log_read_parts(path, &sink)
					  : read_file(path, &sink);
	}
	/* What was read before it failed, was read. */
	if (r < 0)
		end_tail(view);
	report(view, path);
	if (r < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(-r));
}

int log_main(int argc, char **argv)
{
	struct log_options options;
	static struct view view;

	log_init("sallyport", LOG_LEVEL_WARN);
	signal(SIGPIPE, SIG_IGN);
	log_options_parse(argc, argv, &options);
	tzset();
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	view = (struct view){ .options = &options, .tailing = options.tailing };
	log_tail_init(&view.tail, options.tail);
	view.layout = log_options_layout(&options);
	if (!options.logs)
		read_one(&view, NULL);
	for (size_t i = 0; i < options.logs; i++)
		read_one(&view, options.log[i]);
	end_tail(&view);
	check_output();
	return view.bad ? EXIT_NO_RECORDS : 0;
}
