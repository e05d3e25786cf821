/* SPDX-License-Identifier: Apache-2.0
 *
 * host_log.h - the warden's side of the log of all sessions (audit/hostlog.h):
 * it opens the files, the ledger writes them.
 */
#ifndef CMD_HOST_LOG_H
#define CMD_HOST_LOG_H

#include <stdbool.h>

#include "audit/hostlog.h"

struct session;

/* Is there to be one? Not for a session whose key nobody can know: it would
 * have the log to itself. */
bool host_log_wanted(const struct session *session);

/* Opens the files, as hostlog_dir_open(), which knows @ongoing. 0, or -errno;
 * -ENODATA if the public half of the key is not beside it. */
int host_log_open(const struct session *session, bool ongoing,
		  struct hostlog_files *ret_files);

#endif
