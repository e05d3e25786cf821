/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_make.c - a sandbox's namespace, made by a process of its own and
 * pinned where its state said before that it would be.
 *
 * Whose sandbox it is may keep that process waiting, as the user namespace is
 * his. So it is no part of the few that are starting, and each user has few of
 * them: whoever is slow waits for himself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/rights.h"
#include "cmd/turn.h"

#define MAKING_MAX	8
#define MAKING_USER_MAX 2

_Static_assert(MAKING_MAX <= TURN_PLACES_MAX, "all are counted");

bool box_lacks_namespace(const struct box *box)
{
	return box->sandbox.spec.link == KEEP_LINK_OWN && !box->served &&
	       box->ns < 0;
}

bool box_is_making(const struct box *box)
{
	return box->maker_sock >= 0;
}

void box_drop_maker(struct box *box)
{
	if (box->made)
		event_free(box->made);
	box->made = NULL;
	/* It has said its word, or is dead; a builder's is not ours to bury. */
	if (box_is_making(box))
		waitpid(box->maker, NULL, 0);
	close_fd(&box->maker_sock);
	close_fd(&box->ns);
}

static void on_made(evutil_socket_t fd, short what, void *arg)
{
	struct box *box = arg;
	int ns = -1, err = rights_made(fd, &ns, NULL);

	(void)what;
	if (err == -EAGAIN)
		return;
	box_drop_maker(box);
	box->ns = ns;
	if (err)
		box_start_failed(box, err, "");
	daemon_kick(box->daemon);
}

static int make(struct box *box)
{
	const struct daemon_spec *spec = &box->sandbox.spec;
	int err;

	if (box_take_spare(box))
		return 0;
	err = rights_namespace(box->daemon->options.run, spec->name, spec->uid,
			       spec->gid, &box->maker, &box->maker_sock);

	if (err)
		return err;
	box->made = event_new(box->daemon->base, box->maker_sock,
			      EV_READ | EV_PERSIST, on_made, box);
	if (box->made && event_add(box->made, NULL) == 0)
		return 0;
	box_drop_maker(box);
	return -ENOMEM;
}

/* Behind those of its user that wait already. */
void box_queue(struct box *box)
{
	struct daemon *daemon = box->daemon;

	box->turn = daemon->turn + 1;
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next) {
		const struct box *other = box_of(s);

		if (other != box && (other->queued || other->starting) &&
		    s->spec.uid == box->sandbox.spec.uid &&
		    other->turn >= box->turn)
			box->turn = other->turn + 1;
	}
	box->queued = true;
}

struct box *daemon_next_namespace(const struct daemon *daemon)
{
	struct turn_choice choice = turn_choice();
	struct box *ret = NULL;

	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (box_is_making(box_of(s)))
			turn_busy(&choice, s->spec.uid);
	if (choice.n >= MAKING_MAX)
		return NULL;
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next) {
		struct box *box = box_of(s);

		if (box->queued && !box->removing && !box_is_making(box) &&
		    box_lacks_namespace(box) &&
		    turn_own(&choice, s->spec.uid) < MAKING_USER_MAX &&
		    turn_is_next(&choice, s->spec.uid, box->turn))
			ret = box;
	}
	return ret;
}

void daemon_make_namespaces(struct daemon *daemon)
{
	struct box *box;

	while ((box = daemon_next_namespace(daemon))) {
		int err = make(box);

		if (box->turn > daemon->turn)
			daemon->turn = box->turn;
		if (err)
			box_start_failed(box, err, "");
	}
}
