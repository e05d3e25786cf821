/* SPDX-License-Identifier: Apache-2.0
 *
 * flow_open.h - how a flow gets open: between flow.c and flow_open.c only.
 *
 * What is needed only until then lies in struct opening, so that a long flow
 * is small.
 */
#ifndef PROXY_FLOW_OPEN_H
#define PROXY_FLOW_OPEN_H

#include "proxy/flow.h"

struct dial;

#define FLOW_PROTOCOL_MAX 16

enum step {
	STEP_RECORD,  /* the ledger has the verdict; then RESOLVE, DIAL or TELL
		       */
	STEP_RESOLVE, /* then DIAL or TELL */
	STEP_DIAL,    /* then TELL */
	STEP_TELL,    /* done() is about to be called, or a refusal was told */
};

struct opening {
	struct flow *flow;
	struct event_base *base;
	flow_done *done;
	void *arg;
	enum step step;
	bool judge_only;
	struct event *later; /* of libevent: brings done() */
	struct wait recorded;
	struct lookup lookup;
	struct dial *dial;
	struct flow_result result;
	char detail[IP_TEXT_MAX];
	char *method, *target;
};

struct flow {
	const struct services *services;
	struct policy *policy;
	struct opening *opening; /* NULL once it is open */
	struct verdict verdict;
	const struct rule *rule; /* that decided first */
	char *host;		 /* NULL: a literal address */
	char *sni;
	uint64_t id;
	int64_t start_ms;
	enum door door;
	uint32_t sandbox;
	uint16_t src_port, port, status;
	bool allowed; /* recorded as such: a close record is due */
	struct ip src_ip;
	struct ip ip; /* the literal, or the one dialled */
	char protocol[FLOW_PROTOCOL_MAX];
};

/* With what all records of @flow say. */
struct audit_event flow_event(const struct flow *flow, enum event_kind kind);
/* @wait may be NULL. */
void flow_record(const struct flow *flow, const struct audit_event *event,
		 struct wait *wait);

/* Decides, and does what follows from it. done() comes later. 0 or -ENOMEM. */
int opening_start(struct opening *opening, struct sandbox *sandbox);
/* Cancels what is under way. NULL is fine. */
void opening_free(struct opening *opening);

#endif
