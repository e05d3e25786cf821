/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.h - scenarios whose instructions are counted, by valgrind's callgrind.
 *
 * Only what runs between cost_on() and cost_off(), while a scenario is
 * measured, counts: set-up, clients, origins and name servers do not. All are
 * in one process and take turns, one operation at a time, so that what runs
 * does not depend on who was faster. Without valgrind all of it runs, and
 * nothing is counted.
 */
#ifndef TESTS_COST_COST_H
#define TESTS_COST_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cost {
	const char *name; /* what was counted is written under it */
	/* Called @warm times, which do not count, then @ops times; @i goes up
	 * from 0 in both. Each is @each operations; 0: one. */
	void (*op)(void *arg, unsigned i);
	void *arg;
	unsigned warm, ops, each;
};

void cost_measure(const struct cost *cost);
void cost_on(void);
void cost_off(void);
/* From here on cost_on() does nothing, or does it again. */
void cost_pause(bool pause);

/* The scenario is not what it should be: ends the process. */
_Noreturn void cost_fail(const char *what);
static inline void cost_check(bool right, const char *what)
{
	if (!right)
		cost_fail(what);
}

/* Where files may be made; they are removed by whoever started us. */
extern const char *cost_dir;

/* The scenarios: policy decision, ClientHello, DNS answer, record, tunnel. */
void cost_policy(void);
void cost_hello(void);
void cost_dns(void);
void cost_record(void);
void cost_relay(void);

/* A ClientHello for @name as browsers send it: 1.8 kB. Its length. */
#define COST_HELLO_MAX 4096
size_t cost_browser_hello(const char *name, uint8_t buf[COST_HELLO_MAX]);

#endif
