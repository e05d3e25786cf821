/* SPDX-License-Identifier: Apache-2.0
 *
 * explain_print.c - an explanation: a table with hints, or JSON.
 */
#include "cmd/explain_print.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/print.h"
#include "policy/explain.h"
#include "policy/explain_rule.h"

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

void explain_print(const char *target, const struct inquiry *inquiry,
		   const struct explanation *e)
{
	char ip[IP_TEXT_MAX];

	if (*inquiry->host)
		print_text(stdout, TONE_PLAIN, "%s", inquiry->host);
	else if (!inquiry->fault)
		print_text(stdout, TONE_PLAIN, "%s, an address",
			   ip_format(&inquiry->address, ip));
	else
		print_text(stdout, TONE_PLAIN, "%s: %s", target,
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

void explain_json(const char *target, const struct inquiry *inquiry,
		  const struct policy *policy, const struct explanation *e)
{
	struct json_out out;
	struct json *j = &out.json;
	char ip[IP_TEXT_MAX];

	json_out_init(&out);
	json_open(j, NULL, '{');
	json_text(j, "target", target);
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
