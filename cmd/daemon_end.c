/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_end.c - the end of a sandbox, and the end of the daemon, in which
 * sandboxes stay: their namespaces are pinned, their states on the disk, and
 * only their keepers end, each with its receipt.
 *
 * What runs in a sandbox is killed before its namespace loses its name: what
 * nobody can find any more must not go on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/rights.h"

#define END_S 30

/* Those of a container are its engine's. */
static void kill_inside(const struct daemon *daemon,
			const struct daemon_sandbox *s)
{
	int err;

	if (s->spec.docker || !*s->netns)
		return;
	err = rights_kill(daemon->options.run, s->spec.name);
	if (err < 0)
		log_err("%s: what runs inside can't be killed: %s",
			s->spec.name, strerror(-err));
}

void daemon_drop_pins(const struct daemon *daemon, const char *name)
{
	int err = rights_drop(daemon->options.run, name);

	if (err)
		log_err("%s: its namespace keeps its name: %s", name,
			strerror(-err));
}

void box_finish(struct box *box)
{
	struct daemon *daemon = box->daemon;
	struct daemon_sandbox *s = &box->sandbox;
	const char *why = *s->why ? s->why : "it was removed";

	kill_inside(daemon, s);
	daemon_drop_pins(daemon, s->spec.name);
	state_drop(daemon, s->spec.name);
	if (box->created)
		box->created(box->created_arg, s, -ECANCELED, why);
	if (box->removed)
		box->removed(box->removed_arg, s, 0, "");
	box_free(box);
}

static void end_keeper(struct box *box, enum ended_by ended)
{
	const struct msg_keep_end end = { .ended = (uint8_t)ended };
	const struct timeval limit = { .tv_sec = END_S };

	if (box->sandbox.state == SANDBOX_READY &&
	    keeper_tell(box->keeper, MSG_KEEP_END, &end, -1) == 0)
		event_add(box->limit, &limit);
	else
		keeper_kill(box->keeper);
	box->sandbox.state = SANDBOX_ENDING;
}

int daemon_remove(struct daemon *daemon, struct daemon_sandbox *sandbox,
		  enum ended_by ended, daemon_done_fn *done, void *arg)
{
	struct box *box = box_of(sandbox);

	if (box->removing)
		return -EALREADY;
	box->removing = true;
	box->removed = done;
	box->removed_arg = arg;
	event_del(box->wall);
	kill_inside(daemon, sandbox);
	if (box->keeper)
		end_keeper(box, ended);
	sandbox->state = SANDBOX_ENDING;
	daemon_kick(daemon);
	return 0;
}

/* --- the daemon ---------------------------------------------------------- */

bool daemon_stopping(const struct daemon *daemon)
{
	return daemon->stopping;
}

void daemon_stop(struct daemon *daemon)
{
	if (daemon->stopping)
		return;
	daemon->stopping = true;
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next) {
		struct box *box = box_of(s);

		event_del(box->wall);
		if (box->keeper && !box->removing)
			end_keeper(box, ENDED_SIGNAL);
	}
	daemon_kick(daemon);
}

void daemon_stop_if_over(struct daemon *daemon)
{
	if (!daemon->stopping)
		return;
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (box_of(s)->keeper)
			return;
	event_base_loopbreak(daemon->base);
}
