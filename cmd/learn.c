/* SPDX-License-Identifier: Apache-2.0
 *
 * learn.c - `sallyport learn LOG...`: the smallest policy that would have
 * allowed what the logs say was allowed.
 *
 *	read     learn_read.c: lines of the logs -> observations
 *	table    learn_table.c: observations -> a host and its ports each
 *	judge    learn_judge.c: which of them may become rules, and why not
 *	plan     learn_plan.c: rules -> presets, wildcards, single hosts
 *	write    learn_write.c, learn_json.c: a policy, or JSON
 *	replay   learn_replay.c: does that policy do what the logs say?
 *
 * A log tells what programs did, some of which were attacked. So the rule is:
 * what was refused for any reason that no policy relaxes, and what somebody
 * denied, never becomes a rule, whatever the options.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/learn_plan.h"

#define EXIT_NOT_LEARNED 1
#define NAME_BYTES_MAX	 64 /* as policies have it */

enum option_code {
	OPT_NAME = 256,
	OPT_INCLUDE_DENIED,
	OPT_WILDCARD_THRESHOLD,
	OPT_FORCE,
	OPT_JSON,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
	{ "include-denied", no_argument, NULL, OPT_INCLUDE_DENIED },
	{ "wildcard-threshold", required_argument, NULL,
	  OPT_WILDCARD_THRESHOLD },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport learn [OPTION]... LOG...\n\n"
	"Writes the smallest policy that would have allowed what the logs say "
	"was allowed\nand reached. LOG is an audit.jsonl, the directory of a "
	"session, or - for\nstandard input.\n\n"
	"  -o FILE                 write there, not to standard output\n"
	"  --force                 FILE may exist, and is replaced\n"
	"  --name NAME             of the policy (default: learned)\n"
	"  --include-denied        rules for what was refused, too; otherwise "
	"they are\n"
	"                          comments\n"
	"  --wildcard-threshold N  so many names below a domain become "
	"*.DOMAIN\n"
	"                          (default 5; 0: never)\n"
	"  --json                  all hosts, what became of them, and the "
	"policy as JSON\n"
	"  --help                  this text\n\n"
	"Never a rule: what a deny rule names; what was refused for more than "
	"its host,\nport, method or path; names that look like a DNS tunnel; "
	"places where anybody\ncan take in data; resolvers that no rule had "
	"allowed. Comments in the policy\nlist them.\n\n"
	"Exit status: 0; 1 if no policy could be learned; 125 if sallyport "
	"failed.\n";

struct learning {
	struct learn_options options;
	const char *path; /* NULL: standard output */
	bool force, json;
};

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport learn --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

static size_t parse_threshold(const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end ||
	    value > LEARN_NAMES_MAX || value == 1)
		bad("not a number of names, from 2, or 0 for no wildcards:",
		    text);
	return value ? value : SIZE_MAX;
}

static const char *parse_name(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			bad("a control character in --name", NULL);
	if (!len || len > NAME_BYTES_MAX)
		bad("--name is 1 to 64 bytes long", NULL);
	return text;
}

static void parse(int argc, char **argv, struct learning *l)
{
	int code;

	opterr = 0;
	while ((code = getopt_long(argc, argv, ":o:", long_options, NULL)) !=
	       -1) {
		switch (code) {
		case 'o':
			l->path = optarg;
			break;
		case OPT_NAME:
			l->options.name = parse_name(optarg);
			break;
		case OPT_INCLUDE_DENIED:
			l->options.include_denied = true;
			break;
		case OPT_WILDCARD_THRESHOLD:
			l->options.wildcard_min = parse_threshold(optarg);
			break;
		case OPT_FORCE:
			l->force = true;
			break;
		case OPT_JSON:
			l->json = true;
			break;
		case OPT_HELP:
			fputs(help, stdout);
			exit(0);
		case ':':
			bad("a value is missing after", argv[optind - 1]);
		default:
			bad("no such option:", argv[optind - 1]);
		}
	}
	if (optind == argc)
		bad("a log is missing: sallyport learn LOG...", NULL);
}

static void read_log(const char *path, struct learn_table *table)
{
	AUTO_FD int fd = -1;
	char inside[PATH_MAX];
	bool all = false;
	struct stat st;
	int r;

	if (strcmp(path, "-") == 0) {
		r = learn_read(STDIN_FILENO, table);
	} else {
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
			if (snprintf(inside, sizeof(inside), "%s/audit.jsonl",
				     path) >= (int)sizeof(inside))
				die(EXIT_SALLYPORT, "%s: %s", path,
				    strerror(ENAMETOOLONG));
			path = inside;
			all = true;
		}
		if (!all)
			fd = open(path, O_RDONLY | O_CLOEXEC);
		r = all	     ? learn_read_parts(path, table)
		    : fd < 0 ? -errno
			     : learn_read(fd, table);
	}
	if (r < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(-r));
}

/* All of it or nothing appears at @path. 0 or -errno. */
static int replace(const char *path, bool force, const char *text, size_t len)
{
	char temporary[PATH_MAX];
	AUTO_FD int fd = -1;
	int r;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >=
	    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkstemp(temporary);
	if (fd < 0)
		return -errno;
	r = fchmod(fd, 0644) < 0 ? -errno : file_write(fd, text, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && force)
		r = rename(temporary, path) < 0 ? -errno : 0;
	else if (r == 0)
		r = link(temporary, path) < 0 ? -errno : 0;
	if (r < 0 || !force)
		unlink(temporary);
	return r;
}

static void put_out(const struct learning *l, const struct learn_table *table,
		    const struct learn_plan *plan, const char *yaml, size_t len)
{
	int r = l->path ? replace(l->path, l->force, yaml, len) : 0;

	if (r == -EEXIST)
		die(EXIT_SALLYPORT, "%s exists; --force replaces it", l->path);
	if (r < 0)
		die(EXIT_SALLYPORT, "%s: %s", l->path, strerror(-r));
	if (l->json)
		r = learn_write_json(stdout, table, plan, yaml);
	else if (!l->path)
		fwrite(yaml, 1, len, stdout);
	if (r < 0 || fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_SALLYPORT, "cannot write: %s",
		    strerror(r < 0 ? -r : errno));
}

static int learn(const struct learning *l, struct learn_table *table)
{
	AUTO_FREE char *yaml = NULL;
	struct learn_plan *plan = NULL;
	char error[600] = "";
	size_t len = 0;
	FILE *out;
	int r = learn_judge(table, &l->options);

	if (r == 0)
		r = learn_plan(table, &l->options, &plan);
	if (r < 0)
		die(EXIT_SALLYPORT, "%s",
		    r == -ENODATA ? "there is no list of public suffixes"
				  : strerror(-r));
	out = open_memstream(&yaml, &len);
	if (!out)
		die(EXIT_SALLYPORT, "%s", strerror(errno));
	learn_write(out, table, plan, &l->options);
	if (fclose(out) != 0)
		die(EXIT_SALLYPORT, "%s", strerror(errno));
	r = learn_replay(table, yaml, len, error, sizeof(error));
	if (r < 0)
		log_err("no policy: with what was learned, %s", error);
	else
		put_out(l, table, plan, yaml, len);
	learn_plan_free(plan);
	return r < 0 ? EXIT_NOT_LEARNED : 0;
}

int learn_main(int argc, char **argv)
{
	struct learning l = { .options = { .name = "learned",
					   .wildcard_min =
						   LEARN_WILDCARD_MIN } };
	struct learn_table *table;
	int status = EXIT_NOT_LEARNED;

	parse(argc, argv, &l);
	if (learn_table_new(&table) < 0)
		die(EXIT_SALLYPORT, "%s", strerror(ENOMEM));
	for (int i = optind; i < argc; i++)
		read_log(argv[i], table);
	if (table->bad)
		log_err("%llu lines are no records, and were passed over",
			(unsigned long long)table->bad);
	if (!table->records)
		log_err("there are no records to learn from");
	else if (table->dropped_allowed)
		log_err("no policy: the logs have more than %d names",
			LEARN_NAMES_MAX);
	else
		status = learn(&l, table);
	learn_table_free(table);
	return status;
}
