/* SPDX-License-Identifier: Apache-2.0
 *
 * relay.h - one direction of a tunnel: bytes from one socket to another, within
 * the byte budgets. No events here, no verdicts: tunnel.c decides when.
 */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/meter.h"

struct pipe_pair;

/* At most this much is copied at once, and waits in our memory. */
#define RELAY_COPY_MAX (32 * 1024)

struct relay {
	uint64_t bytes; /* delivered */
	/* What could not be delivered yet is in at most one of the two. */
	uint8_t *left;
	struct pipe_pair *pipe;
	const struct meters *meters; /* NULL: nothing is counted */
	uint32_t left_at, left_len;
	uint32_t piped;
	uint32_t fresh; /* read by the last pump; watched only */
	enum direction way : 8;
	bool bulk;	/* splice: a read filled the buffer */
	uint8_t small;	/* splices in a row that were not worth it */
	bool no_splice; /* the kernel refused once */
	bool watched;	/* no splice: somebody looks at relay_fresh() */
	bool eof;	/* the source ended; what is in flight still counts */
	bool dead;	/* the destination takes no more */
	bool shut;	/* the end was passed on */
};

enum relay_result {
	RELAY_IDLE,	   /* all that came is delivered */
	RELAY_BLOCKED,	   /* the destination is full */
	RELAY_READ_ERROR,  /* of the source: errno in @reterr */
	RELAY_WRITE_ERROR, /* of the destination */
	RELAY_SPENT,	   /* there is more, and no budget left for it */
};

/* Delivers what is in flight, then reads and delivers once more, but never
 * reads more than the budget has. */
enum relay_result relay_pump(struct relay *relay, int from, int to,
			     int *reterr);

/* Delivers what is in flight, and reads nothing. */
enum relay_result relay_flush(struct relay *relay, int to, int *reterr);

/* Gives it @len bytes to deliver behind what is left; nothing may be piped.
 * Sends what @to takes now. 0, -EAGAIN (some is left), or -errno. */
int relay_give(struct relay *relay, int to, const uint8_t *data, size_t len);

/* Takes @len bytes off the budget that were read elsewhere. False: it has not
 * as much, and they must not go on. */
bool relay_spend(const struct relay *relay, size_t len);

/* The ->fresh bytes that the last relay_pump() of this thread read. */
const uint8_t *relay_fresh(void);

static inline bool relay_in_flight(const struct relay *relay)
{
	return relay->left_len || relay->piped;
}

/* Nothing more will come out. */
static inline bool relay_over(const struct relay *relay)
{
	return relay->dead || (relay->eof && !relay_in_flight(relay));
}

/* Forgets what is in flight. */
void relay_drop(struct relay *relay);

/* Bytes of this thread that were spliced, not copied: for tests. */
uint64_t relay_spliced(void);

#endif
