/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - `sallyport check POLICY...`: is it valid, is it wise, and what does
 * it come to?
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/print.h"
#include "cmd/source.h"
#include "policy/cell.h"
#include "policy/explain.h"
#include "policy/explain_rule.h"
#include "policy/lint.h"

enum { CHECK_OK, CHECK_ERRORS, CHECK_WARNINGS };

static const char help[] =
	"usage: sallyport check [OPTION]... POLICY...\n\n"
	"Reads each POLICY (a file, \"-\" for standard input, or preset:NAME), "
	"says what is\nwrong with it or unwise about it, and what it comes "
	"to.\n\n"
	"  --strict          warnings fail too\n"
	"  --ceiling FILE    below this policy: limits are those of both\n"
	"  --json            one JSON object a line for each POLICY\n"
	"  --help            this text\n\n"
	"A rule whose note has \"lint-ok: CODE\" in it (or several, with "
	"commas) is not\nwarned about with that CODE. The codes:\n\n";

static const char help_end[] =
	"\nExit status: 0 if all are valid; 1 if one is not; 2 with --strict "
	"if there are\nwarnings; 125 if sallyport failed or was asked "
	"wrongly.\n";

static const struct option table[] = {
	{ "strict", no_argument, NULL, 's' },
	{ "ceiling", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct check {
	const char *file;
	struct bundle bundle;
	struct policy *policy;
	struct findings found;
	size_t warnings;
};

/* --- for people ---------------------------------------------------------- */

static void print_finding(const struct check *check, const struct finding *f)
{
	bool warns = f->info->level == LINT_WARNING;
	const char *place = f->rule ? rule_origin(f->rule) : check->file;

	print_text(stdout, TONE_PLAIN, "%s: ", place);
	print_text(stdout, warns ? TONE_WARNING : TONE_FAINT,
		   "%s: ", warns ? "warning" : "note");
	print_text(stdout, TONE_PLAIN, "%s", f->message);
	print_text(stdout, TONE_FAINT, " [%s]\n", f->info->word);
	print_text(stdout, TONE_FAINT, "    %s\n", f->info->hint);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void print_reach(const struct check *check,
			const struct policy_counts *n)
{
	size_t denied = n->denied_names + n->denied_ranges;

	print_text(stdout, TONE_PLAIN, "%s: allows %zu name%s, %zu wildcard%s",
		   check->file, n->names, plural(n->names), n->wildcards,
		   plural(n->wildcards));
	if (n->ranges)
		printf(", %zu address range%s", n->ranges, plural(n->ranges));
	if (denied)
		printf("; denies %zu", denied);
	if (n->denied_lists)
		printf("%s %zu list%s", denied ? " and" : "; denies",
		       n->denied_lists, plural(n->denied_lists));
	printf("; any other name is %s%s\n",
	       policy_is_public(check->policy) ? "allowed on 443" : "refused",
	       policy_observes(check->policy)
		       ? " - in words only: it observes, and lets all pass"
		       : "");
}

static void print_limits(const struct check *check,
			 const struct policy_counts *n)
{
	static const char *const word[] = {
		[UP] = "upload", [DOWN] = "download"
	};
	const struct limits *limits = policy_limits(check->policy);
	char size[40];

	print_text(stdout, TONE_PLAIN,
		   "%s: a session: %u connections, %u names (%u a wildcard)",
		   check->file, limits->connections, limits->names,
		   limits->names_per_wildcard);
	for (int i = UP; i <= DOWN; i++)
		printf(", %s %s", word[i],
		       limits->budget[i] ? size_format(limits->budget[i], size,
						       sizeof(size))
					 : "without limit");
	if (n->budgeted)
		printf("; %zu rule%s with a budget", n->budgeted,
		       plural(n->budgeted));
	if (n->expiring)
		printf("; %zu that expire%s", n->expiring,
		       n->expiring == 1 ? "s" : "");
	putchar('\n');
}

static void print_log(const struct check *check)
{
	const struct log_settings *log = policy_log(check->policy);
	char size[40];

	print_text(stdout, TONE_PLAIN,
		   "%s: its log: signed %s, %s, a new file every %s",
		   check->file,
		   log->sign_every ? "after every record" : "in batches",
		   log->durable ? "every record on the disk first"
				: "on the disk in batches",
		   size_format(log->rotate_bytes, size, sizeof(size)));
	if (log->rotate_s)
		printf(" or %u seconds", log->rotate_s);
	putchar('\n');
}

static void print_cell(const struct check *check)
{
	static const char *const of[] = { "its command", "the ceiling's" };
	const struct cell *cells[] = { policy_cell(check->policy),
				       policy_ceiling_cell(check->policy) };
	char text[1000];

	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		if (!cells[i] || cell_is_empty(cells[i]))
			continue;
		cell_describe(cells[i], text, sizeof(text));
		print_text(stdout, TONE_PLAIN, "%s: %s: %s\n", check->file,
			   of[i], *text ? text : "nothing");
	}
}

static void print_check(const struct check *check)
{
	struct policy_counts n;

	for (size_t i = 0; i < check->found.count; i++)
		print_finding(check, &check->found.at[i]);
	policy_count(check->policy, &n);
	print_reach(check, &n);
	print_limits(check, &n);
	print_log(check);
	print_cell(check);
	print_text(stdout, TONE_PLAIN, "%s: ", check->file);
	print_text(stdout, check->warnings ? TONE_WARNING : TONE_GOOD, "ok");
	printf(", %zu rule%s, %zu warning%s", n.rules, plural(n.rules),
	       check->warnings, plural(check->warnings));
	if (check->found.silenced)
		printf(" (%zu silenced by notes)", check->found.silenced);
	putchar('\n');
}

/* --- for programs -------------------------------------------------------- */

static void json_findings(const struct check *check, struct json_out *out,
			  const char *key, enum lint_level level)
{
	struct json *j = &out->json;

	json_open(j, key, '[');
	for (size_t i = 0; i < check->found.count; i++) {
		const struct finding *f = &check->found.at[i];

		if (f->info->level != level)
			continue;
		json_open(j, NULL, '{');
		if (f->rule) {
			json_place(j, rule_origin(f->rule), NULL);
			json_text(j, "rule", rule_text(f->rule));
		} else {
			json_text(j, "file", check->file);
		}
		json_text(j, "code", f->info->word);
		json_text(j, "message", f->message);
		json_text(j, "hint", f->info->hint);
		json_close(j, '}');
		json_flush(out);
	}
	json_close(j, ']');
}

/* What the policy is made of, beside the file itself. */
static void json_extends(const struct check *check, struct json_out *out)
{
	char path[4097];
	const char *name;

	json_open(&out->json, "extends", '[');
	for (size_t i = 0; (name = preset_name(i)); i++)
		if (policy_has_preset(check->policy, name))
			json_text(&out->json, NULL, name);
	for (size_t i = 1; bundle_file(&check->bundle, i, path, sizeof(path));
	     i++) {
		json_text(&out->json, NULL, path);
		json_flush(out);
	}
	json_close(&out->json, ']');
}

static void json_log(struct json *j, const struct log_settings *log)
{
	json_open(j, "log", '{');
	json_text(j, "sign", log->sign_every ? "every" : "batch");
	json_text(j, "durability", log->durable ? "record" : "batch");
	json_uint(j, "rotate", log->rotate_bytes);
	if (log->rotate_s)
		json_uint(j, "rotate_after", log->rotate_s);
	json_close(j, '}');
}

static void json_entries(struct json_out *out, const char *key,
			 const struct cell_list *list, enum cell_access access)
{
	json_open(&out->json, key, '[');
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].access == access) {
			json_text(&out->json, NULL, list->at[i].text);
			json_flush(out);
		}
	json_close(&out->json, ']');
}

static void json_cell(struct json_out *out, const struct cell *cell)
{
	const struct cell_said *said = &cell->said;
	const struct {
		const char *key;
		uint64_t n;
	} limits[] = {
		{ "memory", said->memory },  { "pids", said->pids },
		{ "millicpus", said->cpus }, { "fsize", said->fsize },
		{ "nofile", said->nofile },  { "timeout", said->timeout_s },
	};

	if (cell_is_empty(cell))
		return;
	json_open(&out->json, "sandbox", '{');
	json_text(&out->json, "fs",
		  said->host_files == SAID_YES ? "host" : "private");
	json_bool(&out->json, "nest", said->nest == SAID_YES);
	json_entries(out, "rw", &cell->path, CELL_RW);
	json_entries(out, "ro", &cell->path, CELL_RO);
	json_entries(out, "hide", &cell->path, CELL_HIDE);
	json_entries(out, "env", &cell->env, CELL_HIDE);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limits[i].n)
			json_uint(&out->json, limits[i].key, limits[i].n);
	json_close(&out->json, '}');
}

static void json_summary(const struct check *check, struct json_out *out)
{
	const struct policy *policy = check->policy;
	const struct limits *limits = policy_limits(policy);
	struct json *j = &out->json;
	struct policy_counts n;

	policy_count(policy, &n);
	json_open(j, "summary", '{');
	json_text(j, "name", policy_name(policy));
	json_uint(j, "rules", n.rules);
	json_uint(j, "names", n.names);
	json_uint(j, "wildcards", n.wildcards);
	json_uint(j, "ranges", n.ranges);
	json_uint(j, "denied",
		  n.denied_names + n.denied_ranges + n.denied_lists);
	json_text(j, "default", policy_is_public(policy) ? "public" : "deny");
	json_text(j, "mode", policy_observes(policy) ? "observe" : "enforce");
	json_text(j, "digest", policy_digest(policy));
	json_uint(j, "silenced", check->found.silenced);
	if (limits->budget[UP])
		json_uint(j, "upload", limits->budget[UP]);
	if (limits->budget[DOWN])
		json_uint(j, "download", limits->budget[DOWN]);
	json_log(j, policy_log(policy));
	json_cell(out, policy_cell(policy));
	json_extends(check, out);
	json_close(j, '}');
}

static void json_check(const struct check *check, const char *error)
{
	struct json_out out;
	struct json *j = &out.json;
	const char *message;

	json_out_init(&out);
	json_open(j, NULL, '{');
	json_text(j, "file", check->file);
	json_bool(j, "ok", !error);
	json_open(j, "errors", '[');
	if (error) {
		json_open(j, NULL, '{');
		json_place(j, error, &message);
		json_text(j, "message", message);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_findings(check, &out, "warnings", LINT_WARNING);
	json_findings(check, &out, "notes", LINT_NOTE);
	if (check->policy)
		json_summary(check, &out);
	json_close(j, '}');
	json_flush(&out);
	putchar('\n');
}

/* --- the command --------------------------------------------------------- */

static void count_warnings(struct check *check)
{
	for (size_t i = 0; i < check->found.count; i++)
		check->warnings +=
			check->found.at[i].info->level == LINT_WARNING;
}

static int check_one(const char *file, const char *ceiling, bool strict,
		     bool json)
{
	struct check check = { .file = strcmp(file, "-") ? file : "<stdin>" };
	struct policy_error error;
	int err = source_load(file, ceiling, &check.bundle, &check.policy,
			      &error);

	if (err == 0)
		err = policy_lint(check.policy, time(NULL), &check.found);
	if (err < 0 && err != -EINVAL)
		die(EXIT_SALLYPORT, "%s: %s", file, strerror(-err));
	count_warnings(&check);
	if (json)
		json_check(&check, err ? error.text : NULL);
	else if (err)
		print_text(stderr, TONE_PLAIN, "%s\n", error.text);
	else
		print_check(&check);
	if (err)
		return CHECK_ERRORS;
	findings_free(&check.found);
	policy_unref(check.policy);
	bundle_free(&check.bundle);
	return strict && check.warnings ? CHECK_WARNINGS : CHECK_OK;
}

static _Noreturn void show_help(void)
{
	const struct lint_info *info;

	fputs(help, stdout);
	for (size_t i = 0; (info = lint_info(i)); i++)
		printf("  %-18s %s%s\n", info->word,
		       info->level == LINT_NOTE ? "(a note) " : "",
		       info->about);
	fputs(help_end, stdout);
	exit(0);
}

int check_main(int argc, char **argv)
{
	bool strict = false, json = false;
	const char *ceiling = NULL;
	int code, status = CHECK_OK;

	opterr = 0;
	while ((code = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (code == 's')
			strict = true;
		else if (code == 'j')
			json = true;
		else if (code == 'c')
			ceiling = optarg;
		else if (code == 'h')
			show_help();
		else
			die(EXIT_SALLYPORT,
			    "no such option: %s\nTry `sallyport check --help`.",
			    argv[optind - 1]);
	}
	if (optind == argc)
		die(EXIT_SALLYPORT,
		    "a policy is missing: sallyport check POLICY...");
	for (; optind < argc; optind++) {
		int one = check_one(argv[optind], ceiling, strict, json);

		/* An error is worse than a warning. */
		if (one && status != CHECK_ERRORS)
			status = one;
	}
	return print_end(status);
}
