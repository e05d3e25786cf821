/* SPDX-License-Identifier: Apache-2.0
 *
 * report_json.c - all of it, for programs. Texts are as they were in the logs,
 * but everything beyond ASCII is written as \uXXXX. Keys are only ever added.
 */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_words.h"
#include "cmd/verify.h"

static void set(json_t *object, const char *key, json_t *value)
{
	json_object_set_new(object, key, value);
}

static void set_number(json_t *object, const char *key, uint64_t n)
{
	set(object, key, json_integer((json_int_t)n));
}

/* Logs are UTF-8; a path or a text that was cut need not be. */
static void set_text(json_t *object, const char *key, const char *text)
{
	json_t *value = json_string(text);
	char plain[4096];
	size_t i;

	if (!value) {
		for (i = 0; text[i] && i + 1 < sizeof(plain); i++)
			plain[i] =
				(unsigned char)text[i] < 0x80 ? text[i] : '?';
		plain[i] = '\0';
		value = json_string(plain);
	}
	set(object, key, value);
}

static json_t *of_counts(const struct report_counts *c)
{
	json_t *o = json_object();

	set_number(o, "records", c->records);
	set_number(o, "not_records", c->bad);
	set_number(o, "allowed", c->allowed);
	set_number(o, "observed", c->observed);
	set_number(o, "refused", c->refused);
	set_number(o, "failed", c->failed);
	set_number(o, "cut", c->cut);
	set_number(o, "packets", c->packets);
	set_number(o, "bytes_up", c->up);
	set_number(o, "bytes_down", c->down);
	set_number(o, "findings", c->findings);
	set_number(o, "policy_changes", c->changes);
	set_number(o, "rules_restored", c->restored);
	return o;
}

static json_t *of_problems(const struct verify_result *result)
{
	json_t *list = json_array();

	for (size_t i = 0; i < result->problems && i < VERIFY_PROBLEMS_MAX;
	     i++) {
		const struct verify_problem *p = &result->problem[i];
		json_t *o = json_object();

		set_text(o, "fault", verify_word(p->fault));
		set_text(o, "file", p->file);
		set_number(o, "line", p->line);
		set_text(o, "text", p->text);
		json_array_append_new(list, o);
	}
	return list;
}

static const char *mark_key(enum report_mark mark)
{
	return mark == REPORT_HELD     ? "held"
	       : mark == REPORT_BROKEN ? "broken"
				       : "not_proved";
}

static json_t *of_session(const struct report_session *s)
{
	const struct verify_result *r = &s->result;
	char vkey[VKEY_TEXT_MAX], sentence[2048];
	json_t *o = json_object();

	set_text(o, "session", r->session);
	set_text(o, "path", s->path);
	set_text(o, "name", s->name);
	set_text(o, "boundary", mark_key(report_mark(s)));
	set_text(o, "sentence", report_sentence(s, sentence, sizeof(sentence)));
	set_text(o, "verdict", verify_verdict_word(r->verdict));
	set(o, "known_key", json_boolean(r->known_key));
	if (*r->key.name)
		vkey_format(&r->key, vkey);
	set_text(o, "vkey", *r->key.name ? vkey : "");
	set_number(o, "first_ms", s->first_ms);
	set_number(o, "last_ms", s->last_ms);
	set_text(o, "policy", s->policy);
	set_text(o, "policy_digest", s->digest);
	set_number(o, "records", r->records);
	set_number(o, "bytes", r->bytes);
	set_number(o, "parts", r->parts);
	set_number(o, "checkpoints", r->checkpoints);
	set_number(o, "covered", r->covered);
	set_number(o, "backwards", r->backwards);
	set(o, "opened", json_boolean(r->opened));
	set(o, "closed", json_boolean(r->closed));
	set(o, "counts", of_counts(&s->counts));
	set(o, "problems", of_problems(r));
	set_number(o, "problems_total", r->problems);
	set(o, "receipt", r->receipt ? json_incref(r->receipt) : json_null());
	return o;
}

static json_t *of_reasons(uint64_t bits)
{
	json_t *list = json_array();

	for (int i = 0; i < REASON_COUNT; i++)
		if (bits >> i & 1)
			json_array_append_new(
				list, json_string(reason_word((enum reason)i)));
	return list;
}

static json_t *of_row(const struct report_row *row, enum report_table table)
{
	json_t *o = json_object();
	bool others = !*row->host;

	set_text(o, "host", row->host);
	set(o, "others", json_boolean(others));
	set(o, "is_name", json_boolean(!row->strange && !others));
	set_number(o, "port", row->port);
	set(o, "several_ports", json_boolean(row->many_ports));
	if (table == REPORT_REFUSED && !others)
		set_text(o, "reason", reason_word(row->reason));
	set_text(o, "rule", row->rule);
	set(o, "several_rules", json_boolean(row->many_rules));
	set_text(o, "intent", row->guess.word ? row->guess.word : "");
	set_text(o, "intent_text", row->guess.text ? row->guess.text : "");
	set_number(o, "first_ms", row->first_ms);
	set_number(o, "last_ms", row->last_ms);
	set_number(o, "sessions", row->sessions);
	if (table == REPORT_PACKETS) {
		set_text(o, "protocol", row->protocol);
		set_text(o, "detail", row->detail);
		set_number(o, "packets", row->packets);
		return o;
	}
	set_number(o, "connections", row->connections);
	set_number(o, "requests", row->requests);
	set_number(o, "lookups", row->questions);
	if (table == REPORT_REFUSED)
		return o;
	set_number(o, "bytes_up", row->up);
	set_number(o, "bytes_down", row->down);
	set_number(o, "observed", row->observed);
	set(o, "observed_for", of_reasons(row->observed_for));
	set_number(o, "failed", row->failed);
	set_number(o, "cut", row->cut);
	set_number(o, "ech", row->ech);
	return o;
}

static json_t *of_table(const struct report *report, enum report_table table)
{
	const struct report_rows *rows = &report->table[table];
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(list, of_row(&rows->at[i], table));
	if (rows->others.first_ms)
		json_array_append_new(list, of_row(&rows->others, table));
	return list;
}

static json_t *of_tunnels(const struct report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->zones.count; i++) {
		const struct report_zone *zone = report->zones.at[i];
		json_t *o;

		if (!report_zone_is_tunnel(zone))
			break;
		o = json_object();
		set_text(o, "zone", zone->name);
		set_number(o, "names", zone->names);
		set_number(o, "like_data", zone->data);
		set_number(o, "lookups", zone->questions);
		set_number(o, "lookups_refused", zone->refused);
		set_number(o, "first_ms", zone->first_ms);
		set_number(o, "last_ms", zone->last_ms);
		set_text(o, "example", zone->example);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *of_events(const struct report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->events; i++) {
		const struct report_event *e = &report->event[i];
		json_t *o = json_object();

		set_text(o, "kind", report_event_name(e->kind));
		set_number(o, "time_ms", e->time_ms);
		set_text(o, "session",
			 report->session[e->session]->result.session);
		set_number(o, "sequence", e->sequence);
		set_text(o, "text", e->text);
		set_text(o, "process", e->process);
		set_number(o, "pid", e->pid);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *of_timeline(const struct report_timeline *t)
{
	json_t *o = json_object(), *list = json_array();

	set_number(o, "bar_ms", t->width_ms);
	set_number(o, "first_ms", t->start * t->width_ms);
	for (size_t i = 0; i < t->count; i++) {
		json_t *bar = json_object();

		set_number(bar, "allowed", t->bar[i].allowed);
		set_number(bar, "observed", t->bar[i].observed);
		set_number(bar, "refused", t->bar[i].refused);
		json_array_append_new(list, bar);
	}
	set(o, "bars", list);
	return o;
}

/* DEL is ASCII, so jansson leaves it; it can only be within a string. */
static int put(const char *data, size_t len, void *arg)
{
	FILE *out = arg;

	for (size_t i = 0; i < len; i++) {
		if (data[i] == 0x7f)
			fputs("\\u007f", out);
		else
			fputc(data[i], out);
	}
	return 0;
}

void report_json(const struct report *report, FILE *out)
{
	json_t *o = json_object(), *sessions = json_array();

	set_number(o, "version", 1);
	set_text(o, "product", "sallyport " SALLYPORT_VERSION);
	set_number(o, "made_ms", report->made_s * 1000);
	set_number(o, "first_ms", report->first_ms);
	set_number(o, "last_ms", report->last_ms);
	set(o, "totals", of_counts(&report->counts));
	for (size_t i = 0; i < report->sessions; i++)
		json_array_append_new(sessions, of_session(report->session[i]));
	set(o, "sessions", sessions);
	set(o, "timeline", of_timeline(&report->timeline));
	set(o, "hosts", of_table(report, REPORT_HOSTS));
	set(o, "refused", of_table(report, REPORT_REFUSED));
	set(o, "packets", of_table(report, REPORT_PACKETS));
	set(o, "tunnels", of_tunnels(report));
	set(o, "events", of_events(report));
	set_number(o, "events_left_out", report->events_left_out);
	json_dump_callback(o, put, out, JSON_INDENT(1) | JSON_ENSURE_ASCII);
	fputc('\n', out);
	json_decref(o);
}
