/* SPDX-License-Identifier: Apache-2.0
 *
 * record_json.c - an event as a line of the log: OCSF 1.8, as SIEMs read it.
 *
 *	6002 application lifecycle  a session opens and closes, another policy
 *	4003 DNS		    questions and answers
 *	4001 network		    connections and dropped packets
 *	4002 HTTP		    plain requests
 *	2004 detection finding	    what should not be
 *	5019 configuration state    the kernel's rules were put back
 *
 * Our own words go where the schema has room for them: the reason is
 * `status_code`, the rule `firewall_rule`, the rest is in `unmapped`.
 */
#include "audit/record.h"

#include <stdio.h>
#include <string.h>

#include "audit/sentence.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/json.h"

#define PRODUCT "sallyport"

enum ocsf_class {
	CLASS_FINDING = 2004,
	CLASS_NETWORK = 4001,
	CLASS_HTTP = 4002,
	CLASS_DNS = 4003,
	CLASS_CONFIG = 5019,
	CLASS_LIFECYCLE = 6002,
};
enum { ACTION_ALLOWED = 1, ACTION_DENIED = 2, ACTION_OBSERVED = 3 };
enum {
	DISPOSITION_ALLOWED = 1,
	DISPOSITION_BLOCKED = 2,
	DISPOSITION_DROPPED = 6,
	DISPOSITION_LOGGED = 17,
	DISPOSITION_REVOKED = 24,
	DISPOSITION_ERROR = 27
};
enum { SEVERITY_INFO = 1, SEVERITY_MEDIUM = 3, SEVERITY_HIGH = 4 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };

static const struct kind_info {
	const char *word;
	enum ocsf_class class;
	unsigned allowed, denied; /* activity_id */
} kinds[EVENT_KIND_COUNT] = {
	[EVENT_SESSION_OPEN] = { "session_open", CLASS_LIFECYCLE, 3, 3 },
	[EVENT_SESSION_CLOSE] = { "session_close", CLASS_LIFECYCLE, 4, 4 },
	[EVENT_DNS_QUERY] = { "dns_query", CLASS_DNS, 1, 1 },
	[EVENT_DNS_ANSWER] = { "dns_answer", CLASS_DNS, 2, 2 },
	[EVENT_FLOW_OPEN] = { "flow_open", CLASS_NETWORK, 1, 5 },
	[EVENT_FLOW_DIAL] = { "flow_dial", CLASS_NETWORK, 1, 4 },
	[EVENT_FLOW_PROGRESS] = { "flow_progress", CLASS_NETWORK, 6, 6 },
	[EVENT_FLOW_CLOSE] = { "flow_close", CLASS_NETWORK, 2, 2 },
	[EVENT_HTTP_REQUEST] = { "http_request", CLASS_HTTP, 99, 99 },
	[EVENT_PACKET] = { "packet", CLASS_NETWORK, 5, 5 },
	[EVENT_FINDING] = { "finding", CLASS_FINDING, 1, 1 },
	[EVENT_POLICY] = { "policy", CLASS_LIFECYCLE, 8, 8 }, /* update */
	[EVENT_RULESET] = { "ruleset", CLASS_CONFIG, 1, 1 },  /* log */
};

/* Longest strings, in bytes before they are escaped (which may make six of
 * one). With the first set, what record_decode() lets pass fits a line; the
 * second is for events that did not come that way. */
struct cut {
	size_t text, target, url;
};
static const struct cut cuts[] = { { 1024, 4096, 1024 }, { 256, 512, 256 } };

static unsigned http_activity(const char *method)
{
	static const char *const names[] = { "CONNECT", "DELETE",  "GET",
					     "HEAD",	"OPTIONS", "POST",
					     "PUT",	"TRACE",   "PATCH" };

	for (unsigned i = 0; method && i < ARRAY_SIZE(names); i++)
		if (strcmp(method, names[i]) == 0)
			return i + 1;
	return 99;
}

const char *event_word(enum event_kind kind)
{
	if (kind <= 0 || kind >= EVENT_KIND_COUNT)
		return "unknown";
	return kinds[kind].word;
}

static bool is_network(const struct audit_event *event)
{
	enum ocsf_class class = kinds[event->kind].class;

	return class == CLASS_NETWORK || class == CLASS_HTTP ||
	       class == CLASS_DNS;
}

/* Did the control let it pass, and only then something went wrong? */
static bool is_error(enum reason reason)
{
	return reason == REASON_RESOLVE_FAILED ||
	       reason == REASON_CONNECT_FAILED || reason == REASON_TIMEOUT;
}

/* A flow that was let through stays so, whatever ended it, unless we did. */
static bool was_allowed(const struct audit_event *event)
{
	if (event->kind == EVENT_FLOW_CLOSE && !event->verdict.allow &&
	    record_cuts(event->verdict.reason))
		return false;
	return event->verdict.allow || event->kind == EVENT_FLOW_PROGRESS ||
	       event->kind == EVENT_FLOW_CLOSE;
}

static void text(struct json *j, const char *key, const char *s, size_t max)
{
	if (s && *s)
		json_bytes(j, key, s, strnlen(s, max));
}

static void put_class(struct json *j, const struct audit_event *event)
{
	const struct kind_info *kind = &kinds[event->kind];
	unsigned class = kind->class;
	unsigned activity = event->verdict.allow ? kind->allowed : kind->denied;

	if (class == CLASS_HTTP)
		activity = http_activity(event->method);
	/* A dial that was forbidden is refused; else the network failed. */
	if (event->kind == EVENT_FLOW_DIAL && !event->verdict.allow &&
	    !is_error(event->verdict.reason))
		activity = 5;
	json_uint(j, "time", event->time_ms);
	json_uint(j, "class_uid", class);
	json_uint(j, "category_uid", class / 1000);
	json_uint(j, "activity_id", activity);
	json_uint(j, "type_uid", class * 100 + activity);
}

static void put_status_detail(struct json *j, const struct verdict *verdict)
{
	char detail[64];

	if (verdict->reason != REASON_OBSERVE)
		return;
	snprintf(detail, sizeof(detail), "would be refused: %s",
		 reason_word(verdict->observed));
	json_text(j, "status_detail", detail);
}

static void put_verdict(struct json *j, const struct audit_event *event)
{
	enum reason reason = event->verdict.reason;
	bool allow = was_allowed(event);
	bool good = allow && reason_info(reason)->allow;
	unsigned action =
		allow || is_error(reason) ? ACTION_ALLOWED : ACTION_DENIED;
	unsigned disposition =
		allow ? DISPOSITION_ALLOWED : DISPOSITION_BLOCKED;

	if (reason == REASON_OBSERVE) {
		action = ACTION_OBSERVED;
		disposition = DISPOSITION_LOGGED;
	} else if (is_error(reason)) {
		disposition = DISPOSITION_ERROR;
	} else if (event->kind == EVENT_PACKET) {
		disposition = DISPOSITION_DROPPED;
	} else if (reason == REASON_POLICY_REVOKED && !allow) {
		disposition = DISPOSITION_REVOKED;
	}
	json_uint(j, "severity_id",
		  action == ACTION_DENIED ? SEVERITY_MEDIUM : SEVERITY_INFO);
	json_uint(j, "status_id", good ? STATUS_SUCCESS : STATUS_FAILURE);
	json_text(j, "status_code", reason_word(reason));
	put_status_detail(j, &event->verdict);
	json_uint(j, "action_id", action);
	json_uint(j, "disposition_id", disposition);
}

static void put_status(struct json *j, const struct audit_event *event)
{
	bool finding = event->kind == EVENT_FINDING;

	if (is_network(event)) {
		put_verdict(j, event);
		return;
	}
	json_uint(j, "severity_id", finding ? SEVERITY_HIGH : SEVERITY_INFO);
	json_uint(j, "status_id", STATUS_SUCCESS); /* of a finding: New */
	if (finding) {
		json_text(j, "status_code", reason_word(event->verdict.reason));
		json_bool(j, "is_alert", true);
	}
}

static void put_product(struct json *j, const char *key)
{
	json_open(j, key, '{');
	json_text(j, "name", PRODUCT);
	json_text(j, "vendor_name", PRODUCT);
	json_text(j, "version", SALLYPORT_VERSION);
	json_close(j, '}');
}

static void put_uid(struct json *j, const char *key, uint64_t sequence,
		    const struct record_context *context)
{
	char uid[128];

	snprintf(uid, sizeof(uid), "%.80s/%llu",
		 context->session ? context->session : "",
		 (unsigned long long)sequence);
	json_text(j, key, uid);
}

static void put_metadata(struct json *j, uint64_t sequence,
			 const struct record_context *context)
{
	json_open(j, "metadata", '{');
	json_text(j, "version", "1.8.0");
	put_product(j, "product");
	json_uint(j, "sequence", sequence);
	put_uid(j, "uid", sequence, context);
	text(j, "correlation_uid", context->session, 80);
	json_open(j, "profiles", '[');
	json_text(j, NULL, "security_control");
	json_close(j, ']');
	json_close(j, '}');
}

static void put_endpoint(struct json *j, const char *key, const char *host,
			 const struct ip *ip, uint16_t port,
			 const struct cut *cut)
{
	char buf[IP_TEXT_MAX];

	if (!host && !ip->len && !port)
		return;
	json_open(j, key, '{');
	text(j, "hostname", host, cut->text);
	json_text(j, "ip", ip_format(ip, buf));
	if (port)
		json_uint(j, "port", port);
	json_close(j, '}');
}

static void put_connection(struct json *j, const struct audit_event *event)
{
	const char *protocol = event->protocol;
	char uid[24];

	if (!event->flow && !protocol)
		return;
	/* The schema wants the IP protocol here; ours is in unmapped. */
	if (protocol &&
	    (strcmp(protocol, "tls") == 0 || strcmp(protocol, "http") == 0))
		protocol = "tcp";
	json_open(j, "connection_info", '{');
	if (event->flow) {
		snprintf(uid, sizeof(uid), "%llu",
			 (unsigned long long)event->flow);
		json_text(j, "uid", uid);
	}
	text(j, "protocol_name", protocol, 32);
	json_text(j, "direction", "Outbound");
	json_uint(j, "direction_id", 2);
	json_close(j, '}');
}

static void put_network(struct json *j, const struct audit_event *event,
			const struct cut *cut)
{
	bool dns = kinds[event->kind].class == CLASS_DNS;

	if (!is_network(event))
		return;
	put_endpoint(j, "src_endpoint", NULL, &event->src_ip, event->src_port,
		     cut);
	put_endpoint(j, "dst_endpoint", dns ? NULL : event->host,
		     &event->dst_ip, event->dst_port, cut);
	put_connection(j, event);
	if (event->sni) {
		json_open(j, "tls", '{');
		json_bytes(j, "sni", event->sni,
			   strnlen(event->sni, cut->text));
		json_close(j, '}');
	}
	if (event->kind == EVENT_FLOW_PROGRESS ||
	    event->kind == EVENT_FLOW_CLOSE) {
		json_open(j, "traffic", '{');
		json_uint(j, "bytes_out", event->bytes_up);
		json_uint(j, "bytes_in", event->bytes_down);
		json_uint(j, "bytes", event->bytes_up + event->bytes_down);
		json_close(j, '}');
		json_uint(j, "duration", event->duration_ms);
	}
	if (event->kind == EVENT_PACKET || event->count > 1)
		json_uint(j, "count", event->count ? event->count : 1);
}

static void put_answers(struct json *j, const struct audit_event *event)
{
	char buf[IP_TEXT_MAX];

	json_open(j, "answers", '[');
	for (uint8_t i = 0; i < event->answers && i < EVENT_ANSWERS_MAX; i++) {
		const struct ip *ip = &event->answer[i];

		if (!ip->len)
			continue;
		json_open(j, NULL, '{');
		json_text(j, "rdata", ip_format(ip, buf));
		json_text(j, "type", ip->len == 4 ? "A" : "AAAA");
		json_text(j, "class", "IN");
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_dns(struct json *j, const struct audit_event *event,
		    const struct cut *cut)
{
	static const char *const rcodes[] = {
		"NoError", "FormError", "ServError", "NXDomain",
		"NotImp",  "Refused",	"YXDomain",  "YXRRSet",
		"NXRRSet", "NotAuth",	"NotZone",
	};
	bool known = event->rcode < ARRAY_SIZE(rcodes);
	char buf[16];

	if (kinds[event->kind].class != CLASS_DNS)
		return;
	json_open(j, "query", '{');
	text(j, "hostname", event->host ? event->host : ".", cut->text);
	json_text(j, "type", dns_type_word(event->qtype, buf));
	json_text(j, "class", "IN");
	json_close(j, '}');
	/* An allowed question has no answer yet. */
	if (event->kind == EVENT_DNS_QUERY && event->verdict.allow)
		return;
	if (event->kind == EVENT_DNS_ANSWER)
		put_answers(j, event);
	json_uint(j, "rcode_id", known ? event->rcode : 99);
	json_text(j, "rcode", known ? rcodes[event->rcode] : "Other");
}

static void put_url(struct json *j, const struct audit_event *event,
		    const struct cut *cut)
{
	const char *target = event->target ? event->target : "";
	const char *path_end = strchr(target, '?');
	size_t path = path_end ? (size_t)(path_end - target) : strlen(target);
	char ip[IP_TEXT_MAX], url[1200], port[8] = "";
	const char *host =
		event->host ? event->host : ip_format(&event->dst_ip, ip);
	bool brackets = strchr(host, ':') != NULL;
	size_t cap = cut->url < sizeof(url) ? cut->url : sizeof(url);

	json_open(j, "url", '{');
	json_text(j, "scheme", "http");
	text(j, "hostname", host, cut->text);
	if (event->dst_port)
		json_uint(j, "port", event->dst_port);
	if (path > cut->target)
		path = cut->target;
	if (path)
		json_bytes(j, "path", target, path);
	if (path_end)
		text(j, "query_string", path_end + 1, cut->target - path);
	if (event->dst_port)
		snprintf(port, sizeof(port), ":%u", event->dst_port);
	snprintf(url, cap, "http://%s%.400s%s%s%s", brackets ? "[" : "", host,
		 brackets ? "]" : "", port, target);
	json_text(j, "url_string", url);
	json_close(j, '}');
}

static void put_http(struct json *j, const struct audit_event *event,
		     const struct cut *cut)
{
	if (kinds[event->kind].class != CLASS_HTTP)
		return;
	json_open(j, "http_request", '{');
	text(j, "http_method", event->method, 64);
	put_url(j, event, cut);
	json_close(j, '}');
	if (event->status) {
		json_open(j, "http_response", '{');
		json_uint(j, "code", event->status);
		json_close(j, '}');
	}
}

/* Who did it. */
static void put_evidence(struct json *j, const struct audit_event *event)
{
	if (!event->pid && !event->process)
		return;
	json_open(j, "evidences", '[');
	json_open(j, NULL, '{');
	json_open(j, "process", '{');
	text(j, "name", event->process, 32);
	if (event->pid)
		json_uint(j, "pid", event->pid);
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, ']');
}

static void put_device(struct json *j, const struct record_context *context)
{
	json_open(j, "device", '{');
	json_uint(j, "type_id", 0);
	json_text(j, "type", "Unknown");
	text(j, "name", context->sandbox_name, 128);
	json_close(j, '}');
}

/* What the schema demands of the classes that are not about packets. */
static void put_subject(struct json *j, const struct audit_event *event,
			uint64_t sequence, const struct record_context *context,
			const struct cut *cut)
{
	if (kinds[event->kind].class == CLASS_LIFECYCLE)
		put_product(j, "app");
	if (kinds[event->kind].class == CLASS_CONFIG)
		put_device(j, context);
	if (kinds[event->kind].class != CLASS_FINDING)
		return;
	json_open(j, "finding_info", '{');
	text(j, "title", event->detail ? event->detail : "finding", cut->text);
	put_uid(j, "uid", sequence, context);
	json_close(j, '}');
	put_evidence(j, event);
}

/* What an earlier session left in the same place. */
static void put_earlier(struct json *j, const struct record_earlier *earlier)
{
	json_open(j, "earlier", '{');
	json_uint(j, "records", earlier->lines);
	json_uint(j, "bytes", earlier->bytes);
	json_bool(j, "receipt", earlier->receipt);
	text(j, "checkpoint", earlier->checkpoint, 1024);
	json_close(j, '}');
}

/* What makes the lines a chain, and the first one its anchor. */
static void put_chain(struct json *j, const struct audit_event *event,
		      const struct record_context *context)
{
	char hex[2 * RECORD_HASH + 1], ruleset[80];

	if (context->prev)
		json_text(j, "prev",
			  hex_format(context->prev, RECORD_HASH, hex));
	if (event->kind != EVENT_SESSION_OPEN)
		return;
	if (context->ruleset_digest && *context->ruleset_digest) {
		snprintf(ruleset, sizeof(ruleset), "sha256:%.64s",
			 context->ruleset_digest);
		json_text(j, "ruleset", ruleset);
	}
	if (context->earlier)
		put_earlier(j, context->earlier);
}

static void put_policy(struct json *j, const struct audit_event *event,
		       const struct record_context *context,
		       const struct cut *cut)
{
	char uid[80];

	if (event->rule) {
		json_open(j, "firewall_rule", '{');
		text(j, "uid", event->rule, cut->text);
		text(j, "name", event->rule_text, cut->text);
		json_close(j, '}');
	}
	json_open(j, "policy", '{');
	if (context->policy_digest && *context->policy_digest) {
		snprintf(uid, sizeof(uid), "sha256:%.64s",
			 context->policy_digest);
		json_text(j, "uid", uid);
	}
	text(j, "name", context->policy_name, 128);
	json_close(j, '}');
}

static void put_unmapped(struct json *j, const struct audit_event *event,
			 const struct record_context *context,
			 const struct cut *cut)
{
	json_open(j, "unmapped", '{');
	json_text(j, "event", event_word(event->kind));
	text(j, "boundary", context->boundary, 32);
	text(j, "sandbox", context->sandbox_name, 128);
	json_uint(j, "sandbox_id", event->sandbox);
	if (is_network(event) && event->kind != EVENT_PACKET)
		json_text(j, "door", door_word(event->door));
	text(j, "protocol", event->protocol, 32);
	if (event->kind == EVENT_FLOW_CLOSE && event->status)
		json_uint(j, "http_status", event->status);
	if (is_network(event) && event->verdict.reason == REASON_OBSERVE)
		json_text(j, "observed", reason_word(event->verdict.observed));
	text(j, "detail", event->detail, cut->text);
	put_chain(j, event, context);
	json_close(j, '}');
}

size_t record_format(const struct audit_event *event, uint64_t sequence,
		     const struct record_context *context, char *buf,
		     size_t cap)
{
	char sentence[512];

	if (event->kind <= 0 || event->kind >= EVENT_KIND_COUNT)
		return 0;
	if (cap > RECORD_LINE_MAX)
		cap = RECORD_LINE_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		struct json j = json_of(buf, cap);

		json_open(&j, NULL, '{');
		put_class(&j, event);
		put_status(&j, event);
		json_text(&j, "message",
			  event_sentence(event, sentence, sizeof(sentence)));
		put_metadata(&j, sequence, context);
		put_subject(&j, event, sequence, context, &cuts[i]);
		put_network(&j, event, &cuts[i]);
		put_dns(&j, event, &cuts[i]);
		put_http(&j, event, &cuts[i]);
		put_policy(&j, event, context, &cuts[i]);
		put_unmapped(&j, event, context, &cuts[i]);
		json_close(&j, '}');
		if (!j.full)
			return j.len;
	}
	return 0;
}
