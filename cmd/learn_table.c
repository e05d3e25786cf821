/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_table.c - observations, added up in bounded memory.
 *
 * What counts for a port is a connection that came about and was not taken back
 * later: a tunnel is dialled before the client has said whom it means, so a
 * dial is counted when it is made, and no longer once its flow is refused for
 * naming somebody else. For that the flows that are open are kept.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "audit/observed.h"
#include "base/cleanup.h"
#include "cmd/learn_table.h"

#define BUCKETS	  (1u << 18)
#define FLOWS_MAX (1u << 16)

struct open_flow {
	uint64_t session, flow;
	uint32_t sandbox;
	uint32_t next; /* number + 1 of the next in its bucket; 0: none */
	struct learn_host *host;
	uint16_t port;
	bool vetted;
};

/* The names' hash table is here as well: only adding needs it. */
struct learn_flows {
	uint32_t name[BUCKETS]; /* number of a host + 1 */
	uint32_t bucket[FLOWS_MAX];
	uint32_t free; /* as open_flow.next */
	struct open_flow flow[FLOWS_MAX];
};

int learn_table_new(struct learn_table **ret_table)
{
	struct learn_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->flows = calloc(1, sizeof(*table->flows));
	if (!table->flows) {
		free(table);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < FLOWS_MAX; i++)
		table->flows->flow[i].next = i + 2;
	table->flows->flow[FLOWS_MAX - 1].next = 0;
	table->flows->free = 1;
	*ret_table = table;
	return 0;
}

void learn_table_free(struct learn_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->hosts; i++) {
		free(table->host[i]->port);
		free(table->host[i]);
	}
	free(table->host);
	free(table->flows);
	free(table);
}

static uint32_t hash_name(const char *name)
{
	uint64_t h = 14695981039346656037u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 1099511628211u;
	return (uint32_t)(h ^ h >> 32) % BUCKETS;
}

static struct learn_host *host_new(struct learn_table *table, const char *name,
				   bool literal)
{
	size_t len = strlen(name) + 1;
	struct learn_host *host;

	if (table->hosts == table->cap) {
		size_t cap = table->cap ? table->cap * 2 : 256;
		void *grown = reallocarray(table->host, cap,
					   sizeof(struct learn_host *));

		if (!grown)
			return NULL;
		table->host = grown;
		table->cap = cap;
	}
	host = calloc(1, sizeof(*host) + len);
	if (!host)
		return NULL;
	memcpy(host->name, name, len);
	host->literal = literal;
	table->host[table->hosts++] = host;
	return host;
}

/* 0 and a host, or NULL if there is no room; -ENOMEM. BUCKETS is more than
 * twice LEARN_NAMES_MAX, so that there is always an empty one. */
static int host_of(struct learn_table *table, const char *name, bool literal,
		   struct learn_host **ret_host)
{
	uint32_t at = hash_name(name);
	uint32_t *slot = table->flows->name;

	for (; slot[at]; at = (at + 1) % BUCKETS) {
		*ret_host = table->host[slot[at] - 1];
		if (strcmp((*ret_host)->name, name) == 0)
			return 0;
	}
	*ret_host = NULL;
	if (table->hosts == LEARN_NAMES_MAX)
		return 0;
	*ret_host = host_new(table, name, literal);
	if (!*ret_host)
		return -ENOMEM;
	slot[at] = (uint32_t)table->hosts;
	return 0;
}

static struct learn_port *find_port(const struct learn_host *host,
				    uint16_t port)
{
	for (size_t i = 0; i < host->ports; i++)
		if (host->port[i].port == port)
			return &host->port[i];
	return NULL;
}

/* 0 and a port, or NULL if the host has too many; -ENOMEM. */
static int port_of(struct learn_table *table, struct learn_host *host,
		   uint16_t number, struct learn_port **ret_port)
{
	struct learn_port *grown;

	*ret_port = find_port(host, number);
	if (*ret_port)
		return 0;
	if (host->ports == LEARN_PORTS_MAX || table->ports == LEARN_PORTS_ALL) {
		host->many_ports = true;
		return 0;
	}
	grown = reallocarray(host->port, host->ports + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	host->port = grown;
	*ret_port = &grown[host->ports++];
	table->ports++;
	memset(*ret_port, 0, sizeof(**ret_port));
	(*ret_port)->port = number;
	return 0;
}

static uint32_t *bucket_of(struct learn_flows *flows,
			   const struct observation *o)
{
	uint64_t h = (o->session ^ o->sandbox) * 0x9e3779b97f4a7c15u + o->flow;

	return &flows->bucket[(h ^ h >> 32) % FLOWS_MAX];
}

/* Where its number stands, or NULL. */
static uint32_t *flow_find(struct learn_flows *flows,
			   const struct observation *o)
{
	uint32_t *at = bucket_of(flows, o);

	for (; *at; at = &flows->flow[*at - 1].next) {
		const struct open_flow *f = &flows->flow[*at - 1];

		if (f->session == o->session && f->flow == o->flow &&
		    f->sandbox == o->sandbox)
			return at;
	}
	return NULL;
}

/* False if there is no room, or somebody uses its number twice. */
static bool flow_open(struct learn_flows *flows, const struct observation *o,
		      struct learn_host *host, bool vetted)
{
	uint32_t number = flows->free, *bucket = bucket_of(flows, o);
	struct open_flow *f;

	if (!number || flow_find(flows, o))
		return false;
	f = &flows->flow[number - 1];
	flows->free = f->next;
	*f = (struct open_flow){ .session = o->session,
				 .flow = o->flow,
				 .sandbox = o->sandbox,
				 .next = *bucket,
				 .host = host,
				 .port = o->port,
				 .vetted = vetted };
	*bucket = number;
	return true;
}

static bool flow_end(struct learn_flows *flows, const struct observation *o,
		     struct open_flow *ret)
{
	uint32_t *at = flow_find(flows, o), number;

	if (!at)
		return false;
	number = *at;
	*ret = flows->flow[number - 1];
	*at = ret->next;
	flows->flow[number - 1].next = flows->free;
	flows->free = number;
	return true;
}

bool learn_is_permittable(const struct ip *ip)
{
	static const char *const words[] = { "private", "documentation",
					     "benchmarking" };
	const char *word = ip_special(ip);

	for (size_t i = 0; word && i < ARRAY_SIZE(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static void take_special(struct learn_port *port, const struct ip *ip)
{
	if (!ip_special(ip))
		return;
	for (size_t i = 0; i < port->specials; i++)
		if (ip_equal(&port->special[i], ip))
			return;
	if (!learn_is_permittable(ip) || port->specials == LEARN_PRIVATE_MAX)
		port->distrusted = true;
	else
		port->special[port->specials++] = *ip;
}

static void add_dial(struct learn_table *table, struct learn_host *host,
		     struct learn_port *port, const struct observation *o)
{
	bool vetted = o->verdict.reason == REASON_RULE;

	if (!flow_open(table->flows, o, host, vetted))
		return;
	port->revoked = false;
	if (vetted)
		port->vetted++;
	else
		port->unvetted++;
	if (!host->literal)
		take_special(port, &o->address);
}

/* Is it no connection to the host after all? Not if the network failed, nor if
 * we cut it off at a limit. */
static bool takes_back(enum reason reason)
{
	switch (reason) {
	case REASON_NAME_MISMATCH:
	case REASON_NO_NAME:
	case REASON_LITERAL_ADDRESS:
	case REASON_FORBIDDEN_ADDRESS:
	case REASON_ECH:
	case REASON_MALFORMED:
	case REASON_PROTOCOL:
	case REASON_SELF:
	case REASON_NOT_IN_POLICY:
	case REASON_DENY_RULE:
	case REASON_PORT:
	case REASON_METHOD:
	case REASON_PATH:
		return true;
	default:
		return false;
	}
}

static void take_back(struct learn_table *table, const struct observation *o)
{
	struct open_flow f;
	struct learn_port *port;

	if (!flow_end(table->flows, o, &f))
		return;
	port = find_port(f.host, f.port);
	if (port && f.vetted)
		port->vetted--;
	else if (port)
		port->unvetted--;
}

const char *learn_method_word(unsigned i)
{
	static const char *const words[] = { "GET",	"HEAD",	 "POST",
					     "PUT",	"PATCH", "DELETE",
					     "OPTIONS", "TRACE", "CONNECT",
					     "others" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static void take_request(struct learn_port *port, const struct observation *o)
{
	const char *word;
	char path[sizeof(port->path)];
	unsigned i = 0;
	size_t n = 0;

	while ((word = learn_method_word(i + 1)) &&
	       strcmp(o->method, learn_method_word(i)))
		i++;
	port->methods |= (uint16_t)(1u << i);
	for (; o->path[n] && n < sizeof(path) - 1; n++)
		path[n] = o->path[n] > 0x20 && o->path[n] < 0x7f ? o->path[n]
								 : '?';
	path[n] = '\0';
	if (!*port->path)
		memcpy(port->path, path, sizeof(path));
	else if (strcmp(port->path, path) != 0)
		port->more_paths = true;
}

static void take_protocol(struct learn_port *port, const char *word)
{
	if (strcmp(word, "tls") == 0)
		port->protocols |= LEARN_TLS;
	else if (strcmp(word, "http") == 0)
		port->protocols |= LEARN_HTTP;
	else if (*word)
		port->protocols |= LEARN_OTHER;
}

static int add_dns(struct learn_host *host, const struct observation *o)
{
	/* An answer that was sent says no more than its question. */
	if (o->kind == EVENT_DNS_ANSWER && o->verdict.allow)
		return 0;
	if (strcmp(o->type, "A") == 0 || strcmp(o->type, "AAAA") == 0)
		host->plain_type = true;
	else if (strcmp(o->type, "TXT") == 0 || strcmp(o->type, "NULL") == 0 ||
		 strcmp(o->type, "ANY") == 0 ||
		 strncmp(o->type, "TYPE", 4) == 0)
		host->strange_type = true;
	if (o->verdict.allow) {
		host->lookups++;
		host->observed |= UINT64_C(1) << o->verdict.observed;
	} else {
		host->refused_lookups++;
		host->refusals |= UINT64_C(1) << o->verdict.reason;
	}
	return 0;
}

static int add_flow(struct learn_table *table, struct learn_host *host,
		    const struct observation *o)
{
	struct learn_port *port;
	int r = port_of(table, host, o->port, &port);

	if (r < 0 || !port)
		return r;
	if (!o->verdict.allow) {
		port->refusals |= UINT64_C(1) << o->verdict.reason;
		port->refused += o->kind != EVENT_FLOW_CLOSE;
		if (o->verdict.reason == REASON_POLICY_REVOKED)
			port->revoked = true;
	} else {
		port->observed |= UINT64_C(1) << o->verdict.observed;
		port->allowed += o->kind == EVENT_FLOW_OPEN ||
				 o->kind == EVENT_HTTP_REQUEST;
	}
	if (o->kind == EVENT_HTTP_REQUEST)
		take_request(port, o);
	/* What it turned out to be is known at its end. */
	if (o->kind == EVENT_FLOW_CLOSE && o->verdict.allow)
		take_protocol(port, o->protocol);
	if (o->kind == EVENT_FLOW_DIAL && o->verdict.allow)
		add_dial(table, host, port, o);
	return 0;
}

static void drop(struct learn_table *table, const struct observation *o)
{
	table->dropped++;
	table->dropped_allowed += o->verdict.allow;
}

int learn_table_add(struct learn_table *table, const struct observation *o)
{
	bool dns = o->kind == EVENT_DNS_QUERY || o->kind == EVENT_DNS_ANSWER;
	char ip[IP_TEXT_MAX];
	struct learn_host *host;
	struct open_flow ended;
	int r;

	if (!dns && !o->verdict.allow && takes_back(o->verdict.reason))
		take_back(table, o);
	if (!table->first_ms || o->time_ms < table->first_ms)
		table->first_ms = o->time_ms;
	if (o->time_ms > table->last_ms)
		table->last_ms = o->time_ms;
	if (!*o->host && (o->strange || dns || !o->address.len)) {
		table->strange++;
		return 0;
	}
	r = host_of(table, *o->host ? o->host : ip_format(&o->address, ip),
		    !*o->host, &host);
	if (r < 0)
		return r;
	if (!host) {
		drop(table, o);
		return 0;
	}
	if (!host->first_ms || o->time_ms < host->first_ms)
		host->first_ms = o->time_ms;
	r = dns ? add_dns(host, o) : add_flow(table, host, o);
	if (o->kind == EVENT_FLOW_CLOSE)
		flow_end(table->flows, o, &ended);
	return r;
}
