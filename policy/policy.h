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
	DOOR_COUNT
};
const char *door_word(enum door door);

struct port_range {
	uint16_t first, last;
};

struct question {
	const char *host;  /* canonical; NULL if only an address is known */
	struct ip address; /* a literal address; .len 0 if there is a host */
	uint16_t port;	   /* 0: any (a DNS question) */
	enum door door;
};

struct verdict {
	bool allow;
	enum reason reason;
	const struct rule *rule; /* that decided, or NULL; the policy owns it */
	/* With REASON_OBSERVE: why it would be refused. Else REASON_RULE. */
	enum reason observed;
};

struct limits {
	unsigned connections; /* at once, a sandbox */
	unsigned names;	      /* distinct, a sandbox */
	unsigned
		names_per_wildcard; /* distinct names under one wildcard rule */
	unsigned dns_per_second;
};

struct policy *policy_ref(struct policy *policy);
/* NULL is fine. */
void policy_unref(struct policy *policy);

/* Deny rules win; then an exact name beats the longest wildcard. The most
 * specific pattern that covers the name decides alone: several rules for it add
 * up, those for shorter patterns have no say. */
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

/* Ports on which @host is allowed, merged and sorted; at most @max. Returns
 * how many. */
size_t policy_ports(const struct policy *policy, const char *host,
		    struct port_range *ret_range, size_t max);

/* The @i-th literal address range and its @j-th port range that are allowed;
 * false past the end. For the firewall's set. */
bool policy_literal(const struct policy *policy, size_t i, struct cidr *ret,
		    const struct port_range **ret_ports, size_t *ret_count);

/* The @i-th name server that the policy asks for; false past the end. */
bool policy_upstream(const struct policy *policy, size_t i, struct ip *ret_ip,
		     uint16_t *ret_port);
/* Are the machine's own name servers asked (too)? The default. */
bool policy_upstream_system(const struct policy *policy);

const struct limits *policy_limits(const struct policy *policy);
const char *policy_name(const struct policy *policy); /* never NULL */
/* 64 hex digits: SHA-256 of the bundle it was built from. */
const char *policy_digest(const struct policy *policy);

/* "policy.yaml:12" or "--allow" or "preset github:4": for records. */
const char *rule_origin(const struct rule *rule);
/* "*.example.com": as written. */
const char *rule_text(const struct rule *rule);
bool rule_is_wildcard(const struct rule *rule);
/* A small number, stable for one policy: an index for per-rule counts. */
unsigned rule_index(const struct rule *rule);

#endif
