/* SPDX-License-Identifier: Apache-2.0
 *
 * presets.c - `sallyport presets [NAME]`: what is built in.
 */
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
#include "policy/explain.h"
#include "policy/lint.h"
#include "policy/policy.h"
#include "policy/presets.h"

static const char help[] =
	"usage: sallyport presets [--json] [NAME]\n\n"
	"Lists the built-in presets, or shows what NAME allows, as YAML.\n\n"
	"  --json            as JSON, with the hosts of each and what lint says "
	"of it\n"
	"  --help            this text\n";

static const struct option table[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* The first comment line, without its '#', and the rest of its sentence where
 * the line ends in the middle of it. */
static void describe(const char *yaml, char *buf, size_t cap)
{
	size_t len = 0;

	buf[0] = '\0';
	for (const char *at = yaml; *at == '#'; at++) {
		size_t n = strcspn(at, "\n");
		const char *text = at + 1 + strspn(at + 1, " ");
		size_t words = (size_t)(at + n - text);
		const char *stop = memmem(text, words, ". ", 2);

		if (stop)
			words = (size_t)(stop - text);
		if (words > cap - len - 2)
			words = cap - len - 2;
		len += (size_t)snprintf(buf + len, cap - len, "%s%.*s",
					len ? " " : "", (int)words, text);
		at += n;
		if (stop || (len && buf[len - 1] == '.') || !*at ||
		    len + 2 >= cap)
			break;
	}
	if (len && buf[len - 1] == '.')
		buf[len - 1] = '\0';
}

static void list(void)
{
	const char *name;

	for (size_t i = 0; (name = preset_name(i)); i++) {
		char about[400];
		size_t len;

		describe(preset_yaml(name, &len), about, sizeof(about));
		printf("%-15s %s\n", name, about);
	}
}

static struct policy *load(const char *name)
{
	char what[100];

	snprintf(what, sizeof(what), "preset:%s", name);
	return source_must_load(what);
}

static void json_rules(struct json_out *out, const struct policy *policy)
{
	struct json *j = &out->json;
	const struct rule *rule;

	json_open(j, "rules", '[');
	for (size_t i = 0; (rule = policy_rule(policy, i)); i++) {
		json_open(j, NULL, '{');
		json_text(j, "host", rule_text(rule));
		json_text(j, "origin", rule_origin(rule));
		json_text(j, "note", rule_note(rule));
		json_close(j, '}');
		json_flush(out);
	}
	json_close(j, ']');
}

static void json_warnings(struct json_out *out, const struct policy *policy)
{
	struct json *j = &out->json;
	struct findings found;

	if (policy_lint(policy, time(NULL), &found) < 0)
		die(EXIT_SALLYPORT, "no memory left");
	json_open(j, "warnings", '[');
	for (size_t i = 0; i < found.count; i++) {
		if (found.at[i].info->level != LINT_WARNING)
			continue;
		json_open(j, NULL, '{');
		json_text(j, "code", found.at[i].info->word);
		json_text(j, "message", found.at[i].message);
		json_close(j, '}');
		json_flush(out);
	}
	json_close(j, ']');
	findings_free(&found);
}

static void json_preset(struct json_out *out, const char *name)
{
	struct policy *policy = load(name);
	struct json *j = &out->json;
	char about[400];
	const char *other;
	size_t len;

	describe(preset_yaml(name, &len), about, sizeof(about));
	json_open(j, NULL, '{');
	json_text(j, "name", name);
	json_text(j, "about", about);
	json_open(j, "extends", '[');
	for (size_t i = 0; (other = preset_name(i)); i++)
		if (strcmp(other, name) != 0 &&
		    policy_has_preset(policy, other))
			json_text(j, NULL, other);
	json_close(j, ']');
	json_rules(out, policy);
	json_warnings(out, policy);
	json_close(j, '}');
	json_flush(out);
	policy_unref(policy);
}

static void show_json(const char *name)
{
	struct json_out out;

	json_out_init(&out);
	if (name) {
		json_preset(&out, name);
	} else {
		json_open(&out.json, NULL, '[');
		for (size_t i = 0; (name = preset_name(i)); i++)
			json_preset(&out, name);
		json_close(&out.json, ']');
		json_flush(&out);
	}
	putchar('\n');
}

static int show(const char *name)
{
	const char *yaml, *guess;
	size_t len;

	yaml = preset_yaml(name, &len);
	if (yaml) {
		fwrite(yaml, 1, len, stdout);
		return 0;
	}
	guess = preset_guess(name);
	if (guess)
		log_err("no preset '%s', did you mean '%s'?", name, guess);
	else
		log_err("no preset '%s'; `sallyport presets` lists them", name);
	return EXIT_SALLYPORT;
}

int presets_main(int argc, char **argv)
{
	bool json = false;
	int code;

	opterr = 0;
	while ((code = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (code == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (code != 'j')
			die(EXIT_SALLYPORT,
			    "no such option: %s\nTry `sallyport presets "
			    "--help`.",
			    argv[optind - 1]);
		json = true;
	}
	if (argc - optind > 1)
		die(EXIT_SALLYPORT, "one preset at a time, what is '%s'?",
		    argv[optind + 1]);
	if (json)
		show_json(argv[optind]);
	else if (optind < argc)
		return print_end(show(argv[optind]));
	else
		list();
	return print_end(0);
}
