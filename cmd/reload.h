/* SPDX-License-Identifier: Apache-2.0
 *
 * reload.h - the policy of a running session is read again, by the process that
 * still has the files, and put in force.
 *
 * Which files they are was chosen at the start, and relative paths are of the
 * directory where that was. --allow and its like are kept.
 */
#ifndef CMD_RELOAD_H
#define CMD_RELOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/bundle.h"

struct control;
struct event_base;
struct options;
struct session;
struct warden;

struct reload {
	/* Set by the caller. */
	struct options *options;
	struct session *session;
	struct warden *warden; /* NULL: .apply does it */
	const char *what;      /* "run", "serve" */
	/* NULL, or: could what is sandboxed write to this file? */
	bool (*exposed)(void *arg, const char *path);
	/* Without a warden: puts @bundle in force. 0, or -errno and a sentence.
	 */
	int (*apply)(void *arg, const struct bundle *bundle, char *reterr,
		     size_t cap);
	void *arg;

	/* Its own. */
	struct control *control;
	bool other_bounds; /* `sandbox:` is not what the command began with */
};

/* Makes the control socket; without one there is a warning, and nothing else is
 * amiss. */
void reload_listen(struct reload *reload);
void reload_attach(struct reload *reload, struct event_base *base);
void reload_close(struct reload *reload);

/* Reads, builds, and puts in force; what is wrong is recorded too. 0, or -errno
 * and @reterr: the old policy is in force. */
int reload_now(struct reload *reload, struct policy_error *reterr);

#endif
