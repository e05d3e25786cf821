/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.c - `sallyport diff OLD NEW`: what becomes reachable, and what stops
 * being so.
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
#include "policy/diff.h"
#include "policy/values.h"

#define EXIT_DIFFERENT 1

static const char help[] =
	"usage: sallyport diff [OPTION]... OLD NEW\n\n"
	"Says what NEW lets a sandbox reach that OLD does not (+), what it no "
	"longer does\n(-), and what is reached otherwise (~): by what the "
	"policies decide, not by how\nthey are written. Each is a file, "
	"\"-\" for standard input, or preset:NAME. Rules\nthat expire are "
	"compared as of now. `mode: observe` is a difference of its own:\nall "
	"else is compared as if both enforced.\n\n"
	"  --at TIME         as if it were then, like 2027-01-01T00:00:00Z\n"
	"  --json            for programs\n"
	"  --help            this text\n\n"
	"Exit status: 0 if there is no difference, 1 if there is one, 125 if "
	"sallyport\nfailed or was asked wrongly.\n";

static const struct option table[] = {
	{ "at", required_argument, NULL, 't' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char sign_of[] = {
	[DIFF_ADDED] = '+', [DIFF_REMOVED] = '-', [DIFF_CHANGED] = '~'
};

/* --- for people ---------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Alike but for the ports? */
static bool same_but_ports(const struct difference *a,
			   const struct difference *b)
{
	return a->kind == b->kind && a->sign == b->sign && a->way == b->way &&
	       a->doors == b->doors && a->was == b->was && a->is == b->is &&
	       same_text(a->what, b->what) && same_text(a->detail, b->detail);
}

static void print_port(const struct port_range *ports, bool first)
{
	printf("%c%u", first ? ':' : ',', ports->first);
	if (ports->last != ports->first)
		printf("-%u", ports->last);
}

static const char *way_in(unsigned doors)
{
	if (doors == DIFF_IN_DNS)
		return " in DNS";
	if (!(doors & DIFF_DIRECTLY))
		return " by the proxy";
	return doors & DIFF_BY_PROXY ? "" : " directly";
}

static void print_what(const struct difference *at)
{
	bool v6 = at->kind == DIFF_ADDRESS && strchr(at->what, ':');

	print_text(stdout, TONE_PLAIN, v6 ? "[%s]" : "%s", at->what);
}

static void print_origin(const struct difference *d)
{
	const char *was = d->was ? rule_origin(d->was) : NULL;
	const char *is = d->is ? rule_origin(d->is) : NULL;
	bool both = d->sign == DIFF_CHANGED && was && is && strcmp(was, is);

	if (both)
		print_text(stdout, TONE_FAINT, " (%s, was %s)", is, was);
	else if (is || was)
		print_text(stdout, TONE_FAINT, " (%s)", is ? is : was);
}

/* Those from @i on that are one line; returns how many. */
static size_t print_line(const struct differences *all, size_t i)
{
	static const enum tone tones[] = { [DIFF_ADDED] = TONE_GOOD,
					   [DIFF_REMOVED] = TONE_BAD,
					   [DIFF_CHANGED] = TONE_WARNING };
	const struct difference *at = &all->at[i];
	size_t n = 0;

	print_text(stdout, tones[at->sign], "%c ", sign_of[at->sign]);
	if (at->kind == DIFF_ANSWER)
		fputs("answers in ", stdout);
	if (at->kind == DIFF_DENY_LIST)
		fputs("names listed in ", stdout);
	print_what(at);
	do {
		if (at->ports.first)
			print_port(&at[n].ports, n == 0);
		n++;
	} while (i + n < all->count && at->ports.first &&
		 same_but_ports(at, &at[n]));
	if (at->doors)
		fputs(way_in(at->doors), stdout);
	if (at->sign == DIFF_CHANGED)
		print_text(stdout, TONE_PLAIN, " (%s: %s)",
			   diff_way_word(at->way), at->detail);
	else if (at->detail)
		print_text(stdout, TONE_PLAIN, " (%s)", at->detail);
	print_origin(at);
	putchar('\n');
	return n;
}

/* Settings first, then what is gone, new, and changed. */
static bool in_group(const struct difference *at, unsigned group)
{
	static const enum diff_sign signs[] = { DIFF_CHANGED, DIFF_REMOVED,
						DIFF_ADDED, DIFF_CHANGED };

	return (at->kind == DIFF_SETTING) == (group == 0) &&
	       at->sign == signs[group];
}

static void print_all(const struct differences *all)
{
	for (unsigned group = 0; group < 4; group++) {
		for (size_t i = 0; i < all->count;) {
			if (in_group(&all->at[i], group))
				i += print_line(all, i);
			else
				i++;
		}
	}
}

/* --- for programs -------------------------------------------------------- */

static void json_doors(struct json *j, unsigned doors)
{
	static const char *const word[] = { "proxy", "transparent", "dns" };

	if (!doors)
		return;
	json_open(j, "doors", '[');
	for (unsigned i = 0; i < ARRAY_SIZE(word); i++)
		if (doors & 1u << i)
			json_text(j, NULL, word[i]);
	json_close(j, ']');
}

static void json_rule(struct json *j, const char *key, const struct rule *rule)
{
	if (!rule)
		return;
	json_open(j, key, '{');
	json_text(j, "rule", rule_text(rule));
	json_text(j, "origin", rule_origin(rule));
	json_close(j, '}');
}

static void json_difference(struct json_out *out, const struct difference *at)
{
	static const char *const signs[] = { [DIFF_ADDED] = "added",
					     [DIFF_REMOVED] = "removed",
					     [DIFF_CHANGED] = "changed" };
	static const char *const kinds[] = { [DIFF_NAME] = "name",
					     [DIFF_ADDRESS] = "address",
					     [DIFF_ANSWER] = "answers",
					     [DIFF_DENY_LIST] = "deny_list",
					     [DIFF_SETTING] = "setting" };
	struct json *j = &out->json;

	json_open(j, NULL, '{');
	json_text(j, "change", signs[at->sign]);
	json_text(j, "kind", kinds[at->kind]);
	json_text(j, "what", at->what);
	if (at->ports.first) {
		json_uint(j, "first_port", at->ports.first);
		json_uint(j, "last_port", at->ports.last);
	}
	json_doors(j, at->doors);
	if (at->sign == DIFF_CHANGED)
		json_text(j, "way", diff_way_word(at->way));
	json_text(j, "detail", at->detail);
	json_rule(j, "was", at->was);
	json_rule(j, "is", at->is);
	json_close(j, '}');
	json_flush(out);
}

static void json_all(const struct differences *all, const struct policy *was,
		     const struct policy *is)
{
	struct json_out out;

	json_out_init(&out);
	json_open(&out.json, NULL, '{');
	json_text(&out.json, "old", policy_digest(was));
	json_text(&out.json, "new", policy_digest(is));
	json_bool(&out.json, "different", all->count);
	json_open(&out.json, "differences", '[');
	for (size_t i = 0; i < all->count; i++)
		json_difference(&out, &all->at[i]);
	json_close(&out.json, ']');
	json_close(&out.json, '}');
	json_flush(&out);
	putchar('\n');
}

/* --- the command --------------------------------------------------------- */

static int compare(char **argv, int64_t now_s, bool json)
{
	struct policy *was = source_must_load(argv[0]);
	struct policy *is = source_must_load(argv[1]);
	struct differences all;
	bool different;

	if (policy_diff(was, is, now_s, &all) < 0)
		die(EXIT_SALLYPORT, "no memory left");
	if (json)
		json_all(&all, was, is);
	else
		print_all(&all);
	different = all.count;
	differences_free(&all);
	policy_unref(was);
	policy_unref(is);
	return print_end(different ? EXIT_DIFFERENT : 0);
}

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s %s\nTry `sallyport diff --help`.", what, arg);
}

int diff_main(int argc, char **argv)
{
	int64_t now_s = time(NULL);
	bool json = false;
	const char *why;
	int code;

	opterr = 0;
	while ((code = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		switch (code) {
		case 't':
			why = value_time(optarg, &now_s);
			if (why)
				bad("--at:", why);
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			bad(code == ':' ? "a value is missing after"
					: "no such option:",
			    argv[optind - 1]);
		}
	}
	argv += optind;
	if (argc - optind != 2)
		bad("two policies are compared:", "sallyport diff OLD NEW");
	if (strcmp(argv[0], "-") == 0 && strcmp(argv[1], "-") == 0)
		bad("standard input can't be both:", "sallyport diff OLD -");
	return compare(argv, now_s, json);
}
