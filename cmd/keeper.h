/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper.h - the process that keeps one sandbox of a daemon: its state, shared
 * by the files cmd/keeper*.c only.
 *
 *	keeper.c	 from the first message to the last
 *	keeper_spare.c	 what is done before a sandbox is asked for
 *	keeper_talk.c	 what the daemon asks for while the sandbox lives
 *	keeper_summary.c what it came to, for `sallyport run`
 *	keeper_leases.c	 the file that outlives it
 */
#ifndef CMD_KEEPER_H
#define CMD_KEEPER_H

#include "cmd/gateway.h"
#include "cmd/options.h"
#include "cmd/session.h"
#include "cmd/warden.h"

struct event;
struct event_base;
struct tally;

struct keeper {
	struct msg_keep_start start;
	int leases, netns; /* -1: none was given */
	bool prepared;	   /* before there was a .start */
	struct options options;
	struct session session;
	struct warden warden;
	struct gateway gateway;
	struct event_base *base;
	struct event *daemon;
	uint64_t started_ms;
	unsigned asked; /* for counts that are still to come */
	/* How it ended. */
	const char *why;
	enum ended_by ended;
	int status;
	bool gone; /* nobody listens any more */
};

/* Gate and ledger start, and the way out is built, for whatever sandbox will be
 * in .netns. Dies with a message. */
void keeper_prepare(struct keeper *keeper);
/* Waits for the daemon's next word. Dies if gate or ledger do. */
void keeper_wait(const struct keeper *keeper);
/* Is .start what was prepared? */
bool keeper_fits(const struct keeper *keeper);

/* Reads the bundle in @fd (stays the caller's). 0 or -errno. */
int keeper_bundle(int fd, struct bundle *ret);

/* The daemon's socket can be read. */
void keeper_on_daemon(int fd, short what, void *keeper);
/* The ledger's answer. */
void keeper_on_sums(void *keeper, const struct msg_ledger_sums *sums);
/* Says @type; a daemon that does not listen is gone. */
void keeper_say(struct keeper *keeper, enum msg_type type, const void *payload);
/* What the session came to, as its user reads it; @tally may be NULL. */
void keeper_say_summary(struct keeper *keeper, const struct tally *tally,
			const struct warden_end *end);
/* Leaves the loop; the first word counts. */
void keeper_end(struct keeper *keeper, enum ended_by ended, int status,
		const char *why);

/* The file of a sandbox (cmd/sandbox_file.h) for us alone: waits until an
 * earlier keeper and its gate are gone. A new one gets its size. Returns a
 * descriptor of its own, or -errno: -EBUSY, -EBADMSG for what is no such file.
 */
int keeper_leases(int fd);

#endif
