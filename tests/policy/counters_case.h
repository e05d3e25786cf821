/* SPDX-License-Identifier: Apache-2.0
 *
 * counters_case.h - a file of counters in a folder of its own.
 */
#ifndef TESTS_POLICY_COUNTERS_CASE_H
#define TESTS_POLICY_COUNTERS_CASE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "build_helper.h"
#include "policy/counters.h"

/* The file's format. */
#define AT 8192

static const struct limits no_limits, some_limits = { .budget = { 100, 200 } };

static struct policy *policy;

static inline int set_up(void **state)
{
	(void)state;
	policy = build_yaml("version: 1\n"
			    "allow:\n"
			    "  - plain.test\n"
			    "  - {host: one.test, upload: 10}\n"
			    "  - {host: two.test, download: 1 kB}\n"
			    "  - {host: three.test, upload: 7, download: 9}\n");
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	policy_unref(policy);
	return 0;
}

static inline int file(void)
{
	int fd = memfd_create("counters", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(AT + counters_size())), 0);
	return fd;
}

static inline struct counters *attach(int fd)
{
	struct counters *counters = NULL;

	assert_int_equal(counters_attach(fd, AT, &counters), 0);
	return counters;
}

static inline const struct rule *rule_of(const struct policy *from,
					 const char *host)
{
	const struct question question = { .host = host,
					   .port = 443,
					   .door = DOOR_CONNECT };
	struct verdict verdict = policy_decide(from, &question);

	assert_true(verdict.allow);
	return verdict.rule;
}

static inline struct meters meters_of(struct counters *counters,
				      const char *host)
{
	struct meters meters;

	assert_int_equal(counters_meters(counters, &no_limits,
					 host ? rule_of(policy, host) : NULL,
					 &meters),
			 0);
	return meters;
}

/* --- rates --------------------------------------------------------------- */

static inline unsigned take_all(struct counters *counters, enum rate rate,
				unsigned per_second, uint64_t now_ms)
{
	unsigned n = 0;

	while (n < 100000 && counters_take(counters, rate, per_second, now_ms))
		n++;
	return n;
}

#endif
