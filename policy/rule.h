/* SPDX-License-Identifier: Apache-2.0
 *
 * rule.h - the bodies of a policy and its rules: inside policy/ only.
 *
 * While a policy is built it is private to its builder and grows; index_build()
 * sorts it, and from then on it is only read.
 */
#ifndef POLICY_RULE_H
#define POLICY_RULE_H

#include <stdatomic.h>

#include "policy/cell.h"
#include "policy/digest.h"
#include "policy/ech.h"
#include "policy/name_table.h"
#include "policy/policy.h"

#define UPSTREAM_MAX  8
#define RULES_MAX     100000
#define PORTS_MAX     64  /* ranges in one rule */
#define ADDRESSES_MAX 256 /* ranges in one rule */
#define METHODS_MAX   32
#define PATHS_MAX     256
#define BUDGETS_MAX   1000 /* rules with one */

/* Bits of rule.doors. */
enum { DOORS_PROXY = 1, DOORS_TRANSPARENT = 2, DOORS_ALL = 3 };

struct texts {
	char **at;
	size_t count;
};

struct rule {
	bool deny, wildcard;
	char *host;	      /* canonical, without "*."; NULL: a literal */
	struct cidr literal;  /* where host and list are NULL */
	struct nameset *list; /* of a deny list: it owns it; text is its path */
	size_t skipped;	      /* lines of it that are no names */
	uint32_t first_skipped_line;
	/* Sorted and merged; none: every port, which only a deny rule has. */
	struct port_range *ports;
	size_t port_count;
	struct cidr *addresses; /* answers it permits beside ordinary ones */
	size_t address_count;
	struct texts methods, paths; /* none: all */
	enum wanted wanted;
	enum ech ech;
	struct endpoint connect; /* port 0: none */
	uint8_t doors, dns_types;
	int64_t expires_s;  /* 0: never */
	uint64_t budget[2]; /* 0: none */
	char *text, *origin, *note;
	unsigned index;
	/* Of the first rule of a pattern: how many have it. Set by
	 * index_build(). */
	unsigned alike;
	/* Of the first rule of a pattern: the one that answers for all of them
	 * where there is no port, in DNS. Set by index_build(). */
	struct rule *lead;
	bool of_ceiling; /* see policy/ceiling.h */
	/* Of a joint: the rules that have a say. The wildcard that names are
	 * counted by, or NULL. */
	const struct rule *user_side, *ceiling_side;
	const char *wide;
};

struct rule_list {
	struct rule **at;
	size_t count;
	struct name_table *table; /* by host, where they are sorted by names */
};

/* The distinct (family, prefix length) pairs of a list of literals: a look-up
 * is one binary search for each of them. */
struct prefix_lengths {
	struct prefix_length {
		uint8_t len, bits;
	} at[33 + 129];
	size_t count;
};

struct literal_list {
	struct rule_list rules;
	struct prefix_lengths lengths;
};

struct policy {
	atomic_uint refs;
	char digest[DIGEST_HEX];
	char *name;
	struct limits limits;
	struct log_settings log;
	bool is_public, observes, answers_real;
	struct rule_list all;	      /* owns them; in the order written */
	struct rule_list allow, deny; /* names, sorted */
	struct literal_list allow_literal, deny_literal;
	struct rule_list lists; /* of denied names */
	const char **parent;	/* sorted; they point into rule->host */
	size_t parent_count;
	struct name_table *parent_table;
	struct cidr *permit;
	size_t permit_count;
	struct ip upstream[UPSTREAM_MAX];
	uint16_t upstream_port[UPSTREAM_MAX];
	size_t upstream_count;
	bool upstream_system;
	struct cell cell;
	struct ceiling *ceiling; /* NULL: none */
};

/* Rules of one pattern. */
struct group {
	struct rule *const *at;
	size_t count;
};

/* Walks the patterns that cover a name, the most specific first. */
struct cover {
	const char *at;
	bool exact_done;
};

void rule_free(struct rule *rule);
bool rule_has_port(const struct rule *rule, uint16_t port);
bool rule_has_door(const struct rule *rule, enum door door);
bool rule_expired(const struct rule *rule, int64_t now_s);
/* Is it of a user's policy and its ceiling? */
bool rule_is_joint(const struct rule *rule);
void texts_free(struct texts *texts);

/* The deny rule or list that names @host; without a port (DNS) only one for
 * every port. NULL: none. */
const struct rule *denied_name(const struct policy *policy, const char *host,
			       uint16_t port);
const struct rule *denied_address(const struct policy *policy,
				  const struct ip *ip);

/* What denies the address that @rule connects to; NULL: nothing does, or it
 * connects to none. */
const struct rule *denied_service(const struct policy *policy,
				  const struct rule *rule);

/* What @policy says without its ceiling. */
struct verdict decide_alone(const struct policy *policy,
			    const struct question *question);

bool is_v4_in_disguise(const struct ip *ip);

/* Sorts @policy for look-ups. 0, -ENOMEM or -EIO. */
int index_build(struct policy *policy);
/* A step of it: the names above the allowed ones. 0 or -errno. */
int parents_list(struct policy *policy);
bool index_next(const struct rule_list *list, struct cover *cover,
		struct group *ret_group);
/* The rules of @list with the @i-th prefix length that contain @ip; empty if
 * there are none, false past the last prefix length. */
bool index_literal(const struct literal_list *list, const struct ip *ip,
		   size_t i, struct group *ret_group);

/* Sorts @range and merges what overlaps or touches. Returns how many remain. */
size_t ports_merge(struct port_range *range, size_t n);
/* Reads "443" or "8000-8100". NULL, or why not. */
const char *ports_parse(const char *text, struct port_range *ret_range);

#endif
