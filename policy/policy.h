/* SPDX-License-Identifier: Apache-2.0
 *
 * policy.h - what a sandbox may reach. All verdicts come from here.
 *
 * A policy never changes once it is built (policy/build.h): a reload builds a
 * new one. policy_decide() is pure: no clock, no I/O, no state.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "policy/hostname.h"
#include "policy/reason.h"

struct policy;
struct rule;

/* By which way a question came. */
enum door {
	DOOR_DNS,
	DOOR_CONNECT,
	DOOR_HTTP, /* absolute-form request to the explicit proxy */
	DOOR_SOCKS,
	DOOR_TRANSPARENT,
	DOOR_PUBLISHED, /* comes in, by --publish: no policy is asked */
	DOOR_COUNT
};
const char *door_word(enum door door);

struct port_range {
	uint16_t first, last;
};

/* Of bytes: out of the sandbox, or into it. */
enum direction { UP, DOWN };

struct question {
	const char *host;  /* canonical; NULL if only an address is known */
	struct ip address; /* a literal address; .len 0 if there is a host */
	uint16_t port;	   /* 0: any (a DNS question) */
	enum door door;
	/* Plain HTTP; NULL: not known yet, and each request will be asked for.
	 * The path is canonical, and may have a query. */
	const char *method, *path;
	/* Seconds since the epoch. 0: whatever expires has expired. */
	int64_t now_s;
};

struct verdict {
	bool allow;
	enum reason reason;
	const struct rule *rule; /* that decided, or NULL; the policy owns it */
	/* With REASON_OBSERVE: why it would be refused. Else REASON_RULE. */
	enum reason observed;
};

#define LIMIT_CONNECTIONS_MAX 65535

/* Of one sandbox. */
struct limits {
	unsigned connections;		 /* at once; LIMIT_CONNECTIONS_MAX */
	unsigned connections_per_second; /* new ones */
	unsigned names;			 /* distinct */
	unsigned names_per_wildcard;	 /* distinct names under one wildcard */
	unsigned dns_per_second;
	uint64_t budget[2]; /* bytes by direction; 0: no limit */
};

/* How a session's log is written: the `log:` section. */
struct log_settings {
	bool sign_every;       /* sign: every; else 64 records or 250 ms */
	bool durable;	       /* durability: record; else batch */
	uint64_t rotate_bytes; /* a part's size; 0: parts don't end by size */
	uint32_t rotate_s;     /* a part's age; 0: nor by age */
};

/* What a connection must speak, see proxy/agree.h. */
enum wanted {
	WANTED_DEFAULT, /* 443: TLS, 80: HTTP/1, else anything */
	WANTED_TLS,
	WANTED_HTTP,
	WANTED_ANY,
};

/* Bits of rule_dns_types(). */
enum { RULE_DNS_TXT = 1, RULE_DNS_MX = 2, RULE_DNS_SRV = 4 };

struct policy *policy_ref(struct policy *policy);
/* NULL is fine. */
void policy_unref(struct policy *policy);

/* Deny rules and lists win; then an exact name beats the longest wildcard. The
 * most specific pattern that covers the name decides alone: several rules for
 * it add up, those for shorter patterns have no say. With `default: public` a
 * name that no rule allows may be reached on 443 (REASON_PUBLIC, no rule). With
 * `mode: observe` what the policy's own words refuse is allowed, with
 * REASON_OBSERVE, and .observed says why it would be refused.
 *
 * Below a ceiling (BUNDLE_CEILING) only what both allow is allowed, and all
 * other answers are of both too: ports and ranges that both have, the smaller
 * limits, the stricter log, the ceiling's name servers if it names any. What
 * only the ceiling refuses has its reason and its rule, whose origin begins
 * with "ceiling ". Name, rules and mode are those of the policy itself. */
struct verdict policy_decide(const struct policy *policy,
			     const struct question *question);

/* May @ip, an answer for a name allowed by @rule, be dialled (P4)? @uplink are
 * the prefixes that the machine itself is on. Refused with
 * REASON_FORBIDDEN_ADDRESS unless ordinary, or permitted by the rule's
 * `addresses` or by --permit. */
struct verdict policy_check_address(const struct policy *policy,
				    const struct rule *rule,
				    const struct ip *ip,
				    const struct cidr *uplink, size_t n);

/* Is there an allowed name below @host, so that @host must exist in DNS (RFC
 * 8020)? */
bool policy_has_below(const struct policy *policy, const char *host);

/* Ports on which @host is allowed to be reached directly (transparently) at
 * @now_s, merged and sorted; at most @max. Returns how many. */
size_t policy_ports(const struct policy *policy, const char *host,
		    int64_t now_s, struct port_range *ret_range, size_t max);

/* The @i-th literal address range and its @j-th port range that are allowed;
 * false past the end. For the firewall's set. */
bool policy_literal(const struct policy *policy, size_t i, struct cidr *ret,
		    const struct port_range **ret_ports, size_t *ret_count);

/* The @i-th name server that the policy asks for; false past the end. */
bool policy_upstream(const struct policy *policy, size_t i, struct ip *ret_ip,
		     uint16_t *ret_port);
/* Are the machine's own name servers asked (too)? The default. */
bool policy_upstream_system(const struct policy *policy);

/* When the next rule expires after @now_s; 0: none does. */
int64_t policy_next_expiry(const struct policy *policy, int64_t now_s);

bool policy_observes(const struct policy *policy);     /* mode: observe */
bool policy_is_public(const struct policy *policy);    /* default: public */
bool policy_answers_real(const struct policy *policy); /* dns.answers: real */
const struct limits *policy_limits(const struct policy *policy);
/* Taken when a session begins; a reload does not change it. */
const struct log_settings *policy_log(const struct policy *policy);
const char *policy_name(const struct policy *policy); /* never NULL */
size_t policy_rules(const struct policy *policy);     /* how many */
/* 64 hex digits: SHA-256 of the bundle it was built from. */
const char *policy_digest(const struct policy *policy);

/* "policy.yaml:12" or "--allow" or "preset github:4": for records. */
const char *rule_origin(const struct rule *rule);
/* "*.example.com": as written. */
const char *rule_text(const struct rule *rule);
bool rule_is_wildcard(const struct rule *rule);
/* The wildcard by which the names that it allows are counted; NULL: none. */
const char *rule_wildcard(const struct rule *rule);
/* Is it of the ceiling, so that no policy of the user's can change it? */
bool rule_of_ceiling(const struct rule *rule);
/* A small number, stable for one policy: an index for per-rule counts. */
unsigned rule_index(const struct rule *rule);
/* The same for a rule of the same pattern, ports, methods and paths in whatever
 * policy: what it has used up is not forgotten when the policy changes. Never
 * 0.
 */
uint64_t rule_key(const struct rule *rule);
enum wanted rule_wanted(const struct rule *rule);
/* Does it have methods or paths? Then every byte must be of requests that were
 * judged: no websockets. */
bool rule_judges_requests(const struct rule *rule);
/* Does a rule that enforces judge each request of what @verdict allows? */
bool verdict_judges_requests(const struct verdict *verdict);
/* Does the verdict's rule say how the connection has to be, and where it goes?
 * Not one that would have refused it and is only observed; but a ceiling's
 * holds. A method or path is only looked at once host, port and door fit. */
bool verdict_has_rule(const struct verdict *verdict);
/* Where to go instead of resolving the name; NULL: resolve it. The address
 * needs no check but that it is not ours (`connect`). */
const struct endpoint *rule_connect(const struct rule *rule);
/* Record types that may be asked for beside A and AAAA: RULE_DNS_* bits. */
unsigned rule_dns_types(const struct rule *rule);
/* Bytes a sandbox may move by this rule; 0: no limit. */
uint64_t rule_budget(const struct rule *rule, enum direction direction);

#endif
