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
#include "base/clock.h"
#include "cmd/gateway.h"
#include "cmd/guard_gateway.h"
#include "dns/lease.h"

#define LINK_POOL_BITS 16
#define BATCH	       256

/* Of names, beside a batch of others: each may be taken out and put in. */
#define NAMES 256

/* To delete an element the kernel looks at each one before it, at 10 us and
 * more: so few at a time, and not for longer than that. */
#define FEW	 8
#define FLUSH_MS 100

static const struct port_range every_port = { 1, 65535 };

static struct cidr lease_pool(void)
{
	return (struct cidr){ .ip = ip_v4(LEASE_POOL_BASE), .bits = 16 };
}

/* --- literal ranges ------------------------------------------------------ */

static int flows_add(struct gateway_flows *flows, const struct cidr *dst,
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
static int flows_add_outside(struct gateway_flows *flows,
			     const struct cidr *dst,
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

static int flows_of(const struct policy *policy, struct gateway_flows *ret)
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
static void drop_common(struct gateway_flows *a, const struct gateway_flows *b)
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

/* Adds to @stay what of @from overlaps one of @gone, at most @most. */
static int add_common(struct gateway_flows *stay,
		      const struct gateway_flows *from,
		      const struct ruleset_flow *gone, size_t n, size_t most)
{
	int err = 0;

	for (size_t i = 0; !err && most && i < from->n; i++)
		for (size_t j = 0; !err && j < n; j++)
			if (overlap(&from->at[i], &gone[j])) {
				err = flows_add(stay, &from->at[i].dst,
						&from->at[i].ports);
				most--;
				break;
			}
	return err;
}

/* Takes up to BATCH of @gone out, without what of it is also in @want. What is
 * to be opened for names is opened in the same batch, as far as that holds it:
 * who has a connection there by its name does not notice. */
static int close_some(struct gateway *g, const struct ruleset_flow *gone,
		      size_t n, const struct gateway_flows *want)
{
	struct gateway_flows stay = { 0 };
	int err = add_common(&stay, want, gone, n, SIZE_MAX);

	if (!err)
		err = add_common(&stay, &g->want, gone, n, NAMES);
	if (!err)
		err = ruleset_flow_replace(g->nft, g->link.ifname, gone, n,
					   stay.at, stay.n);
	free(stay.at);
	return err;
}

static size_t batch_of(const struct gateway_flows *flows, size_t from)
{
	return flows->n - from < BATCH ? flows->n - from : BATCH;
}

int gateway_literals(struct gateway *g, const struct policy *old,
		     const struct policy *policy)
{
	struct gateway_flows gone = { 0 }, have = { 0 }, want = { 0 };
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
	struct gateway_flows want = { 0 };
	int err = flows_of(policy, &want);

	if (!err)
		err = ruleset_flow_sweep(g->nft, g->link.ifname, want.at,
					 want.n);
	gateway_drop_changes(g);
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

/* Of what was to be closed, @want stays open. */
static int keep(struct gateway *g, const struct ruleset_flow *want)
{
	const struct port_range *ports = &want->ports;
	struct gateway_flows *gone = &g->gone;
	size_t n = gone->n;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		struct port_range *closed = &gone->at[i].ports;

		if (!overlap(&gone->at[i], want))
			continue;
		if (closed->first >= ports->first &&
		    closed->last <= ports->last) {
			gone->at[i--] = gone->at[--n];
			gone->at[n] = gone->at[--gone->n];
			continue;
		}
		const struct port_range above = { (uint16_t)(ports->last + 1),
						  closed->last };
		const bool more = closed->last > ports->last;

		if (closed->first >= ports->first) {
			*closed = above;
			continue;
		}
		closed->last = (uint16_t)(ports->first - 1);
		if (more)
			err = flows_add(gone, &want->dst, &above);
	}
	return err;
}

static int open_all(struct gateway *g)
{
	int err = 0;

	for (size_t i = 0; !err && i < g->want.n; i += BATCH)
		err = ruleset_flow_replace(g->nft, g->link.ifname, NULL, 0,
					   g->want.at + i,
					   batch_of(&g->want, i));
	g->want.n = 0;
	return err;
}

int gateway_publish_later(struct gateway *g, const struct policy *policy,
			  const struct msg_publish *msg)
{
	int err = 0;

	if (!may_publish(policy, &msg->dst) || msg->count > MSG_PORTS_MAX)
		return -EPERM;
	for (size_t i = 0; !err && i < msg->count; i++) {
		const struct ruleset_flow flow = { msg->dst, msg->port[i] };

		err = keep(g, &flow);
		if (!err)
			err = flows_add(&g->want, &flow.dst, &flow.ports);
	}
	return err;
}

/* Where nothing else is, nothing has to be looked at before. */
static int open_new(struct gateway *g, const struct msg_publish *msg, size_t n)
{
	struct gateway_flows new = { 0 };
	int err = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; !err && j < msg[i].count; j++)
			err = flows_add(&new, &msg[i].dst, &msg[i].port[j]);
	if (!err)
		err = ruleset_flow_add(g->nft, g->link.ifname, new.at, new.n);
	free(new.at);
	return err;
}

int gateway_publish(struct gateway *g, const struct policy *policy,
		    const struct msg_publish *msg, size_t n, bool fresh)
{
	const struct cidr pool = lease_pool();
	bool alone = fresh && !g->gone.n && !g->want.n;
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		if (!may_publish(policy, &msg[i].dst) || msg[i].count == 0 ||
		    msg[i].count > MSG_PORTS_MAX)
			return -EPERM;
		/* Nothing else is ever at the address of a lease. */
		alone = alone && cidr_contains(&pool, &msg[i].dst.ip);
	}
	if (alone)
		return open_new(g, msg, n);
	for (size_t i = 0; !err && i < n; i++)
		err = gateway_publish_later(g, policy, &msg[i]);
	return err ? err : open_all(g);
}

int gateway_withdraw_later(struct gateway *g, const struct msg_publish *msg)
{
	int err;

	if (msg->dst.bits != 32 || msg->dst.ip.len != 4 ||
	    msg->count > MSG_PORTS_MAX)
		return -EPERM;
	/* What was to be opened before is not to be opened after. */
	err = open_all(g);
	for (size_t i = 0; !err && i < msg->count; i++)
		err = flows_add(&g->gone, &msg->dst, &msg->port[i]);
	return err;
}

/* Is there a real address among them? It may also be allowed as such. */
static bool any_real(const struct gateway_flows *flows)
{
	const struct cidr pool = lease_pool();

	for (size_t i = 0; i < flows->n; i++)
		if (!cidr_contains(&pool, &flows->at[i].dst.ip))
			return true;
	return false;
}

int gateway_flush(struct gateway *g, const struct policy *policy)
{
	const int64_t end = now_ms() + FLUSH_MS;
	struct gateway_flows literal = { 0 };
	size_t done = 0;
	int err = open_all(g);

	if (!err && any_real(&g->gone))
		err = flows_of(policy, &literal);
	while (!err && done < g->gone.n && (!done || now_ms() < end)) {
		size_t n = g->gone.n - done < FEW ? g->gone.n - done : FEW;

		err = close_some(g, g->gone.at + done, n, &literal);
		done += n;
	}
	g->gone.n -= done;
	if (g->gone.n)
		memmove(g->gone.at, g->gone.at + done,
			g->gone.n * sizeof(g->gone.at[0]));
	free(literal.at);
	return err ? err : g->gone.n > 0;
}

void gateway_drop_changes(struct gateway *g)
{
	free(g->gone.at);
	free(g->want.at);
	g->gone = g->want = (struct gateway_flows){ 0 };
}

int gateway_verify(struct gateway *g, char *reterr, size_t cap)
{
	char digest[65];
	int err = g->guard ? guard_gateway_verify(g, digest, reterr, cap)
			   : ruleset_verify(g->nft, &g->spec, &g->link, 1,
					    digest, reterr, cap);

	if (!err && strcmp(digest, g->digest) != 0) {
		snprintf(reterr, cap, "their digest is another one");
		err = -EBADMSG;
	}
	return err;
}
