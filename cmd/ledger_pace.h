/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_pace.h - when a ledger waits a moment before its next turn.
 *
 * A turn costs the same whether it takes one record or many: a wake-up, a
 * write, an acknowledgement. Where records come one by one, but many a second,
 * that is most of what the ledger costs. So while it is busy, and its turns are
 * short, it lets a few of them come together. Who sends little never waits.
 */
#ifndef CMD_LEDGER_PACE_H
#define CMD_LEDGER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_WINDOW_US 10000
#define PACE_BUSY      5000 /* records a second, in the last window */
#define PACE_FULL      8    /* records of a turn that needs no wait */
#define PACE_WAIT_US   150

/* All zero at first. */
struct pace {
	uint64_t since_us; /* the window's beginning */
	uint32_t records;  /* in it */
	uint32_t last;	   /* in the last turn */
	bool busy;
};

/* A turn took @records at @now_us (monotonic). */
void pace_turn(struct pace *pace, unsigned records, uint64_t now_us);

/* Microseconds to wait before the next one. */
unsigned pace_wait_us(const struct pace *pace);

#endif
