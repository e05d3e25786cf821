/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_end.h - the end of a session: what is still to be said, the receipt,
 * the tally.
 */
#ifndef CMD_LEDGER_END_H
#define CMD_LEDGER_END_H

struct ledger_log;

/* A record of the packets that the kernel counted and nobody reported, before
 * the one that closes the session; log->has_end. 0 or -errno: log lost. */
int ledger_end_packets(struct ledger_log *log);

/* After the last record. Signs it, writes the receipt if the session was
 * closed in order, and tells the warden what it all came to. 0 or -errno. */
int ledger_end_report(struct ledger_log *log);

#endif
