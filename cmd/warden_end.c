/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_end.c - the end of a session, its parts and its records: nothing
 * leaves any more before anything else is done.
 */
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "audit/tally.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/session.h"
#include "cmd/warden.h"
#include "cmd/warden_give.h"

#define GATE_END_MS 5000

void warden_drop_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

/* Whether it ended of its own accord, and well. */
static bool reap(struct child *child)
{
	int status = -1;
	bool well = child->pid > 0 &&
		    waitpid(child->pid, &status, 0) == child->pid &&
		    WIFEXITED(status) && WEXITSTATUS(status) == 0;

	child->pid = -1;
	child_close(child);
	return well;
}

void warden_stop_gate(struct warden *w)
{
	if (w->gate.pid > 0)
		kill(w->gate.pid, SIGKILL);
	warden_drop_event(&w->gate_event);
	warden_drop_event(&w->gate_died);
	reap(&w->gate);
}

static void drop_events(struct warden *w)
{
	warden_drop_event(&w->gate_event);
	warden_drop_event(&w->gate_died);
	warden_drop_event(&w->ledger_event);
	warden_drop_event(&w->ledger_died);
	warden_drop_event(&w->uplink_event);
	warden_drop_event(&w->resolv_event);
	warden_drop_event(&w->flows_event);
	boundary_detach(w);
}

/* Closing its socket tells it to end; it may take a while over its last
 * records. */
static void await_end(struct child *child, int timeout_ms)
{
	struct pollfd died = { .fd = child->pidfd, .events = POLLIN };

	close_fd(&child->sock);
	if (poll(&died, 1, timeout_ms) > 0)
		return;
	log_warn("a child did not end in time; killed");
	kill(child->pid, SIGKILL);
}

/* False: it died, before or of that. */
static bool end_child(struct child *child, int timeout_ms)
{
	if (child->pid <= 0)
		return true;
	await_end(child, timeout_ms);
	return reap(child);
}

/* Its death may be unseen yet when the command ends. What it would have said of
 * the ends of its flows is missing then. */
void warden_end_gate(struct warden *w)
{
	if (end_child(&w->gate, GATE_END_MS))
		return;
	log_warn("the gate died as the session ended");
	warden_finding(w, "the gate died as the session ended: how its last "
			  "flows ended is not recorded");
}

void warden_shut(struct warden *w, bool wait)
{
	warden_drop_event(&w->gate_event);
	warden_drop_event(&w->gate_died);
	close_fd(&w->gate.sock);
	if (wait && w->gate.pid > 0)
		await_end(&w->gate, GATE_END_MS);
}

/* What was written has its place on the disk; the receipt gets its name. */
static int settle_log(struct warden *w, const struct warden_end *end)
{
	int err = session_log_finish(&w->session->files, end->receipt);

	if (err)
		log_err("%s: the receipt: %s", w->session->dir, strerror(-err));
	return err;
}

int warden_finish(struct warden *w, const struct audit_event *last,
		  struct warden_end *end, struct tally *ret_tally)
{
	int err = 0;

	/* Not all of it: a long table, of which one row or two get used. */
	ret_tally->rows = 0;
	ret_tally->records = 0;
	end->receipt = end->tallied = false;
	drop_events(w);
	/* It ends while the rules are read back. */
	close_fd(&w->gate.sock);
	if (last) {
		err = warden_tell_end(w, end);
		if (!err)
			err = warden_record(w, last);
	}
	warden_end_gate(w);
	if (!err)
		err = msg_send(w->ledger.sock, MSG_LEDGER_FINISH, NULL, -1);
	if (end->meanwhile)
		end->meanwhile(end->arg);
	if (!err)
		err = warden_take_tally(w, end, ret_tally);
	/* With its tally sent, all is on the disk: it needs no time to end, and
	 * warden_close() takes its status later. */
	end->tallied = !err;
	if (!err)
		kill(w->ledger.pid, SIGKILL);
	else
		end_child(&w->ledger, WARDEN_CHILD_MS);
	if (err)
		end->receipt = false;
	if (settle_log(w, end)) {
		end->receipt = false;
		return err ? err : -EIO;
	}
	return err;
}

void warden_close(struct warden *w)
{
	drop_events(w);
	end_child(&w->gate, GATE_END_MS);
	end_child(&w->ledger, WARDEN_CHILD_MS);
	warden_close_forwards(w);
	close_fd(&w->record_sock);
	policy_unref(w->policy);
	w->policy = NULL;
	close_fd(&w->policy_fd);
	close_fd(&w->lease_fd);
	close_fd(&w->watch_fd);
}
