/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - how long something took, more exactly than base/clock.h says it.
 */
#ifndef TESTS_CLOCK_H
#define TESTS_CLOCK_H

#include "base/clock.h"

/* CLOCK_MONOTONIC */
static inline double exact_ms(void)
{
	return (double)clock_us(CLOCK_MONOTONIC) / 1e3;
}

static inline double exact_s(void)
{
	return exact_ms() / 1e3;
}

#endif
