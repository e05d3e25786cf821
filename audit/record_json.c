/* SPDX-License-Identifier: Apache-2.0
 *
 * record_json.c - an event as a line of the log: OCSF 1.8, as SIEMs read it.
 *
 * Our own words go where the schema has room for them: the reason is
 * `status_code`, the rule `firewall_rule`, the rest is in `unmapped`.
 */
#include "audit/record.h"

#include <string.h>

#include "audit/record_class.h"
#include "audit/record_frame.h"
#include "audit/sentence.h"
#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/json.h"

#define URL_MAX	     1024
#define URL_HOST_MAX 400

/* Longest strings, in bytes before they are escaped (which may make six of
 * one). With the first set, what record_decode() lets pass fits a line; the
 * second is for events that did not come that way. */
struct cut {
	size_t text, target, url;
};
static const struct cut cuts[] = { { 1024, 4096, URL_MAX - 1 },
				   { 256, 512, 255 } };

/* At most @max bytes of @s, behind what is there. */
static char *add(char *to, const char *s, size_t max)
{
	size_t len = strnlen(s, max);

	memcpy(to, s, len);
	to[len] = '\0';
	return to + len;
}

static char *add_decimal(char *to, uint64_t v)
{
	char digits[DECIMAL_MAX];

	return stpcpy(to, decimal_format(v, digits));
}

static void put_ip(struct json *j, const char *key, const struct ip *ip)
{
	char buf[IP_TEXT_MAX];

	if (ip->len)
		json_word(j, key, ip_format(ip, buf));
}

static void put_endpoint(struct json *j, const char *key, const char *host,
			 const struct ip *ip, uint16_t port,
			 const struct cut *cut)
{
	if (!host && !ip->len && !port)
		return;
	json_open(j, key, '{');
	json_some(j, "hostname", host, cut->text);
	put_ip(j, "ip", ip);
	if (port)
		json_uint(j, "port", port);
	json_close(j, '}');
}

static void put_connection(struct json *j, const struct audit_event *event)
{
	const char *protocol = event->protocol;
	char buf[DECIMAL_MAX];

	if (!event->flow && !protocol)
		return;
	/* The schema wants the IP protocol here; ours is in unmapped. */
	if (protocol &&
	    (strcmp(protocol, "tls") == 0 || strcmp(protocol, "http") == 0))
		protocol = "tcp";
	json_open(j, "connection_info", '{');
	if (event->flow)
		json_word(j, "uid", decimal_format(event->flow, buf));
	json_some(j, "protocol_name", protocol, 32);
	json_members(j,
		     event->door == DOOR_PUBLISHED
			     ? "\"direction\":\"Inbound\",\"direction_id\":1"
			     : "\"direction\":\"Outbound\",\"direction_id\":2");
	json_close(j, '}');
}

static void put_network(struct json *j, const struct audit_event *event,
			const struct cut *cut)
{
	bool dns = record_class(event->kind) == CLASS_DNS;

	if (!record_is_network(event->kind))
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
		json_uint(j, "bytes",
			  record_sum(event->bytes_up, event->bytes_down));
		json_close(j, '}');
		json_uint(j, "duration", event->duration_ms);
	}
	/* An answer has one only if it stands for repeated ones. */
	if (event->kind == EVENT_PACKET || event->count > 1 ||
	    (event->kind == EVENT_DNS_ANSWER && event->count))
		json_uint(j, "count", event->count ? event->count : 1);
}

static void put_answers(struct json *j, const struct audit_event *event)
{
	json_open(j, "answers", '[');
	for (uint8_t i = 0; i < event->answers && i < EVENT_ANSWERS_MAX; i++) {
		const struct ip *ip = &event->answer[i];

		if (!ip->len)
			continue;
		json_open(j, NULL, '{');
		put_ip(j, "rdata", ip);
		json_members(j, ip->len == 4 ? "\"type\":\"A\""
					     : "\"type\":\"AAAA\"");
		json_members(j, "\"class\":\"IN\"");
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

	if (record_class(event->kind) != CLASS_DNS)
		return;
	json_open(j, "query", '{');
	json_some(j, "hostname", event->host ? event->host : ".", cut->text);
	json_word(j, "type", dns_type_word(event->qtype, buf));
	json_members(j, "\"class\":\"IN\"");
	json_close(j, '}');
	/* An allowed question has no answer yet. */
	if (event->kind == EVENT_DNS_QUERY && event->verdict.allow)
		return;
	if (event->kind == EVENT_DNS_ANSWER)
		put_answers(j, event);
	json_uint(j, "rcode_id", known ? event->rcode : 99);
	json_word(j, "rcode", known ? rcodes[event->rcode] : "Other");
}

/* "http://host:port/path?query", cut where there is no more room. */
static void put_url_string(struct json *j, const struct audit_event *event,
			   const char *host, const char *target, size_t cap)
{
	char buf[URL_MAX + URL_HOST_MAX + 32], *to = buf;
	bool brackets = strchr(host, ':') != NULL;

	to = stpcpy(to, brackets ? "http://[" : "http://");
	to = add(to, host, URL_HOST_MAX);
	if (brackets)
		*to++ = ']';
	if (event->dst_port) {
		*to++ = ':';
		to = add_decimal(to, event->dst_port);
	}
	to = add(to, target, cap);
	json_some(j, "url_string", buf, cap);
}

static void put_url(struct json *j, const struct audit_event *event,
		    const struct cut *cut)
{
	const char *target = event->target ? event->target : "";
	const char *path_end = strchr(target, '?');
	size_t path = path_end ? (size_t)(path_end - target) : strlen(target);
	char ip[IP_TEXT_MAX];
	const char *host =
		event->host ? event->host : ip_format(&event->dst_ip, ip);

	json_open(j, "url", '{');
	json_text(j, "scheme", "http");
	json_some(j, "hostname", host, cut->text);
	if (event->dst_port)
		json_uint(j, "port", event->dst_port);
	if (path > cut->target)
		path = cut->target;
	if (path)
		json_bytes(j, "path", target, path);
	if (path_end)
		json_some(j, "query_string", path_end + 1, cut->target - path);
	put_url_string(j, event, host, target, cut->url);
	json_close(j, '}');
}

static void put_http(struct json *j, const struct audit_event *event,
		     const struct cut *cut)
{
	if (record_class(event->kind) != CLASS_HTTP)
		return;
	json_open(j, "http_request", '{');
	json_some(j, "http_method", event->method, 64);
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
	json_some(j, "name", event->process, 32);
	if (event->pid)
		json_uint(j, "pid", event->pid);
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, ']');
}

static void put_device(struct json *j, const struct record_context *context)
{
	json_open(j, "device", '{');
	json_members(j, "\"type_id\":0,\"type\":\"Unknown\"");
	json_some(j, "name", context->sandbox_name, 128);
	json_close(j, '}');
}

/* What the schema demands of the classes that are not about packets. */
static void put_subject(struct json *j, const struct audit_event *event,
			uint64_t sequence, const struct record_context *context,
			const struct record_frame *frame, const struct cut *cut)
{
	if (record_class(event->kind) == CLASS_LIFECYCLE)
		json_members(j, "\"app\":" RECORD_PRODUCT);
	if (record_class(event->kind) == CLASS_CONFIG)
		put_device(j, context);
	if (record_class(event->kind) != CLASS_FINDING)
		return;
	json_open(j, "finding_info", '{');
	json_some(j, "title", event->detail ? event->detail : "finding",
		  cut->text);
	record_frame_put_uid(frame, sequence, j);
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
	json_some(j, "checkpoint", earlier->checkpoint, 1024);
	json_close(j, '}');
}

/* What makes the lines a chain, and the first one its anchor. */
static void put_chain(struct json *j, const struct audit_event *event,
		      const struct record_context *context)
{
	char hex[2 * RECORD_HASH + 1];

	if (context->prev)
		json_word(j, "prev",
			  hex_format(context->prev, RECORD_HASH, hex));
	if (event->kind != EVENT_SESSION_OPEN)
		return;
	record_put_digest(j, "ruleset", context->ruleset_digest);
	if (context->earlier)
		put_earlier(j, context->earlier);
}

static void put_policy(struct json *j, const struct audit_event *event,
		       const struct record_frame *frame, const struct cut *cut)
{
	if (event->rule) {
		json_open(j, "firewall_rule", '{');
		json_some(j, "uid", event->rule, cut->text);
		json_some(j, "name", event->rule_text, cut->text);
		json_close(j, '}');
	}
	record_frame_put_policy(frame, j);
}

static void put_unmapped(struct json *j, const struct audit_event *event,
			 const struct record_context *context,
			 const struct record_frame *frame,
			 const struct cut *cut)
{
	json_open(j, "unmapped", '{');
	json_word(j, "event", event_word(event->kind));
	record_frame_put_place(frame, j);
	json_uint(j, "sandbox_id", event->sandbox);
	if (record_is_network(event->kind) && event->kind != EVENT_PACKET)
		json_word(j, "door", door_word(event->door));
	json_some(j, "protocol", event->protocol, 32);
	if (event->ech)
		json_bool(j, "ech", true);
	if (event->kind == EVENT_FLOW_CLOSE && event->status)
		json_uint(j, "http_status", event->status);
	if (record_is_network(event->kind) &&
	    event->verdict.reason == REASON_OBSERVE)
		json_word(j, "observed", reason_word(event->verdict.observed));
	json_some(j, "detail", event->detail, cut->text);
	if (event->kind == EVENT_FINDING && event->by_gate)
		json_members(j, "\"from\":\"gate\"");
	put_chain(j, event, context);
	json_close(j, '}');
}

static void put_record(struct json *j, const struct audit_event *event,
		       uint64_t sequence, const struct record_context *context,
		       const struct record_frame *frame, const struct cut *cut)
{
	char sentence[512];

	json_open(j, NULL, '{');
	record_put_class(j, event);
	json_text(j, "message",
		  event_sentence(event, sentence, sizeof(sentence)));
	record_frame_put_metadata(frame, sequence, j);
	put_subject(j, event, sequence, context, frame, cut);
	put_network(j, event, cut);
	put_dns(j, event, cut);
	put_http(j, event, cut);
	put_policy(j, event, frame, cut);
	put_unmapped(j, event, context, frame, cut);
	json_close(j, '}');
}

size_t record_format(const struct audit_event *event, uint64_t sequence,
		     const struct record_context *context, char *buf,
		     size_t cap)
{
	struct record_frame own;
	const struct record_frame *frame = context->frame;

	if (event->kind <= 0 || event->kind >= EVENT_KIND_COUNT)
		return 0;
	if (!frame) {
		record_frame_make(context, &own);
		frame = &own;
	}
	if (cap > RECORD_LINE_MAX)
		cap = RECORD_LINE_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		struct json j = json_of(buf, cap);

		put_record(&j, event, sequence, context, frame, &cuts[i]);
		if (!j.full)
			return j.len;
	}
	return 0;
}
