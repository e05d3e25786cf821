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
#include <stdlib.h>

#include "base/cleanup.h"
#include "proxy/dial.h"
#include "proxy/vet.h"

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
	if (o->later)
		event_free(o->later);
	close_fd(&o->result.fd);
	free(o->method);
	free(o->target);
	free(o);
}

static void on_later(int fd, short what, void *arg)
{
	struct opening *o = arg;
	struct flow *flow = o->flow;
	struct flow_result result = o->result;
	flow_done *done = o->done;
	void *done_arg = o->arg;

	(void)fd;
	(void)what;
	o->result.fd = -1;
	if (result.verdict.allow)
		opening_free(STEAL(flow->opening));
	/* A refusal's detail may point into the opening: it stays. */
	done(done_arg, flow, &result);
}

/* The last step. @fd, if any, will be the callee's. */
static void tell(struct opening *o, int fd, const char *detail)
{
	o->step = STEP_TELL;
	o->result = (struct flow_result){
		.verdict = o->flow->verdict,
		.fd = fd,
		.detail = detail,
	};
	event_active(o->later, EV_TIMEOUT, 0);
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
	tell(o, -1, detail);
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

static void on_dialled(void *arg, int fd, int error, const struct ip *ip)
{
	struct opening *o = arg;
	struct flow *flow = o->flow;
	struct audit_event event;

	o->dial = NULL;
	if (ip)
		flow->ip = *ip;
	if (fd < 0) {
		fail(o,
		     error == ETIMEDOUT ? REASON_TIMEOUT
					: REASON_CONNECT_FAILED,
		     why(error));
		return;
	}
	event = flow_event(flow, EVENT_FLOW_DIAL);
	flow_record(flow, &event, NULL);
	tell(o, fd, NULL);
}

static void dial(struct opening *o, const struct ip *ip, size_t n)
{
	o->step = STEP_DIAL;
	o->dial = dial_start(o->base, ip, n, o->flow->port, DIAL_TIMEOUT_MS,
			     on_dialled, o);
	if (!o->dial)
		fail(o, REASON_CONNECT_FAILED, "out of memory");
}

static void on_resolved(struct wait *wait, int status)
{
	struct lookup *lookup = CONTAINER_OF(wait, struct lookup, wait);
	struct opening *o = CONTAINER_OF(lookup, struct opening, lookup);
	struct flow *flow = o->flow;
	struct ip ip[LOOKUP_MAX];
	enum reason reason;
	size_t n = lookup->count < LOOKUP_MAX ? lookup->count : LOOKUP_MAX;

	o->step = STEP_DIAL; /* not waiting any more */
	if (status || !n) {
		fail(o, REASON_RESOLVE_FAILED,
		     status == -ENOENT ? "no such name"
		     : status	       ? "no answer from the name servers"
				       : "no addresses");
		return;
	}
	n = vet_answers(flow->services, flow->policy, flow->rule, lookup->ip, n,
			flow->port, ip, &reason, &flow->ip);
	if (n)
		dial(o, ip, n);
	else
		fail(o, reason, ip_format(&flow->ip, o->detail));
}

static void on_recorded(struct wait *wait, int status)
{
	struct opening *o = CONTAINER_OF(wait, struct opening, recorded);
	struct flow *flow = o->flow;
	const struct services *services = flow->services;

	o->step = STEP_DIAL; /* not waiting any more */
	if (status) {
		/* Nothing leaves; and there is nobody to tell. */
		flow->allowed = false;
		flow->verdict = (struct verdict){
			.reason = REASON_LEDGER_UNAVAILABLE,
			.rule = flow->rule,
		};
		tell(o, -1, NULL);
	} else if (o->judge_only) {
		tell(o, -1, NULL);
	} else if (flow->host) {
		o->step = STEP_RESOLVE;
		o->lookup.wait.done = on_resolved;
		services->resolve(services->ctx, flow->host, &o->lookup);
	} else if (vet_is_self(services, &flow->ip, flow->port)) {
		fail(o, REASON_SELF, NULL);
	} else {
		dial(o, &flow->ip, 1);
	}
}

/* The verdict, before anybody outside has heard of us. */
static struct verdict decide(const struct flow *flow, struct sandbox *sandbox)
{
	const struct services *services = flow->services;
	const struct question question = {
		.host = flow->host,
		.address = flow->ip,
		.port = flow->port,
		.door = flow->door,
	};
	struct verdict verdict;
	enum reason reason;

	if (!flow->policy)
		return (struct verdict){ .reason = REASON_NOT_IN_POLICY };
	/* For the policy port 0 means any port, which is no place to dial. */
	if (!flow->port)
		return (struct verdict){ .reason = REASON_MALFORMED };
	verdict = policy_decide(flow->policy, &question);
	if (!verdict.allow || !flow->host)
		return verdict;
	reason = services->admit(services->ctx, sandbox, flow->host,
				 verdict.rule);
	if (!reason_info(reason)->allow)
		return (struct verdict){ .reason = reason,
					 .rule = verdict.rule };
	return verdict;
}

int opening_start(struct opening *o, struct sandbox *sandbox)
{
	struct flow *flow = o->flow;
	struct audit_event event;

	o->later = event_new(o->base, -1, 0, on_later, o);
	if (!o->later)
		return -ENOMEM;
	flow->verdict = decide(flow, sandbox);
	flow->rule = flow->verdict.rule;
	flow->allowed = flow->verdict.allow;
	event = flow_event(flow,
			   o->method ? EVENT_HTTP_REQUEST : EVENT_FLOW_OPEN);
	event.method = o->method;
	event.target = o->target;
	if (flow->allowed) {
		o->step = STEP_RECORD;
		o->recorded.done = on_recorded;
		flow_record(flow, &event, &o->recorded);
	} else {
		flow_record(flow, &event, NULL);
		tell(o, -1, NULL);
	}
	return 0;
}
