/* SPDX-License-Identifier: Apache-2.0
 *
 * flow.h - the one way out: every connection to the outside is made here.
 *
 *	decide   policy_decide(): the name (or literal address) and port
 *	admit    count the name
 *	record   EVENT_FLOW_OPEN (or EVENT_HTTP_REQUEST): what the verdict is;
 *		 wait until the ledger has accepted it
 *	resolve  our own look-up; an address from the sandbox is never used
 *	check    policy_check_address() on each answer, and not ourselves
 *	dial     happy eyeballs over what is left; EVENT_FLOW_DIAL
 *
 * A step that fails ends the flow with its reason, recorded.
 */
#ifndef PROXY_FLOW_H
#define PROXY_FLOW_H

#include "policy/services.h"

struct event_base;
struct flow;

struct flow_ask {
	struct sandbox *sandbox;
	enum door door;
	struct ip src_ip;
	uint16_t src_port;
	const char *host; /* canonical, or NULL and */
	struct ip address;
	uint16_t port;
	const char *protocol; /* for the record: "tls", "http", "tcp" */
	const char *sni;      /* for the record, may be NULL */
	/* A plain HTTP request: recorded as EVENT_HTTP_REQUEST. Else NULL. */
	const char *method, *target;
};

struct flow_result {
	struct verdict verdict; /* if not .allow: refused, with reason */
	int fd;			/* connected, non-blocking; the callee's now */
	const char *detail;	/* for people: "connection refused", or NULL */
};

/* Called once, from the event loop: never before flow_start() returns. @result
 * lives during the call, its detail until flow_close(), which is due after a
 * refusal too and may be called from here. */
typedef void flow_done(void *arg, struct flow *flow,
		       const struct flow_result *result);

/* Strings of @ask are copied. NULL without memory. */
struct flow *flow_start(struct event_base *base,
			const struct services *services,
			const struct flow_ask *ask, flow_done *done, void *arg);

/* Decide and record only: an allowed flow is done with .fd -1 and nothing is
 * dialled (CONNECT to port 80, whose requests are flows of their own). */
struct flow *flow_judge(struct event_base *base,
			const struct services *services,
			const struct flow_ask *ask, flow_done *done, void *arg);

/* Refuses a flow that was going or about to: records the denial (a name that
 * disagrees, a protocol error). @waits nobody. */
void flow_refuse(struct flow *flow, enum reason reason, const char *sni,
		 const char *detail);

/* A denial before there is a flow (malformed request, limits): one record. */
void flow_record_refusal(const struct services *services,
			 const struct flow_ask *ask, enum reason reason,
			 const char *shown_host, const char *detail);

/* Records 10 MB or 30 s of progress. */
void flow_progress(struct flow *flow, uint64_t up, uint64_t down);

/* Sets what the sniffing found, for the close record. Strings are copied
 * (@protocol is static). */
void flow_classified(struct flow *flow, const char *protocol, const char *sni);

/* HTTP: response status, for the close record. */
void flow_status(struct flow *flow, uint16_t status);

uint64_t flow_id(const struct flow *flow);
const char *flow_host(const struct flow *flow); /* NULL: literal address */
const struct rule *flow_rule(const struct flow *flow); /* NULL if refused */

/* Cancels what is under way, writes EVENT_FLOW_CLOSE if it had been allowed,
 * frees. @how: static text, "eof", "reset", "idle timeout". NULL flow is fine.
 */
void flow_close(struct flow *flow, uint64_t up, uint64_t down, const char *how);

#endif
