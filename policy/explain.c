/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c - see explain.h. The verdicts are policy_decide()'s; added is only
 * what a door finds out later and this target says already: that the protocol
 * is the wrong one.
 */
#include "policy/explain.h"

#include <string.h>

#include "policy/ech.h"
#include "policy/nameset.h"
#include "policy/rule.h"

const char *rule_note(const struct rule *rule)
{
	return rule->note;
}

bool rule_list_line(const struct rule *rule, const char *host,
		    const char **ret_name, unsigned *ret_line)
{
	struct nameset_hit hit;

	if (!rule->list || !nameset_find(rule->list, host, &hit))
		return false;
	*ret_name = hit.name;
	*ret_line = nameset_line(rule->list, &hit);
	return true;
}

const struct rule *policy_rule(const struct policy *policy, size_t i)
{
	/* Behind them stand unions, which are made for DNS and nobody wrote. */
	size_t written = policy->allow.count + policy->deny.count +
			 policy->allow_literal.rules.count +
			 policy->deny_literal.rules.count + policy->lists.count;

	return i < written ? policy->all.at[i] : NULL;
}

static enum spoken required(const struct verdict *verdict, uint16_t port)
{
	/* A rule that was only observed has no say in what it refuses. */
	bool says = verdict->rule && (verdict->reason == REASON_RULE ||
				      rule_is_joint(verdict->rule));

	switch (says ? verdict->rule->wanted : WANTED_DEFAULT) {
	case WANTED_TLS:
		return SPOKEN_TLS;
	case WANTED_HTTP:
		return SPOKEN_HTTP;
	case WANTED_ANY:
		return SPOKEN_UNKNOWN;
	default:
		return port == 443  ? SPOKEN_TLS
		       : port == 80 ? SPOKEN_HTTP
				    : SPOKEN_UNKNOWN;
	}
}

static void refuse(struct explain_row *row, const char *remark)
{
	row->verdict.allow = false;
	row->verdict.reason = REASON_PROTOCOL;
	row->remark = remark;
}

/* @said: the target says that it is TLS. */
static const char *tls_remark(const struct explain_row *row,
			      const struct inquiry *inquiry, bool said)
{
	const char *host = *inquiry->host ? inquiry->host : NULL;
	bool no_ech =
		policy_ech_fault(&row->verdict, host ? host : "", host) != NULL;

	if (said)
		return no_ech ? "without ECH" : NULL;
	return no_ech ? "TLS, with this name and without ECH"
		      : "TLS, with this name";
}

static void agree(struct explain_row *row, const struct inquiry *inquiry)
{
	enum spoken wanted = required(&row->verdict, row->port);
	enum spoken spoken =
		row->door == DOOR_HTTP ? SPOKEN_HTTP : inquiry->spoken;

	if (inquiry->websocket && verdict_judges_requests(&row->verdict)) {
		refuse(row, "no websockets where each request is judged");
		return;
	}
	if (!row->verdict.allow || wanted == SPOKEN_UNKNOWN)
		return;
	if (spoken == SPOKEN_UNKNOWN) {
		row->remark = wanted == SPOKEN_TLS
				      ? tls_remark(row, inquiry, false)
				      : "HTTP/1, with this name";
		return;
	}
	if (spoken == wanted) {
		if (spoken == SPOKEN_TLS)
			row->remark = tls_remark(row, inquiry, true);
		return;
	}
	refuse(row, wanted == SPOKEN_TLS ? "it has to be TLS"
					 : "it has to be plain HTTP");
}

static struct verdict decide(const struct policy *policy,
			     const struct inquiry *inquiry, enum door door,
			     uint16_t port)
{
	const char *path = *inquiry->path ? inquiry->path : "/";
	/* Of other protocols nobody sees a method. */
	bool seen = port && inquiry->method &&
		    (door == DOOR_HTTP || inquiry->spoken == SPOKEN_HTTP ||
		     (!inquiry->spoken && port != 443));
	struct question q = {
		.host = *inquiry->host ? inquiry->host : NULL,
		.address = inquiry->address,
		.port = port,
		.door = door,
		.method = seen ? inquiry->method : NULL,
		.path = seen ? path : NULL,
		.now_s = inquiry->now_s,
	};
	struct verdict verdict = policy_decide(policy, &q), checked;

	if (!verdict.allow || q.host)
		return verdict;
	checked =
		policy_check_address(policy, verdict.rule, &q.address, NULL, 0);
	return checked.allow && checked.reason == REASON_RULE ? verdict
							      : checked;
}

/* A request in absolute form is plain HTTP. */
static const char *not_asked(const struct inquiry *inquiry, enum door door,
			     uint16_t port)
{
	if (door == DOOR_DNS && !*inquiry->host)
		return "an address is not resolved";
	if (door == DOOR_HTTP &&
	    (inquiry->spoken == SPOKEN_TLS || inquiry->spoken == SPOKEN_OTHER ||
	     (!inquiry->spoken && port == 443)))
		return "for plain HTTP only";
	return NULL;
}

static void add(const struct policy *policy, const struct inquiry *inquiry,
		enum door door, uint16_t port, struct explanation *ret)
{
	struct explain_row *row = &ret->row[ret->count++];

	*row = (struct explain_row){ .door = door, .port = port };
	if (inquiry->fault) {
		row->asked = true;
		row->verdict.reason = inquiry->is_spelling && door != DOOR_DNS
					      ? REASON_LITERAL_ADDRESS
					      : REASON_MALFORMED;
		row->remark = inquiry->fault;
		return;
	}
	row->remark = not_asked(inquiry, door, port);
	if (row->remark)
		return;
	row->asked = true;
	row->verdict = decide(policy, inquiry, door, port);
	if (port)
		agree(row, inquiry);
	if (door != DOOR_DNS && row->verdict.allow)
		ret->reachable = true;
}

void explain(const struct policy *policy, const struct inquiry *inquiry,
	     struct explanation *ret)
{
	*ret = (struct explanation){ .count = 0 };
	add(policy, inquiry, DOOR_DNS, 0, ret);
	for (size_t i = 0; i < inquiry->ports; i++)
		for (int door = DOOR_CONNECT; door <= DOOR_TRANSPARENT; door++)
			add(policy, inquiry, (enum door)door, inquiry->port[i],
			    ret);
}

static void count_allowed(const struct rule *rule, struct policy_counts *ret)
{
	ret->judged += rule_judges_requests(rule);
	ret->connected += rule_connect(rule) != NULL;
	ret->budgeted += rule->budget[UP] || rule->budget[DOWN];
	ret->expiring += rule->expires_s != 0;
}

void policy_count(const struct policy *policy, struct policy_counts *ret)
{
	struct policy_counts n = {
		.ranges = policy->allow_literal.rules.count,
		.denied_names = policy->deny.count,
		.denied_ranges = policy->deny_literal.rules.count,
		.denied_lists = policy->lists.count,
	};

	for (size_t i = 0; i < policy->allow.count; i++) {
		n.names += !policy->allow.at[i]->wildcard;
		n.wildcards += policy->allow.at[i]->wildcard;
		count_allowed(policy->allow.at[i], &n);
	}
	for (size_t i = 0; i < n.ranges; i++)
		count_allowed(policy->allow_literal.rules.at[i], &n);
	n.rules = n.names + n.wildcards + n.ranges + n.denied_names +
		  n.denied_ranges + n.denied_lists;
	*ret = n;
}

bool policy_has_preset(const struct policy *policy, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < policy->all.count; i++) {
		const char *origin = policy->all.at[i]->origin;

		if (strncmp(origin, "preset ", 7) == 0 &&
		    strncmp(origin + 7, name, len) == 0 &&
		    origin[7 + len] == ':')
			return true;
	}
	return false;
}
