/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper.c - one sandbox of a daemon: the warden of its session, in a process
 * of its own, so that sandboxes share nothing.
 *
 *	prepare	a spare one only: what needs no name (cmd/keeper_spare.c)
 *	receive	what the sandbox is, from the daemon
 *	open	the policy, the file of leases, the log
 *	build	gate and ledger start; gateway, rules, link; rules read back
 *	serve	until the daemon says that it is over, or is gone
 *	close	the last records, the receipt; the link goes
 *
 * Without a daemon it does not live: the end of its socket is its end, an
 * orderly one, but in bounded time. What has to outlive it is the daemon's: the
 * sandbox's namespace, and the file of leases.
 */
#include "cmd/keeper.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "audit/tally.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/command.h"
#include "launch/child.h"

/* So long the end may take; and how long we wait for a daemon that does not
 * read what we say. */
#define END_S  10
#define SEND_S 2

/* --- receiving ----------------------------------------------------------- */

static void take_start(struct keeper *k, const struct msg *msg)
{
	int err = keeper_bundle(msg->fd, &k->options.bundle);

	if (err)
		die(EXIT_SALLYPORT, "the policy: %s", strerror(-err));
	k->start = msg->keep_start;
	if (!*k->start.name)
		die(EXIT_SALLYPORT, "a sandbox without a name");
	if (k->prepared && !keeper_fits(k))
		die(EXIT_SALLYPORT, "a sandbox that was not prepared");
}

static void take_spare(struct keeper *k, struct msg *msg)
{
	k->netns = steal_fd(&msg->fd);
	keeper_prepare(k);
}

/* False at GO. */
static bool take(struct keeper *k, struct msg *msg)
{
	const bool started = *k->start.name;

	if (msg->type == MSG_KEEP_PREPARE && !started && !k->prepared)
		take_spare(k, msg);
	else if (msg->type == MSG_KEEP_START && !started)
		take_start(k, msg);
	else if (msg->type == MSG_KEEP_LEASES && started && k->leases < 0)
		k->leases = steal_fd(&msg->fd);
	else if (msg->type == MSG_KEEP_NETNS && started && k->netns < 0)
		k->netns = steal_fd(&msg->fd);
	else if (msg->type == MSG_KEEP_GO && k->leases >= 0)
		return false;
	else
		die(EXIT_SALLYPORT, "the daemon's messages are out of order");
	close_fd(&msg->fd);
	return true;
}

static void receive(struct keeper *k)
{
	struct msg msg;
	int got;

	do {
		if (k->prepared)
			keeper_wait(k);
		got = msg_recv(CHILD_SOCKET, &msg, 0);
		/* It was not needed. */
		if (got == 0 && k->prepared && !*k->start.name)
			exit(0);
		if (got <= 0)
			die(EXIT_SALLYPORT, "the daemon: %s",
			    got ? strerror(-got) : "it is gone");
	} while (take(k, &msg));
	if (k->netns < 0 && k->start.link == KEEP_LINK_OWN)
		die(EXIT_SALLYPORT, "a sandbox without a namespace");
}

/* --- opening ------------------------------------------------------------- */

static void open_session(struct keeper *k)
{
	const struct msg_keep_start *start = &k->start;
	struct options *o = &k->options;

	/* First of all: an earlier keeper may still have the log, too. */
	k->warden.lease_file = keeper_leases(k->leases);
	if (k->warden.lease_file < 0)
		die(EXIT_SALLYPORT, "the sandbox's file: %s",
		    strerror(-k->warden.lease_file));
	close_fd(&k->leases);
	o->name = start->name;
	o->log_dir = *start->log_dir ? start->log_dir : NULL;
	o->key = *start->key ? start->key : NULL;
	o->quiet = start->quiet;
	o->log_reader = start->reader;
	o->policy.allows = true; /* nobody is to be told about --allow */
	session_open(o, &k->session);
	if (*start->policy_text)
		snprintf(k->session.policy_text, sizeof(k->session.policy_text),
			 "%s", start->policy_text);
}

/* --- building ------------------------------------------------------------ */

static void on_failed(void *arg, const char *why)
{
	struct msg_keep_failed failed = { 0 };
	struct keeper *k = arg;

	/* The first word counts. */
	if (k->why)
		return;
	snprintf(failed.text, sizeof(failed.text), "%s", why);
	keeper_end(k, ENDED_FAILED, EXIT_SALLYPORT, "it failed");
	keeper_say(k, MSG_KEEP_FAILED, &failed);
}

static void start_children(struct keeper *k)
{
	struct warden *w = &k->warden;
	int err;

	w->root = true;
	w->bundle = &k->options.bundle;
	w->policy = k->session.policy;
	w->boundary = k->start.boundary;
	w->session = &k->session;
	w->command = *k->start.command ? k->start.command : NULL;
	w->look_s = k->start.look_s;
	w->sums = keeper_on_sums;
	w->failed = on_failed;
	w->arg = k;
	err = warden_start(w);
	if (err)
		die(EXIT_SALLYPORT, "starting gate and ledger: %s",
		    strerror(-err));
	bundle_free(&k->options.bundle);
	w->bundle = NULL;
}

static void build_gateway(struct keeper *k)
{
	struct gateway_place place = { .sandbox = k->netns,
				       .join = k->netns < 0,
				       .tables = k->start.tables,
				       .ip = k->start.ip,
				       .gateway = k->start.gateway,
				       .bits = k->start.bits };
	char why[512];

	memcpy(place.ifname, k->start.ifname, sizeof(place.ifname));
	if ((!k->prepared &&
	     gateway_begin(&k->gateway, &place, why, sizeof(why))) ||
	    gateway_open(k->session.policy, &k->gateway, why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	k->warden.gateway = &k->gateway;
	memcpy(k->warden.socket, k->gateway.socket, sizeof(k->warden.socket));
}

static void await_children(struct keeper *k)
{
	int err = warden_ready(&k->warden);

	if (err)
		die(EXIT_SALLYPORT, "gate and ledger: %s", strerror(-err));
}

static void record_open(struct keeper *k)
{
	char detail[1200];
	struct audit_event event = { .kind = EVENT_SESSION_OPEN,
				     .sandbox = WARDEN_SANDBOX_ID,
				     .verdict = { .allow = true },
				     .src_ip = k->gateway.link.ip,
				     .detail = detail };

	snprintf(detail, sizeof(detail),
		 "%s%s%sruleset sha256:%s; separation uid; policy %s",
		 *k->start.command ? "command " : "", k->start.command,
		 *k->start.command ? "; " : "", k->gateway.digest,
		 k->session.policy_text);
	if (warden_record(&k->warden, &event))
		die(EXIT_SALLYPORT, "the ledger does not take records");
	if (k->gateway.others)
		warden_finding(&k->warden,
			       "the sandbox's namespace has interfaces that "
			       "are not ours");
	k->started_ms = clock_ms(CLOCK_MONOTONIC);
}

/* --- serving ------------------------------------------------------------- */

static void say_ready(struct keeper *k)
{
	struct msg_keep_ready ready = { 0 };
	const size_t len = strlen(k->session.dir);

	snprintf(ready.session, sizeof(ready.session), "%s", k->session.id);
	if (len < sizeof(ready.log_dir))
		memcpy(ready.log_dir, k->session.dir, len + 1);
	snprintf(ready.policy_digest, sizeof(ready.policy_digest), "%s",
		 policy_digest(k->session.policy));
	snprintf(ready.ruleset_digest, sizeof(ready.ruleset_digest), "%s",
		 k->gateway.digest);
	keeper_say(k, MSG_KEEP_READY, &ready);
}

void keeper_end(struct keeper *k, enum ended_by ended, int status,
		const char *why)
{
	if (k->why)
		return;
	k->why = why;
	k->ended = ended;
	k->status = status;
	event_base_loopbreak(k->base);
}

static void attach(struct keeper *k)
{
	k->base = event_base_new();
	if (!k->base || warden_attach(&k->warden, k->base))
		die(EXIT_SALLYPORT, "event loop: out of memory");
	k->daemon = event_new(k->base, CHILD_SOCKET, EV_READ | EV_PERSIST,
			      keeper_on_daemon, k);
	if (!k->daemon || event_add(k->daemon, NULL))
		die(EXIT_SALLYPORT, "event loop: out of memory");
}

/* --- closing ------------------------------------------------------------- */

/* Whoever comes after us waits for our lock. */
static void on_end_over(int signal)
{
	(void)signal;
	_exit(EXIT_SALLYPORT);
}

/* First of all. A daemon that is gone leaves as many of us as it had sandboxes:
 * what the others' gates have to do goes before what we have left. */
static void close_way_out(struct keeper *k)
{
	warden_shut(&k->warden, k->gone);
}

static struct msg_keep_ended finish(struct keeper *k)
{
	static struct tally tally;
	struct warden_end end = { .ended = k->ended, .status = k->status };
	char detail[128];
	struct audit_event event = { .kind = EVENT_SESSION_CLOSE,
				     .sandbox = WARDEN_SANDBOX_ID,
				     .verdict = { .allow = true },
				     .duration_ms = clock_ms(CLOCK_MONOTONIC) -
						    k->started_ms,
				     .detail = detail };
	int err;

	snprintf(detail, sizeof(detail), "exit status %d (%s)", k->status,
		 k->why);
	err = warden_finish(&k->warden, &event, &end, &tally);
	if (err)
		log_err("the log may be incomplete: %s: %s", k->session.log,
			strerror(-err));
	if (k->start.summary)
		keeper_say_summary(k, end.tallied ? &tally : NULL, &end);
	return (struct msg_keep_ended){ .held = (uint8_t)end.held,
					.receipt = end.receipt,
					.whole = !err && end.tallied };
}

static void release(struct keeper *k)
{
	event_free(k->daemon);
	warden_close(&k->warden);
	k->gateway.passes = k->start.summary && k->ended == ENDED_EXIT;
	gateway_close(&k->gateway);
	event_base_free(k->base);
	session_close(&k->session);
	close_fd(&k->netns);
}

/* Signals are for the daemon, which tells us; nor do we die with it at once. */
static void settle_signals(void)
{
	const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	const struct timeval limit = { .tv_sec = SEND_S };

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGALRM, on_end_over);
	if (prctl(PR_SET_PDEATHSIG, 0) < 0 ||
	    setsockopt(CHILD_SOCKET, SOL_SOCKET, SO_SNDTIMEO, &limit,
		       sizeof(limit)) < 0)
		die(EXIT_SALLYPORT, "a keeper is started by a daemon: %s",
		    strerror(errno));
}

int keeper_main(int argc, char **argv)
{
	static struct keeper k = { .leases = -1, .netns = -1 };
	struct msg_keep_ended ended;

	(void)argc;
	(void)argv;
	log_init("sallyport", LOG_LEVEL_WARN);
	settle_signals();
	receive(&k);
	open_session(&k);
	start_children(&k);
	build_gateway(&k);
	await_children(&k);
	record_open(&k);
	attach(&k);
	say_ready(&k);
	if (!k.why)
		event_base_dispatch(k.base);
	keeper_end(&k, ENDED_FAILED, EXIT_SALLYPORT, "its loop ended");
	alarm(END_S);
	close_way_out(&k);
	boundary_end(&k.warden);
	ended = finish(&k);
	release(&k);
	keeper_say(&k, MSG_KEEP_ENDED, &ended);
	return k.ended == ENDED_FAILED ? EXIT_SALLYPORT : 0;
}
