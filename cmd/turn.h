/* SPDX-License-Identifier: Apache-2.0
 *
 * turn.h - who is next, where many users wait for few places.
 *
 * Who has the fewest places; among those whose turn comes first. A turn is a
 * number that one gets as one begins to wait: one more than the last that came,
 * and than that of what the same user has waiting already. So each user gets a
 * place in a round, however much the others have waiting, and however many
 * others there are; and nobody gets before those who wait by coming again and
 * again.
 */
#ifndef CMD_TURN_H
#define CMD_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TURN_PLACES_MAX 16

struct turn_choice {
	uid_t busy[TURN_PLACES_MAX]; /* whose the places are that are taken */
	size_t n;
	/* Of the best until now; .own SIZE_MAX: there is none. */
	size_t own;
	uint64_t turn;
};

static inline struct turn_choice turn_choice(void)
{
	return (struct turn_choice){ .own = SIZE_MAX };
}

/* One more place is @uid's. */
void turn_busy(struct turn_choice *choice, uid_t uid);
/* How many are. */
size_t turn_own(const struct turn_choice *choice, uid_t uid);
/* Is what @uid has waiting with @turn before all that were asked about? Of
 * equals it is the first. */
bool turn_is_next(struct turn_choice *choice, uid_t uid, uint64_t turn);

#endif
