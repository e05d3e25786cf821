/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_publish.c - what the kernel lets in, after a policy or the time changed.
 *
 * For each name that has an address, the ports of before and of now are
 * compared, and the warden is told the difference: first of all what is
 * withdrawn, then what is new, so that it can take each in few batches. No
 * answer is awaited: the kernel only decides what comes to us, and what comes
 * is judged.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/gate.h"

/* More names than that at one real address: the ports of the others are closed
 * until they are asked for again. */
#define NAMES_MAX 64

struct ports {
	struct port_range range[MSG_PORTS_MAX];
	size_t n;
};

struct change {
	struct gate *gate;
	struct gate_sandbox *sandbox;
	const struct policy *old; /* NULL: not known */
	int64_t since_s, now_s;
};

static void ports_of(const struct policy *policy, const char *host,
		     int64_t now_s, struct ports *ret)
{
	ret->n = policy_ports(policy, host, now_s, ret->range, MSG_PORTS_MAX);
}

static bool same(const struct ports *a, const struct ports *b)
{
	return a->n == b->n &&
	       memcmp(a->range, b->range, a->n * sizeof(a->range[0])) == 0;
}

/* Both sorted and merged. False if the rest would be too many ranges: nothing
 * is lost, as @a is then left as it was. */
static bool subtract(struct ports *a, const struct ports *b)
{
	struct ports rest = { .n = 0 };

	for (size_t i = 0, j = 0; i < a->n; i++) {
		uint32_t from = a->range[i].first, last = a->range[i].last;

		while (j < b->n && b->range[j].last < from)
			j++;
		for (size_t k = j; from <= last; k++) {
			bool more = k < b->n && b->range[k].first <= last;
			uint32_t end = more ? b->range[k].first - 1u : last;

			if (from <= end && rest.n == MSG_PORTS_MAX)
				return false;
			if (from <= end)
				rest.range[rest.n++] =
					(struct port_range){ (uint16_t)from,
							     (uint16_t)end };
			from = more ? b->range[k].last + 1u : last + 1u;
		}
	}
	*a = rest;
	return true;
}

static int tell(const struct change *change, enum msg_type type,
		const struct ip *ip, const struct ports *ports)
{
	struct msg_publish msg = { .sandbox = change->sandbox->pub.id,
				   .dst = { .ip = *ip,
					    .bits = (uint8_t)(ip->len * 8) } };

	if (!ports->n || ip->len != 4)
		return 0;
	msg.count = (uint32_t)ports->n;
	memcpy(msg.port, ports->range, ports->n * sizeof(msg.port[0]));
	return msg_send(change->gate->control, type, &msg, -1);
}

static const struct policy *now_of(const struct change *change)
{
	return change->sandbox->pub.policy;
}

/* --- leases -------------------------------------------------------------- */

static int change_lease(const struct change *change, bool withdraw,
			const char *host, const struct ip *ip)
{
	struct ports before = { .n = 0 }, now;

	ports_of(now_of(change), host, change->now_s, &now);
	if (change->old)
		ports_of(change->old, host, change->since_s, &before);
	if (same(&before, &now))
		return 0;
	if (!withdraw)
		return tell(change, MSG_GATE_PUBLISH, ip, &now);
	/* Past the limit all of it goes, and comes again. */
	subtract(&before, &now);
	return tell(change, MSG_GATE_WITHDRAW, ip, &before);
}

/* --- real addresses ------------------------------------------------------ */

static void real_ports_of(const struct policy *policy, const char *host,
			  int64_t now_s, struct ports *ret)
{
	ret->n = 0;
	if (policy && policy_answers_real(policy))
		ports_of(policy, host, now_s, ret);
}

/* Reduces @gone to what no other name at @ip is allowed. */
static void keep_shared(const struct change *change, const struct ip *ip,
			struct ports *gone)
{
	const char *name[NAMES_MAX];
	size_t n = lease_names_at(change->sandbox->names, ip, name, NAMES_MAX);

	for (size_t i = 0; i < n && gone->n; i++) {
		struct ports ports;

		real_ports_of(now_of(change), name[i], change->now_s, &ports);
		subtract(gone, &ports);
	}
}

static int change_pair(const struct change *change, bool withdraw,
		       const char *host, const struct ip *ip)
{
	struct ports before, now;

	real_ports_of(now_of(change), host, change->now_s, &now);
	real_ports_of(change->old, host, change->since_s, &before);
	if (same(&before, &now))
		return 0;
	if (!withdraw)
		return tell(change, MSG_GATE_PUBLISH, ip, &now);
	subtract(&before, &now);
	keep_shared(change, ip, &before);
	return tell(change, MSG_GATE_WITHDRAW, ip, &before);
}

static int change_all(const struct change *change, bool withdraw)
{
	const struct lease_table *names = change->sandbox->names;
	const char *host;
	struct ip ip;
	int err = 0;

	for (size_t i = 0; !err && lease_at(names, i, &host, &ip); i++)
		if (ip.len)
			err = change_lease(change, withdraw, host, &ip);
	for (size_t i = 0; !err && lease_pair_at(names, i, &host, &ip); i++)
		if (ip.len)
			err = change_pair(change, withdraw, host, &ip);
	return err;
}

int gate_publish_changes(struct gate *gate, const struct policy *old,
			 int64_t since_s, int64_t now_s)
{
	int err = 0;

	for (size_t i = 0; !err && i < gate->sandboxes; i++) {
		const struct change change = { .gate = gate,
					       .sandbox = gate->sandbox[i],
					       .old = old,
					       .since_s = since_s,
					       .now_s = now_s };

		/* Under `serve` there is no kernel between. */
		if (!change.sandbox->pub.leases)
			continue;
		if (old)
			err = change_all(&change, true);
		if (!err)
			err = change_all(&change, false);
	}
	return err;
}

static bool is_literal(const struct policy *policy, const struct ip *ip)
{
	const struct port_range *ports;
	struct cidr cidr;
	size_t count;

	for (size_t i = 0; policy_literal(policy, i, &cidr, &ports, &count);
	     i++)
		if (cidr_contains(&cidr, ip))
			return true;
	return false;
}

static int publish_uncovered(const struct change *change)
{
	const struct lease_table *names = change->sandbox->names;
	struct ports now;
	const char *host;
	struct ip ip;
	int err = 0;

	for (size_t i = 0; !err && lease_pair_at(names, i, &host, &ip); i++) {
		if (!ip.len || !is_literal(change->old, &ip))
			continue;
		real_ports_of(now_of(change), host, change->now_s, &now);
		err = tell(change, MSG_GATE_PUBLISH, &ip, &now);
	}
	return err;
}

int gate_publish_uncovered(struct gate *gate, const struct policy *old,
			   int64_t now_s)
{
	int err = 0;

	if (!policy_answers_real(gate->policy))
		return 0;
	for (size_t i = 0; !err && i < gate->sandboxes; i++) {
		const struct change change = { .gate = gate,
					       .sandbox = gate->sandbox[i],
					       .old = old,
					       .now_s = now_s };

		if (change.sandbox->pub.leases)
			err = publish_uncovered(&change);
	}
	return err;
}
