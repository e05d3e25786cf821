/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_pace.h - when a ledger waits a moment before its next turn.
 *
 * A turn costs the same whether it takes one record or many: a wake-up, a
 * write, an acknowledgement. Where few come at a time, but many a second, that
 * is most of what the ledger costs. So while it is busy, its turns begin no
 * sooner than PACE_TURN_US after each other. Who sends little never waits.
 */
#ifndef CMD_LEDGER_PACE_H
#define CMD_LEDGER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_WINDOW_US 10000
#define PACE_BUSY      5000 /* records a second, in the last window */
#define PACE_TURN_US   4000

/* All zero at first. */
struct pace {
	uint64_t since_us; /* the window's beginning */
	uint64_t next_us;  /* while busy: when the next turn begins */
	uint32_t records;  /* in the window */
	bool busy;
};

/* The clock of all this. */
uint64_t pace_now_us(void);

/* A turn begins at @now_us (monotonic). */
void pace_begin(struct pace *pace, uint64_t now_us);
/* It took @records. */
void pace_add(struct pace *pace, unsigned records);

/* Microseconds to wait before the next one, at @now_us. */
unsigned pace_wait_us(const struct pace *pace, uint64_t now_us);

#endif
