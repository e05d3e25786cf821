/* SPDX-License-Identifier: Apache-2.0
 *
 * sentence.c - an event in plain English: what, where, and why not.
 */
#include "audit/sentence.h"

#include <stdio.h>

#include "audit/record.h"
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

/* "api.example.com port 443", or the address in place of a name. */
static const char *place(const struct audit_event *event, char *buf, size_t cap)
{
	char ip[IP_TEXT_MAX];
	const char *host =
		event->host ? event->host : ip_format(&event->dst_ip, ip);

	if (event->dst_port)
		snprintf(buf, cap, "%.253s port %u", host, event->dst_port);
	else
		snprintf(buf, cap, "%.253s", *host ? host : "nowhere");
	return buf;
}

/* "allowed", or "refused: the host is not in the policy" */
static const char *outcome(const struct audit_event *event, char *buf,
			   size_t cap)
{
	if (event->verdict.reason == REASON_OBSERVE)
		snprintf(buf, cap, "allowed, would be refused: %s",
			 reason_word(event->verdict.observed));
	else if (event->verdict.allow)
		snprintf(buf, cap, "allowed");
	else
		snprintf(buf, cap, "refused: %s",
			 reason_info(event->verdict.reason)->text);
	return buf;
}

static void about_traffic(const struct audit_event *event, const char *where,
			  char *buf, size_t cap)
{
	bool ended = event->kind == EVENT_FLOW_CLOSE;

	if (ended && !event->verdict.allow &&
	    record_cuts(event->verdict.reason)) {
		snprintf(buf, cap,
			 "Connection to %s was cut, %s: %llu bytes sent, %llu "
			 "received.",
			 where, reason_info(event->verdict.reason)->text,
			 (unsigned long long)event->bytes_up,
			 (unsigned long long)event->bytes_down);
		return;
	}
	snprintf(buf, cap,
		 "Connection to %s %s: %llu bytes sent, %llu received.", where,
		 ended ? "ended" : "goes on",
		 (unsigned long long)event->bytes_up,
		 (unsigned long long)event->bytes_down);
}

static void about_network(const struct audit_event *event, char *buf,
			  size_t cap)
{
	char where[300], how[128];

	place(event, where, sizeof(where));
	outcome(event, how, sizeof(how));
	switch (event->kind) {
	case EVENT_FLOW_DIAL:
		if (event->verdict.allow)
			snprintf(buf, cap, "Connected to %s.", where);
		else
			snprintf(buf, cap, "No connection to %s: %s.", where,
				 reason_info(event->verdict.reason)->text);
		break;
	case EVENT_FLOW_PROGRESS:
	case EVENT_FLOW_CLOSE:
		about_traffic(event, where, buf, cap);
		break;
	case EVENT_PACKET:
		snprintf(buf, cap, "%u %.16s packet%s to %s dropped.",
			 event->count ? event->count : 1,
			 event->protocol ? event->protocol : "other",
			 event->count > 1 ? "s" : "",
			 event->host || event->dst_ip.len ? where
							  : "many places");
		break;
	case EVENT_HTTP_REQUEST:
		snprintf(buf, cap, "HTTP %.64s request to %s %s.",
			 event->method ? event->method : "?", where, how);
		break;
	default:
		snprintf(buf, cap, "Connection to %s %s.", where, how);
	}
}

static void about_name(const struct audit_event *event, char *buf, size_t cap)
{
	const char *host = event->host && *event->host ? event->host : ".";
	char type[16], how[128];
	const char *word = dns_type_word(event->qtype, type);

	if (event->kind == EVENT_DNS_ANSWER && event->verdict.allow)
		snprintf(buf, cap,
			 "DNS question for %.253s (%s) answered with %u "
			 "address%s.",
			 host, word, event->answers,
			 event->answers == 1 ? "" : "es");
	else
		snprintf(buf, cap, "DNS %s for %.253s (%s) %s.",
			 event->kind == EVENT_DNS_ANSWER ? "answer"
							 : "question",
			 host, word, outcome(event, how, sizeof(how)));
}

const char *event_sentence(const struct audit_event *event, char *buf,
			   size_t cap)
{
	switch (event->kind) {
	case EVENT_SESSION_OPEN:
		snprintf(buf, cap, "The session began.");
		break;
	case EVENT_SESSION_CLOSE:
		snprintf(buf, cap, "The session ended.");
		break;
	case EVENT_POLICY:
		snprintf(buf, cap, "Another policy is in force.");
		break;
	case EVENT_RULESET:
		snprintf(buf, cap, "The kernel's rules were put back.");
		break;
	case EVENT_FINDING:
		snprintf(buf, cap, "%.400s",
			 event->detail ? event->detail : "A finding.");
		break;
	case EVENT_DNS_QUERY:
	case EVENT_DNS_ANSWER:
		about_name(event, buf, cap);
		break;
	default:
		about_network(event, buf, cap);
	}
	return buf;
}
