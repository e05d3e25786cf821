/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_boundary.h - the watch over what keeps the sandbox in: the kernel's
 * rules, and the links, addresses and routes of both namespaces. Part of the
 * warden.
 */
#ifndef CMD_WARDEN_BOUNDARY_H
#define CMD_WARDEN_BOUNDARY_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/privsep.h"

struct event;
struct warden;

/* So often the rules are put back; whoever changes them once more ends the
 * session. */
#define BOUNDARY_RESTORES_MAX 3
#define BOUNDARY_TELL_MS      1000
/* So many looks in a row there may be no memory for. */
#define BOUNDARY_MISSED_MAX 3

struct boundary {
	struct event *rules, *link[2], *time;
	enum boundary_held held; /* of what was seen so far */
	unsigned changes;	 /* of the rules, by others */
	unsigned missed;	 /* looks that failed of us, since the last */
	uint32_t repaired; /* up to this generation the rules were put back */
	/* Changes in the sandbox's namespace that are told, and no more:
	 * findings, at most one in BOUNDARY_TELL_MS. */
	unsigned links, untold;
	int64_t told_ms; /* monotonic */
	char last[512];	 /* of the untold */
};

/* Watches from the warden's loop on; does nothing under `serve`. 0 or
 * -errno. */
int boundary_attach(struct warden *warden);

/* From now on it is looked at every @s, though nobody told of a change; 0: as
 * usual. */
void boundary_look_every(struct warden *warden, unsigned s);

/* After gateway_join(): that side is watched, too. 0 or -errno. */
int boundary_join(struct warden *warden);

/* For who waits for something else: readable when somebody may have changed the
 * rules; -1 if nobody watches. */
int boundary_fd(const struct warden *warden);
/* Was all of it about what is not ours (cmd/guard.h)? Then it is done with. */
bool boundary_idle(struct warden *warden);
/* Does at once what has to be done then. True if somebody did change them: a
 * gate that there is now has been started since. */
bool boundary_look(struct warden *warden);

/* The end of the watch, after the command's: what others did up to now is
 * recorded, but not put back any more. (The rules are read back for the
 * receipt.) The ledger must still be there. Twice is once. */
void boundary_end(struct warden *warden);

/* The same without a look. */
void boundary_detach(struct warden *warden);

#endif
