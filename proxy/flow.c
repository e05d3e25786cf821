/* SPDX-License-Identifier: Apache-2.0
 *
 * flow.c - the life of a flow and its records. How it opens: flow_open.c.
 */
#include "proxy/flow.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sock.h"
#include "base/zalloc.h"
#include "proxy/flow_open.h"
#include "proxy/fold.h"
#include "proxy/wanted.h"
#include "proxy/watch.h"

#define SNI_MAX	   255
#define TARGET_MAX (64 * 1024)

struct audit_event flow_event(const struct flow *flow, enum event_kind kind)
{
	return (struct audit_event){
		.kind = kind,
		.sandbox = flow->sandbox,
		.flow = flow->id,
		.verdict = flow->verdict,
		.door = flow->door,
		.rule = flow->rule ? rule_origin(flow->rule) : NULL,
		.rule_text = flow->rule ? rule_text(flow->rule) : NULL,
		.host = flow->host,
		.src_ip = flow->src_ip,
		.src_port = flow->src_port,
		.dst_ip = flow->ip,
		.dst_port = flow->port,
		.protocol = flow->protocol,
		.sni = flow->sni,
		.ech = flow->ech,
	};
}

void flow_record(const struct flow *flow, const struct audit_event *event,
		 struct wait *wait)
{
	flow->services->record(flow->services->ctx, event, wait);
}

static void flow_free(struct flow *flow)
{
	opening_free(flow->opening);
	policy_unref(flow->policy);
	free(flow->host);
	free(flow->sni);
	free(flow->method);
	free(flow->target);
	free(flow);
}

/* @text may be NULL; false without memory. */
static bool copy(char **ret_copy, const char *text, size_t max)
{
	*ret_copy = text ? strndup(text, max) : NULL;
	return !text || *ret_copy;
}

static struct flow *flow_new(const struct services *services,
			     const struct flow_ask *ask)
{
	struct flow *flow = zalloc(sizeof(*flow));

	if (!flow)
		return NULL;
	flow->services = services;
	flow->id = services->flow_id(services->ctx);
	flow->start_ms = now_ms();
	flow->protocol = ask->protocol;
	flow->door = ask->door;
	flow->src_ip = ask->src_ip;
	flow->src_port = ask->src_port;
	flow->port = ask->port;
	flow->ech = ask->ech;
	flow->websocket = ask->websocket;
	flow->overrides = ask->overrides;
	flow->another = ask->another;
	if (!ask->host)
		flow->ip = flow->asked = ask->address;
	if (ask->sandbox) {
		flow->sandbox = ask->sandbox->id;
		/* It is ours until flow_recheck(). */
		if (ask->sandbox->policy)
			flow->policy = policy_ref(ask->sandbox->policy);
	}
	if (!copy(&flow->host, ask->host, HOST_MAX + 1) ||
	    !copy(&flow->sni, ask->sni, SNI_MAX) ||
	    !copy(&flow->method, ask->method, TARGET_MAX) ||
	    !copy(&flow->target, ask->target, TARGET_MAX)) {
		flow_free(flow);
		return NULL;
	}
	return flow;
}

struct flow *flow_start(struct wheel *wheel, const struct services *services,
			const struct flow_ask *ask, flow_done *done, void *arg)
{
	struct flow *flow = flow_new(services, ask);
	struct opening *o;

	if (!flow)
		return NULL;
	o = flow->opening = zalloc(sizeof(*o));
	if (!o) {
		flow_free(flow);
		return NULL;
	}
	o->flow = flow;
	o->wheel = wheel;
	o->done = done;
	o->arg = arg;
	o->fold = ask->fold;
	o->step = STEP_TELL;
	opening_start(o, ask->sandbox);
	return flow;
}

void flow_refuse(struct flow *flow, enum reason reason, const char *sni,
		 const char *detail)
{
	struct audit_event event;

	opening_free(STEAL(flow->opening));
	flow->verdict =
		(struct verdict){ .reason = reason, .rule = flow->rule };
	event = flow_event(flow, EVENT_FLOW_OPEN);
	if (sni)
		event.sni = sni;
	event.detail = detail;
	flow_record(flow, &event, NULL);
}

void flow_record_refusal(const struct services *services,
			 const struct flow_ask *ask, enum reason reason,
			 const char *shown_host, const char *detail)
{
	const struct audit_event event = {
		.kind = ask->method ? EVENT_HTTP_REQUEST : EVENT_FLOW_OPEN,
		.sandbox = ask->sandbox ? ask->sandbox->id : 0,
		.flow = services->flow_id(services->ctx),
		.verdict = { .reason = reason },
		.door = ask->door,
		.host = shown_host,
		.src_ip = ask->src_ip,
		.src_port = ask->src_port,
		.dst_ip = ask->address,
		.dst_port = ask->port,
		.protocol = ask->protocol,
		.sni = ask->sni,
		.ech = ask->ech,
		.method = ask->method,
		.target = ask->target,
		.detail = detail,
	};
	const bool often = reason == REASON_LIMIT_CONNECTIONS ||
			   reason == REASON_LIMIT_RATE;

	if (ask->fold && often)
		fold_record(ask->fold, &event);
	else
		services->record(services->ctx, &event, NULL);
}

/* A flow that can't be recorded any more is cut by those who know why. */
static void on_progress(struct wait *wait, int status)
{
	struct flow *flow = CONTAINER_OF(wait, struct flow, progress);
	void (*again)(void *arg) = STEAL(flow->again);

	(void)status;
	flow->progressing = false;
	if (again)
		again(flow->again_arg);
}

bool flow_progress(struct flow *flow, uint64_t up, uint64_t down,
		   void (*again)(void *arg), void *arg)
{
	struct audit_event event = flow_event(flow, EVENT_FLOW_PROGRESS);

	if (flow->progressing) {
		flow->again = again;
		flow->again_arg = arg;
		return false;
	}
	event.bytes_up = up;
	event.bytes_down = down;
	event.duration_ms = (uint64_t)(now_ms() - flow->start_ms);
	flow->progressing = true;
	flow->progress.done = on_progress;
	flow_record(flow, &event, &flow->progress);
	return true;
}

void flow_classified(struct flow *flow, const char *protocol, const char *sni)
{
	char *copied = NULL;

	if (protocol)
		flow->protocol = protocol;
	if (!sni || !copy(&copied, sni, SNI_MAX))
		return;
	free(flow->sni);
	flow->sni = copied;
}

void flow_saw_ech(struct flow *flow)
{
	flow->ech = true;
}

void flow_status(struct flow *flow, uint16_t status)
{
	flow->status = status;
}

uint64_t flow_id(const struct flow *flow)
{
	return flow->id;
}

const char *flow_host(const struct flow *flow)
{
	return flow->host;
}

const char *flow_sni(const struct flow *flow)
{
	return flow->sni;
}

bool flow_has_ech(const struct flow *flow)
{
	return flow->ech;
}

const struct rule *flow_rule(const struct flow *flow)
{
	return flow->verdict.allow ? flow->rule : NULL;
}

enum wanted flow_wanted(const struct flow *flow)
{
	return wanted_of(&flow->verdict, flow->port);
}

const struct meters *flow_meters(const struct flow *flow)
{
	return flow->counted ? &flow->meters : NULL;
}

void flow_close(struct flow *flow, uint64_t up, uint64_t down, const char *how)
{
	struct audit_event event;

	if (!flow)
		return;
	opening_free(STEAL(flow->opening));
	if (flow->progressing)
		flow->services->record_cancel(flow->services->ctx,
					      &flow->progress);
	if (flow->allowed) {
		event = flow_event(flow, EVENT_FLOW_CLOSE);
		event.bytes_up = up;
		event.bytes_down = down;
		event.duration_ms = (uint64_t)(now_ms() - flow->start_ms);
		event.status = flow->status;
		event.detail = how;
		flow_record(flow, &event, NULL);
	}
	flow_free(flow);
}

void flow_cut(struct flow *flow, enum reason reason, uint64_t up, uint64_t down,
	      const char *how)
{
	if (!flow)
		return;
	if (flow->opening && flow->opening->result.server)
		sock_reset_on_close(watch_fd(flow->opening->result.server));
	flow->verdict =
		(struct verdict){ .reason = reason, .rule = flow->rule };
	flow_close(flow, up, down, how);
}
