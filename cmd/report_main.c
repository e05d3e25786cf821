/* SPDX-License-Identifier: Apache-2.0
 *
 * report_main.c - `sallyport report LOG...`: what sessions come to, for people
 * who were not there.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/log_dir.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/log_find.h"
#include "cmd/report.h"
#include "cmd/report_words.h"
#include "cmd/verify.h"

#define EXIT_BROKEN 1

static const char help[] =
	"usage: sallyport report [OPTION]... [LOG|DIR|SESSION]...\n"
	"\n"
	"Writes a report on sessions: whether their boundary verifiably held, what was\n"
	"reached and refused, where data went, findings, commands by `exec`, receipts.\n"
	"A log is as for `sallyport log`, or a directory with directories of sessions in\n"
	"it; without any, the newest session's.\n"
	"\n"
	"  -o, --output FILE      instead of standard output\n"
	"  --format FORMAT        html, md, json or csv; else what FILE ends in, or html\n"
	"  --key KEY              who must have signed: NAME+ID+BASE64, or a file with\n"
	"                         that; without it signing.vkey of the configuration\n"
	"                         directory, if there is one\n"
	"  --help                 this text\n"
	"\n"
	"The HTML is one file without scripts that loads nothing. Texts of the sandbox\n"
	"are escaped in each format.\n"
	"\n"
	"Exit status: 0; 1 if a log does not verify, or a boundary did not hold (the\n"
	"report is written and says so); 125 if sallyport failed.\n";

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "format", required_argument, NULL, 'f' },
	{ "key", required_argument, NULL, 'k' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const struct format {
	const char *name;
	void (*write)(const struct report *report, FILE *out);
} formats[] = {
	{ "html", report_html },
	{ "md", report_md },
	{ "json", report_json },
	{ "csv", report_csv },
};

struct options {
	const char *output;
	const struct format *format;
	struct verify_command verify; /* only whose key */
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static void parse(int argc, char **argv, struct options *ret)
{
	int code;

	*ret = (struct options){ .output = NULL };
	while ((code = getopt_long(argc, argv, "o:", long_options, NULL)) !=
	       -1) {
		if (code == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (code == 'o')
			ret->output = optarg;
		else if (code == 'f')
			ret->format = find_format(optarg);
		else if (code == 'k')
			ret->verify.key = optarg;
		else
			die(EXIT_SALLYPORT, "Try `sallyport report --help`.");
		if (code == 'f' && !ret->format)
			die(EXIT_SALLYPORT,
			    "--format is html, md, json or csv, not %s",
			    optarg);
	}
	if (!ret->format && ret->output && strrchr(ret->output, '.'))
		ret->format = find_format(strrchr(ret->output, '.') + 1);
	if (!ret->format)
		ret->format = &formats[0];
	verify_options_key(&ret->verify);
}

/* --- which logs ---------------------------------------------------------- */

static void add(struct report *report, const char *path,
		const struct options *options, bool one_of_many)
{
	struct verify_command verify = options->verify;
	int r;

	verify_options_key_of(&verify, path);
	r = report_add_log(report, path, verify.has_vkey ? &verify.vkey : NULL);

	if (r == -ENOSPC)
		die(EXIT_SALLYPORT, "more than %d sessions: say which",
		    REPORT_SESSIONS_MAX);
	if (r < 0 && (r == -ENOMEM || !one_of_many))
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(-r));
}

/* Every session in @dir; one that can't be read is in the report as that. */
static bool add_below(struct report *report, const char *dir,
		      const struct options *options)
{
	AUTO_FREE char **names = NULL;
	int count = verify_sessions(dir, "", &names);
	char path[PATH_MAX];

	if (count < 0)
		die(EXIT_SALLYPORT, "%s: %s", dir, strerror(-count));
	for (int i = 0; i < count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", dir, names[i]) <
		    (int)sizeof(path))
			add(report, path, options, true);
		free(names[i]);
	}
	return count > 0;
}

static bool is_session(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;
	int len = snprintf(path, sizeof(path), "%s/%s", dir, LOG_DIR_RECORDS);

	return len > 0 && (size_t)len < sizeof(path) && stat(path, &st) == 0;
}

static void add_argument(struct report *report, const char *what,
			 const struct options *options)
{
	char path[PATH_MAX];
	struct stat st;

	if (what && stat(what, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (is_session(what))
			add(report, what, options, false);
		else if (!add_below(report, what, options))
			die(EXIT_SALLYPORT, "%s: there is no log in it", what);
		return;
	}
	log_find(what, path);
	add(report, path, options, false);
}

/* --- the document -------------------------------------------------------- */

static void write_document(const struct report *report,
			   const struct options *options)
{
	FILE *out = options->output ? fopen(options->output, "we") : stdout;
	const char *name =
		options->output ? options->output : "standard output";

	if (!out)
		die(EXIT_SALLYPORT, "%s: %s", name, strerror(errno));
	options->format->write(report, out);
	if (fflush(out) != 0 || ferror(out) ||
	    (options->output && fclose(out) != 0))
		die(EXIT_SALLYPORT, "%s: %s", name, strerror(errno));
}

int report_main(int argc, char **argv)
{
	struct options options;
	struct report *report;
	int r, status = 0;

	log_init("sallyport", LOG_LEVEL_WARN);
	parse(argc, argv, &options);
	r = report_new(&report);
	if (r < 0)
		die(EXIT_SALLYPORT, "%s",
		    r == -ENODATA ? "there is no list of public suffixes "
				    "(package publicsuffix)"
				  : strerror(-r));
	if (optind == argc)
		add_argument(report, NULL, &options);
	for (int i = optind; i < argc; i++)
		add_argument(report, argv[i], &options);
	if (report_finish(report) < 0)
		die(EXIT_SALLYPORT, "out of memory");
	write_document(report, &options);
	for (size_t i = 0; i < report->sessions; i++)
		if (report_mark(report->session[i]) == REPORT_BROKEN)
			status = EXIT_BROKEN;
	report_free(report);
	return status;
}
