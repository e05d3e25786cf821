/* SPDX-License-Identifier: Apache-2.0
 *
 * stay.h - a session that stays until it is told to end: what `serve` and
 * `guard up` have in common.
 *
 *	options, session	the caller opens them
 *	stay_listen()		signals wait from here on
 *	.warden			the caller says where it serves and how
 *	stay_start()		gate and ledger, and the record that opens
 *	stay_loop()		until a signal, or until it can't go on
 *	stay_finish()		the record that closes, receipt and summary
 */
#ifndef CMD_STAY_H
#define CMD_STAY_H

#include "cmd/options.h"
#include "cmd/reload.h"
#include "cmd/session.h"
#include "cmd/warden.h"

struct event_base;

struct stay {
	const char *what; /* "serve" or "guard", in records and messages */
	struct options options;
	struct session session;
	struct warden warden;

	/* Its own. */
	struct reload reload;
	struct event_base *base;
	int signal_fd;
	bool failed; /* the session could not go on */
};

/* SIGINT, SIGTERM and SIGHUP are kept for the loop; `sallyport reload` finds
 * us. */
void stay_listen(struct stay *stay);

/* @note: of the opening record, before the policy; may be "". 0, or -errno and
 * a sentence in @reterr. */
int stay_start(struct stay *stay, const char *note, char *reterr, size_t cap);

/* Calls @ready when all is set up. 0, or -ENOMEM before that. */
int stay_loop(struct stay *stay, void (*ready)(void *arg), void *arg);

/* What the process ends with. */
int stay_finish(struct stay *stay);

/* Frees what it holds, session and options too. */
void stay_close(struct stay *stay);

#endif
