/* SPDX-License-Identifier: Apache-2.0
 *
 * leg.h - one question, asked of one server after the other until one gives a
 * usable answer.
 */
#ifndef DNS_LEG_H
#define DNS_LEG_H

#include "dns/upstream.h"

#define SERVERS_MAX 8

/* Who is asked; may change while legs are under way. */
struct servers {
	struct upstream *upstream;
	struct endpoint at[SERVERS_MAX];
	size_t count;
};

/* ASKING -> done, once. */
struct leg {
	const struct servers *servers;
	const char *host; /* the owner's */
	uint16_t type;
	/* Called from the loop, or from leg_ask(), which is the last thing it
	 * does. @records is NULL for addresses, or if it failed. */
	void (*ended)(struct leg *leg, const struct dns_records *records);
	unsigned asked;
	bool done, timed_out;
	struct inquiry *inquiry; /* NULL between two */
	int status;		 /* when done: 0, -ETIMEDOUT or -EIO */
	struct dns_answer answer;
};

/* Asks the next server, or gives up. */
void leg_ask(struct leg *leg);
/* Whoever asks no more says so. */
void leg_cancel(struct leg *leg);

#endif
