/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c - `sallyport explain POLICY TARGET`: what every door makes of a
 * target, by which rule, and what would change it.
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
#include "policy/explain.h"
#include "policy/explain_rule.h"
#include "policy/values.h"
#include "proxy/sniff/http_authority.h"

#define EXIT_REFUSED 1

static const char help[] =
	"usage: sallyport explain [OPTION]... [POLICY] TARGET\n\n"
	"Says what each door makes of TARGET, by which rule, and what would "
	"allow it.\nPOLICY is a file, \"-\" for standard input, or "
	"preset:NAME; it may be left out\nwith --allow, --deny, --permit or "
	"--policy. TARGET is HOST, HOST:PORT, ADDRESS,\n[ADDRESS]:PORT or a "
	"URL; a host alone is asked about on 443 and 80.\n\n"
	"  --method METHOD   of a plain HTTP request for TARGET's path\n"
	"  --at TIME         as if it were then, like 2027-01-01T00:00:00Z\n"
	"  --allow WHAT      as for `run`; may be repeated, like the next "
	"three\n"
	"  --deny WHAT\n"
	"  --permit CIDR\n"
	"  --policy FILE\n"
	"  --ceiling FILE    below this policy: both must allow it\n"
	"  --json            for programs\n"
	"  --help            this text\n\n"
	"Exit status: 0 if a door lets it out (DNS alone does not), 1 if none "
	"does,\n125 if sallyport failed or was asked wrongly.\n";

static const struct option table[] = {
	{ "method", required_argument, NULL, 'm' },
	{ "at", required_argument, NULL, 't' },
	{ "allow", required_argument, NULL, 'a' },
	{ "deny", required_argument, NULL, 'd' },
	{ "permit", required_argument, NULL, 'p' },
	{ "policy", required_argument, NULL, 'f' },
	{ "ceiling", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct request {
	struct bundle bundle;
	const char *target, *ceiling;
	bool json, any;
	struct inquiry inquiry;
};

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport explain --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

static void add_option(struct request *r, enum bundle_kind kind,
		       const char *origin)
{
	if (bundle_add(&r->bundle, kind, origin, optarg, strlen(optarg)) < 0)
		die(EXIT_SALLYPORT, "%s: no memory left", origin);
	r->any = true;
}

static void add_policy(struct request *r, const char *what)
{
	struct policy_error error;
	int err = source_add(&r->bundle, what, &error);

	if (err == -EINVAL)
		die(EXIT_SALLYPORT, "%s", error.text);
	if (err)
		die(EXIT_SALLYPORT, "%s: %s", what, strerror(-err));
	r->any = true;
}

/* RFC 9110 section 5.6.2. Case counts. */
static bool is_method(const char *text)
{
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"abcdefghijklmnopqrstuvwxyz"
				"0123456789!#$%&'*+-.^_`|~");

	return n && !text[n] && n <= 32;
}

static void apply(struct request *r, int code)
{
	const char *why;

	switch (code) {
	case 'm':
		if (!is_method(optarg))
			bad("--method: it is a word like GET, not", optarg);
		r->inquiry.method = optarg;
		break;
	case 't':
		why = value_time(optarg, &r->inquiry.now_s);
		if (why)
			bad("--at:", why);
		break;
	case 'a':
		add_option(r, BUNDLE_ALLOW, "--allow");
		break;
	case 'd':
		add_option(r, BUNDLE_DENY, "--deny");
		break;
	case 'p':
		add_option(r, BUNDLE_PERMIT, "--permit");
		break;
	case 'f':
		add_policy(r, optarg);
		break;
	case 'c':
		r->ceiling = optarg;
		break;
	case 'j':
		r->json = true;
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	}
}

static void go_below(struct request *r)
{
	struct policy_error error;
	int err = 0;

	if (r->ceiling)
		err = source_add_ceiling(&r->bundle, r->ceiling, &error);
	if (err == -EINVAL)
		die(EXIT_SALLYPORT, "%s", error.text);
	if (err)
		die(EXIT_SALLYPORT, "%s: %s", r->ceiling, strerror(-err));
}

/* The path as the gate will see it. */
static void settle_path(struct inquiry *inquiry)
{
	const struct http_text path = { inquiry->path, strlen(inquiry->path) };
	char canonical[EXPLAIN_PATH_MAX + 1];
	const char *fault;

	if (!path.len || inquiry->fault || inquiry->spoken == SPOKEN_TLS ||
	    inquiry->spoken == SPOKEN_OTHER)
		return;
	fault = http_path_canonical(path, canonical, sizeof(canonical));
	if (fault)
		inquiry->fault = fault;
	else
		snprintf(inquiry->path, sizeof(inquiry->path), "%s", canonical);
}

static void parse(int argc, char **argv, struct request *ret)
{
	const char *why;
	int code;

	opterr = 0;
	ret->inquiry.now_s = time(NULL);
	while ((code = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (code == ':' || code == '?')
			bad(code == ':' ? "a value is missing after"
					: "no such option:",
			    argv[optind - 1]);
		apply(ret, code);
	}
	if (optind < argc - 2)
		bad("what is", argv[optind + 2]);
	if (optind == argc)
		bad("a target is missing", NULL);
	if (optind == argc - 1 && !ret->any)
		bad("a policy and a target are needed, there is only",
		    argv[optind]);
	if (optind == argc - 2)
		add_policy(ret, argv[optind++]);
	ret->target = argv[optind];
	why = inquiry_parse(ret->target, &ret->inquiry);
	if (why)
		die(EXIT_SALLYPORT, "no target '%s': %s", ret->target, why);
	settle_path(&ret->inquiry);
}

/* --- for people ---------------------------------------------------------- */

static const char *verdict_word(const struct explain_row *row)
{
	return !row->asked ? "-" : row->verdict.allow ? "allowed" : "refused";
}

/* Why it is so; of what is only observed, why it would not be. */
static const char *why_of(const struct explain_row *row, char *buf, size_t cap)
{
	const struct verdict *v = &row->verdict;

	if (!row->asked)
		return "";
	if (v->reason != REASON_OBSERVE)
		return reason_word(v->reason);
	snprintf(buf, cap, "observe (%s)", reason_word(v->observed));
	return buf;
}

static void print_rule(const struct inquiry *inquiry, const struct rule *rule)
{
	const char *name;
	char about[300];
	unsigned line;

	if (rule_list_line(rule, inquiry->host, &name, &line))
		print_text(stdout, TONE_PLAIN, "%s in %s:%u (%s)", name,
			   rule_text(rule), line, rule_origin(rule));
	else
		print_text(stdout, TONE_PLAIN, "%s (%s)", rule_text(rule),
			   rule_origin(rule));
	rule_describe(rule, about, sizeof(about));
	if (*about)
		print_text(stdout, TONE_FAINT, " %s", about);
}

static void print_row(const struct inquiry *inquiry,
		      const struct explain_row *row)
{
	const struct rule *rule = row->asked ? row->verdict.rule : NULL;
	char port[8] = "", why[60];

	if (row->port)
		snprintf(port, sizeof(port), "%u", row->port);
	printf("%-12s %-6s", door_word(row->door), port);
	print_text(stdout,
		   !row->asked		? TONE_FAINT
		   : row->verdict.allow ? TONE_GOOD
					: TONE_BAD,
		   "%-8s ", verdict_word(row));
	print_text(stdout, TONE_PLAIN, "%-18s ", why_of(row, why, sizeof(why)));
	if (rule)
		print_rule(inquiry, rule);
	if (row->remark)
		print_text(stdout, TONE_FAINT, "%s%s", rule ? ": " : "",
			   row->remark);
	putchar('\n');
}

static char *hint_of(const struct inquiry *inquiry,
		     const struct explain_row *row, char *buf, size_t cap)
{
	enum reason reason = row->verdict.reason == REASON_OBSERVE
				     ? row->verdict.observed
				     : row->verdict.reason;
	char ip[IP_TEXT_MAX];
	if (row->verdict.rule && rule_of_ceiling(row->verdict.rule) &&
	    !row->verdict.allow) {
		snprintf(buf, cap, "%s", reason_ceiling_hint);
		return buf;
	}
	const char *host = *inquiry->host ? inquiry->host
			   : inquiry->address.len
				   ? ip_format(&inquiry->address, ip)
				   : NULL;

	return reason_hint(reason, host, row->port, buf, cap);
}

/* Each thing to do once, whichever doors say it. */
static void print_hints(const struct inquiry *inquiry,
			const struct explanation *e)
{
	char hint[400], before[400] = "";

	for (size_t i = 0; i < e->count; i++) {
		const struct explain_row *row = &e->row[i];

		if (!row->asked || (row->verdict.allow &&
				    row->verdict.reason != REASON_OBSERVE))
			continue;
		hint_of(inquiry, row, hint, sizeof(hint));
		if (strcmp(hint, before) == 0)
			continue;
		if (row->port)
			print_text(stdout, TONE_PLAIN,
				   "to change it on %u: %s\n", row->port, hint);
		else
			print_text(stdout, TONE_PLAIN, "to change it: %s\n",
				   hint);
		memcpy(before, hint, sizeof(before));
	}
}

static bool any_resolved(const struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->row[i].asked && e->row[i].verdict.allow &&
		    !(e->row[i].verdict.rule &&
		      rule_connect(e->row[i].verdict.rule)))
			return true;
	return false;
}

static void print_assumptions(const struct inquiry *inquiry,
			      const struct explanation *e)
{
	bool judged = false;

	for (size_t i = 0; i < e->count; i++)
		judged |= e->row[i].asked && e->row[i].verdict.allow &&
			  e->row[i].verdict.rule &&
			  rule_judges_requests(e->row[i].verdict.rule);
	if (*inquiry->host && any_resolved(e))
		puts("assumed: the name resolves, to ordinary addresses or "
		     "permitted ones");
	if (judged && !inquiry->method)
		puts("assumed: each request is judged by method and path: ask "
		     "with --method and a URL");
}

static void print_explanation(const struct request *r,
			      const struct explanation *e)
{
	const struct inquiry *inquiry = &r->inquiry;
	char ip[IP_TEXT_MAX];

	if (*inquiry->host)
		print_text(stdout, TONE_PLAIN, "%s", inquiry->host);
	else if (!inquiry->fault)
		print_text(stdout, TONE_PLAIN, "%s, an address",
			   ip_format(&inquiry->address, ip));
	else
		print_text(stdout, TONE_PLAIN, "%s: %s", r->target,
			   inquiry->fault);
	if (inquiry->method)
		print_text(stdout, TONE_PLAIN, ", %s %s", inquiry->method,
			   *inquiry->path ? inquiry->path : "/");
	puts("\n");
	for (size_t i = 0; i < e->count; i++) {
		struct explain_row row = e->row[i];

		/* Said once, above. */
		if (inquiry->fault)
			row.remark = NULL;
		print_row(inquiry, &row);
	}
	putchar('\n');
	print_assumptions(inquiry, e);
	print_hints(inquiry, e);
}

/* --- for programs -------------------------------------------------------- */

static void json_rule(struct json *j, const struct inquiry *inquiry,
		      const struct rule *rule)
{
	const char *name;
	char text[400];
	unsigned line;

	json_text(j, "rule", rule_text(rule));
	json_text(j, "origin", rule_origin(rule));
	json_text(j, "says", rule_describe(rule, text, sizeof(text)));
	json_text(j, "note", rule_note(rule));
	if (!rule_list_line(rule, inquiry->host, &name, &line))
		return;
	json_text(j, "listed", name);
	json_uint(j, "list_line", line);
}

static void json_row(struct json_out *out, const struct inquiry *inquiry,
		     const struct explain_row *row)
{
	const struct verdict *v = &row->verdict;
	struct json *j = &out->json;
	char text[400];

	json_open(j, NULL, '{');
	json_text(j, "door", door_word(row->door));
	if (row->port)
		json_uint(j, "port", row->port);
	json_bool(j, "asked", row->asked);
	if (row->asked) {
		json_bool(j, "allow", v->allow);
		json_text(j, "reason", reason_word(v->reason));
		if (v->reason == REASON_OBSERVE)
			json_text(j, "observed", reason_word(v->observed));
		if (v->rule)
			json_rule(j, inquiry, v->rule);
		if (!v->allow || v->reason == REASON_OBSERVE)
			json_text(j, "hint",
				  hint_of(inquiry, row, text, sizeof(text)));
	}
	json_text(j, "remark", row->remark);
	json_close(j, '}');
	json_flush(out);
}

static void json_explanation(const struct request *r,
			     const struct policy *policy,
			     const struct explanation *e)
{
	const struct inquiry *inquiry = &r->inquiry;
	struct json_out out;
	struct json *j = &out.json;
	char ip[IP_TEXT_MAX];

	json_out_init(&out);
	json_open(j, NULL, '{');
	json_text(j, "target", r->target);
	json_text(j, "host", inquiry->host);
	json_text(j, "address", ip_format(&inquiry->address, ip));
	json_text(j, "method", inquiry->method);
	json_text(j, "path", inquiry->path);
	json_text(j, "fault", inquiry->fault);
	json_text(j, "digest", policy_digest(policy));
	json_bool(j, "reachable", e->reachable);
	json_open(j, "doors", '[');
	for (size_t i = 0; i < e->count; i++)
		json_row(&out, inquiry, &e->row[i]);
	json_close(j, ']');
	json_close(j, '}');
	json_flush(&out);
	putchar('\n');
}

int explain_main(int argc, char **argv)
{
	struct request request = { .json = false };
	struct explanation explanation;
	struct policy *policy;

	parse(argc, argv, &request);
	go_below(&request);
	policy = source_must_build(&request.bundle);
	explain(policy, &request.inquiry, &explanation);
	if (request.json)
		json_explanation(&request, policy, &explanation);
	else
		print_explanation(&request, &explanation);
	policy_unref(policy);
	bundle_free(&request.bundle);
	return print_end(explanation.reachable ? 0 : EXIT_REFUSED);
}
