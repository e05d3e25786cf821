/* SPDX-License-Identifier: Apache-2.0
 *
 * flow_open.h - how a flow gets open: between flow.c and flow_open.c only.
 *
 * What is needed only until then lies in struct opening, so that a long flow
 * is small.
 */
#ifndef PROXY_FLOW_OPEN_H
#define PROXY_FLOW_OPEN_H

#include "base/wheel.h"
#include "proxy/flow.h"

struct dial;

enum step {
	STEP_RECORD,  /* the ledger has the verdict; then RESOLVE, DIAL or TELL
		       */
	STEP_RESOLVE, /* then DIAL or TELL */
	STEP_DIAL,    /* then TELL */
	STEP_TELL,    /* done() is about to be called, or a refusal was told */
};

struct opening {
	struct flow *flow;
	struct wheel *wheel;
	flow_done *done;
	void *arg;
	enum step step;
	struct fold *fold;
	struct timer later; /* brings done() */
	struct wait recorded;
	struct lookup lookup;
	struct dial *dial;
	struct ip ip[LOOKUP_MAX]; /* what is dialled; all were checked */
	size_t count;
	uint16_t port;
	struct flow_result result;
	char detail[IP_TEXT_MAX + 8];
};

struct flow {
	const struct services *services;
	struct policy *policy;
	struct opening *opening; /* NULL once it is open */
	struct verdict verdict;
	const struct rule *rule; /* that decided first, or NULL */
	struct meters meters;
	char *host; /* NULL: a literal address */
	char *sni, *method, *target;
	uint64_t id;
	int64_t start_ms;
	enum door door;
	uint32_t sandbox;
	uint16_t src_port, port, status;
	uint16_t dialled; /* the port, once it is connected; else 0 */
	bool ech;
	bool allowed; /* recorded as such: a close record is due */
	bool websocket, overrides, another;
	bool counted;	  /* by the meters */
	bool progressing; /* a record of progress is not accepted yet */
	struct wait progress;
	void (*again)(void *arg); /* the next one is due; or NULL */
	void *again_arg;
	struct ip src_ip;
	struct ip asked;      /* the literal, if there is no host */
	struct ip ip;	      /* the same, or the one dialled */
	const char *protocol; /* static, or NULL */
};

/* With what all records of @flow say. */
struct audit_event flow_event(const struct flow *flow, enum event_kind kind);
/* @wait may be NULL. */
void flow_record(const struct flow *flow, const struct audit_event *event,
		 struct wait *wait);

/* What @policy says of @flow's question now; why, in @reterr, if there is more
 * to say than the reason. */
struct verdict flow_judge(const struct flow *flow, const struct policy *policy,
			  const char **reterr);
/* The rule of @verdict, if what it says of addresses and budgets holds. */
const struct rule *flow_rule_of(const struct verdict *verdict);
/* Where @verdict says to connect; NULL: where the name resolves to. */
const struct endpoint *flow_connect(const struct flow *flow,
				    const struct verdict *verdict);
/* Gets the meters of a verdict. REASON_RULE, or why there are none. */
enum reason flow_meter(const struct flow *flow, struct sandbox *sandbox,
		       const struct verdict *verdict, struct meters *ret);
bool meters_count(const struct meters *meters);

/* Dials o->ip again. */
void opening_redial(struct opening *opening);
/* Decides, and does what follows from it. done() comes later. */
void opening_start(struct opening *opening, struct sandbox *sandbox);
/* Cancels what is under way. NULL is fine. */
void opening_free(struct opening *opening);

#endif
