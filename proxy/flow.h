/* SPDX-License-Identifier: Apache-2.0
 *
 * flow.h - the one way out: every connection to the outside is made here.
 *
 *	decide   policy_decide(): the name (or literal address) and port, and
 *		 the request if there is one
 *	admit    count the name, the request; the byte budgets must have room
 *	record   EVENT_FLOW_OPEN (or EVENT_HTTP_REQUEST): what the verdict is;
 *		 wait until the ledger has accepted it
 *	resolve  our own look-up; an address from the sandbox is never used
 *		 (or what the rule says: `connect`)
 *	check    policy_check_address() on each answer, and not ourselves
 *	dial     happy eyeballs over what is left; EVENT_FLOW_DIAL
 *
 * A step that fails ends the flow with its reason, recorded.
 */
#ifndef PROXY_FLOW_H
#define PROXY_FLOW_H

#include "policy/services.h"

struct flow;
struct fold;
struct watch;
struct wheel;

struct flow_ask {
	struct sandbox *sandbox;
	enum door door;
	struct ip src_ip;
	uint16_t src_port;
	const char *host; /* canonical, or NULL and */
	struct ip address;
	uint16_t port;
	const char *protocol; /* for the record, static: "tls", "http", "tcp" */
	const char *sni;      /* for the record, may be NULL */
	bool ech;	      /* for the record */
	/* A plain HTTP request: recorded as EVENT_HTTP_REQUEST. Else NULL. */
	const char *method, *target; /* the target is canonical */
	bool websocket;		     /* it wants to become one */
	bool overrides;		     /* http_overrides() */
	/* Not the first request: what was accepted was counted for one. */
	bool another;
	struct fold *fold; /* for refusals by limits; may be NULL */
};

struct flow_result {
	struct verdict verdict; /* if not .allow: refused, with reason */
	struct watch *server;	/* connected; the callee's now. Or NULL */
	const char *detail;	/* for people: "connection refused", or NULL */
};

/* Called once, from the event loop: never before flow_start() returns. @result
 * lives during the call, its detail until flow_close(), which is due after a
 * refusal too and may be called from here. */
typedef void flow_done(void *arg, struct flow *flow,
		       const struct flow_result *result);

/* Strings of @ask are copied, but for static ones. NULL without memory. What
 * must be plain HTTP and is no request yet (CONNECT to port 80) is decided and
 * recorded only: done without a server, and nothing is dialled. Its requests
 * are flows of their own. */
struct flow *flow_start(struct wheel *wheel, const struct services *services,
			const struct flow_ask *ask, flow_done *done, void *arg);

/* Refuses a flow that was going or about to: records the denial (a name that
 * disagrees, a protocol error). @waits nobody. */
void flow_refuse(struct flow *flow, enum reason reason, const char *sni,
		 const char *detail);

/* A denial before there is a flow (malformed request, limits): one record. */
void flow_record_refusal(const struct services *services,
			 const struct flow_ask *ask, enum reason reason,
			 const char *shown_host, const char *detail);

/* Records 10 MB or 30 s of progress. False: the last such record is not
 * accepted yet, so that this one is not made and nothing more may move. @again
 * is called from the loop when it may be tried again. */
bool flow_progress(struct flow *flow, uint64_t up, uint64_t down,
		   void (*again)(void *arg), void *arg);

/* Sets what the sniffing found, for the close record. Strings are copied
 * (@protocol is static). */
void flow_classified(struct flow *flow, const char *protocol, const char *sni);

/* Its hello has ECH: all records from now on say so. */
void flow_saw_ech(struct flow *flow);

/* HTTP: response status, for the close record. */
void flow_status(struct flow *flow, uint16_t status);

uint64_t flow_id(const struct flow *flow);
const char *flow_host(const struct flow *flow); /* NULL: literal address */
/* What flow_classified() and flow_saw_ech() were told last; NULL: none. */
const char *flow_sni(const struct flow *flow);
bool flow_has_ech(const struct flow *flow);
const struct rule *flow_rule(const struct flow *flow); /* NULL if refused, or
							  if none allowed it */
enum wanted flow_wanted(const struct flow *flow);
/* What it has to spend from; NULL: nothing is counted. Good until the flow is
 * closed, and the numbers change with flow_recheck(). */
const struct meters *flow_meters(const struct flow *flow);

/* @policy and what it wants of the connection are new: is what was seen of it
 * still fine? */
typedef bool flow_still(void *arg, const struct policy *policy,
			enum wanted wanted);

/* The sandbox has another policy, or a rule of it expired. The question that
 * opened the flow is asked again, and the address in use is checked.
 * REASON_RULE: it goes on by the present policy. Else it must be cut at once,
 * for that reason; it has not changed. @still may be NULL. */
enum reason flow_recheck(struct flow *flow, struct sandbox *sandbox,
			 flow_still *still, void *arg);

/* Cancels what is under way, writes EVENT_FLOW_CLOSE if it had been allowed,
 * frees. @how: static text, "eof", "reset", "idle timeout". NULL flow is fine.
 */
void flow_close(struct flow *flow, uint64_t up, uint64_t down, const char *how);
/* The same for one that was allowed, and is not any more: the close record says
 * why. */
void flow_cut(struct flow *flow, enum reason reason, uint64_t up, uint64_t down,
	      const char *how);

#endif
