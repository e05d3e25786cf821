/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_host.h - what a ledger says of its session in the log of all sessions
 * (audit/hostlog.h): that it opened, and how it ended.
 *
 * No session waits for that log, and none fails for want of it: it is a finding
 * in the session's own log.
 */
#ifndef CMD_LEDGER_HOST_H
#define CMD_LEDGER_HOST_H

#include <stdint.h>

struct key;
struct ledger_host;
struct ledger_log;
struct msg;

/* log->host, if the session is to be named there; @owner signs, and stays the
 * caller's. Takes the files that came. 0 or -errno. */
int ledger_host_new(struct ledger_log *log, const struct key *owner);

/* The session is open: says so in a thread. */
void ledger_host_begin(struct ledger_log *log);

/* Tells in the session's log what went wrong, if anything did. 0 or -errno: log
 * lost; so it is with ledger_host_settle(), which waits for the thread. */
int ledger_host_turn(struct ledger_log *log);
int ledger_host_settle(struct ledger_log *log);

/* Another file, before the end: those from before may have been put aside.
 * Takes it. 0 or -EPROTO. */
int ledger_host_take(struct ledger_log *log, struct msg *msg);

/* All is written. @receipt: SHA-256 of the receipt; NULL: there is none. */
void ledger_host_end(struct ledger_log *log, const uint8_t *receipt);

void ledger_host_free(struct ledger_host *host);

#endif
