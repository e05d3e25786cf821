/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_impl.h - what the files of diff share; nobody else's.
 *
 *	diff.c		differences, and the order of the whole
 *	diff_classes.c	which names and addresses are asked about
 *	diff_reach.c	one of them: on which ports, by which doors
 *	diff_detail.c	what is reachable in both, but not in the same way
 *	diff_spoken.c	protocol and TLS of two rules
 *	diff_settings.c	what is said once
 *	diff_cell.c	`sandbox:`
 *	diff_lists.c	deny lists
 */
#ifndef POLICY_DIFF_IMPL_H
#define POLICY_DIFF_IMPL_H

#include "policy/diff.h"
#include "policy/rule.h"

enum { WAS, IS };

struct differ {
	const struct policy *policy[2];
	int64_t now_s;
	struct differences out;
	int error; /* -ENOMEM sticks */
};

/* A class by its representative: a name, or an address. */
struct subject {
	enum diff_kind kind;
	const char *what, *host;
	struct ip address;
};

/* What one policy makes of it. */
struct reach {
	bool allow;  /* if it enforced */
	bool passes; /* in its own mode */
	enum reason reason;
	const struct rule *rule;
};

/* Ways in which something is wider or narrower, added up. */
struct change {
	bool any;
	enum diff_way way;
	char text[800];
	size_t len;
};
void change_add(struct change *change, enum diff_way way, const char *format,
		...) __attribute__((format(printf, 3, 4)));

/* Walks the rules of @policy that allow @subject on @port by @door, methods and
 * paths aside. */
struct fitting {
	const struct policy *policy;
	const struct subject *subject;
	enum door door;
	uint16_t port;
	int64_t now_s;
	size_t groups, i;
	struct group group;
};
const struct rule *fitting_next(struct fitting *fitting);

/* What is different about what both allow. @fitting: of both, fresh. */
void diff_detail(const struct reach reach[2], const struct fitting fitting[2],
		 struct change *ret);

/* The part of it that is about what has to be spoken. NULL: no rule. */
void diff_spoken(const struct rule *was, const struct rule *is, uint16_t port,
		 struct change *ret);

/* Copies @difference, whose texts are copied too. */
void diff_add(struct differ *d, const struct difference *difference);

/* Does @policy speak of exactly @name, in a rule or in a list? */
bool diff_is_named(const struct policy *policy, const char *name);
/* A name below @host for all that nobody speaks of in either policy; false:
 * there is none. @buf holds HOST_MAX + 1 bytes. */
bool diff_name_below(const struct differ *d, const char *host, char *buf);

void diff_subject(struct differ *d, const struct subject *subject);
void diff_names(struct differ *d);
void diff_addresses(struct differ *d);
void diff_settings(struct differ *d);
void diff_cell(struct differ *d);
/* Names that lists deny in one policy, WAS or IS, and the other one allows. */
void diff_lists(struct differ *d, int of);

#endif
