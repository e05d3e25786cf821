/* SPDX-License-Identifier: Apache-2.0
 *
 * sentence.c - an event in plain English: what, where, and why not. Each record
 * has one, so it is put together from its pieces, without printf.
 */
#include "audit/sentence.h"

#include <stdio.h>
#include <string.h>

#include "audit/record.h"
#include "audit/text.h"
#include "base/cleanup.h"

const char *dns_type_word(uint16_t type, char buf[16])
{
	static const struct {
		uint16_t type;
		const char *name;
	} names[] = {
		{ 1, "A" },	 { 2, "NS" },	   { 5, "CNAME" },
		{ 6, "SOA" },	 { 10, "NULL" },   { 12, "PTR" },
		{ 13, "HINFO" }, { 15, "MX" },	   { 16, "TXT" },
		{ 28, "AAAA" },	 { 33, "SRV" },	   { 35, "NAPTR" },
		{ 43, "DS" },	 { 48, "DNSKEY" }, { 52, "TLSA" },
		{ 64, "SVCB" },	 { 65, "HTTPS" },  { 251, "IXFR" },
		{ 252, "AXFR" }, { 255, "ANY" },   { 257, "CAA" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].type == type)
			return names[i].name;
	snprintf(buf, 16, "TYPE%u", type);
	return buf;
}

#define NAME_MAX_SAID 253

/* At most @max bytes of @s. */
static void say(struct out *out, const char *s, size_t max)
{
	out_put(out, s, strnlen(s, max));
}

/* "api.example.com port 443", or the address in place of a name. */
static void say_place(struct out *out, const struct audit_event *event)
{
	char ip[IP_TEXT_MAX];
	const char *host =
		event->host ? event->host : ip_format(&event->dst_ip, ip);

	if (!*host)
		host = event->dst_port ? "an unnamed host" : "nowhere";
	say(out, host, NAME_MAX_SAID);
	if (event->dst_port) {
		out_text(out, " port ");
		out_decimal(out, event->dst_port);
	}
}

/* "allowed", or "refused: the host is not in the policy" */
static void say_outcome(struct out *out, const struct audit_event *event)
{
	if (event->verdict.reason == REASON_OBSERVE) {
		out_text(out, "allowed, would be refused: ");
		out_text(out, reason_word(event->verdict.observed));
	} else if (event->verdict.allow) {
		out_text(out, "allowed");
	} else {
		out_text(out, "refused: ");
		out_text(out, reason_info(event->verdict.reason)->text);
	}
}

static void say_connection(struct out *out, const struct audit_event *event)
{
	out_text(out, event->door == DOOR_PUBLISHED
			      ? "Connection from outside to "
			      : "Connection to ");
}

static void say_traffic(struct out *out, const struct audit_event *event)
{
	bool ended = event->kind == EVENT_FLOW_CLOSE;

	say_connection(out, event);
	say_place(out, event);
	if (ended && !event->verdict.allow &&
	    record_cuts(event->verdict.reason)) {
		out_text(out, " was cut, ");
		out_text(out, reason_info(event->verdict.reason)->text);
	} else {
		out_text(out, ended ? " ended" : " goes on");
	}
	out_text(out, ": ");
	out_decimal(out, event->bytes_up);
	out_text(out, " bytes sent, ");
	out_decimal(out, event->bytes_down);
	out_text(out, " received");
}

static void say_dial(struct out *out, const struct audit_event *event)
{
	bool allow = event->verdict.allow;

	out_text(out, allow ? "Connected to " : "No connection to ");
	say_place(out, event);
	if (allow)
		return;
	out_text(out, ": ");
	out_text(out, reason_info(event->verdict.reason)->text);
}

static void say_packet(struct out *out, const struct audit_event *event)
{
	out_decimal(out, event->count ? event->count : 1);
	out_text(out, " ");
	say(out, event->protocol ? event->protocol : "other", 16);
	out_text(out, event->count > 1 ? " packets to " : " packet to ");
	if (event->host || event->dst_ip.len)
		say_place(out, event);
	else
		out_text(out, "many places");
	out_text(out, " dropped");
}

static void say_request(struct out *out, const struct audit_event *event)
{
	if (event->kind == EVENT_HTTP_REQUEST) {
		out_text(out, "HTTP ");
		say(out, event->method ? event->method : "?", 64);
		out_text(out, " request to ");
	} else {
		say_connection(out, event);
	}
	say_place(out, event);
	out_text(out, " ");
	say_outcome(out, event);
}

static void say_name(struct out *out, const struct audit_event *event)
{
	bool answer = event->kind == EVENT_DNS_ANSWER;
	bool answered = answer && event->verdict.allow;
	char type[16];

	out_text(out,
		 answer && !answered ? "DNS answer for " : "DNS question for ");
	say(out, event->host && *event->host ? event->host : ".",
	    NAME_MAX_SAID);
	out_text(out, " (");
	out_text(out, dns_type_word(event->qtype, type));
	out_text(out, ") ");
	if (!answered) {
		say_outcome(out, event);
		return;
	}
	out_text(out, "answered with ");
	out_decimal(out, event->answers);
	out_text(out, event->answers == 1 ? " address" : " addresses");
}

static void say_event(struct out *out, const struct audit_event *event)
{
	switch (event->kind) {
	case EVENT_SESSION_OPEN:
		out_text(out, "The session began");
		break;
	case EVENT_SESSION_CLOSE:
		out_text(out, "The session ended");
		break;
	case EVENT_POLICY:
		out_text(out, "Another policy is in force");
		break;
	case EVENT_RULESET:
		out_text(out, "The kernel's rules were put back");
		break;
	case EVENT_EXEC:
		out_text(out, "A command is about to start");
		break;
	case EVENT_ATTACKS:
		out_text(out, "Its boundary was attacked to prove it");
		break;
	case EVENT_DNS_QUERY:
	case EVENT_DNS_ANSWER:
		say_name(out, event);
		break;
	case EVENT_FLOW_DIAL:
		say_dial(out, event);
		break;
	case EVENT_FLOW_PROGRESS:
	case EVENT_FLOW_CLOSE:
		say_traffic(out, event);
		break;
	case EVENT_PACKET:
		say_packet(out, event);
		break;
	default:
		say_request(out, event);
	}
}

const char *event_sentence(const struct audit_event *event, char *buf,
			   size_t cap)
{
	struct out out = { .buf = buf, .cap = cap - 1 };

	if (event->kind == EVENT_FINDING && event->detail) {
		say(&out, event->detail, 400);
	} else if (event->kind == EVENT_FINDING) {
		out_text(&out, "A finding.");
	} else {
		say_event(&out, event);
		out_text(&out, ".");
	}
	buf[out.len] = '\0';
	return buf;
}
