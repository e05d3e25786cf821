/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_judge.c - what may become a rule.
 *
 * A connection that a rule had allowed (it is "vetted") was meant by somebody;
 * one that only observe mode or `default: public` let pass was not, and one
 * refusal of the kind that no policy relaxes is enough to distrust it. Some
 * things make no rule at all, whoever allowed them.
 *
 * DNS tunnels: data leaves in names, so there are many, and they do not look
 * like words. They are counted for each registrable domain (libpsl).
 */
#include <errno.h>
#include <libpsl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/learn_table.h"
#include "policy/reason.h"

#define BIT(reason) (UINT64_C(1) << (reason))

/* What a policy that is written differently would allow. */
#define RELAXABLE                                                            \
	(BIT(REASON_NOT_IN_POLICY) | BIT(REASON_PORT) | BIT(REASON_METHOD) | \
	 BIT(REASON_PATH) | BIT(REASON_EXPIRED))
/* Allowed, and then something went wrong or was too much. */
#define HARMLESS                                                       \
	(BIT(REASON_RESOLVE_FAILED) | BIT(REASON_TIMEOUT) |            \
	 BIT(REASON_CONNECT_FAILED) | BIT(REASON_LEDGER_UNAVAILABLE) | \
	 BIT(REASON_LIMIT_CONNECTIONS) | BIT(REASON_LIMIT_RATE) |      \
	 BIT(REASON_LIMIT_BYTES) | BIT(REASON_RECORD_TYPE))
/* A rule of ours has neither methods nor paths: it would allow all. */
#define NARROWED (BIT(REASON_METHOD) | BIT(REASON_PATH))

#define TUNNEL_NAMES   8  /* that look like data, below one domain */
#define TUNNEL_LOOKUPS 64 /* names that nobody ever connected to */
#define DATA_LABEL     32 /* bytes of a label that is no word */
#define DATA_LABEL_MIN 16 /* if it has the digits of data, and is as mixed */
#define DATA_DIGITS    3
#define DATA_MIX       6

/* Where the last label of the first @len bytes begins. */
static size_t last_label(const char *name, size_t len)
{
	while (len && name[len - 1] != '.')
		len--;
	return len;
}

/* Labels from the right: all names of a domain are neighbours. */
static int compare_names(const char *a, const char *b)
{
	size_t x_end = strlen(a), y_end = strlen(b);

	for (;;) {
		size_t x = last_label(a, x_end), y = last_label(b, y_end);
		size_t n = x_end - x < y_end - y ? x_end - x : y_end - y;
		int order = memcmp(a + x, b + y, n);

		if (order)
			return order;
		if (x_end - x != y_end - y)
			return x_end - x < y_end - y ? -1 : 1;
		if (!x || !y)
			return (x != 0) - (y != 0);
		x_end = x - 1;
		y_end = y - 1;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct learn_host *x = *(struct learn_host *const *)a;
	const struct learn_host *y = *(struct learn_host *const *)b;

	if (x->literal != y->literal)
		return (int)x->literal - (int)y->literal;
	return x->literal ? strcmp(x->name, y->name)
			  : compare_names(x->name, y->name);
}

static int by_port(const void *a, const void *b)
{
	const struct learn_port *x = a, *y = b;

	return (int)x->port - (int)y->port;
}

/* As unlike words as random hexadecimal digits: two bytes of it picked at
 * random are the same in less than one of six cases. */
static bool is_mixed(const char *s, size_t len)
{
	size_t count[256] = { 0 }, same = 0;

	for (size_t i = 0; i < len; i++)
		count[(unsigned char)s[i]]++;
	for (size_t i = 0; i < ARRAY_SIZE(count); i++)
		same += count[i] * count[i];
	return same * DATA_MIX <= len * len;
}

bool learn_is_data_label(const char *label, size_t len)
{
	size_t digits = 0;

	for (size_t i = 0; i < len; i++)
		digits += label[i] >= '0' && label[i] <= '9';
	return len >= DATA_LABEL ||
	       (len >= DATA_LABEL_MIN && digits >= DATA_DIGITS &&
		is_mixed(label, len));
}

/* Could what is in front of the registrable domain be data? */
static bool looks_like_data(const struct learn_host *host)
{
	size_t len;

	if (!host->zone || host->zone == host->name)
		return false;
	if (host->zone - host->name > LEARN_DATA_NAME)
		return true;
	for (const char *label = host->name; label < host->zone;
	     label += len + 1) {
		len = strcspn(label, ".");
		if (learn_is_data_label(label, len))
			return true;
	}
	return false;
}

static bool was_reached(const struct learn_host *host)
{
	for (size_t i = 0; i < host->ports; i++)
		if (host->port[i].vetted || host->port[i].unvetted)
			return true;
	return false;
}

/* @n neighbours that share their registrable domain. */
static void judge_zone(struct learn_host **host, size_t n)
{
	size_t data = 0, unreached = 0;

	for (size_t i = 0; i < n; i++) {
		data += looks_like_data(host[i]) ||
			(host[i]->refusals & BIT(REASON_LIMIT_NAMES)) != 0;
		unreached += !was_reached(host[i]);
	}
	for (size_t i = 0; i < n; i++)
		host[i]->tunnel =
			data >= TUNNEL_NAMES || unreached >= TUNNEL_LOOKUPS;
}

static void judge_zones(struct learn_table *table, const psl_ctx_t *psl)
{
	size_t n;

	for (size_t i = 0; i < table->hosts; i++) {
		struct learn_host *host = table->host[i];

		host->zone = host->literal
				     ? NULL
				     : psl_registrable_domain(psl, host->name);
	}
	for (size_t i = 0; i < table->hosts; i += n) {
		const char *zone = table->host[i]->zone;

		for (n = 1; zone && i + n < table->hosts; n++) {
			const char *next = table->host[i + n]->zone;

			if (!next || strcmp(next, zone) != 0)
				break;
		}
		if (zone)
			judge_zone(&table->host[i], n);
	}
}

static bool is_denied(const struct learn_host *host)
{
	uint64_t seen = host->refusals | host->observed;

	for (size_t i = 0; i < host->ports; i++)
		seen |= host->port[i].refusals | host->port[i].observed;
	return seen & BIT(REASON_DENY_RULE);
}

/* Why an address is no rule, whoever allowed it. */
static const char *why_not_literal(const struct learn_host *host)
{
	struct ip ip, inner;

	if (!host->literal || !ip_parse(host->name, &ip))
		return NULL;
	inner = ip_embedded(&ip);
	if (!ip_equal(&inner, &ip) ||
	    (ip_special(&ip) && !learn_is_permittable(&ip)))
		return "a special-purpose address";
	return NULL;
}

/* What makes no rule, even if a rule had allowed it. */
static const char *why_never(const struct learn_host *host)
{
	if (is_denied(host))
		return "a deny rule names it";
	if (host->literal)
		return why_not_literal(host);
	if (learn_is_listed(host->name))
		return "anybody can take in data there";
	if (host->tunnel && looks_like_data(host))
		return "the name looks like data in a DNS tunnel";
	return NULL;
}

/* The text of the first reason of @bits. */
static const char *first_reason(uint64_t bits)
{
	for (int i = 0; i < REASON_COUNT; i++)
		if (bits & BIT(i))
			return reason_info((enum reason)i)->text;
	return NULL;
}

/* What makes no rule of that which no rule had allowed. */
static const char *why_distrusted(const struct learn_host *host,
				  uint64_t refusals)
{
	uint64_t bad = (host->refusals | refusals) & ~RELAXABLE & ~HARMLESS;

	if (bad)
		return first_reason(bad);
	if (host->tunnel)
		return "below its domain there are names like those of a DNS "
		       "tunnel";
	if (host->strange_type)
		return "TXT, NULL or ANY records were asked for";
	if (!host->literal && learn_resolver(host->name))
		return learn_resolver(host->name);
	if (host->many_ports)
		return "too many ports were tried";
	return NULL;
}

/* An address that no rule names: a policy wants a name instead. */
static bool is_bare(const struct learn_host *host,
		    const struct learn_port *port)
{
	return host->literal && !port->vetted;
}

static enum learn_fate fate_of(const struct learn_host *host,
			       struct learn_port *port, bool include)
{
	enum learn_fate refused = include ? FATE_INCLUDED : FATE_REFUSED;
	bool reached = port->vetted || port->unvetted;

	port->why = why_never(host);
	if (!port->why && port->revoked)
		port->why = reason_info(REASON_POLICY_REVOKED)->text;
	if (!port->why && port->distrusted)
		port->why = "it was dialled at a special-purpose address";
	if (!port->why && !port->port)
		port->why = "port 0 is no place to go";
	if (!port->why && !port->vetted)
		port->why = why_distrusted(host, port->refusals);
	if (!port->why && is_bare(host, port) &&
	    !(port->refusals & BIT(REASON_PORT)))
		port->why = reason_info(REASON_LITERAL_ADDRESS)->text;
	if (port->why)
		return FATE_NEVER;
	if (reached)
		return port->refusals & NARROWED ? refused : FATE_RULE;
	return port->refusals & RELAXABLE ? refused : FATE_UNREACHED;
}

/* A name without a port. If it was refused, a rule for it is for HTTPS. */
static int judge_name(struct learn_host *host, bool include)
{
	struct learn_port *port;

	host->why = why_never(host);
	if (!host->why)
		host->why = why_distrusted(host, 0);
	host->fate = host->lookups ? FATE_LOOKED_UP : FATE_UNREACHED;
	if (!host->why && host->refusals & RELAXABLE && !host->plain_type)
		host->why = "no address was asked for";
	if (host->why) {
		host->fate = FATE_NEVER;
		return 0;
	}
	if (!(host->refusals & RELAXABLE))
		return 0;
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	*port = (struct learn_port){ .port = 443,
				     .assumed = true,
				     .refused = host->refused_lookups,
				     .refusals = host->refusals,
				     .fate = include ? FATE_INCLUDED
						     : FATE_REFUSED };
	free(host->port);
	host->port = port;
	host->ports = 1;
	return 0;
}

int learn_judge(struct learn_table *table, const struct learn_options *options)
{
	psl_ctx_t *psl = psl_latest(NULL);
	int r = 0;

	if (!psl)
		return -ENODATA;
	qsort(table->host, table->hosts, sizeof(*table->host), by_name);
	judge_zones(table, psl);
	psl_free(psl);
	for (size_t i = 0; i < table->hosts && r == 0; i++) {
		struct learn_host *host = table->host[i];

		if (!host->ports) {
			r = judge_name(host, options->include_denied);
			continue;
		}
		qsort(host->port, host->ports, sizeof(*host->port), by_port);
		for (size_t k = 0; k < host->ports; k++)
			host->port[k].fate = fate_of(host, &host->port[k],
						     options->include_denied);
	}
	return r;
}

bool learn_is_rule(const struct learn_port *port)
{
	return port->fate == FATE_RULE || port->fate == FATE_INCLUDED;
}

bool learn_host_is_rule(const struct learn_host *host)
{
	for (size_t i = 0; i < host->ports; i++)
		if (learn_is_rule(&host->port[i]))
			return true;
	return false;
}

bool learn_is_closed(const struct learn_port *port)
{
	return port->fate == FATE_REFUSED || port->fate == FATE_NEVER;
}

bool learn_name_is_closed(const struct learn_host *host)
{
	if (learn_host_is_rule(host))
		return false;
	if (!host->ports)
		return host->fate == FATE_NEVER;
	for (size_t i = 0; i < host->ports; i++)
		if (learn_is_closed(&host->port[i]))
			return true;
	return false;
}
