/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_start.h - from the first message to READY: see privsep.h.
 */
#ifndef CMD_LEDGER_START_H
#define CMD_LEDGER_START_H

struct ledger_log;

/* Opens @log, which is all zero, with what the warden sends, and gives up all
 * else. 0; -EPROTO if the messages are not those, or not all of them; -errno.
 * ledger_log_free() also after an error. */
int ledger_start(struct ledger_log *log);

#endif
