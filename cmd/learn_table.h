/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_table.h - hosts and their ports: what logs say of each, and what it
 * comes to.
 */
#ifndef CMD_LEARN_TABLE_H
#define CMD_LEARN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "policy/hostname.h"

struct observation;

#define LEARN_NAMES_MAX	   100000
#define LEARN_PORTS_MAX	   32 /* of one host */
#define LEARN_PORTS_ALL	   200000
#define LEARN_PRIVATE_MAX  4 /* private addresses of one host */
#define LEARN_WILDCARD_MIN 5
/* More bytes in front of a registrable domain are data. */
#define LEARN_DATA_NAME 60

enum learn_protocol { LEARN_TLS = 1, LEARN_HTTP = 2, LEARN_OTHER = 4 };

/* What becomes of a port or a name: in the order of the output. */
enum learn_fate {
	FATE_RULE,
	FATE_INCLUDED,	/* it was refused, and --include-denied */
	FATE_REFUSED,	/* a rule, commented out */
	FATE_UNREACHED, /* allowed, but no connection came about */
	FATE_LOOKED_UP, /* allowed, but never connected to */
	FATE_NEVER,	/* with .why */
	FATE_COUNT
};

struct learn_port {
	uint16_t port;
	uint8_t protocols; /* enum learn_protocol */
	bool revoked;	   /* since it was last dialled */
	bool assumed;	   /* never seen: only its name was asked for */
	bool distrusted;   /* an address that is never dialled for a name */
	uint32_t vetted;   /* connections that a rule allowed */
	uint32_t unvetted; /* that only observe mode or `public` let pass */
	uint32_t allowed, refused; /* verdicts */
	uint64_t refusals;	   /* a bit for each enum reason */
	uint64_t observed;	   /* why it would have been refused */
	uint16_t methods;	   /* a bit for each of learn_method_word() */
	char path[48];		   /* one of them, cut, plain ASCII */
	bool more_paths;
	struct ip special[LEARN_PRIVATE_MAX]; /* dialled, and private */
	uint8_t specials;
	enum learn_fate fate;
	const char *why; /* FATE_NEVER: static text */
};

struct learn_host {
	bool literal;	   /* .name is an address */
	bool strange_type; /* TXT, NULL, ... was asked for */
	bool plain_type;   /* A or AAAA was */
	bool many_ports;
	uint32_t lookups, refused_lookups;
	uint64_t refusals; /* of DNS questions, as in struct learn_port */
	uint64_t observed;
	uint64_t first_ms;
	struct learn_port *port; /* sorted by learn_judge() */
	size_t ports;
	enum learn_fate fate; /* of the name where no port is known */
	const char *why;
	const char *zone; /* in .name: the registrable domain, or NULL */
	bool tunnel; /* below it there are names like those of a DNS tunnel */
	const char *preset; /* that covers it, or NULL */
	bool by_wildcard;
	char name[];
};

struct learn_table {
	struct learn_host **host; /* sorted by learn_judge() */
	size_t hosts, cap, ports;
	struct learn_flows *flows; /* open now */
	uint64_t records, bad;	   /* lines */
	uint64_t strange;	   /* refusals of what is no host name */
	uint64_t dropped;	   /* names that found no room, */
	uint64_t dropped_allowed;  /* of which were allowed */
	uint64_t first_ms, last_ms;
};

struct learn_options {
	const char *name; /* of the policy */
	bool include_denied;
	size_t wildcard_min;
};

/* All lines of @fd. 0 or -errno. */
int learn_read(int fd, struct learn_table *table);
/* All lines of all parts of a log: PATH.000001, ..., @path. 0 or -errno. */
int learn_read_parts(const char *path, struct learn_table *table);

int learn_table_new(struct learn_table **ret_table);
void learn_table_free(struct learn_table *table);
/* 0 or -ENOMEM. */
int learn_table_add(struct learn_table *table, const struct observation *o);
/* Is @ip, which is special-purpose, one that a person may well have permitted?
 * Not the machine itself, nor a cloud's metadata. */
bool learn_is_permittable(const struct ip *ip);
/* The bit @i of learn_port.methods; NULL past the end. */
const char *learn_method_word(unsigned i);

/* Sorts, and fills in each fate. 0, -ENOMEM, or -ENODATA: there is no list of
 * public suffixes. */
int learn_judge(struct learn_table *table, const struct learn_options *options);
/* May @host's @port be reached by the policy that is learned? */
bool learn_is_rule(const struct learn_port *port);
bool learn_host_is_rule(const struct learn_host *host);
/* Must it not? A preset or wildcard that would open it is not used. */
bool learn_is_closed(const struct learn_port *port);
bool learn_name_is_closed(const struct learn_host *host);

/* Does a label of a name look like data, rather than a word? */
bool learn_is_data_label(const char *label, size_t len);
/* Is @host a place where anybody can take in what a sandbox sends? The one
 * place that knows the list. */
bool learn_is_listed(const char *host);
/* Is such a place below @parent, or one that `check` warns of, so that a
 * wildcard would open it? */
bool learn_hides_listed(const char *parent);
/* What `check` knows of @host, for a second thought; NULL: nothing. */
const char *learn_caution(const char *host);
/* The same if it is a resolver, which nobody allows by accident. */
const char *learn_resolver(const char *host);

#endif
