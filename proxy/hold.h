/* SPDX-License-Identifier: Apache-2.0
 *
 * hold.h - the client's first bytes, kept back until it is clear what they
 * are, and what it is told if they are refused.
 */
#ifndef PROXY_HOLD_H
#define PROXY_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOLD_REFUSAL_MAX 64

struct hold {
	size_t len, cap; /* at most SNIFF_MAX */
	uint8_t *data;
	int64_t since_ms; /* the first byte, or awaiting; 0: none yet */
	unsigned classify_ms, unclear_ms, answer_ms; /* see tunnel_limits */
	size_t refusal_len;
	uint8_t refusal[HOLD_REFUSAL_MAX];
	bool looked;   /* somebody was asked about all of it */
	bool doubted;  /* incomplete() asked for more time */
	bool awaiting; /* nobody is asked until the server has answered */
	size_t pass;   /* so many of them may go up now */
};

/* With a copy of @first, which came at @now_ms. 0 or -errno (-EMSGSIZE if
 * longer than a first message can be). */
int hold_new(const uint8_t *first, size_t len, int64_t now_ms,
	     struct hold **ret_hold);
/* NULL is fine. */
void hold_free(struct hold *hold);

/* Forgets the first @len bytes. */
void hold_drop(struct hold *hold, size_t len);

/* Reads more from @fd. Returns how much, 0 at the end, or -errno (-EAGAIN,
 * -EMSGSIZE if it is full). */
ssize_t hold_read(struct hold *hold, int fd);

/* Sends the refusal, if any, such that a close() of @fd does not undo it. */
void hold_refuse(const struct hold *hold, int fd);

#endif
