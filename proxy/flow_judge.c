/* SPDX-License-Identifier: Apache-2.0
 *
 * flow_judge.c - what the policy says of a flow: when it starts, and again when
 * there is another policy. Nothing here is recorded or dialled, but for an
 * opening that loses some of its addresses.
 */
#include <time.h>

#include "proxy/flow_open.h"
#include "proxy/vet.h"
#include "proxy/wanted.h"

/* A request may be allowed, and still be none that the rule could judge. */
static const char *request_fault(const struct flow *flow,
				 const struct verdict *verdict,
				 enum reason *reterr)
{
	if (!flow->method)
		return NULL;
	*reterr = REASON_PROTOCOL;
	if (wanted_of(verdict, flow->port) == WANTED_TLS)
		return "plain HTTP where TLS is wanted";
	if (!verdict_judges_requests(verdict))
		return NULL;
	if (flow->websocket)
		return "a websocket where each request is judged";
	*reterr = REASON_MALFORMED;
	return flow->overrides ? "a field that overrides method or path" : NULL;
}

struct verdict flow_judge(const struct flow *flow, const struct policy *policy,
			  const char **reterr)
{
	const struct question question = {
		.host = flow->host,
		.address = flow->asked,
		.port = flow->port,
		.door = flow->door,
		.method = flow->method,
		.path = flow->target,
		.now_s = time(NULL),
	};
	struct verdict verdict;
	enum reason reason;

	if (!policy)
		return (struct verdict){ .reason = REASON_NOT_IN_POLICY };
	/* For the policy port 0 means any port, which is no place to dial. */
	if (!flow->port)
		return (struct verdict){ .reason = REASON_MALFORMED };
	verdict = policy_decide(policy, &question);
	if (!verdict.allow)
		return verdict;
	*reterr = request_fault(flow, &verdict, &reason);
	if (*reterr)
		return (struct verdict){ .reason = reason,
					 .rule = verdict.rule };
	return verdict;
}

const struct rule *flow_rule_of(const struct verdict *verdict)
{
	return verdict_has_rule(verdict) ? verdict->rule : NULL;
}

const struct endpoint *flow_connect(const struct flow *flow,
				    const struct verdict *verdict)
{
	const struct rule *rule = flow_rule_of(verdict);

	return flow->host && rule ? rule_connect(rule) : NULL;
}

bool meters_count(const struct meters *meters)
{
	for (unsigned way = UP; way <= DOWN; way++)
		for (unsigned i = 0; i < METERS; i++)
			if (meters->at[way][i].used)
				return true;
	return false;
}

enum reason flow_meter(const struct flow *flow, struct sandbox *sandbox,
		       const struct verdict *verdict, struct meters *ret)
{
	const struct services *services = flow->services;

	*ret = (struct meters){ .at = { { { .limit = 0 } } } };
	return services->meters(services->ctx, sandbox, flow_rule_of(verdict),
				ret);
}

/* Would @verdict lead to @ip:@port? */
static bool may_stay_at(const struct flow *flow, const struct policy *policy,
			const struct verdict *verdict, const struct ip *ip,
			uint16_t port)
{
	const struct endpoint *connect = flow_connect(flow, verdict);
	enum reason reason;
	struct ip vetted;

	if (connect)
		return port == connect->port && ip_equal(ip, &connect->ip);
	if (port != flow->port)
		return false;
	if (!flow->host)
		return true; /* the verdict was about the address */
	return vet_answers(flow->services, policy, flow_rule_of(verdict), ip, 1,
			   port, &vetted, &reason, &vetted) == 1;
}

/* False if it is where it may not be. What is being dialled and may not be is
 * taken off the list. */
static bool check_addresses(struct flow *flow, const struct policy *policy,
			    const struct verdict *verdict, size_t *ret_lost)
{
	struct opening *o = flow->opening;
	size_t kept = 0;

	if (flow->dialled)
		return may_stay_at(flow, policy, verdict, &flow->ip,
				   flow->dialled);
	if (!o || o->step != STEP_DIAL)
		return true;
	for (size_t i = 0; i < o->count; i++)
		if (may_stay_at(flow, policy, verdict, &o->ip[i], o->port))
			o->ip[kept++] = o->ip[i];
	*ret_lost = o->count - kept;
	o->count = kept;
	return kept > 0;
}

enum reason flow_recheck(struct flow *flow, struct sandbox *sandbox,
			 flow_still *still, void *arg)
{
	struct policy *policy = sandbox->policy;
	const char *detail = NULL;
	struct verdict verdict;
	struct meters meters;
	enum reason reason;
	size_t lost = 0;

	if (!flow->allowed)
		return REASON_RULE; /* its refusal is on the way */
	verdict = flow_judge(flow, policy, &detail);
	if (!verdict.allow ||
	    (still && !still(arg, policy, wanted_of(&verdict, flow->port))) ||
	    !check_addresses(flow, policy, &verdict, &lost))
		return REASON_POLICY_REVOKED;
	reason = flow_meter(flow, sandbox, &verdict, &meters);
	if (!reason_info(reason)->allow)
		return reason;
	policy_ref(policy);
	policy_unref(flow->policy);
	flow->policy = policy;
	flow->verdict = verdict;
	flow->rule = verdict.rule;
	flow->meters = meters;
	flow->counted = meters_count(&meters);
	if (lost)
		opening_redial(flow->opening);
	return REASON_RULE;
}
