/* SPDX-License-Identifier: Apache-2.0
 *
 * sandbox_file.h - the one file of a sandbox that outlives its gates: names and
 * leases first, what is used up behind them, on a page of its own.
 */
#ifndef CMD_SANDBOX_FILE_H
#define CMD_SANDBOX_FILE_H

#include <unistd.h>

#include "dns/lease.h"
#include "policy/counters.h"

/* Where the counters begin. */
static inline size_t sandbox_file_counters(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (lease_table_size() + page - 1) / page * page;
}

static inline size_t sandbox_file_size(void)
{
	return sandbox_file_counters() + counters_size();
}

#endif
