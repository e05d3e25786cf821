/* SPDX-License-Identifier: Apache-2.0
 *
 * lease_case.h - a policy and the file of leases.
 */
#ifndef TESTS_DNS_LEASE_CASE_H
#define TESTS_DNS_LEASE_CASE_H

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
#include "dns/lease.h"
#include "policy_text.h"

#define ENTRY_LEN  280
#define ENTRY_HOST 24 /* where the name is in an entry */
static struct policy *policy;

static inline int file(void)
{
	int fd = memfd_create("leases", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)lease_table_size()), 0);
	return fd;
}

static inline struct lease_table *attach(int fd)
{
	struct lease_table *table = NULL;

	assert_int_equal(lease_table_attach(fd, &table), 0);
	return table;
}

static inline const struct rule *rule_for(const char *host)
{
	const struct question question = { .host = host, .door = DOOR_DNS };
	struct verdict verdict = policy_decide(policy, &question);

	assert_true(verdict.allow);
	return verdict.rule;
}

static inline enum reason admit(struct lease_table *table, const char *host)
{
	return lease_admit(table, policy, host, rule_for(host));
}

/* One byte of an entry is changed: it is no lease any more, and its address is
 * not given to another name. */
static inline void corrupt(int fd, size_t offset, const void *data, size_t len)
{
	assert_int_equal(pwrite(fd, data, len, (off_t)offset), (ssize_t)len);
}

#endif
