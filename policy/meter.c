/* SPDX-License-Identifier: Apache-2.0
 *
 * meter.c - see meter.h. One thread counts: the gate's.
 */
#include "policy/meter.h"

uint64_t meters_room(const struct meters *meters, enum direction direction)
{
	uint64_t room = UINT64_MAX;

	if (!meters)
		return room;
	for (unsigned i = 0; i < METERS; i++) {
		const struct meter *meter = &meters->at[direction][i];

		if (!meter->used || !meter->limit)
			continue;
		uint64_t used = *meter->used;
		uint64_t left = used < meter->limit ? meter->limit - used : 0;
		if (left < room)
			room = left;
	}
	return room;
}

void meters_spend(const struct meters *meters, enum direction direction,
		  uint64_t bytes)
{
	if (!meters)
		return;
	for (unsigned i = 0; i < METERS; i++) {
		const struct meter *meter = &meters->at[direction][i];

		if (!meter->used)
			continue;
		/* Never back to nothing by overflow. */
		if (*meter->used > UINT64_MAX - bytes)
			*meter->used = UINT64_MAX;
		else
			*meter->used += bytes;
	}
}
