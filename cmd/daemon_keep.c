/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_keep.c - changes of a sandbox get to the disk, beside the loop;
 * whoever waits for one hears of it when it is there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"

struct keep_work {
	struct work work;
	struct box *box;
	const struct daemon *daemon; /* its directories, which stay */
	struct daemon_sandbox s;     /* as it is to be kept */
	struct waiter *waiter;	     /* who hears of it, or NULL */
	int err;
};

static void add(struct box *box, struct keep_work *keep)
{
	const struct daemon_sandbox *s = &box->sandbox;

	keep->box = box;
	keep->daemon = box->daemon;
	keep->s = *s;
	memcpy(keep->work.key, s->spec.name, sizeof(keep->work.key));
	keep->work.uid = s->spec.uid;
	box->works++;
	work_add(box->daemon->workers, &keep->work);
}

/* --- what was agreed to -------------------------------------------------- */

static void save(struct work *work)
{
	struct keep_work *keep = (struct keep_work *)(void *)work;

	keep->err = state_save(keep->daemon, &keep->s,
			       keep->waiter && keep->waiter->staged);
}

static void tell(struct box *box, struct waiter *waiter, int err)
{
	char why[256] = "";

	if (err) {
		snprintf(why, sizeof(why),
			 "it is so now, but a restart will not know of it: its "
			 "state can't be written: %s",
			 strerror(-err));
		log_err("%s: %s", box->sandbox.spec.name, why);
	}
	if (waiter && waiter->done)
		waiter->done(waiter->arg, &box->sandbox, err ? -EIO : 0, why);
	free(waiter);
}

static void on_saved(struct work *work)
{
	struct keep_work *keep = (struct keep_work *)(void *)work;
	struct box *box = keep->box;

	box->works--;
	tell(box, keep->waiter, keep->err);
	free(keep);
	daemon_kick(box->daemon);
}

void box_keep(struct box *box, struct waiter *waiter)
{
	struct keep_work *keep = calloc(1, sizeof(*keep));

	if (!keep) {
		tell(box, waiter, -ENOMEM);
		return;
	}
	keep->work.run = save;
	keep->work.done = on_saved;
	keep->waiter = waiter;
	add(box, keep);
}

/* --- the end ------------------------------------------------------------- */

static void drop(struct work *work)
{
	struct keep_work *keep = (struct keep_work *)(void *)work;

	state_drop(keep->daemon, keep->s.spec.name);
}

static void on_dropped(struct work *work)
{
	struct keep_work *keep = (struct keep_work *)(void *)work;
	struct box *box = keep->box;

	box->works--;
	free(keep);
	box_gone(box);
}

void box_forget(struct box *box)
{
	struct keep_work *keep = calloc(1, sizeof(*keep));

	if (!keep) {
		state_drop(box->daemon, box->sandbox.spec.name);
		box_gone(box);
		return;
	}
	keep->work.run = drop;
	keep->work.done = on_dropped;
	add(box, keep);
}
