/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.h - what a policy makes of one target, door by door, and what it is
 * in short.
 *
 * A target is what a person or a program would write: HOST, HOST:PORT, ADDRESS,
 * [ADDRESS]:PORT or a URL. No spelling of an address is ever taken for a name.
 */
#ifndef POLICY_EXPLAIN_H
#define POLICY_EXPLAIN_H

#include "policy/policy.h"

#define EXPLAIN_PATH_MAX 2048

/* What the client will speak, as far as the target says. */
enum spoken { SPOKEN_UNKNOWN, SPOKEN_TLS, SPOKEN_HTTP, SPOKEN_OTHER };

struct inquiry {
	char host[HOST_MAX + 1]; /* "": an address, or malformed */
	struct ip address;
	uint16_t port[2]; /* two where none was given: 443 and 80 */
	size_t ports;
	enum spoken spoken;
	bool websocket;
	char path[EXPLAIN_PATH_MAX + 1]; /* of the URL, "" for none */
	const char *method;		 /* the caller's; NULL: not known */
	int64_t now_s;
	/* Why every door takes it for malformed; NULL: none does. Static. */
	const char *fault;
	bool is_spelling; /* the fault: 0x7f.1, an address in disguise */
};

/* NULL, or why @text is no target at all. */
const char *inquiry_parse(const char *text, struct inquiry *ret);

struct explain_row {
	enum door door;
	uint16_t port; /* 0: DNS, which asks for none */
	bool asked;    /* false: nobody asks this door for such a target */
	struct verdict verdict;
	const char *remark; /* static, or NULL */
};

struct explanation {
	struct explain_row row[2 * DOOR_COUNT];
	size_t count;
	bool reachable; /* by a door other than DNS */
};

/* Answers of DNS are taken to be ordinary addresses. */
void explain(const struct policy *policy, const struct inquiry *inquiry,
	     struct explanation *ret);

struct policy_counts {
	size_t rules; /* all of the following */
	size_t names, wildcards, ranges, denied_names, denied_ranges,
		denied_lists;
	/* How many of the allowed ones are like this. */
	size_t judged, connected, budgeted, expiring;
};
void policy_count(const struct policy *policy, struct policy_counts *ret);

/* Is a rule from the preset @name in it? */
bool policy_has_preset(const struct policy *policy, const char *name);

/* The @i-th rule, in the order written; NULL past the end. */
const struct rule *policy_rule(const struct policy *policy, size_t i);

/* The line of the deny list @rule that names @host, and what stands there:
 * @host or a name above it. False if @rule is no list, or does not. */
bool rule_list_line(const struct rule *rule, const char *host,
		    const char **ret_name, unsigned *ret_line);

/* @rule's note, or NULL. */
const char *rule_note(const struct rule *rule);

#endif
