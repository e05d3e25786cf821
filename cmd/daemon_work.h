/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_work.h - what takes its time, done by threads beside the loop: writing
 * states, reading and composing policies, long requests.
 *
 * A work has all that it needs in itself, and touches nothing else: what comes
 * of it is looked at in the loop.
 */
#ifndef CMD_DAEMON_WORK_H
#define CMD_DAEMON_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/daemon.h"

struct event_base;
struct workers;

/* The first member of what is done. */
struct work {
	/* In a thread. */
	void (*run)(struct work *work);
	/* In the loop, afterwards; the work is its own again. */
	void (*done)(struct work *work);
	/* Those of one sandbox are done one after the other, as they were
	 * added; "": of none. */
	char key[DAEMON_NAME_MAX];
	uid_t uid;    /* for whom */
	size_t bytes; /* that it holds: see work_bytes() */
	/* The workers' own. */
	struct work *next, *other;
	uint64_t turn;
	bool running;
};

/* 0 or -errno. Threads get the signal mask of who calls this. */
int work_open(struct event_base *base, struct workers **ret_workers);
/* Waits until all is done, and told; then it is gone. NULL is fine. */
void work_close(struct workers *workers);

/* Never calls anybody before it returns. */
void work_add(struct workers *workers, struct work *work);
/* What is held by what is not told yet, of @uid's. */
size_t work_bytes(const struct workers *workers, uid_t uid);

#endif
