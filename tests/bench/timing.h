/* SPDX-License-Identifier: Apache-2.0
 *
 * timing.h - what several rounds took, on one core.
 */
#ifndef TESTS_BENCH_TIMING_H
#define TESTS_BENCH_TIMING_H

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

static inline double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline double now_s(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

/* Of all threads of this process, in the kernel too. */
static inline double cpu_s(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* From here on this thread, and those it starts, have one core together. */
static inline bool pin_to(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static inline int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *value, size_t n)
{
	qsort(value, n, sizeof(*value), compare_doubles);
	return value[n / 2];
}

#endif
