/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_restore.c - what an earlier daemon had, however it ended.
 *
 *	state	namespace
 *	there	there		a new keeper, with the same of everything
 *	there	gone		the machine was started again: collected
 *	none	there		never finished, or half removed: collected
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/rights.h"
#include "launch/pin.h"

static void collect(struct daemon *daemon, const char *name, const char *why)
{
	log_warn("%s: %s: what is left of it is removed", name, why);
	daemon_drop_pins(daemon, name);
	state_drop(daemon, name);
}

static bool is_there(const struct daemon_sandbox *s)
{
	AUTO_FD int ns = *s->netns ? pin_open(s->netns) : -1;

	return ns >= 0;
}

static void take_up(struct daemon *daemon, const char *name)
{
	struct daemon_sandbox was = { 0 };
	struct daemon_sandbox *next;
	struct box *box;
	int err = state_load(daemon, name, &was);

	if (err || !is_there(&was)) {
		collect(daemon, name,
			err ? "its state can't be read"
			    : "its namespace is gone");
		return;
	}
	box = box_new(daemon);
	if (!box) {
		log_err("%s: out of memory; it reaches nothing", name);
		return;
	}
	next = box->sandbox.next;
	box->sandbox = was;
	box->sandbox.next = next;
	box->sandbox.summary = -1;
	box->sandbox.state = SANDBOX_STARTING;
	box->served = true;
	box_queue(box);
	box_set_wall(box);
	if (box_hold(box)) {
		log_warn("%s: its run is gone, and so is it", name);
		box->sandbox.status = DAEMON_STATUS_KILLED;
		daemon_remove(daemon, &box->sandbox, ENDED_SIGNAL, NULL, NULL);
	}
}

/* Names of namespaces that no state has. */
static void sweep_pins(struct daemon *daemon, const char *below)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", daemon->options.run, below);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!daemon_name_ok(entry->d_name) ||
		    daemon_find(daemon, entry->d_name))
			continue;
		rights_kill_now(daemon->options.run, entry->d_name);
		collect(daemon, entry->d_name, "a namespace without a state");
	}
	if (dir)
		closedir(dir);
}

void daemon_restore(struct daemon *daemon)
{
	state_each(daemon, take_up);
	sweep_pins(daemon, "netns");
	sweep_pins(daemon, "user");
	if (daemon->count)
		log_warn("%zu sandboxes of an earlier daemon are taken up",
			 daemon->count);
	daemon_kick(daemon);
}
