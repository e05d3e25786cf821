/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_services.c - the callbacks that dns/ and proxy/ are given.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "audit/client.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/gate.h"
#include "dns/resolver.h"

static void service_record(void *ctx, const struct audit_event *event,
			   struct wait *wait)
{
	struct gate *gate = ctx;

	audit_client_submit(gate->audit, event, wait);
}

static void service_record_cancel(void *ctx, struct wait *wait)
{
	struct gate *gate = ctx;

	audit_client_cancel(gate->audit, wait);
}

static void service_resolve(void *ctx, const char *host, struct lookup *lookup)
{
	struct gate *gate = ctx;

	resolver_lookup(gate->resolver, host, lookup);
}

static void service_resolve_cancel(void *ctx, struct lookup *lookup)
{
	struct gate *gate = ctx;

	resolver_cancel(gate->resolver, lookup);
}

static void service_resolve_records(void *ctx, const char *host, uint16_t type,
				    struct record_lookup *lookup)
{
	struct gate *gate = ctx;

	resolver_lookup_records(gate->resolver, host, type, lookup);
}

static void service_resolve_records_cancel(void *ctx,
					   struct record_lookup *lookup)
{
	struct gate *gate = ctx;

	resolver_cancel_records(gate->resolver, lookup);
}

static struct gate_sandbox *own_of(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct gate_sandbox, pub);
}

static enum reason service_admit(void *ctx, struct sandbox *sandbox,
				 const char *host, const struct rule *rule)
{
	(void)ctx;
	return lease_admit(own_of(sandbox)->names, sandbox->policy, host, rule);
}

static bool service_rate(void *ctx, struct sandbox *sandbox, enum rate rate)
{
	const struct limits *limits = policy_limits(sandbox->policy);

	(void)ctx;
	return counters_take(own_of(sandbox)->counters, rate,
			     rate == RATE_DNS ? limits->dns_per_second
					      : limits->connections_per_second,
			     clock_ms(CLOCK_MONOTONIC));
}

static enum reason service_meters(void *ctx, struct sandbox *sandbox,
				  const struct rule *rule,
				  struct meters *ret_meters)
{
	struct meters meters;

	(void)ctx;
	if (counters_meters(own_of(sandbox)->counters,
			    policy_limits(sandbox->policy), rule, &meters) ||
	    !meters_room(&meters, UP) || !meters_room(&meters, DOWN))
		return REASON_LIMIT_BYTES;
	*ret_meters = meters;
	return REASON_RULE;
}

static int service_bind(void *ctx, struct sandbox *sandbox, const char *host,
			const struct ip *ip)
{
	(void)ctx;
	return lease_bind(own_of(sandbox)->names, host, ip);
}

static size_t service_names_at(void *ctx, struct sandbox *sandbox,
			       const struct ip *ip, const char *ret_name[],
			       size_t max)
{
	(void)ctx;
	return lease_names_at(own_of(sandbox)->names, ip, ret_name, max);
}

static const char *service_lease_of(void *ctx, struct sandbox *sandbox,
				    const struct ip *ip)
{
	(void)ctx;
	return sandbox->leases ? lease_name(sandbox->leases, ip) : NULL;
}

struct gate_sandbox *gate_sandbox_by_ifindex(struct gate *gate,
					     uint32_t ifindex)
{
	for (size_t i = 0; i < gate->sandboxes; i++) {
		if (gate->sandbox[i]->pub.ifindex == ifindex)
			return gate->sandbox[i];
	}
	return NULL;
}

static struct sandbox *service_sandbox_of(void *ctx, uint32_t ifindex,
					  const struct ip *ip)
{
	struct gate *gate = ctx;
	struct gate_sandbox *sandbox = gate_sandbox_by_ifindex(gate, ifindex);

	/* Behind an interface of ours: the address must be the one we gave. */
	if (sandbox && ifindex)
		return ip_equal(&sandbox->pub.ip, ip) ? &sandbox->pub : NULL;
	/* Under `serve` there is one sandbox for all interfaces. */
	if (gate->sandboxes != 1 || gate->sandbox[0]->pub.ifindex)
		return NULL;
	for (size_t i = 0; i < gate->clients; i++) {
		if (cidr_contains(&gate->client[i], ip))
			return &gate->sandbox[0]->pub;
	}
	return NULL;
}

static uint64_t service_flow_id(void *ctx)
{
	struct gate *gate = ctx;

	return gate->next_flow++;
}

static const struct cidr *service_uplink(void *ctx, size_t *ret_count)
{
	struct gate *gate = ctx;

	*ret_count = gate->uplinks;
	return gate->uplink;
}

static const struct endpoint *service_self(void *ctx, size_t *ret_count)
{
	struct gate *gate = ctx;

	*ret_count = gate->selves;
	return gate->self;
}

/* --- publication --------------------------------------------------------- */

/* What is no lease, but a real address, may be of several names, each with its
 * own ports: the kernel is told each time. */
#define NO_SLOT LEASE_MAX

static size_t lease_slot(const struct sandbox *sandbox, const char *host,
			 const struct ip *ip)
{
	const char *leased =
		sandbox->leases ? lease_name(sandbox->leases, ip) : NULL;

	if (!leased || strcmp(leased, host) != 0)
		return NO_SLOT;
	return ip_v4_value(ip) - LEASE_POOL_BASE - 1;
}

static bool is_published(const struct gate_sandbox *sandbox, size_t slot)
{
	return slot != NO_SLOT &&
	       sandbox->published[slot / 64] >> slot % 64 & 1;
}

static int send_publish(struct gate *gate, struct sandbox *sandbox,
			const char *host, const struct ip *ip, uint64_t id)
{
	struct msg_publish msg = { .id = id,
				   .sandbox = sandbox->id,
				   .dst = { .ip = *ip, .bits = 32 } };

	msg.count = (uint32_t)policy_ports(sandbox->policy, host, time(NULL),
					   msg.port, MSG_PORTS_MAX);
	if (!msg.count)
		return -EPERM;
	return msg_send(gate->control, MSG_GATE_PUBLISH, &msg, -1);
}

static void service_publish(void *ctx, struct sandbox *sandbox,
			    const char *host, const struct ip *ip,
			    struct wait *wait)
{
	struct gate *gate = ctx;
	size_t slot = lease_slot(sandbox, host, ip);
	int err;

	if (ip->len != 4) {
		wait->done(wait, -EINVAL);
		return;
	}
	if (is_published(own_of(sandbox), slot)) {
		wait->done(wait, 0);
		return;
	}
	/* The slot rides in the id, so that the answer says which it was. */
	wait->seq = gate->next_publish++ * (NO_SLOT + 1) + slot;
	wait->owner = own_of(sandbox);
	err = send_publish(gate, sandbox, host, ip, wait->seq);
	if (err) {
		wait->seq = 0;
		wait->done(wait, err);
		return;
	}
	TAILQ_INSERT_TAIL(&gate->publishing, wait, entry);
}

static void service_publish_cancel(void *ctx, struct wait *wait)
{
	struct gate *gate = ctx;

	if (!wait->seq)
		return;
	TAILQ_REMOVE(&gate->publishing, wait, entry);
	wait->seq = 0;
}

void gate_published(struct gate *gate, const struct msg_published *msg)
{
	struct wait *wait;

	TAILQ_FOREACH (wait, &gate->publishing, entry) {
		if (wait->seq == msg->id)
			break;
	}
	if (!wait)
		return; /* who asked is gone */
	if (msg->status == 0) {
		struct gate_sandbox *sandbox = wait->owner;
		size_t slot = msg->id % (NO_SLOT + 1);

		if (slot != NO_SLOT)
			sandbox->published[slot / 64] |= UINT64_C(1)
							 << slot % 64;
	}
	TAILQ_REMOVE(&gate->publishing, wait, entry);
	wait->seq = 0;
	wait->done(wait, msg->status);
}

void gate_services_init(struct gate *gate)
{
	TAILQ_INIT(&gate->publishing);
	TAILQ_INIT(&gate->dials.waiting);
	gate->next_publish = 1;
	gate->services = (struct services){
		.ctx = gate,
		.record = service_record,
		.record_cancel = service_record_cancel,
		.room = gate_room,
		.room_cancel = gate_room_cancel,
		.resolve = service_resolve,
		.resolve_cancel = service_resolve_cancel,
		.resolve_records = service_resolve_records,
		.resolve_records_cancel = service_resolve_records_cancel,
		.admit = service_admit,
		.rate = service_rate,
		.meters = service_meters,
		.bind = service_bind,
		.names_at = service_names_at,
		.publish = service_publish,
		.publish_cancel = service_publish_cancel,
		.lease_of = service_lease_of,
		.sandbox_of = service_sandbox_of,
		.flow_id = service_flow_id,
		.uplink = service_uplink,
		.self = service_self,
	};
}
