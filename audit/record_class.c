/* SPDX-License-Identifier: Apache-2.0
 *
 * record_class.c - the part of a record that a SIEM sorts by: class, activity,
 * severity, verdict.
 *
 *	6002 application lifecycle  a session opens and closes, another policy,
 *				    one command more
 *	4003 DNS		    questions and answers
 *	4001 network		    connections and dropped packets
 *	4002 HTTP		    plain requests
 *	2004 detection finding	    what should not be
 *	5019 configuration state    the kernel's rules were put back
 */
#include "audit/record_class.h"

#include <string.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "base/json.h"

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
	[EVENT_EXEC] = { "exec", CLASS_LIFECYCLE, 3, 3 },     /* start */
	[EVENT_ATTACKS] = { "attacks", CLASS_LIFECYCLE, 99, 99 },
};

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

enum ocsf_class record_class(enum event_kind kind)
{
	return kinds[kind].class;
}

bool record_is_network(enum event_kind kind)
{
	enum ocsf_class class = kinds[kind].class;

	return class == CLASS_NETWORK || class == CLASS_HTTP ||
	       class == CLASS_DNS;
}

bool record_failed(enum event_kind kind, enum reason reason)
{
	switch (kind) {
	case EVENT_DNS_QUERY:
	case EVENT_FLOW_OPEN:
	case EVENT_HTTP_REQUEST:
		return false;
	default:
		return reason == REASON_RESOLVE_FAILED ||
		       reason == REASON_CONNECT_FAILED ||
		       reason == REASON_TIMEOUT;
	}
}

static bool is_error(const struct audit_event *event)
{
	return record_failed(event->kind, event->verdict.reason);
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

static void put_class(struct json *j, const struct audit_event *event)
{
	const struct kind_info *kind = &kinds[event->kind];
	unsigned class = kind->class;
	unsigned activity = event->verdict.allow ? kind->allowed : kind->denied;

	if (class == CLASS_HTTP)
		activity = http_activity(event->method);
	/* A dial that was forbidden is refused; else the network failed. */
	if (event->kind == EVENT_FLOW_DIAL && !event->verdict.allow &&
	    !is_error(event))
		activity = 5;
	json_uint(j, "time", event->time_ms);
	json_uint(j, "class_uid", class);
	json_uint(j, "category_uid", class / 1000);
	json_uint(j, "activity_id", activity);
	json_uint(j, "type_uid", class * 100 + activity);
}

static void put_status_detail(struct json *j, const struct verdict *verdict)
{
	char detail[64] = "would be refused: ";

	if (verdict->reason != REASON_OBSERVE)
		return;
	strncat(detail, reason_word(verdict->observed),
		sizeof(detail) - strlen(detail) - 1);
	json_text(j, "status_detail", detail);
}

static void put_verdict(struct json *j, const struct audit_event *event)
{
	enum reason reason = event->verdict.reason;
	bool allow = was_allowed(event);
	bool good = allow && reason_info(reason)->allow;
	unsigned action =
		allow || is_error(event) ? ACTION_ALLOWED : ACTION_DENIED;
	unsigned disposition =
		allow ? DISPOSITION_ALLOWED : DISPOSITION_BLOCKED;

	if (reason == REASON_OBSERVE) {
		action = ACTION_OBSERVED;
		disposition = DISPOSITION_LOGGED;
	} else if (is_error(event)) {
		disposition = DISPOSITION_ERROR;
	} else if (event->kind == EVENT_PACKET) {
		disposition = DISPOSITION_DROPPED;
	} else if (reason == REASON_POLICY_REVOKED && !allow) {
		disposition = DISPOSITION_REVOKED;
	}
	json_uint(j, "severity_id",
		  action == ACTION_DENIED ? SEVERITY_MEDIUM : SEVERITY_INFO);
	json_uint(j, "status_id", good ? STATUS_SUCCESS : STATUS_FAILURE);
	json_word(j, "status_code", reason_word(reason));
	put_status_detail(j, &event->verdict);
	json_uint(j, "action_id", action);
	json_uint(j, "disposition_id", disposition);
}

static void put_status(struct json *j, const struct audit_event *event)
{
	bool finding = event->kind == EVENT_FINDING;

	if (record_is_network(event->kind)) {
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

void record_put_class(struct json *j, const struct audit_event *event)
{
	put_class(j, event);
	put_status(j, event);
}
