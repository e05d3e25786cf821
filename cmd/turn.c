/* SPDX-License-Identifier: Apache-2.0
 *
 * turn.c - the fewest places first, then the first turn.
 */
#include "cmd/turn.h"

void turn_busy(struct turn_choice *choice, uid_t uid)
{
	if (choice->n < TURN_PLACES_MAX)
		choice->busy[choice->n++] = uid;
}

size_t turn_own(const struct turn_choice *choice, uid_t uid)
{
	size_t own = 0;

	for (size_t i = 0; i < choice->n; i++)
		own += choice->busy[i] == uid;
	return own;
}

bool turn_is_next(struct turn_choice *choice, uid_t uid, uint64_t turn)
{
	const size_t own = turn_own(choice, uid);

	if (own > choice->own || (own == choice->own && turn >= choice->turn))
		return false;
	choice->own = own;
	choice->turn = turn;
	return true;
}
