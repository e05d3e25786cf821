/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.c - one question after the other, from "is this a question at all?" to
 * "may it be asked upstream?". The first that says something ends it.
 */
#include "dns/judge.h"

#include <stdio.h>

#include "dns/special.h"

void judge_refuse(struct judgement *judgement, enum reason reason,
		  const struct rule *rule)
{
	const struct reason_info *info = reason_info(reason);
	const char *host = judgement->host[0] ? judgement->host : NULL;
	char hint[sizeof(judgement->ede_text)];

	judgement->verdict = (struct verdict){ .reason = reason, .rule = rule };
	judgement->errand = ERRAND_NONE;
	judgement->by_policy = false;
	judgement->reply =
		(struct dns_reply){ .rcode = info->dns_rcode,
				    .ttl = JUDGE_TTL_NEGATIVE,
				    .ede = info->ede,
				    .ede_text = judgement->ede_text };
	/* Refused would send a stub to its next server, and a name that is
	 * asked too often, or says too much, is no name that does not exist. */
	if (reason == REASON_LIMIT_RATE || reason == REASON_LIMIT_BYTES)
		judgement->reply.rcode = DNS_SERVFAIL;
	if (rule && rule_of_ceiling(rule))
		snprintf(hint, sizeof(hint), "%s", reason_ceiling_hint);
	else
		reason_hint(reason, host, 0, hint, sizeof(hint));
	snprintf(judgement->ede_text, sizeof(judgement->ede_text),
		 "%.30s: %.*s", info->word,
		 (int)sizeof(judgement->ede_text) - 40, hint);
}

/* An answer of our own to a question that needs no rule. */
static void answer_locally(struct judgement *judgement, uint8_t rcode)
{
	judgement->verdict =
		(struct verdict){ .allow = true, .reason = REASON_RULE };
	judgement->reply =
		(struct dns_reply){ .rcode = rcode, .ttl = JUDGE_TTL_NEGATIVE };
	judgement->detail = "answered locally";
}

static bool judge_form(enum dns_parse parsed, const struct dns_query *query,
		       struct judgement *judgement)
{
	static const struct {
		uint8_t rcode;
		const char *detail;
	} fault[] = {
		[DNS_PARSE_FORMERR] = { DNS_FORMERR, "not one question" },
		[DNS_PARSE_NOTIMP] = { DNS_NOTIMP, "not a standard query" },
		[DNS_PARSE_BADVERS] = { DNS_BADVERS, "unknown EDNS version" },
	};

	if (parsed != DNS_PARSE_OK) {
		judge_refuse(judgement, REASON_MALFORMED, NULL);
		judgement->reply.rcode = fault[parsed].rcode;
		judgement->detail = fault[parsed].detail;
		return false;
	}
	if (!name_to_host(&query->name, judgement->host)) {
		judge_refuse(judgement, REASON_MALFORMED, NULL);
		judgement->detail = "not a host name";
		return false;
	}
	if (query->class != DNS_IN || query->type == DNS_AXFR ||
	    query->type == DNS_IXFR) {
		judge_refuse(judgement, REASON_RECORD_TYPE, NULL);
		judgement->reply.rcode = DNS_REFUSED;
		return false;
	}
	return true;
}

/* Under `serve` there is one address for all names. */
bool judge_real(const struct services *services, const struct policy *policy)
{
	return policy_answers_real(policy) && !services->answer.len;
}

static const char *name_of(const struct services *services,
			   struct sandbox *sandbox, const struct ip *ip)
{
	const char *name = services->lease_of(services->ctx, sandbox, ip);

	if (!name && judge_real(services, sandbox->policy) &&
	    services->names_at(services->ctx, sandbox, ip, &name, 1) == 0)
		return NULL;
	return name;
}

/* Only addresses that it was given have names for the sandbox. A denied reverse
 * name is as good a tunnel as any other, so it says so in the log. */
static void judge_reverse(const struct services *services,
			  struct sandbox *sandbox, const struct ip *ip,
			  struct judgement *judgement)
{
	const char *name = ip->len ? name_of(services, sandbox, ip) : NULL;

	if (!name) {
		judge_refuse(judgement, REASON_RECORD_TYPE, NULL);
		judgement->reply.rcode = DNS_NXDOMAIN;
		return;
	}
	answer_locally(judgement, DNS_NOERROR);
	judgement->reply.kind = DNS_REPLY_PTR;
	judgement->reply.target = name;
	judgement->reply.ttl = JUDGE_TTL;
}

static bool judge_special(const struct services *services,
			  struct sandbox *sandbox,
			  const struct dns_query *query,
			  struct judgement *judgement)
{
	struct ip ip;

	switch (special_name(judgement->host, query->type, &ip)) {
	case SPECIAL_NONE:
		return true;
	case SPECIAL_LOOPBACK:
		answer_locally(judgement, DNS_NOERROR);
		if (query->type == DNS_A) {
			judgement->reply.kind = DNS_REPLY_ADDRESS;
			judgement->reply.address[0] = ip_v4(0x7f000001);
			judgement->reply.addresses = 1;
			judgement->reply.ttl = JUDGE_TTL;
		}
		return false;
	case SPECIAL_NODATA:
		answer_locally(judgement, DNS_NOERROR);
		return false;
	case SPECIAL_NXDOMAIN:
		answer_locally(judgement, DNS_NXDOMAIN);
		return false;
	case SPECIAL_REVERSE:
		judge_reverse(services, sandbox, &ip, judgement);
		return false;
	}
	return true;
}

static struct verdict decide(const struct policy *policy, const char *host,
			     int64_t now_s)
{
	const struct question question = { .host = host,
					   .door = DOOR_DNS,
					   .now_s = now_s };

	return policy_decide(policy, &question);
}

bool judge_stands(const struct policy *policy,
		  const struct judgement *judgement, int64_t now_s)
{
	const struct verdict *was = &judgement->verdict;
	struct verdict is = decide(policy, judgement->host, now_s);

	return is.allow == was->allow && is.reason == was->reason &&
	       is.rule == was->rule;
}

static bool judge_policy(struct sandbox *sandbox, int64_t now_s,
			 struct judgement *judgement)
{
	struct verdict verdict =
		decide(sandbox->policy, judgement->host, now_s);

	if (verdict.allow) {
		judgement->verdict = verdict;
		judgement->by_policy = true;
		return true;
	}
	judge_refuse(judgement, verdict.reason, verdict.rule);
	/* A name above an allowed one exists (RFC 8020). */
	if (judgement->reply.rcode == DNS_NXDOMAIN &&
	    policy_has_below(sandbox->policy, judgement->host))
		judgement->reply.rcode = DNS_NOERROR;
	return false;
}

/* May records of @type be asked for by the words of @rule? Of a service of the
 * machine's own there are none. */
static bool has_type(const struct rule *rule, uint16_t type)
{
	unsigned types = rule && !rule_connect(rule) ? rule_dns_types(rule) : 0;

	return (type == DNS_TXT && types & RULE_DNS_TXT) ||
	       (type == DNS_MX && types & RULE_DNS_MX) ||
	       (type == DNS_SRV && types & RULE_DNS_SRV);
}

/* The name is allowed: what of it is asked? @served is the one type of address
 * that has an answer here, the other has none. */
static bool judge_type(uint16_t type, uint16_t served,
		       struct judgement *judgement)
{
	const struct rule *rule = judgement->verdict.rule;

	if (type == served) {
		judgement->errand = rule && rule_connect(rule)
					    ? ERRAND_LEASE
					    : ERRAND_ADDRESSES;
		return true;
	}
	if (type == DNS_A || type == DNS_AAAA)
		return true;
	if (has_type(rule, type)) {
		judgement->errand = ERRAND_RECORDS;
		return true;
	}
	if (type != DNS_ANY) {
		judge_refuse(judgement, REASON_RECORD_TYPE, rule);
		return false;
	}
	judgement->reply.kind = DNS_REPLY_HINFO;
	judgement->reply.ttl = JUDGE_TTL;
	return false;
}

void judge_question(const struct services *services, struct sandbox *sandbox,
		    enum dns_parse parsed, const struct dns_query *query,
		    int64_t now_s, struct judgement *ret_judgement)
{
	struct judgement *judgement = ret_judgement;
	uint16_t served = services->answer.len == 16 ? DNS_AAAA : DNS_A;

	memset(judgement, 0, sizeof(*judgement));
	judgement->reply.ttl = JUDGE_TTL_NEGATIVE;
	if (!judge_form(parsed, query, judgement) ||
	    !judge_special(services, sandbox, query, judgement) ||
	    !judge_policy(sandbox, now_s, judgement) ||
	    !judge_type(query->type, served, judgement))
		return;
	const struct rule *rule = judgement->verdict.rule;
	enum reason reason =
		services->admit(services->ctx, sandbox, judgement->host, rule);
	if (!reason_info(reason)->allow)
		judge_refuse(judgement, reason, rule);
}

struct verdict judge_addresses(const struct services *services,
			       const struct policy *policy,
			       const struct rule *rule, struct lookup *lookup)
{
	size_t prefixes = 0, kept = 0;
	const struct cidr *uplink = services->uplink(services->ctx, &prefixes);
	struct verdict last = { .reason = REASON_FORBIDDEN_ADDRESS,
				.rule = rule };

	for (size_t i = 0; i < lookup->count; i++) {
		struct verdict verdict = policy_check_address(
			policy, rule, &lookup->ip[i], uplink, prefixes);

		if (verdict.allow)
			lookup->ip[kept++] = lookup->ip[i];
		else
			last = verdict;
	}
	if (!kept)
		return last; /* and all of them, for the record */
	lookup->count = kept;
	return (struct verdict){ .allow = true,
				 .reason = REASON_RULE,
				 .rule = rule };
}
