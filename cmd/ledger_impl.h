/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_impl.h - what ledger.c and ledger_link.c share; nobody else's.
 */
#ifndef CMD_LEDGER_IMPL_H
#define CMD_LEDGER_IMPL_H

#include <poll.h>

#include "cmd/ledger_log.h"
#include "cmd/ledger_pace.h"

#define LEDGER_LINKS_MAX 8
#define LEDGER_BATCH	 32 /* packs */
/* At the end: more than any socket holds, so that a gate that goes on sending
 * can't keep us. */
#define LEDGER_LAST_TURNS 256

/* The record that closes the session must be the last one, so it waits until
 * the warden has said how it ended, and the other links have nothing more to
 * say. */
struct held {
	struct link *link; /* NULL: nothing is held */
	unsigned number;   /* of that link, whose place may be another's now */
	struct audit_event event;
	uint64_t seq;
	unsigned turns;
	char text[RECORD_MESSAGE_MAX];
};

struct link {
	int fd; /* -1: free */
	unsigned number;
	bool mute;	/* it no longer reads acknowledgements */
	bool warden;	/* may open and close the session, change its policy */
	uint64_t taken; /* number of the last record of it in the batch */
	uint64_t acked;
};

struct ledger {
	struct ledger_log log;
	unsigned links; /* ever made */
	struct link link[LEDGER_LINKS_MAX];
	struct held held;
	struct pace pace;
	bool more;	/* a link may have more than the last turn took */
	bool open;	/* the first record is there */
	int timeout_ms; /* until the log wants another turn */
	uint8_t pack[LEDGER_BATCH][RECORD_PACK_MAX + 1];
	char text[RECORD_MESSAGE_MAX];
};

/* One turn: of the links that poll() found ready, or of all (NULL). Returns how
 * many records there were, or -errno: log lost. */
int ledger_turn(struct ledger *ledger, const struct pollfd *ready);

/* Another link, whose @fd is taken; @warden: the warden's own. */
void ledger_add_link(struct ledger *ledger, int fd, bool warden);

/* The first record opens the session. A gate may serve before: the kernel drops
 * packets as soon as there are rules. What it says waits in its socket. */
bool ledger_has_to_wait(const struct ledger *ledger, const struct link *link);

#endif
