/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - `sallyport verify`: one log, or all sessions of a directory.
 */
#include "cmd/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/print.h"

#define EARLIER_PREFIX "earlier-"

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

struct watch {
	struct verify_progress progress;
};

static bool on_progress(void *arg, uint64_t bytes, uint64_t total)
{
	struct watch *watch = arg;

	return !stopped && verify_progress_on(&watch->progress, bytes, total);
}

static void stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags =
					    (int)(SA_RESTART | SA_RESETHAND) };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int exit_of(enum verify_verdict verdict)
{
	return verdict == VERIFY_HOLDS	  ? VERIFY_EXIT_HOLDS
	       : verdict == VERIFY_BROKEN ? VERIFY_EXIT_BROKEN
					  : VERIFY_EXIT_INCOMPLETE;
}

/* 1 is worse than 2. */
static int worse(int a, int b)
{
	if (a == EXIT_SALLYPORT || b == EXIT_SALLYPORT)
		return EXIT_SALLYPORT;
	if (a == VERIFY_EXIT_BROKEN || b == VERIFY_EXIT_BROKEN)
		return VERIFY_EXIT_BROKEN;
	return a > b ? a : b;
}

/* The log at @path; dies by the signal that stopped it. */
static int verify_one(const struct verify_command *command, const char *path,
		      struct verify_result *ret)
{
	struct watch watch;
	struct verify_options options = {
		.key = command->has_vkey ? &command->vkey : NULL,
		.receipt = command->receipt,
		.checkpoint = command->checkpoint,
		.progress = on_progress,
		.arg = &watch,
	};
	int r;

	verify_progress_begin(&watch.progress, command->quiet);
	r = verify_log(path, &options, ret);
	verify_progress_end(&watch.progress);
	if (r == -ECANCELED && stopped)
		raise(stopped); /* its handler is the default again */
	if (!r)
		verify_check_name(path, ret);
	return r;
}

static const char *why_not(int r)
{
	switch (-r) {
	case EINVAL:
		return "it is no log, and no directory of one";
	case ENOENT:
		return "there is no log";
	default:
		return strerror(-r);
	}
}

static void write_proof(const struct verify_command *command, const char *path,
			const struct verify_result *result)
{
	AUTO_FREE char *file = NULL;
	AUTO_FILE FILE *out = NULL;
	size_t len;
	int fd, r;

	if (command->proof >= result->covered)
		die(result->verdict == VERIFY_BROKEN ? VERIFY_EXIT_BROKEN
						     : VERIFY_EXIT_INCOMPLETE,
		    "record %llu can't be proved: only %llu records are "
		    "signed and good",
		    (unsigned long long)command->proof,
		    (unsigned long long)result->covered);
	r = verify_prove(path, result, command->proof, &file, &len);
	if (r < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, why_not(r));
	if (!command->out) {
		fwrite(file, 1, len, stdout);
		return;
	}
	fd = open(command->out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out || fwrite(file, 1, len, out) != len || fflush(out))
		die(EXIT_SALLYPORT, "%s: %s", command->out, strerror(errno));
}

/* Up to there the log has to be right, wherever it is not. */
static int prove(const struct verify_command *command, const char *path)
{
	struct verify_result result;
	int r = verify_one(command, path, &result);

	if (r < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, why_not(r));
	write_proof(command, path, &result);
	if (!result.known_key && !command->quiet)
		log_warn("the key came with the log: whoever gets the proof "
			 "has to know %s",
			 result.key.name);
	verify_free(&result);
	return print_end(0);
}

static void print_json_head(enum verify_verdict verdict, const char *list)
{
	printf("{\"verdict\":\"%s\",\"%s\":[", verify_verdict_word(verdict),
	       list);
}

struct row {
	char *name;
	int r;
	struct verify_result result;
};

static void print_json_rows(const struct row *rows, size_t count)
{
	static char buf[VERIFY_JSON_MAX];

	for (size_t i = 0; i < count; i++) {
		struct json j = json_of(buf, sizeof(buf));

		if (rows[i].r < 0) {
			json_open(&j, NULL, '{');
			json_text(&j, "log", rows[i].name);
			json_text(&j, "error", why_not(rows[i].r));
			json_close(&j, '}');
		} else {
			verify_put_json(&j, NULL, rows[i].name,
					&rows[i].result);
		}
		printf("%s%.*s", i ? "," : "", (int)j.len, buf);
	}
}

static void print_row(const struct verify_command *command,
		      const struct row *row)
{
	if (row->r < 0)
		log_err("%s: %s", row->name, why_not(row->r));
	else if (!command->quiet && !command->json)
		verify_print_row(row->name, &row->result);
}

/* The sessions @names below @dir; returns the worst exit status and takes the
 * names. */
static int verify_rows(const struct verify_command *command, const char *dir,
		       char **names, size_t count, struct row *rows)
{
	int status = 0;

	for (size_t i = 0; i < count; i++) {
		char path[PATH_MAX];
		int len = snprintf(path, sizeof(path), "%s/%s", dir, names[i]);

		rows[i].name = names[i];
		rows[i].r = len < PATH_MAX
				    ? verify_one(command, path, &rows[i].result)
				    : -ENAMETOOLONG;
		print_row(command, &rows[i]);
		status = worse(status,
			       rows[i].r < 0 ? EXIT_SALLYPORT
					     : exit_of(rows[i].result.verdict));
	}
	return status;
}

static void free_rows(struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!rows[i].r)
			verify_free(&rows[i].result);
		free(rows[i].name);
	}
	free(rows);
}

static enum verify_verdict verdict_of(int status)
{
	return status == 0			  ? VERIFY_HOLDS
	       : status == VERIFY_EXIT_INCOMPLETE ? VERIFY_INCOMPLETE
						  : VERIFY_BROKEN;
}

/* Sessions below @dir: all, or what earlier ones left in a session's. */
static int verify_below(const struct verify_command *command, const char *dir,
			const char *prefix, struct row **ret_rows,
			size_t *ret_count)
{
	AUTO_FREE char **names = NULL;
	int count = verify_sessions(dir, prefix, &names);
	int status;

	if (count < 0)
		die(EXIT_SALLYPORT, "%s: %s", dir, strerror(-count));
	*ret_count = (size_t)count;
	*ret_rows = calloc((size_t)count + 1, sizeof(**ret_rows));
	if (!*ret_rows)
		die(EXIT_SALLYPORT, "%s", strerror(ENOMEM));
	status = verify_rows(command, dir, names, (size_t)count, *ret_rows);
	return status;
}

static void print_json_host(const struct verify_host *host)
{
	size_t cap = VERIFY_JSON_MAX + host->losts * 8192;
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);

	if (host->r == -ENOENT)
		return;
	json_open(&j, NULL, '{');
	verify_host_json(&j, host);
	json_close(&j, '}');
	if (!buf || j.full)
		die(EXIT_SALLYPORT, "%s", strerror(ENOMEM));
	printf(",%.*s", (int)j.len - 2, buf + 1);
}

/* That there is none matters to who asked for it. */
static int host_status(const struct verify_command *command,
		       const struct verify_host *host)
{
	if (host->r == -ENOENT)
		return command->sessions ? VERIFY_EXIT_INCOMPLETE : 0;
	if (host->r < 0)
		return EXIT_SALLYPORT;
	return worse(exit_of(host->verdict),
		     host->losts ? VERIFY_EXIT_BROKEN : 0);
}

static int verify_many(const struct verify_command *command, const char *dir)
{
	struct verify_host host;
	struct row *rows;
	size_t count;
	int status;

	if (command->receipt || command->checkpoint || command->prove)
		die(EXIT_SALLYPORT,
		    "%s: a directory of sessions; a receipt, checkpoint or "
		    "proof is of one of them",
		    dir);
	status = verify_below(command, dir, "", &rows, &count);
	verify_host(command, dir, &host);
	if (!count && host.r == -ENOENT)
		die(EXIT_SALLYPORT, "%s: there is no log", dir);
	status = worse(status, host_status(command, &host));
	if (command->json && !command->quiet) {
		print_json_head(verdict_of(status), "logs");
		print_json_rows(rows, count);
		putchar(']');
		print_json_host(&host);
		puts("}");
	} else if (!command->quiet) {
		verify_host_print(&host);
	}
	verify_host_free(&host);
	free_rows(rows, count);
	return print_end(status);
}

static void print_json_one(const char *path, const struct verify_result *result,
			   const struct row *earlier, size_t count, bool fits)
{
	static char buf[VERIFY_JSON_MAX];
	struct json j = json_of(buf, sizeof(buf));

	verify_put_json(&j, NULL, path, result);
	if (j.full)
		die(EXIT_SALLYPORT, "%s: the receipt is too long", path);
	/* Its last bracket has to wait. */
	printf("%.*s", (int)j.len - 1, buf);
	if (count || result->quotes_earlier) {
		printf(",\"earlier_fits\":%s,\"earlier\":[",
		       fits && count ? "true" : "false");
		print_json_rows(earlier, count);
		putchar(']');
	}
	puts("}");
}

/* Each session says what was in its place before it. Returns the exit status:
 * what is there must be that; that nothing is there is said. */
static int check_earlier(const struct verify_command *command,
			 const struct verify_result *result,
			 const struct row *rows, size_t count)
{
	bool tell = !command->quiet && !command->json;

	if (!count && result->quotes_earlier && tell)
		print_text(stdout, TONE_WARNING,
			   "  but a log of %llu records was in this place "
			   "before, and is not here\n",
			   (unsigned long long)result->earlier_records);
	for (size_t i = count; i--; result = &rows[i].result) {
		if (rows[i].r < 0)
			return EXIT_SALLYPORT;
		if (verify_fits(result, &rows[i].result))
			continue;
		if (tell)
			print_text(stdout, TONE_BAD,
				   "%s is not the log that was here before "
				   "session %s\n",
				   rows[i].name, result->session);
		return VERIFY_EXIT_BROKEN;
	}
	return 0;
}

static int verify_single(const struct verify_command *command, const char *path)
{
	struct verify_result result;
	struct row *rows;
	size_t count;
	int r = verify_one(command, path, &result), status, order;
	struct verify_command plain = *command;
	const char *host;

	if (r < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, why_not(r));
	host = verify_host_one(path, &result);
	if (!command->quiet && !command->json)
		verify_print(command, &result, host);
	/* Those have receipts of their own. */
	plain.receipt = plain.checkpoint = NULL;
	status = worse(
		exit_of(result.verdict),
		verify_below(&plain, path, EARLIER_PREFIX, &rows, &count));
	order = check_earlier(command, &result, rows, count);
	status = worse(status, order);
	if (command->json && !command->quiet)
		print_json_one(path, &result, rows, count, !order);
	free_rows(rows, count);
	verify_free(&result);
	return print_end(status);
}

int verify_main(int argc, char **argv)
{
	struct verify_command command;
	char dir[PATH_MAX];

	log_init("sallyport", LOG_LEVEL_WARN);
	verify_options_parse(argc, argv, &command);
	verify_options_key(&command);
	if (command.record)
		return verify_record(&command);
	if (!command.sessions && verify_is_statement(command.log))
		return verify_statement(&command);
	if (command.sessions)
		verify_find_home(&command, dir);
	else
		verify_find_log(command.log, dir);
	verify_options_key_of(&command, dir);
	stop_on_signals();
	if (!verify_is_session(dir))
		return verify_many(&command, dir);
	if (command.prove)
		return prove(&command, dir);
	return verify_single(&command, dir);
}
