/* SPDX-License-Identifier: Apache-2.0
 *
 * log_record.c - what audit/observed.c makes of a line, and the rest of it:
 * rule, bytes, and in one text what the kind of record has besides.
 */
#include "cmd/log_record.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "cmd/log_text.h"

const char *log_verdict_word(enum log_verdict verdict)
{
	static const char *const words[LOG_VERDICT_COUNT] = {
		[LOG_ALLOWED] = "allowed", [LOG_REFUSED] = "refused",
		[LOG_FAILED] = "failed",   [LOG_OBSERVED] = "observed",
		[LOG_CUT] = "cut",	   [LOG_EVENT] = "event",
	};

	return words[verdict];
}

const char *log_kind_word(enum log_kind kind)
{
	static const char *const words[LOG_KIND_COUNT] = {
		[LOG_KIND_DNS] = "dns",		[LOG_KIND_FLOW] = "flow",
		[LOG_KIND_HTTP] = "http",	[LOG_KIND_PACKET] = "packet",
		[LOG_KIND_FINDING] = "finding", [LOG_KIND_SESSION] = "session",
		[LOG_KIND_POLICY] = "policy",
	};

	return words[kind];
}

static enum log_kind kind_of(enum event_kind kind)
{
	switch (kind) {
	case EVENT_DNS_QUERY:
	case EVENT_DNS_ANSWER:
		return LOG_KIND_DNS;
	case EVENT_HTTP_REQUEST:
		return LOG_KIND_HTTP;
	case EVENT_PACKET:
		return LOG_KIND_PACKET;
	case EVENT_FINDING:
	case EVENT_RULESET:
		return LOG_KIND_FINDING;
	case EVENT_POLICY:
		return LOG_KIND_POLICY;
	case EVENT_SESSION_OPEN:
	case EVENT_SESSION_CLOSE:
	case EVENT_EXEC:
	case EVENT_ATTACKS:
		return LOG_KIND_SESSION;
	default:
		return LOG_KIND_FLOW;
	}
}

/* --- JSON ---------------------------------------------------------------- */

static const json_t *get(const json_t *object, const char *a, const char *b)
{
	const json_t *value = json_object_get(object, a);

	return b ? json_object_get(value, b) : value;
}

static const char *get_text(const json_t *object, const char *a, const char *b)
{
	return json_string_value(get(object, a, b));
}

/* 0 if there is none. */
static uint64_t get_number(const json_t *object, const char *a, const char *b)
{
	json_int_t value = json_integer_value(get(object, a, b));

	return value > 0 ? (uint64_t)value : 0;
}

/* --- what observed_parse() leaves ---------------------------------------- */

static bool take_reason(const char *word, struct verdict *ret)
{
	for (int i = 0; word && i < REASON_COUNT; i++) {
		if (strcmp(reason_word((enum reason)i), word) != 0)
			continue;
		ret->reason = (enum reason)i;
		ret->allow = reason_info(ret->reason)->allow;
		return true;
	}
	return false;
}

static bool take_door(const char *word, enum door *ret)
{
	for (int i = 0; word && i < DOOR_COUNT; i++) {
		if (strcmp(door_word((enum door)i), word) != 0)
			continue;
		*ret = (enum door)i;
		return true;
	}
	return false;
}

static bool take_other(const json_t *line, struct log_record *r)
{
	const char *ip = get_text(line, "dst_endpoint", "ip");
	const char *host = get_text(line, "dst_endpoint", "hostname");
	const char *observed = get_text(line, "unmapped", "observed");
	struct verdict why = { .allow = false };

	if (r->kind == LOG_KIND_SESSION || r->kind == LOG_KIND_POLICY ||
	    r->seen.kind == EVENT_RULESET)
		return true;
	r->judged = take_reason(get_text(line, "status_code", NULL),
				&r->seen.verdict);
	if (!r->judged || r->kind == LOG_KIND_FINDING)
		return r->judged;
	if (r->seen.verdict.reason == REASON_OBSERVE) {
		if (!take_reason(observed, &why) ||
		    !record_relaxable(why.reason))
			return false;
		r->seen.verdict.observed = why.reason;
	}
	r->through =
		take_door(get_text(line, "unmapped", "door"), &r->seen.door);
	if (host)
		host_canonical(host, strlen(host), r->seen.host);
	return (r->through || r->kind == LOG_KIND_PACKET) &&
	       (!ip || ip_parse(ip, &r->seen.address));
}

static enum log_verdict judge(const struct log_record *r)
{
	const struct verdict *verdict = &r->seen.verdict;
	enum event_kind kind = r->seen.kind;

	if (!r->judged || r->kind == LOG_KIND_FINDING)
		return LOG_EVENT;
	if (verdict->reason == REASON_OBSERVE)
		return LOG_OBSERVED;
	if (verdict->allow)
		return LOG_ALLOWED;
	if (record_failed(kind, verdict->reason))
		return LOG_FAILED;
	if (kind == EVENT_FLOW_CLOSE && record_cuts(verdict->reason))
		return LOG_CUT;
	/* What was let through stays so, whatever ended it. */
	return kind == EVENT_FLOW_CLOSE || kind == EVENT_FLOW_PROGRESS
		       ? LOG_ALLOWED
		       : LOG_REFUSED;
}

/* --- texts --------------------------------------------------------------- */

/* "api.example.com:443", "[2001:db8::1]:443", "203.0.113.5", a name alone. */
static void put_where(const json_t *line, struct log_record *r)
{
	struct log_text text = log_text_of(r->where, sizeof(r->where));
	bool dns = r->kind == LOG_KIND_DNS;
	const char *end = dns ? "query" : "dst_endpoint";
	const char *host = get_text(line, end, "hostname");
	uint64_t port = dns ? 0 : get_number(line, end, "port");
	bool brackets;

	if (!host && !dns)
		host = get_text(line, end, "ip");
	if (!host && port)
		host = "*";
	brackets = host && port && strchr(host, ':');
	if (brackets)
		log_text_add(&text, "[");
	if (host)
		log_text_word(&text, host);
	if (brackets)
		log_text_add(&text, "]");
	if (port)
		log_text_add(&text, ":%u", (unsigned)(port & UINT16_MAX));
}

/* A blank, then @label and the text, if there is one. */
static void put_part(struct log_text *text, const char *label, const char *s)
{
	if (!s || !*s)
		return;
	log_text_add(text, "%s%s", text->len ? " " : "", label);
	log_text_put(text, s);
}

static void put_dns(struct log_text *text, const json_t *line)
{
	const json_t *answers = json_object_get(line, "answers");
	const char *rcode = get_text(line, "rcode", NULL);
	size_t n = json_array_size(answers);

	put_part(text, "", get_text(line, "query", "type"));
	for (size_t i = 0; i < n && i < EVENT_ANSWERS_MAX; i++)
		put_part(text, i ? "" : "-> ",
			 get_text(json_array_get(answers, i), "rdata", NULL));
	if (rcode && strcmp(rcode, "NoError") != 0)
		put_part(text, "", rcode);
}

static void put_http(struct log_text *text, const json_t *line)
{
	const json_t *url = get(line, "http_request", "url");
	const char *query = get_text(url, "query_string", NULL);
	uint64_t code = get_number(line, "http_response", "code");

	put_part(text, "", get_text(line, "http_request", "http_method"));
	put_part(text, "", get_text(url, "path", NULL));
	if (query) {
		log_text_add(text, "?");
		log_text_put(text, query);
	}
	if (code)
		log_text_add(text, " -> %llu", (unsigned long long)code);
}

static void put_flow(struct log_text *text, const json_t *line)
{
	const char *sni = get_text(line, "tls", "sni");
	const char *host = get_text(line, "dst_endpoint", "hostname");
	uint64_t status = get_number(line, "unmapped", "http_status");

	put_part(text, "", get_text(line, "unmapped", "protocol"));
	if (host)
		put_part(text, "at ", get_text(line, "dst_endpoint", "ip"));
	if (sni && (!host || strcmp(sni, host) != 0))
		put_part(text, "sni ", *sni ? sni : "\"\"");
	if (json_is_true(get(line, "unmapped", "ech")))
		put_part(text, "", "ECH");
	if (status)
		log_text_add(text, "%sstatus %llu", text->len ? " " : "",
			     (unsigned long long)status);
}

/* Before what is no part of what was said before. */
static void put_break(struct log_text *text)
{
	if (text->len)
		log_text_add(text, "; ");
}

static void put_detail(const json_t *line, struct log_record *r)
{
	struct log_text text = log_text_of(r->detail, sizeof(r->detail));
	const char *detail = get_text(line, "unmapped", "detail");
	uint64_t count = get_number(line, "count", NULL);

	if (!detail && r->kind == LOG_KIND_FINDING)
		detail = get_text(line, "finding_info", "title");
	if (r->kind == LOG_KIND_DNS)
		put_dns(&text, line);
	else if (r->kind == LOG_KIND_HTTP)
		put_http(&text, line);
	else if (r->kind == LOG_KIND_FLOW || r->kind == LOG_KIND_PACKET)
		put_flow(&text, line);
	if (count > 1)
		log_text_add(&text, "%s%llu times", text.len ? " " : "",
			     (unsigned long long)count);
	if (detail && *detail) {
		put_break(&text);
		log_text_put(&text, detail);
	}
	if (r->flow) {
		put_break(&text);
		log_text_add(&text, "flow %llu", (unsigned long long)r->flow);
	}
	/* In `run` there is but one. */
	if (r->seen.sandbox > 1) {
		put_break(&text);
		log_text_add(&text, "sandbox %u", r->seen.sandbox);
	}
}

static void put_rule(const json_t *line, struct log_record *r)
{
	struct log_text text = log_text_of(r->rule, sizeof(r->rule));
	const char *rule = get_text(line, "firewall_rule", "uid");

	if (rule)
		log_text_word(&text, rule);
}

/* --- the log of all sessions --------------------------------------------- */

static void put_opened(struct log_text *text, const json_t *line)
{
	const char *session = get_text(line, "unmapped", "session");
	const char *sandbox = get_text(line, "unmapped", "sandbox");

	if (sandbox && strcmp(sandbox, session) != 0)
		put_part(text, "name ", sandbox);
	put_part(text, "log ", get_text(line, "unmapped", "directory"));
	put_part(text, "policy ", get_text(line, "policy", "uid"));
}

static void put_ended(struct log_text *text, const json_t *line)
{
	uint64_t records = get_number(line, "unmapped", "records");

	log_text_add(text, "%llu record%s", (unsigned long long)records,
		     records == 1 ? "" : "s");
	put_part(text, "receipt ", get_text(line, "unmapped", "receipt"));
	if (!get_text(line, "unmapped", "receipt"))
		log_text_add(text, " no receipt");
}

static void put_host(const json_t *line, struct log_record *r)
{
	const json_t *earlier = get(line, "unmapped", "earlier");
	struct log_text where = log_text_of(r->where, sizeof(r->where));
	struct log_text text = log_text_of(r->detail, sizeof(r->detail));

	log_text_word(&where, get_text(line, "unmapped", "session"));
	if (r->host == HOSTLOG_OPENED)
		put_opened(&text, line);
	else
		put_ended(&text, line);
	if (!earlier)
		return;
	put_break(&text);
	log_text_add(&text, "a log of %llu records is in ",
		     (unsigned long long)get_number(earlier, "records", NULL));
	log_text_put(&text, get_text(earlier, "directory", NULL));
}

/* What hostlog_record() writes; @r is all zeros. */
static bool take_host(const json_t *line, struct log_record *r)
{
	const char *product =
		get_text(get(line, "metadata", "product"), "name", NULL);
	const char *log = get_text(line, "metadata", "correlation_uid");
	const char *word = get_text(line, "unmapped", "event");
	const json_t *earlier = get(line, "unmapped", "earlier");

	for (int i = 1; word && i < HOSTLOG_EVENT_COUNT; i++)
		if (strcmp(word, hostlog_word((enum hostlog_event)i)) == 0)
			r->host = (enum hostlog_event)i;
	r->seen.time_ms = get_number(line, "time", NULL);
	r->kind = LOG_KIND_SESSION;
	r->verdict = LOG_EVENT;
	return r->host && r->seen.time_ms && product && log &&
	       strcmp(product, "sallyport") == 0 &&
	       strcmp(log, HOSTLOG_SESSION) == 0 &&
	       get_text(line, "unmapped", "session") &&
	       (!earlier || get_text(earlier, "directory", NULL));
}

/* --- all of it ----------------------------------------------------------- */

static void take_numbers(const json_t *line, struct log_record *r)
{
	const char *flow = get_text(line, "connection_info", "uid");

	r->flow = flow ? strtoull(flow, NULL, 10) : 0;
	r->has_traffic = json_is_object(get(line, "traffic", NULL));
	r->up = get_number(line, "traffic", "bytes_out");
	r->down = get_number(line, "traffic", "bytes_in");
	r->duration_ms = get_number(line, "duration", NULL);
}

enum log_fault log_record_parse(const char *line, size_t len,
				struct log_record *ret)
{
	json_t *json;
	enum observed seen;
	bool fine = true;

	if (len > OBSERVED_LINE_MAX)
		return LOG_TOO_LONG;
	memset(ret, 0, offsetof(struct log_record, where));
	seen = observed_parse_json(line, len, &ret->seen, &json);
	if (seen == OBSERVED_BAD && json && take_host(json, ret)) {
		put_host(json, ret);
		json_decref(json);
		return LOG_FINE;
	}
	if (seen == OBSERVED_BAD) {
		fine = json != NULL;
		json_decref(json);
		return fine ? LOG_NOT_OURS : LOG_NOT_JSON;
	}
	ret->kind = kind_of(ret->seen.kind);
	ret->judged = seen == OBSERVED_OK;
	ret->through = ret->judged && ret->kind != LOG_KIND_PACKET;
	if (seen == OBSERVED_OTHER)
		fine = take_other(json, ret);
	if (fine) {
		ret->verdict = judge(ret);
		take_numbers(json, ret);
		put_where(json, ret);
		put_rule(json, ret);
		put_detail(json, ret);
	}
	json_decref(json);
	return fine ? LOG_FINE : LOG_NOT_OURS;
}
