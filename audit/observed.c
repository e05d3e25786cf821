/* SPDX-License-Identifier: Apache-2.0
 *
 * observed.c - one line: parsed as JSON, then each field is looked up and
 * checked. A field that is missing or odd where record_format() always writes
 * it makes the whole line no record: what is learned must not rest on a guess.
 */
#include "audit/observed.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/record.h"
#include "base/cleanup.h"

static const json_t *get(const json_t *object, const char *a, const char *b)
{
	const json_t *value = json_object_get(object, a);

	return b ? json_object_get(value, b) : value;
}

/* NULL if it is no text. */
static const char *get_text(const json_t *object, const char *a, const char *b)
{
	return json_string_value(get(object, a, b));
}

/* An integer from 0 to @max; false if there is none. */
static bool get_number(const json_t *object, const char *a, const char *b,
		       uint64_t max, uint64_t *ret)
{
	const json_t *value = get(object, a, b);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > max)
		return false;
	*ret = (uint64_t)json_integer_value(value);
	return true;
}

static void copy(char *to, size_t cap, const char *from)
{
	snprintf(to, cap, "%s", from ? from : "");
}

static bool find_kind(const char *word, enum event_kind *ret)
{
	for (int i = 1; word && i < EVENT_KIND_COUNT; i++) {
		if (strcmp(event_word((enum event_kind)i), word) != 0)
			continue;
		*ret = (enum event_kind)i;
		return true;
	}
	return false;
}

static bool find_reason(const char *word, enum reason *ret)
{
	for (int i = 0; word && i < REASON_COUNT; i++) {
		if (strcmp(reason_word((enum reason)i), word) != 0)
			continue;
		*ret = (enum reason)i;
		return true;
	}
	return false;
}

static bool find_door(const char *word, enum door *ret)
{
	for (int i = 0; word && i < DOOR_COUNT; i++) {
		if (strcmp(door_word((enum door)i), word) != 0)
			continue;
		*ret = (enum door)i;
		return true;
	}
	return false;
}

/* FNV-1a; who can write a log needs no collision to lie in it. */
static uint64_t hash(const char *text)
{
	uint64_t h = 14695981039346656037u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211u;
	return h;
}

/* The decimal digits of a flow's number. */
static bool parse_flow(const char *text, uint64_t *ret)
{
	char *end;

	if (!text || *text < '1' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool take_verdict(const json_t *line, struct verdict *ret)
{
	uint64_t status;

	if (!find_reason(get_text(line, "status_code", NULL), &ret->reason) ||
	    !get_number(line, "status_id", NULL, 2, &status))
		return false;
	ret->allow = status == 1;
	if (ret->allow != reason_info(ret->reason)->allow)
		return false;
	if (ret->reason != REASON_OBSERVE)
		return !get(line, "unmapped", "observed");
	return find_reason(get_text(line, "unmapped", "observed"),
			   &ret->observed) &&
	       record_relaxable(ret->observed);
}

/* A name that was refused because it is none is seen, too. */
static bool take_host(const json_t *line, const char *where,
		      struct observation *o)
{
	const char *host = get_text(line, where, "hostname");

	if (!host)
		return true;
	if (host_canonical(host, strlen(host), o->host))
		return true;
	o->strange = true;
	return !o->verdict.allow;
}

static bool take_dns(const json_t *line, struct observation *o)
{
	copy(o->type, sizeof(o->type), get_text(line, "query", "type"));
	return *o->type && take_host(line, "query", o);
}

static bool take_flow(const json_t *line, struct observation *o)
{
	const json_t *request = get(line, "http_request", NULL);
	const char *ip = get_text(line, "dst_endpoint", "ip");
	uint64_t port = 0;

	if (!take_host(line, "dst_endpoint", o) ||
	    !parse_flow(get_text(line, "connection_info", "uid"), &o->flow))
		return false;
	if (ip && !ip_parse(ip, &o->address))
		return false;
	/* Without a port it was refused: malformed, or 0 was asked for. */
	if (!get_number(line, "dst_endpoint", "port", UINT16_MAX, &port) &&
	    o->verdict.allow)
		return false;
	o->port = (uint16_t)port;
	if (o->verdict.allow && (!port || (!*o->host && !o->address.len)))
		return false;
	copy(o->protocol, sizeof(o->protocol),
	     get_text(line, "unmapped", "protocol"));
	copy(o->method, sizeof(o->method),
	     get_text(request, "http_method", NULL));
	copy(o->path, sizeof(o->path), get_text(request, "url", "path"));
	return true;
}

/* A packet to an address that stood for a name: never more than a refusal. */
static bool take_packet(const json_t *line, struct observation *o)
{
	uint64_t port = 0;

	if (o->verdict.allow || !take_host(line, "dst_endpoint", o))
		return false;
	get_number(line, "dst_endpoint", "port", UINT16_MAX, &port);
	o->port = (uint16_t)port;
	copy(o->protocol, sizeof(o->protocol),
	     get_text(line, "unmapped", "protocol"));
	return true;
}

static bool take_what(const json_t *line, struct observation *o)
{
	if (!take_verdict(line, &o->verdict))
		return false;
	if (o->kind == EVENT_PACKET)
		return take_packet(line, o);
	if (!find_door(get_text(line, "unmapped", "door"), &o->door))
		return false;
	if (o->kind == EVENT_DNS_QUERY || o->kind == EVENT_DNS_ANSWER)
		return take_dns(line, o);
	return take_flow(line, o);
}

static enum observed take(const json_t *line, struct observation *o)
{
	const char *product, *session;
	uint64_t sandbox;

	product = json_string_value(
		json_object_get(get(line, "metadata", "product"), "name"));
	session = get_text(line, "metadata", "correlation_uid");
	if (!product || strcmp(product, "sallyport") != 0 || !session ||
	    !find_kind(get_text(line, "unmapped", "event"), &o->kind) ||
	    !get_number(line, "time", NULL, INT64_MAX, &o->time_ms) ||
	    !get_number(line, "unmapped", "sandbox_id", UINT32_MAX, &sandbox))
		return OBSERVED_BAD;
	o->session = hash(session);
	o->sandbox = (uint32_t)sandbox;
	switch (o->kind) {
	case EVENT_DNS_QUERY:
	case EVENT_DNS_ANSWER:
	case EVENT_FLOW_OPEN:
	case EVENT_FLOW_DIAL:
	case EVENT_FLOW_CLOSE:
	case EVENT_HTTP_REQUEST:
		break;
	case EVENT_PACKET:
		if (get(line, "dst_endpoint", "hostname"))
			break;
		return OBSERVED_OTHER;
	default:
		return OBSERVED_OTHER;
	}
	return take_what(line, o) ? OBSERVED_OK : OBSERVED_BAD;
}

enum observed observed_parse_json(const char *line, size_t len,
				  struct observation *ret,
				  struct json_t **ret_json)
{
	struct observation o = { .port = 0 };
	enum observed result;
	json_t *json;

	*ret_json = NULL;
	/* jansson passes over some NULs as if they were blanks. */
	if (len > OBSERVED_LINE_MAX || memchr(line, '\0', len))
		return OBSERVED_BAD;
	json = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(json)) {
		json_decref(json);
		return OBSERVED_BAD;
	}
	result = take(json, &o);
	if (result != OBSERVED_BAD)
		*ret = o;
	*ret_json = json;
	return result;
}

enum observed observed_parse(const char *line, size_t len,
			     struct observation *ret)
{
	json_t *json;
	enum observed result = observed_parse_json(line, len, ret, &json);

	json_decref(json);
	return result;
}
