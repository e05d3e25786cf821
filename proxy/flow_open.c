/* SPDX-License-Identifier: Apache-2.0
 *
 * flow_open.c - the steps from a question to a connected socket.
 *
 * Each step starts something that calls back, or goes on to the next, or
 * refuses. done() always comes from an event of its own: a service may call
 * back before it returns, and the callee of done() may free everything, but
 * never both at once.
 */
#include "proxy/flow_open.h"

#include <errno.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "proxy/dial.h"
#include "proxy/fold.h"
#include "proxy/vet.h"
#include "proxy/wanted.h"
#include "proxy/watch.h"

#define DIAL_TIMEOUT_MS 10000

/* Cancels what is under way. */
void opening_free(struct opening *o)
{
	const struct services *services;

	if (!o)
		return;
	services = o->flow->services;
	if (o->step == STEP_RECORD)
		services->record_cancel(services->ctx, &o->recorded);
	if (o->step == STEP_RESOLVE)
		services->resolve_cancel(services->ctx, &o->lookup);
	dial_cancel(o->dial);
	wheel_cancel(&o->later);
	watch_close(&o->result.server);
	free(o);
}

static void on_later(struct timer *later)
{
	struct opening *o = CONTAINER_OF(later, struct opening, later);
	struct flow *flow = o->flow;
	struct flow_result result = o->result;
	flow_done *done = o->done;
	void *done_arg = o->arg;

	o->result.server = NULL;
	if (result.verdict.allow)
		opening_free(STEAL(flow->opening));
	/* A refusal's detail may point into the opening: it stays. */
	done(done_arg, flow, &result);
}

/* The last step. @server, if any, will be the callee's. */
static void tell(struct opening *o, struct watch *server, const char *detail)
{
	o->step = STEP_TELL;
	o->result = (struct flow_result){
		.verdict = o->flow->verdict,
		.server = server,
		.detail = detail,
	};
	wheel_soon(o->wheel, &o->later);
}

/* A step after the verdict failed, and nothing came of it. */
static void fail(struct opening *o, enum reason reason, const char *detail)
{
	struct flow *flow = o->flow;
	struct audit_event event;

	flow->verdict =
		(struct verdict){ .reason = reason, .rule = flow->rule };
	flow->allowed = false;
	event = flow_event(flow, EVENT_FLOW_DIAL);
	event.detail = detail;
	flow_record(flow, &event, NULL);
	tell(o, NULL, detail);
}

static const char *why(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return "connection refused";
	case ECONNRESET:
		return "connection reset";
	case ETIMEDOUT:
		return "connection timed out";
	case ENETUNREACH:
		return "network unreachable";
	case EHOSTUNREACH:
		return "host unreachable";
	case EMFILE:
	case ENFILE:
		return "too many open files";
	default:
		return "connection failed";
	}
}

/* An address that a deny rule names may be in use where that is only observed.
 */
static struct verdict verdict_of_address(const struct flow *flow)
{
	const struct services *services = flow->services;
	struct verdict verdict = flow->verdict;
	const struct cidr *uplink;
	size_t n = 0;

	if (!flow->host || !policy_observes(flow->policy) ||
	    flow_connect(flow, &flow->verdict))
		return verdict;
	uplink = services->uplink(services->ctx, &n);
	verdict =
		policy_check_address(flow->policy, flow_rule_of(&flow->verdict),
				     &flow->ip, uplink, n);
	return verdict.reason == REASON_OBSERVE ? verdict : flow->verdict;
}

/* For the record: what the rule says instead of an address of the name. */
static void endpoint_text(const struct endpoint *endpoint, char *buf,
			  size_t cap)
{
	char ip[IP_TEXT_MAX];

	snprintf(buf, cap, endpoint->ip.len == 16 ? "[%s]:%u" : "%s:%u",
		 ip_format(&endpoint->ip, ip), endpoint->port);
}

static void on_dialled(void *arg, struct watch *server, int error,
		       const struct ip *ip)
{
	struct opening *o = arg;
	struct flow *flow = o->flow;
	struct audit_event event;

	o->dial = NULL;
	if (ip)
		flow->ip = *ip;
	if (!server) {
		fail(o,
		     error == ETIMEDOUT ? REASON_TIMEOUT
					: REASON_CONNECT_FAILED,
		     why(error));
		return;
	}
	flow->dialled = o->port;
	event = flow_event(flow, EVENT_FLOW_DIAL);
	event.verdict = verdict_of_address(flow);
	event.detail = *o->detail ? o->detail : NULL;
	flow_record(flow, &event, NULL);
	tell(o, server, NULL);
}

static void dial(struct opening *o)
{
	o->step = STEP_DIAL;
	o->dial = dial_start(o->wheel, o->ip, o->count, o->port,
			     DIAL_TIMEOUT_MS, on_dialled, o);
	if (!o->dial)
		fail(o, REASON_CONNECT_FAILED, "out of memory");
}

void opening_redial(struct opening *o)
{
	dial_cancel(STEAL(o->dial));
	dial(o);
}

/* One address that was given, not looked up. */
static void dial_at(struct opening *o, const struct ip *ip, uint16_t port)
{
	struct flow *flow = o->flow;

	flow->ip = o->ip[0] = *ip;
	o->count = 1;
	o->port = port;
	if (vet_is_self(flow->services, ip, port))
		fail(o, REASON_SELF, NULL);
	else
		dial(o);
}

/* Where the rule says, if it says it. */
static bool dial_service(struct opening *o)
{
	const struct endpoint *connect =
		flow_connect(o->flow, &o->flow->verdict);

	if (!connect)
		return false;
	endpoint_text(connect, o->detail, sizeof(o->detail));
	dial_at(o, &connect->ip, connect->port);
	return true;
}

static void on_resolved(struct wait *wait, int status)
{
	struct lookup *lookup = CONTAINER_OF(wait, struct lookup, wait);
	struct opening *o = CONTAINER_OF(lookup, struct opening, lookup);
	struct flow *flow = o->flow;
	enum reason reason;
	size_t n = lookup->count < LOOKUP_MAX ? lookup->count : LOOKUP_MAX;

	o->step = STEP_DIAL; /* not waiting any more */
	if (dial_service(o))
		return; /* by a rule that was not there when we asked */
	if (status || !n) {
		fail(o, REASON_RESOLVE_FAILED,
		     status == -ENOENT ? "no such name"
		     : status	       ? "no answer from the name servers"
				       : "no addresses");
		return;
	}
	o->port = flow->port;
	o->count = vet_answers(flow->services, flow->policy,
			       flow_rule_of(&flow->verdict), lookup->ip, n,
			       flow->port, o->ip, &reason, &flow->ip);
	if (o->count)
		dial(o);
	else
		fail(o, reason, ip_format(&flow->ip, o->detail));
}

/* The verdict is recorded: from here on something may leave. */
static void find(struct opening *o)
{
	struct flow *flow = o->flow;
	const struct services *services = flow->services;

	if (dial_service(o))
		return;
	if (flow->host) {
		o->step = STEP_RESOLVE;
		o->lookup.wait.done = on_resolved;
		services->resolve(services->ctx, flow->host, &o->lookup);
	} else {
		dial_at(o, &flow->ip, flow->port);
	}
}

static void on_recorded(struct wait *wait, int status)
{
	struct opening *o = CONTAINER_OF(wait, struct opening, recorded);
	struct flow *flow = o->flow;

	o->step = STEP_DIAL; /* not waiting any more */
	if (status) {
		/* Nothing leaves; and there is nobody to tell. */
		flow->allowed = false;
		flow->verdict = (struct verdict){
			.reason = REASON_LEDGER_UNAVAILABLE,
			.rule = flow->rule,
		};
		tell(o, NULL, NULL);
	} else if (!flow->method && flow_wanted(flow) == WANTED_HTTP) {
		tell(o, NULL, NULL);
	} else {
		find(o);
	}
}

/* The verdict, before anybody outside has heard of us: what is counted is
 * counted only for what is allowed. */
static struct verdict decide(struct flow *flow, struct sandbox *sandbox,
			     const char **reterr)
{
	const struct services *services = flow->services;
	struct verdict verdict = flow_judge(flow, flow->policy, reterr);
	enum reason reason = REASON_RULE;

	if (!verdict.allow && !*reterr && verdict.rule &&
	    rule_of_ceiling(verdict.rule))
		*reterr = "by the ceiling of this machine's operator";
	if (!verdict.allow)
		return verdict;
	if (flow->another &&
	    !services->rate(services->ctx, sandbox, RATE_CONNECTIONS))
		reason = REASON_LIMIT_RATE;
	else if (flow->host)
		reason = services->admit(services->ctx, sandbox, flow->host,
					 verdict.rule);
	if (reason_info(reason)->allow)
		reason = flow_meter(flow, sandbox, &verdict, &flow->meters);
	if (!reason_info(reason)->allow)
		return (struct verdict){ .reason = reason,
					 .rule = verdict.rule };
	flow->counted = meters_count(&flow->meters);
	return verdict;
}

void opening_start(struct opening *o, struct sandbox *sandbox)
{
	struct flow *flow = o->flow;
	const char *detail = NULL;
	struct audit_event event;

	o->later.ring = on_later;
	flow->verdict = decide(flow, sandbox, &detail);
	flow->rule = flow->verdict.rule;
	flow->allowed = flow->verdict.allow;
	event = flow_event(flow,
			   flow->method ? EVENT_HTTP_REQUEST : EVENT_FLOW_OPEN);
	event.method = flow->method;
	event.target = flow->target;
	event.detail = detail;
	if (flow->allowed) {
		o->step = STEP_RECORD;
		o->recorded.done = on_recorded;
		flow_record(flow, &event, &o->recorded);
		return;
	}
	if (o->fold && flow->verdict.reason == REASON_LIMIT_RATE)
		fold_record(o->fold, &event);
	else
		flow_record(flow, &event, NULL);
	tell(o, NULL, detail);
}
