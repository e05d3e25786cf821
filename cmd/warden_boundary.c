/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_boundary.c - what happens when somebody touches the boundary.
 *
 *	rules	  the gate is killed, at once: whatever the rules are now,
 *		  nothing leaves. Then a finding says who it was, the rules are
 *		  put back and read back, a record says so, and another gate
 *		  starts.
 *	links	  the gate is killed, and so is the session: a second way out
 *		  (or one that is gone) is nothing we could take away from whom
 *		  we do not know. But where tables keep the sandbox in, what
 *		  changes on its side is a finding, and the session goes on.
 *
 * Both are told by the kernel, and looked for now and then all the same: a
 * table that goes with its owner goes without a word, and so does forwarding
 * where it is switched on by a way we did not think of.
 */
#include "cmd/warden_boundary.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/warden.h"
#include "cmd/warden_give.h"
#include "firewall/watch.h"

#define LOOK_S	   2
#define TOLD_MS	   1000
#define DIFFER_MAX 480

/* --- what is told -------------------------------------------------------- */

static void record_by(struct warden *w, enum event_kind kind,
		      const struct watch_change *by, const char *text)
{
	const struct audit_event event = {
		.kind = kind,
		.sandbox = WARDEN_SANDBOX_ID,
		.verdict = { .allow = kind == EVENT_RULESET },
		.pid = by ? by->pid : 0,
		.process = by && *by->process ? by->process : NULL,
		.detail = text,
	};

	warden_record(w, &event);
}

/* "nft (pid 123 as the kernel counts)": of the first pid namespace, not of ours
 * or of theirs. */
static const char *who(const struct watch_change *by, char *buf, size_t cap)
{
	if (!by)
		snprintf(buf, cap, "somebody, unseen");
	else if (by->lost)
		snprintf(buf, cap, "somebody, faster than could be watched");
	else
		snprintf(buf, cap, "%s (pid %u as the kernel counts)",
			 *by->process ? by->process : "a process", by->pid);
	return buf;
}

/* No gate serves any more, and none will. */
static void broken(struct warden *w, const char *text)
{
	w->watched.held = BOUNDARY_BROKEN;
	warden_stop_gate(w);
	boundary_detach(w);
	warden_failed(w, text);
}

/* --- rules --------------------------------------------------------------- */

static void find_change(struct warden *w, const struct watch_change *by,
			const char *differs)
{
	char text[DIFFER_MAX + 200], name[128];

	snprintf(text, sizeof(text),
		 "the kernel's rules were changed by %s: %s",
		 who(by, name, sizeof(name)), differs);
	log_err("%s", text);
	record_by(w, EVENT_FINDING, by, text);
}

/* The kernel tells of a commit after it can be seen, later still where the
 * machine is busy. There is no gate meanwhile: nobody is kept waiting. */
static bool more_changes(const struct warden *w)
{
	struct pollfd ready = { .fd = w->gateway->rules_watch,
				.events = POLLIN };

	return poll(&ready, 1, TOLD_MS) > 0;
}

static void put_back(struct warden *w, const struct watch_change *by)
{
	struct boundary *b = &w->watched;
	char differs[DIFFER_MAX] = "", text[DIFFER_MAX + 100];

	if (b->changes > BOUNDARY_RESTORES_MAX) {
		broken(w,
		       "the kernel's rules were changed more often than they "
		       "are put back");
		return;
	}
	if (gateway_restore(w->gateway, w->policy, &b->repaired, differs,
			    sizeof(differs))) {
		/* Changed again while we were at it: that comes next, and still
		 * there is no gate. */
		if (more_changes(w))
			return;
		snprintf(text, sizeof(text),
			 "the kernel's rules could not be put back: %s",
			 differs);
		broken(w, text);
		return;
	}
	b->held = BOUNDARY_RESTORED;
	snprintf(text, sizeof(text),
		 "the kernel's rules were put back: ruleset sha256:%s",
		 w->gateway->digest);
	record_by(w, EVENT_RULESET, by, text);
	log_warn("the kernel's rules were put back; starting the gate again");
	warden_start_gate(w);
}

/* @differs: what a look has found, or NULL: there was no look. */
static void rules_changed(struct warden *w, const struct watch_change *by,
			  const char *differs)
{
	char found[DIFFER_MAX] = "";

	/* Before anything else. */
	warden_stop_gate(w);
	w->watched.changes++;
	if (!differs && gateway_verify(w->gateway, found, sizeof(found)) == 0)
		snprintf(found, sizeof(found),
			 "in what is let through, or it was taken back");
	find_change(w, by, differs ? differs : found);
	put_back(w, by);
}

/* One that came before the rules were put back, and needs nothing more. */
static bool is_repaired(const struct boundary *b,
			const struct watch_change *change)
{
	return b->held == BOUNDARY_RESTORED && !change->lost &&
	       !watch_later(change->generation, b->repaired);
}

/* In a namespace that others use too, their own tables are their own. */
static bool is_elsewhere(struct warden *w)
{
	char differs[DIFFER_MAX];

	return w->gateway->guard &&
	       gateway_verify(w->gateway, differs, sizeof(differs)) == 0;
}

/* @restore: what differs is put back. False if nobody did anything. */
static bool take_changes(struct warden *w, bool restore)
{
	struct watch_change change;
	bool any = false;
	int got = 0;

	while (w->watched.held != BOUNDARY_BROKEN &&
	       (got = watch_read(w->gateway->rules_watch, &change)) > 0) {
		const bool repaired = is_repaired(&w->watched, &change);

		if (is_elsewhere(w))
			continue;
		any |= !repaired;
		if (repaired)
			find_change(w, &change, "that was put back already");
		else if (restore)
			rules_changed(w, &change, NULL);
		else
			find_change(w, &change, "at the session's end");
	}
	if (got < 0)
		broken(w, "the watch over the kernel's rules failed");
	return any;
}

static void on_rules(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	take_changes(arg, true);
}

int boundary_fd(const struct warden *w)
{
	return w->watched.rules ? w->gateway->rules_watch : -1;
}

/* The last look is after the last news: what comes later is news again. */
bool boundary_idle(struct warden *w)
{
	struct watch_change change;
	int got;

	if (!w->watched.rules || !is_elsewhere(w))
		return false;
	while ((got = watch_read(w->gateway->rules_watch, &change)) > 0)
		;
	return got == 0 && is_elsewhere(w);
}

bool boundary_look(struct warden *w)
{
	return w->watched.rules && take_changes(w, true);
}

/* --- links --------------------------------------------------------------- */

static void tell_links(struct warden *w)
{
	struct boundary *b = &w->watched;
	char text[sizeof(b->last) + 100];

	snprintf(text, sizeof(text), "links were changed: in %s%s", b->last,
		 b->untold > 1 ? "; and others before that" : "");
	b->untold = 0;
	b->told_ms = now_ms();
	log_warn("%s", text);
	warden_finding(w, text);
}

/* Who may change them may do so without end. */
static void links_changed(struct warden *w, const char *differs)
{
	struct boundary *b = &w->watched;

	snprintf(b->last, sizeof(b->last), "%s", differs);
	b->links++;
	b->untold++;
	if (!b->told_ms || now_ms() - b->told_ms >= BOUNDARY_TELL_MS)
		tell_links(w);
}

/* Who has no memory for a look does not know that anything was changed: the
 * next one will tell. The session does not go on for long like that. */
static bool missed(struct warden *w, int err)
{
	return err == -ENOMEM && ++w->watched.missed <= BOUNDARY_MISSED_MAX;
}

static void look_at_links(struct warden *w)
{
	char differs[DIFFER_MAX] = "", text[DIFFER_MAX + 100];
	int got = gateway_verify_links(w->gateway, differs, sizeof(differs));

	if (got > 0)
		links_changed(w, differs);
	if (got >= 0 || missed(w, got))
		return;
	snprintf(text, sizeof(text), "the boundary was changed: in %s",
		 differs);
	broken(w, text);
}

/* The tables in the sandbox's namespace: who is root there may be able to take
 * them away. */
static void look_at_lock(struct warden *w)
{
	char differs[DIFFER_MAX] = "", text[DIFFER_MAX + 100];
	int got = gateway_verify_lock(w->gateway, differs, sizeof(differs));

	if (!got)
		return;
	snprintf(text, sizeof(text), "the sandbox's tables %s: %s",
		 got > 0 ? "were put back" : "could not be put back", differs);
	if (got < 0) {
		broken(w, text);
		return;
	}
	w->watched.changes++;
	w->watched.held = BOUNDARY_RESTORED;
	log_err("%s", text);
	warden_finding(w, text);
}

/* Looks only where there is news. What was there for a moment may have let
 * something out meanwhile. */
static void take_links(struct warden *w, int fd)
{
	char did[DIFFER_MAX] = "", text[DIFFER_MAX + 100];
	int got = gateway_link_news(w->gateway, fd, did, sizeof(did));

	if (got < 0 && got != -EBADMSG)
		broken(w, "the watch over the links failed");
	if (got == 2)
		links_changed(w, did);
	if (got > 0 || got == -EBADMSG)
		look_at_links(w);
	if (got != -EBADMSG || w->watched.held == BOUNDARY_BROKEN)
		return;
	snprintf(text, sizeof(text), "the boundary was changed: in %s", did);
	broken(w, text);
}

static void on_links(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	take_links(arg, fd);
}

/* --- now and then -------------------------------------------------------- */

static struct timeval look_period(const struct warden *w)
{
	return (struct timeval){ .tv_sec = w->look_s ? w->look_s : LOOK_S };
}

/* What is longer begins after the next look, so that none is put off. */
void boundary_look_every(struct warden *w, unsigned s)
{
	const bool sooner = s && s < w->look_s;
	struct timeval period;

	w->look_s = s;
	period = look_period(w);
	if (sooner && w->watched.time)
		event_add(w->watched.time, &period);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	char differs[DIFFER_MAX] = "";
	struct ruleset_counters total;
	struct warden *w = arg;
	const struct timeval period = look_period(w);
	const unsigned before = w->watched.missed;
	int err = 0;

	(void)fd;
	(void)what;
	event_add(w->watched.time, &period);
	/* Who did it is known to those that come by the watch. */
	take_changes(w, true);
	if (w->watched.held != BOUNDARY_BROKEN)
		look_at_links(w);
	if (w->watched.untold)
		tell_links(w);
	if (w->watched.held != BOUNDARY_BROKEN)
		look_at_lock(w);
	if (w->watched.held != BOUNDARY_BROKEN)
		err = gateway_verify(w->gateway, differs, sizeof(differs));
	if (err && !missed(w, err))
		rules_changed(w, NULL, differs);
	if (w->watched.missed == before)
		w->watched.missed = 0;
	/* So that little is lost with counters that somebody takes away. */
	if (w->watched.held != BOUNDARY_BROKEN)
		(void)gateway_counters(w->gateway, &total);
}

static struct event *add(struct warden *w, int fd, event_callback_fn fn,
			 const struct timeval *period)
{
	const short what = fd < 0 ? EV_PERSIST : EV_READ | EV_PERSIST;
	struct event *event = event_new(w->base, fd, what, fn, w);

	if (event && event_add(event, period)) {
		event_free(event);
		return NULL;
	}
	return event;
}

/* Where nobody is yet, there is no watch. */
static int watch_links(struct warden *w)
{
	struct boundary *b = &w->watched;

	for (size_t i = 0; i < GATEWAY_SIDES; i++) {
		if (b->link[i] || w->gateway->link_watch[i] < 0)
			continue;
		b->link[i] = add(w, w->gateway->link_watch[i], on_links, NULL);
		if (!b->link[i])
			return -ENOMEM;
	}
	return 0;
}

int boundary_attach(struct warden *w)
{
	const struct timeval period = look_period(w);
	struct boundary *b = &w->watched;

	if (!w->gateway)
		return 0;
	b->held = BOUNDARY_HELD;
	b->rules = add(w, w->gateway->rules_watch, on_rules, NULL);
	b->time = add(w, -1, on_time, &period);
	if (!b->rules || !b->time)
		return -ENOMEM;
	return watch_links(w);
}

int boundary_join(struct warden *w)
{
	return watch_links(w);
}

enum boundary_held warden_held(const struct warden *w)
{
	return w->gateway ? w->watched.held : BOUNDARY_UNKNOWN;
}

/* --- the end ------------------------------------------------------------- */

void boundary_end(struct warden *w)
{
	if (!w->watched.rules)
		return;
	if (take_changes(w, false))
		w->watched.held = BOUNDARY_BROKEN;
	for (size_t i = 0; i < GATEWAY_SIDES; i++)
		if (w->watched.link[i] && w->watched.held != BOUNDARY_BROKEN)
			take_links(w, w->gateway->link_watch[i]);
	if (w->watched.untold)
		tell_links(w);
	boundary_detach(w);
}

void boundary_detach(struct warden *w)
{
	struct boundary *b = &w->watched;
	struct event **const all[] = { &b->rules, &b->link[0], &b->link[1],
				       &b->time };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (*all[i])
			event_free(*all[i]);
		*all[i] = NULL;
	}
}
