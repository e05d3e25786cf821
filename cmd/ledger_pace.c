/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_pace.c - records are counted in windows; the last whole one says
 * whether the ledger is busy.
 */
#include "cmd/ledger_pace.h"

#include "base/clock.h"

uint64_t pace_now_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

void pace_begin(struct pace *pace, uint64_t now_us)
{
	uint64_t passed = now_us - pace->since_us;

	pace->next_us = now_us + PACE_TURN_US;
	if (passed < PACE_WINDOW_US)
		return;
	pace->busy = (uint64_t)pace->records * 1000000 >= passed * PACE_BUSY;
	pace->since_us = now_us;
	pace->records = 0;
}

void pace_add(struct pace *pace, unsigned records)
{
	pace->records += records;
}

unsigned pace_wait_us(const struct pace *pace, uint64_t now_us)
{
	if (!pace->busy || now_us >= pace->next_us)
		return 0;
	return (unsigned)(pace->next_us - now_us);
}
