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
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/rights.h"

#define END_S	  30
#define KILLER_NS 3

/* --- who runs inside ----------------------------------------------------- */

void box_drop_killer(struct box *box)
{
	if (box->killed)
		event_free(box->killed);
	box->killed = NULL;
	close_fd(&box->killer_fd);
	box->killer = -1;
}

static void on_killed(evutil_socket_t fd, short what, void *arg)
{
	struct box *box = arg;

	(void)fd;
	(void)what;
	/* A builder's is not ours to bury. It says itself what went wrong. */
	waitpid(box->killer, NULL, 0);
	box_drop_killer(box);
	daemon_kick(box->daemon);
}

/* It may take seconds, as long as somebody lets it: not ours. Those of a
 * container are its engine's. */
void box_kill_inside(struct box *box)
{
	const struct daemon_sandbox *s = &box->sandbox;
	int err;

	if (s->spec.docker || !*s->netns)
		return;
	err = rights_kill(box->daemon->options.run, s->spec.name, &box->killer,
			  &box->killer_fd);
	if (err == -ENOENT)
		return;
	if (err)
		log_err("%s: what runs inside can't be killed: %s",
			s->spec.name, strerror(-err));
	if (box->killer_fd >= 0)
		box->killed = event_new(box->daemon->base, box->killer_fd,
					EV_READ | EV_PERSIST, on_killed, box);
	if (box->killed && event_add(box->killed, NULL) == 0)
		return;
	/* Then we wait for it. */
	log_err("%s: out of memory", s->spec.name);
	if (box->killer > 0)
		waitpid(box->killer, NULL, 0);
	box_drop_killer(box);
}

/* --- a sandbox ----------------------------------------------------------- */

void daemon_drop_pins(const struct daemon *daemon, const char *name)
{
	int err = rights_drop(daemon->options.run, name);

	if (err)
		log_err("%s: its namespace keeps its name: %s", name,
			strerror(-err));
}

bool box_is_over(const struct box *box)
{
	return box->removing && !box->leaving && !box->keeper &&
	       box->killer < 0 && !box_is_making(box) && !box->works;
}

void box_finish(struct box *box)
{
	box->leaving = true;
	daemon_drop_pins(box->daemon, box->sandbox.spec.name);
	box_forget(box);
}

void box_gone(struct box *box)
{
	struct daemon *daemon = box->daemon;
	daemon_done_fn *removed = box->removed;

	box->removed = NULL;
	if (removed)
		removed(box->removed_arg, &box->sandbox, 0, "");
	box_free(box);
	daemon_kick(daemon);
}

static void end_keeper(struct box *box, enum ended_by ended)
{
	const struct msg_keep_end end = { .ended = (uint8_t)ended,
					  .status = box->sandbox.status };
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
	box_kill_inside(box);
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
		/* Nobody was told that it is there. */
		if (!box->served)
			box->removing = true;
	}
	daemon_kick(daemon);
}

void daemon_stop_if_over(struct daemon *daemon)
{
	if (!daemon->stopping)
		return;
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (box_of(s)->keeper || box_of(s)->killer > 0 ||
		    box_of(s)->works || box_is_making(box_of(s)))
			return;
	event_base_loopbreak(daemon->base);
}
