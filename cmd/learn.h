/* SPDX-License-Identifier: Apache-2.0
 *
 * learn.h - what the parts of `sallyport learn` share: who was asked for, what
 * came of it, and what is made of that.
 *
 *	read     learn_read.c: lines of the logs -> observations
 *	table    learn_table.c: observations -> a host and its ports each
 *	judge    learn_judge.c: which of them may become rules, and why not
 *	plan     learn_plan.c: rules -> presets, wildcards, single hosts
 *	write    learn_write.c, learn_json.c: a policy, or JSON
 *	replay   learn_replay.c: does that policy do what the logs say?
 *
 * A log tells what programs did, some of which were attacked. So the rule is:
 * what was refused for any reason that no policy relaxes, and what somebody
 * denied, never becomes a rule, whatever the options.
 */
#ifndef CMD_LEARN_H
#define CMD_LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/addr.h"
#include "policy/hostname.h"

struct observation;

#define LEARN_NAMES_MAX	   100000
#define LEARN_PORTS_MAX	   32 /* of one host */
#define LEARN_PORTS_ALL	   200000
#define LEARN_PRIVATE_MAX  4 /* private addresses of one host */
#define LEARN_WILDCARD_MIN 5

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

struct learn_preset {
	const char *name;
	size_t covers; /* hosts */
};

struct learn_wildcard {
	const char *parent;	       /* in a host's name */
	const struct learn_host *like; /* its ports are those of the rule */
	size_t covers;
};

struct learn_plan {
	struct learn_preset preset[64];
	size_t presets;
	struct learn_wildcard *wildcard;
	size_t wildcards;
	size_t rules; /* hosts and literals with a rule of their own */
};

/* All lines of @fd. 0 or -errno. */
int learn_read(int fd, struct learn_table *table);

int learn_table_new(struct learn_table **ret_table);
void learn_table_free(struct learn_table *table);
/* 0 or -ENOMEM. */
int learn_table_add(struct learn_table *table, const struct observation *o);
/* Is @ip, which is special-purpose, one that a person may well have permitted?
 * Not the machine itself, nor a cloud's metadata. */
bool learn_is_permittable(const struct ip *ip);
/* The bit @i of learn_port.methods; NULL past the end. */
const char *learn_method_word(unsigned i);

/* Fills in each fate. 0, or -ENOMEM. */
int learn_judge(struct learn_table *table, const struct learn_options *options);
/* May @host's @port be reached by the policy that is learned? */
bool learn_is_rule(const struct learn_port *port);
bool learn_host_is_rule(const struct learn_host *host);
/* Must it not? A preset or wildcard that would open it is not used. */
bool learn_is_closed(const struct learn_port *port);
bool learn_name_is_closed(const struct learn_host *host);

/* Is @host a place where strangers write, or a well-known way out? The one
 * place that knows the list. */
bool learn_is_listed(const char *host);

/* 0, -ENOMEM, or -EINVAL: a preset can't be built. */
int learn_plan(struct learn_table *table, const struct learn_options *options,
	       struct learn_plan **ret_plan);
void learn_plan_free(struct learn_plan *plan);

void learn_write(FILE *out, const struct learn_table *table,
		 const struct learn_plan *plan,
		 const struct learn_options *options);
/* One JSON text, which has @yaml too. 0 or -ENOMEM. */
int learn_write_json(FILE *out, const struct learn_table *table,
		     const struct learn_plan *plan, const char *yaml);

/* Would the policy in @yaml do to each host of @table what its fate says? 0, or
 * -EINVAL and the first that it would not in @reterr, or -ENOMEM. */
int learn_replay(const struct learn_table *table, const char *yaml, size_t len,
		 char *reterr, size_t cap);

#endif
