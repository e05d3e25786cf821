/* SPDX-License-Identifier: Apache-2.0
 *
 * query_answer.c - from the upstream's answer to ours.
 *
 * An address that the sandbox gets, be it a lease or (`dns.answers: real`) one
 * of the name's own, is published first: also one that was published before,
 * because that may still be under way, or was done by a gate that died.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dns/lease.h"
#include "dns/query.h"

#define DETAIL_MAX (LOOKUP_MAX * IP_TEXT_MAX + 16)

static uint32_t ttl_of(uint32_t upstream)
{
	return upstream < JUDGE_TTL ? upstream : JUDGE_TTL;
}

/* "upstream: 93.184.216.34 2606:2800::1" or "connect: 127.0.0.1 port 11434",
 * for the record. */
static const char *describe(const struct query *query, char *buf, size_t cap)
{
	const struct lookup *lookup = &query->lookup;
	const struct rule *rule = query->judgement.verdict.rule;
	char ip[IP_TEXT_MAX];
	int len;

	if (query->judgement.errand == ERRAND_LEASE) {
		const struct endpoint *to = rule_connect(rule);

		snprintf(buf, cap, "connect: %s port %u",
			 ip_format(&to->ip, ip), to->port);
		return buf;
	}
	len = snprintf(buf, cap, "upstream:");
	for (size_t i = 0; i < lookup->count && (size_t)len < cap; i++)
		len += snprintf(buf + len, cap - (size_t)len, " %s",
				ip_format(&lookup->ip[i], ip));
	return buf;
}

static void answer_addresses(struct query *query)
{
	struct dns_reply *reply = &query->judgement.reply;
	char detail[DETAIL_MAX];

	reply->kind = DNS_REPLY_ADDRESS;
	query_answer(query, reply->address, reply->addresses,
		     describe(query, detail, sizeof(detail)));
}

/* --- addresses that are let in ------------------------------------------- */

static void publish_next(struct query *query);

static void on_published(struct wait *wait, int status)
{
	struct query *query = CONTAINER_OF(wait, struct query, wait);

	if (query_stale(query)) {
		query_rejudge(query);
		return;
	}
	if (status) {
		query_refuse(query, REASON_RESOLVE_FAILED,
			     "the kernel did not take the address");
		return;
	}
	query->published++;
	publish_next(query);
}

/* The next address of the reply; when all are, the answer. */
static void publish_next(struct query *query)
{
	const struct services *services = query->filter->services;
	const struct dns_reply *reply = &query->judgement.reply;

	if (query->published == reply->addresses) {
		answer_addresses(query);
		return;
	}
	query->step = STEP_PUBLISH;
	query->wait = (struct wait){ .done = on_published };
	services->publish(services->ctx, query->sandbox, query->judgement.host,
			  &reply->address[query->published], &query->wait);
}

static void lease_address(struct query *query)
{
	struct sandbox *sandbox = query->sandbox;
	struct dns_reply *reply = &query->judgement.reply;
	bool is_new;

	if (!sandbox->leases) {
		query_refuse(query, REASON_RESOLVE_FAILED,
			     "there is no address to answer with");
		return;
	}
	if (lease_get(sandbox->leases, query->judgement.host,
		      &reply->address[0], &is_new)) {
		query_refuse(query, REASON_LIMIT_NAMES, "no lease is left");
		return;
	}
	reply->addresses = 1;
	publish_next(query);
}

/* Under `serve`: our own address; of a wildcard, the one that was asked. */
static struct ip served_address(const struct query *query)
{
	static const struct ip any = { .len = 4 };
	const struct ip answer = query->filter->services->answer;

	return ip_equal(&answer, &any) && query->peer.dst.len == 4
		       ? query->peer.dst
		       : answer;
}

/* An address that means this name and no other. */
static void answer_own(struct query *query)
{
	struct dns_reply *reply = &query->judgement.reply;

	if (!query->filter->services->answer.len) {
		lease_address(query);
		return;
	}
	reply->address[0] = served_address(query);
	reply->addresses = 1;
	answer_addresses(query);
}

static bool is_listed(const struct dns_reply *reply, const struct ip *ip)
{
	for (size_t i = 0; i < reply->addresses; i++)
		if (ip_equal(&reply->address[i], ip))
			return true;
	return false;
}

/* The name's own addresses, which were checked, and are noted as its own before
 * anybody hears of them. A name that has only IPv6 gets a lease: the sandbox
 * speaks IPv4. */
static void answer_real(struct query *query)
{
	const struct services *services = query->filter->services;
	struct dns_reply *reply = &query->judgement.reply;
	size_t candidates = 0;
	int err = 0;

	for (size_t i = 0; i < query->lookup.count; i++) {
		const struct ip *ip = &query->lookup.ip[i];

		if (ip->len != 4 || is_listed(reply, ip) ||
		    reply->addresses == DNS_ADDRESSES_MAX)
			continue;
		candidates++;
		err = services->bind(services->ctx, query->sandbox,
				     query->judgement.host, ip);
		if (!err)
			reply->address[reply->addresses++] = *ip;
	}
	if (!candidates)
		lease_address(query);
	else if (reply->addresses)
		publish_next(query);
	else if (err == -ENOSPC)
		query_refuse(query, REASON_LIMIT_NAMES,
			     "there are too many addresses");
	else
		query_refuse(query, REASON_FORBIDDEN_ADDRESS,
			     "its addresses are those of leases");
}

/* --- what upstream says -------------------------------------------------- */

static void take_addresses(struct query *query)
{
	const struct services *services = query->filter->services;
	struct judgement *judgement = &query->judgement;
	struct verdict verdict =
		judge_addresses(services, query->policy,
				judgement->verdict.rule, &query->lookup);

	if (!verdict.allow) {
		judge_refuse(judgement, verdict.reason, verdict.rule);
		query_answer(query, query->lookup.ip, query->lookup.count,
			     "every address of the name is refused");
		return;
	}
	judgement->reply.ttl = ttl_of(query->lookup.ttl);
	if (judge_real(services, query->policy))
		answer_real(query);
	else
		answer_own(query);
}

/* There is none of what was asked for. */
static void answer_nothing(struct query *query, int status)
{
	if (!status || status == -ENOENT) {
		query->judgement.reply.rcode =
			status ? DNS_NXDOMAIN : DNS_NOERROR;
		query_answer(query, NULL, 0, NULL);
	} else {
		query_refuse(query, REASON_RESOLVE_FAILED,
			     status == -ETIMEDOUT
				     ? "the name servers did not answer"
				     : "no name server gave a usable answer");
	}
}

static void on_resolved(struct wait *wait, int status)
{
	struct lookup *lookup = CONTAINER_OF(wait, struct lookup, wait);
	struct query *query = CONTAINER_OF(lookup, struct query, lookup);

	if (query_stale(query))
		query_rejudge(query);
	else if (!status && lookup->count)
		take_addresses(query);
	else
		answer_nothing(query, status);
}

/* Addresses are few and cached; with other records as much as one likes comes
 * in, so that they count. */
static uint64_t records_size(const struct record_lookup *lookup)
{
	uint64_t size = 0;

	for (size_t i = 0; i < lookup->count; i++)
		size += lookup->record[i].len;
	return size;
}

/* Takes @bytes that came in off the budgets; false if they have not as much. */
static bool spend(const struct query *query, uint64_t bytes)
{
	const struct services *services = query->filter->services;
	struct meters meters = { .at = { { { .limit = 0 } } } };
	enum reason reason =
		services->meters(services->ctx, query->sandbox,
				 query->judgement.verdict.rule, &meters);

	if (!reason_info(reason)->allow || meters_room(&meters, DOWN) < bytes)
		return false;
	meters_spend(&meters, DOWN, bytes);
	return true;
}

static void answer_records(struct query *query)
{
	const struct record_lookup *lookup = &query->records->lookup;
	struct dns_reply *reply = &query->judgement.reply;
	const char *type = lookup->type == DNS_TXT  ? "TXT"
			   : lookup->type == DNS_MX ? "MX"
						    : "SRV";
	char detail[64];

	if (!spend(query, records_size(lookup))) {
		query_refuse(query, REASON_LIMIT_BYTES, NULL);
		return;
	}
	reply->kind = DNS_REPLY_RECORDS;
	reply->record = lookup->record;
	reply->records = lookup->count;
	reply->ttl = ttl_of(lookup->ttl);
	snprintf(detail, sizeof(detail), "upstream: %zu %s %s", lookup->count,
		 type, lookup->count == 1 ? "record" : "records");
	query_answer(query, NULL, 0, detail);
}

static void on_records(struct wait *wait, int status)
{
	struct query_records *records =
		CONTAINER_OF(wait, struct query_records, lookup.wait);
	struct query *query = records->query;

	if (query_stale(query))
		query_rejudge(query);
	else if (!status && records->lookup.count)
		answer_records(query);
	else
		answer_nothing(query, status);
}

static void resolve_records(struct query *query)
{
	const struct services *services = query->filter->services;
	struct query_records *records;

	if (!spend(query, 0)) {
		query_refuse(query, REASON_LIMIT_BYTES, NULL);
		return;
	}
	records = calloc(1, sizeof(*records));
	if (!records) {
		query_refuse(query, REASON_RESOLVE_FAILED, "out of memory");
		return;
	}
	records->query = query;
	records->lookup.wait.done = on_records;
	query->records = records;
	query->step = STEP_RECORDS;
	services->resolve_records(services->ctx, query->judgement.host,
				  query->question.type, &records->lookup);
}

static void resolve_addresses(struct query *query)
{
	const struct services *services = query->filter->services;

	query->step = STEP_RESOLVE;
	query->lookup = (struct lookup){ .wait.done = on_resolved };
	services->resolve(services->ctx, query->judgement.host, &query->lookup);
}

void query_resolve(struct query *query)
{
	query->published = 0;
	switch (query->judgement.errand) {
	case ERRAND_NONE:
		break;
	case ERRAND_ADDRESSES:
		resolve_addresses(query);
		break;
	case ERRAND_RECORDS:
		resolve_records(query);
		break;
	case ERRAND_LEASE:
		query->judgement.reply.ttl = JUDGE_TTL;
		answer_own(query);
		break;
	}
}
