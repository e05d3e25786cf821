/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_log_case.h - a ledger with a log, ended in order or not.
 */
#ifndef TESTS_CMD_LEDGER_LOG_CASE_H
#define TESTS_CMD_LEDGER_LOG_CASE_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/cmd/ledger_read.h"
#include "tests/cmd/ledger_rig.h"

/* --- a session ------------------------------------------------------------ */

static inline void close_session(struct rig *rig, int warden,
				 const struct msg_ledger_end *message)
{
	struct audit_event close = event_of(EVENT_SESSION_CLOSE, NULL);

	assert_int_equal(msg_send(rig->control, MSG_LEDGER_END, message, -1),
			 0);
	assert_int_equal(audit_submit_sync(warden, &close, 1000), 0);
}

#endif
