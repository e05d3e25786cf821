/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.h - what becomes of one question, from its bytes to the bytes of its
 * answer. Knows nothing of sockets.
 */
#ifndef DNS_FILTER_H
#define DNS_FILTER_H

#include "dns/message.h"
#include "policy/services.h"

struct event_base;
struct filter;

/* Where a question came from, and so where its answer goes. */
struct dns_peer {
	uint32_t ifindex; /* it came in by: who is asking */
	struct ip src, dst;
	uint16_t src_port, dst_port;
	void *conn; /* of TCP; NULL: UDP */
};

/* @reply is called exactly once for each question, perhaps before
 * filter_query() returns, unless it was forgotten before; with @len 0 if there
 * must be no answer. It must not free the filter. */
int filter_new(struct event_base *base, const struct services *services,
	       void (*reply)(void *ctx, const struct dns_peer *peer,
			     const void *data, size_t len),
	       void *ctx, struct filter **ret_filter);
/* Questions under way end without an answer. NULL is fine. */
void filter_free(struct filter *filter);

void filter_query(struct filter *filter, const struct dns_peer *peer,
		  const void *data, size_t len);

/* Is there room for the records of one more question (a few, from UDP)? See
 * services.room. */
bool filter_room(struct filter *filter, struct wait *wait);
void filter_room_cancel(struct filter *filter, struct wait *wait);

/* Ends all questions of a connection. */
void filter_forget(struct filter *filter, const void *conn);
/* Ends all questions of a sandbox that is going away. */
void filter_forget_sandbox(struct filter *filter,
			   const struct sandbox *sandbox);
/* The policy of @sandbox is another one now, or a rule of it has expired: its
 * questions under way are judged again, and those no longer allowed end with
 * REASON_POLICY_REVOKED. */
void filter_recheck(struct filter *filter, const struct sandbox *sandbox);
/* Nothing is answered any more from what was answered before. */
void filter_forget_repeats(struct filter *filter);

#endif
