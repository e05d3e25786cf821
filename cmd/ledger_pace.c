/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_pace.c - records are counted in windows; the last whole one says
 * whether the ledger is busy.
 */
#include "cmd/ledger_pace.h"

void pace_turn(struct pace *pace, unsigned records, uint64_t now_us)
{
	uint64_t passed = now_us - pace->since_us;

	pace->records += records;
	pace->last = records;
	if (passed < PACE_WINDOW_US)
		return;
	pace->busy = (uint64_t)pace->records * 1000000 >= passed * PACE_BUSY;
	pace->since_us = now_us;
	pace->records = 0;
}

unsigned pace_wait_us(const struct pace *pace)
{
	return pace->busy && pace->last < PACE_FULL ? PACE_WAIT_US : 0;
}
