/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat.h - the same question once more within a second.
 *
 * Programs ask again and again for the same name. What was answered a moment
 * ago, and recorded, is answered again if the verdict is the same one; those
 * answers are one record with a count, at the end of that second. Only what
 * goes nowhere for its answer is folded so: whatever causes a question
 * upstream, or lets an address in, has records of its own.
 *
 * What was counted is told at once when the policy is replaced, and nothing is
 * answered so any more once the ledger is known to be lost. A gate that is
 * killed takes the counts of its last second with it; that it was asked, and
 * what it answered, is in the log for each.
 */
#ifndef DNS_REPEAT_H
#define DNS_REPEAT_H

#include "dns/query.h"

struct repeats;

/* NULL without memory. */
struct repeats *repeats_new(struct event_base *base,
			    const struct services *services);
/* Records what was counted. NULL is fine. */
void repeats_free(struct repeats *repeats);

/* The answer to @question, if it is such a one, which is counted. It is theirs,
 * until anything else is called. NULL: it is a question as any other. */
const struct dns_reply *repeats_find(struct repeats *repeats,
				     const struct sandbox *sandbox,
				     const struct dns_peer *peer,
				     const struct dns_query *question);

/* @query was answered, and there is a record of that: the next one may be a
 * repeat of it. */
void repeats_put(struct repeats *repeats, const struct query *query);

/* Records what was counted of @sandbox, or of all if it is NULL, and forgets
 * it. */
void repeats_end(struct repeats *repeats, const struct sandbox *sandbox);

#endif
