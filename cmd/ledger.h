/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.h - the process that owns the log.
 */
#ifndef CMD_LEDGER_H
#define CMD_LEDGER_H

/* Runs as a child made by child_spawn("ledger"), its parent at CHILD_SOCKET.
 * Returns the exit status: 0 once everything is written, 1 if the log was lost
 * or the parent made no sense. */
int ledger_main(void);

#endif
