/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_flows.c - what is let through to the gate: literal ranges of the
 * policy, which are the warden's to open, and addresses of names, for which the
 * gate asks.
 *
 * The pool of the leases belongs to names alone. So the two never overlap,
 * unless names have their real addresses: those may lie in a literal range.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/gateway.h"
#include "dns/lease.h"

#define LINK_POOL_BITS 16
#define BATCH	       256

static const struct port_range every_port = { 1, 65535 };

static struct cidr lease_pool(void)
{
	return (struct cidr){ .ip = ip_v4(LEASE_POOL_BASE), .bits = 16 };
}

/* --- literal ranges ------------------------------------------------------ */

struct flows {
	struct ruleset_flow *at;
	size_t n, cap;
};

static int flows_add(struct flows *flows, const struct cidr *dst,
		     const struct port_range *ports)
{
	if (flows->n == flows->cap) {
		size_t cap = flows->cap ? flows->cap * 2 : 64;
		struct ruleset_flow *more =
			reallocarray(flows->at, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		flows->at = more;
		flows->cap = cap;
	}
	flows->at[flows->n++] = (struct ruleset_flow){ *dst, *ports };
	return 0;
}

/* Without the pool: of a range around it, the halves beside the way down. */
static int flows_add_outside(struct flows *flows, const struct cidr *dst,
			     const struct port_range *ports)
{
	const struct cidr pool = lease_pool();
	struct cidr part;
	int err = 0;

	if (cidr_contains(&pool, &dst->ip) && dst->bits >= pool.bits)
		return 0;
	if (!cidr_contains(dst, &pool.ip))
		return flows_add(flows, dst, ports);
	for (part.bits = (uint8_t)(dst->bits + 1);
	     !err && part.bits <= pool.bits; part.bits++) {
		const uint32_t bit = UINT32_C(1) << (32 - part.bits);

		part.ip = ip_v4((LEASE_POOL_BASE ^ bit) & ~(bit - 1));
		err = flows_add(flows, &part, ports);
	}
	return err;
}

static int flows_of(const struct policy *policy, struct flows *ret)
{
	const struct port_range *ports;
	struct cidr cidr;
	size_t count;
	int err = 0;

	for (size_t i = 0;
	     !err && policy && policy_literal(policy, i, &cidr, &ports, &count);
	     i++) {
		if (cidr.ip.len != 4)
			continue; /* there is no IPv6 in a sandbox */
		if (!count)
			err = flows_add_outside(ret, &cidr, &every_port);
		for (size_t j = 0; !err && j < count; j++)
			err = flows_add_outside(ret, &cidr, &ports[j]);
	}
	return err;
}

static bool same(const struct ruleset_flow *a, const struct ruleset_flow *b)
{
	return ip_equal(&a->dst.ip, &b->dst.ip) && a->dst.bits == b->dst.bits &&
	       a->ports.first == b->ports.first &&
	       a->ports.last == b->ports.last;
}

static bool overlap(const struct ruleset_flow *a, const struct ruleset_flow *b)
{
	return (cidr_contains(&a->dst, &b->dst.ip) ||
		cidr_contains(&b->dst, &a->dst.ip)) &&
	       a->ports.first <= b->ports.last &&
	       b->ports.first <= a->ports.last;
}

/* Reduces @a to what is not in @b. */
static void drop_common(struct flows *a, const struct flows *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		size_t j = 0;

		while (j < b->n && !same(&a->at[i], &b->at[j]))
			j++;
		if (j == b->n)
			a->at[kept++] = a->at[i];
	}
	a->n = kept;
}

/* Takes up to BATCH of @gone out, without what of it is also in @want. */
static int close_some(struct gateway *g, const struct ruleset_flow *gone,
		      size_t n, const struct flows *want)
{
	struct flows stay = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < want->n; i++)
		for (size_t j = 0; !err && j < n; j++)
			if (overlap(&want->at[i], &gone[j])) {
				err = flows_add(&stay, &want->at[i].dst,
						&want->at[i].ports);
				break;
			}
	if (!err)
		err = ruleset_flow_replace(g->nft, g->link.ifname, gone, n,
					   stay.at, stay.n);
	free(stay.at);
	return err;
}

static size_t batch_of(const struct flows *flows, size_t from)
{
	return flows->n - from < BATCH ? flows->n - from : BATCH;
}

int gateway_literals(struct gateway *g, const struct policy *old,
		     const struct policy *policy)
{
	struct flows gone = { 0 }, have = { 0 }, want = { 0 };
	int err = flows_of(old, &gone);

	if (!err)
		err = flows_of(old, &have);
	if (!err)
		err = flows_of(policy, &want);
	drop_common(&gone, &want);
	for (size_t i = 0; !err && i < gone.n; i += BATCH)
		err = close_some(g, gone.at + i, batch_of(&gone, i), &want);
	drop_common(&want, &have);
	for (size_t i = 0; !err && i < want.n; i += BATCH)
		err = ruleset_flow_replace(g->nft, g->link.ifname, NULL, 0,
					   want.at + i, batch_of(&want, i));
	free(gone.at);
	free(have.at);
	free(want.at);
	return err;
}

int gateway_sweep(struct gateway *g, const struct policy *policy)
{
	struct flows want = { 0 };
	int err = flows_of(policy, &want);

	if (!err)
		err = ruleset_flow_sweep(g->nft, g->link.ifname, want.at,
					 want.n);
	g->changes.gones = g->changes.wants = 0;
	free(want.at);
	return err;
}

/* --- addresses of names -------------------------------------------------- */

/* A gate that went over to the enemy opens nothing but its own names. Where
 * names have their real addresses it may be any address but ours: what is let
 * in comes to the gate, wherever it was meant to go. */
static bool may_publish(const struct policy *policy, const struct cidr *dst)
{
	const struct cidr pool = lease_pool();
	const struct cidr links = { .ip = ip_v4(GATEWAY_LINK_BASE),
				    .bits = LINK_POOL_BITS };

	if (dst->bits != 32 || dst->ip.len != 4)
		return false;
	return cidr_contains(&pool, &dst->ip) ||
	       (policy_answers_real(policy) &&
		!cidr_contains(&links, &dst->ip));
}

int gateway_publish(struct gateway *g, const struct policy *policy,
		    const struct msg_publish *msg, bool fresh)
{
	const struct cidr pool = lease_pool();
	int err;

	if (!may_publish(policy, &msg->dst) || msg->count == 0 ||
	    msg->count > MSG_PORTS_MAX)
		return -EPERM;
	/* Nothing else is ever at the address of a lease. */
	if (fresh && cidr_contains(&pool, &msg->dst.ip))
		return ruleset_flow_add(g->nft, g->link.ifname, &msg->dst,
					msg->port, msg->count);
	err = gateway_publish_later(g, policy, msg);
	return err ? err : gateway_flush(g, policy);
}

static int room_for(struct gateway *g, const struct policy *policy, size_t now,
		    size_t more)
{
	return now + more > GATEWAY_CHANGES_MAX ? gateway_flush(g, policy) : 0;
}

int gateway_publish_later(struct gateway *g, const struct policy *policy,
			  const struct msg_publish *msg)
{
	struct gateway_changes *changes = &g->changes;
	int err;

	if (!may_publish(policy, &msg->dst) || msg->count > MSG_PORTS_MAX)
		return -EPERM;
	err = room_for(g, policy, changes->wants, msg->count);
	for (size_t i = 0; !err && i < msg->count; i++)
		changes->want[changes->wants++] =
			(struct ruleset_flow){ msg->dst, msg->port[i] };
	return err;
}

int gateway_withdraw_later(struct gateway *g, const struct policy *policy,
			   const struct msg_publish *msg)
{
	struct gateway_changes *changes = &g->changes;
	int err = 0;

	if (msg->dst.bits != 32 || msg->dst.ip.len != 4 ||
	    msg->count > MSG_PORTS_MAX)
		return -EPERM;
	/* What was to be opened before must not be opened after. */
	if (changes->wants)
		err = gateway_flush(g, policy);
	if (!err)
		err = room_for(g, policy, changes->gones, msg->count);
	for (size_t i = 0; !err && i < msg->count; i++)
		changes->gone[changes->gones++] =
			(struct ruleset_flow){ msg->dst, msg->port[i] };
	return err;
}

/* Is there a real address among them? It may also be allowed as such. */
static bool any_real(const struct gateway_changes *changes)
{
	const struct cidr pool = lease_pool();

	for (size_t i = 0; i < changes->gones; i++)
		if (!cidr_contains(&pool, &changes->gone[i].dst.ip))
			return true;
	return false;
}

int gateway_flush(struct gateway *g, const struct policy *policy)
{
	struct gateway_changes *changes = &g->changes;
	struct flows literal = { 0 };
	int err = 0;

	if (any_real(changes))
		err = flows_of(policy, &literal);
	if (!err && changes->gones)
		err = close_some(g, changes->gone, changes->gones, &literal);
	if (!err && changes->wants)
		err = ruleset_flow_replace(g->nft, g->link.ifname, NULL, 0,
					   changes->want, changes->wants);
	changes->gones = changes->wants = 0;
	free(literal.at);
	return err;
}

int gateway_verify(struct gateway *g, char *reterr, size_t cap)
{
	char digest[65];
	int err = ruleset_verify(g->nft, &g->spec, &g->link, 1, digest, reterr,
				 cap);

	if (!err && strcmp(digest, g->digest) != 0) {
		snprintf(reterr, cap, "their digest is another one");
		err = -EBADMSG;
	}
	return err;
}
