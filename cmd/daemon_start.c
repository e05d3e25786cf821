/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_start.c - keepers come and go.
 *
 *	queued	  until its namespace is there (daemon_make.c), and few enough
 *		  others are starting
 *	starting  its policy is put together (daemon_policy.c), its keeper gets
 *		  all it needs: READY, or it dies
 *	ready	  it serves until it is told to end, or dies
 *
 * A keeper that dies takes the link of its sandbox with it. The next one gets
 * the same namespace, the same leases, the same policy; three deaths within a
 * minute are enough.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/daemon_metrics.h"
#include "cmd/turn.h"
#include "launch/pin.h"

/* Starting ones are work for all processors; others have sandboxes that
 * serve. */
#define STARTING_MAX 4
#define START_S	     30
/* A boundary is looked at every 2 s; all of them 10 times a second. */
#define LOOK_S	  2
#define LOOKS_A_S 10

void daemon_kick(struct daemon *daemon)
{
	event_active(daemon->kick, EV_TIMEOUT, 0);
}

/* --- starting ------------------------------------------------------------ */

uint32_t daemon_look_s(const struct daemon *daemon)
{
	size_t s = (daemon->count + LOOKS_A_S - 1) / LOOKS_A_S;

	return s < LOOK_S ? LOOK_S : (uint32_t)s;
}

static void describe(const struct box *box, bool own,
		     struct msg_keep_start *start)
{
	const struct daemon_spec *spec = &box->sandbox.spec;

	*start = (struct msg_keep_start){
		.link = own ? KEEP_LINK_OWN : KEEP_LINK_JOIN,
		.ip = spec->ip,
		.gateway = spec->gateway,
		.bits = spec->bits,
		.look_s = daemon_look_s(box->daemon),
		.tables = spec->docker,
		.quiet = true,
		.summary = spec->holder != 0,
		.reader = spec->docker ? 0 : spec->uid,
	};
	snprintf(start->name, sizeof(start->name), "%s", spec->name);
	snprintf(start->boundary, sizeof(start->boundary), "%s",
		 spec->docker ? "docker" : "netns");
	snprintf(start->command, sizeof(start->command), "%s",
		 *spec->command ? spec->command : spec->name);
	snprintf(start->policy_text, sizeof(start->policy_text), "%s",
		 spec->policy_text);
	snprintf(start->ifname, sizeof(start->ifname), "%s", spec->ifname);
}

/* @own, and @ns -1: it has that already. */
static int tell_all(struct box *box, bool own, int ns)
{
	const struct box_policy *policy = &box->policy;
	struct msg_keep_start start;
	int err;

	describe(box, own, &start);
	if ((err = keeper_tell(box->keeper, MSG_KEEP_START, &start,
			       policy->fd)) ||
	    (err = keeper_tell(box->keeper, MSG_KEEP_LEASES, NULL,
			       policy->leases)))
		return err;
	if (ns >= 0)
		err = keeper_tell(box->keeper, MSG_KEEP_NETNS, NULL, ns);
	return err ? err : keeper_tell(box->keeper, MSG_KEEP_GO, NULL, -1);
}

/* .ns stays ours, for the next one. Its death says the rest. */
static int begin_spare(struct box *box)
{
	box->spare = SPARE_TOLD;
	if (tell_all(box, true, -1))
		keeper_kill(box->keeper);
	return 0;
}

static int begin(struct box *box)
{
	const struct daemon_sandbox *s = &box->sandbox;
	/* One that the engine has not moved yet has none. */
	const bool own = s->spec.link == KEEP_LINK_OWN || *s->netns;
	AUTO_FD int made = steal_fd(&box->ns);
	AUTO_FD int ns = own && made < 0 ? pin_open(s->netns) : steal_fd(&made);
	int err;

	if (own && ns < 0)
		return ns;
	err = keeper_start(box->daemon->base, s->spec.name, &box_keeper_calls,
			   box, &box->keeper);
	if (err)
		return err;
	/* Its death says the rest. */
	if (tell_all(box, own, ns))
		keeper_kill(box->keeper);
	return 0;
}

static void stop_starting(struct box *box)
{
	if (!box->starting)
		return;
	box->starting = false;
	box->daemon->starting--;
	event_del(box->limit);
	daemon_kick(box->daemon);
}

void box_start_failed(struct box *box, int err, const char *why)
{
	struct daemon_sandbox *s = &box->sandbox;

	stop_starting(box);
	box->queued = false;
	box->err = err;
	/* A spare one, which was told nothing. */
	keeper_kill(box->keeper);
	if (*why)
		snprintf(s->why, sizeof(s->why), "%s", why);
	else
		snprintf(s->why, sizeof(s->why), "it can't be started: %s",
			 strerror(-err));
	log_err("%s: %s", s->spec.name, s->why);
	s->state = SANDBOX_FAILED;
	if (!box->served)
		box->removing = true;
	daemon_kick(box->daemon);
}

void box_prepared(struct box *box, int err, const char *why)
{
	const struct timeval limit = { .tv_sec = START_S };

	if (box->removing || box->daemon->stopping) {
		stop_starting(box);
		daemon_kick(box->daemon);
		return;
	}
	if (!err && !box->starting) { /* it is new: now it is in the queue */
		box_queue(box);
		daemon_kick(box->daemon);
		return;
	}
	if (!err)
		err = box->spare ? begin_spare(box) : begin(box);
	box_drop_policy(&box->policy);
	if (err)
		box_start_failed(box, err, why);
	else
		event_add(box->limit, &limit);
}

/* It has one of the few places. */
static void start(struct box *box)
{
	int err = 0;

	box->queued = false;
	box->starting = true;
	if (box->turn > box->daemon->turn)
		box->daemon->turn = box->turn;
	box->daemon->starting++;
	if (box->generation != box->daemon->generation)
		box_drop_policy(&box->policy);
	if (box->policy.fd < 0)
		err = box_prepare(box);
	else
		box_prepared(box, 0, "");
	if (err)
		box_start_failed(box, err, "");
}

/* Nobody is behind all of somebody else's. */
static struct box *next_box(const struct daemon *daemon)
{
	struct turn_choice choice = turn_choice();
	struct box *ret = NULL;

	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (box_of(s)->starting)
			turn_busy(&choice, s->spec.uid);
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (box_of(s)->queued && !box_of(s)->removing &&
		    !box_lacks_namespace(box_of(s)) &&
		    turn_is_next(&choice, s->spec.uid, box_of(s)->turn))
			ret = box_of(s);
	return ret;
}

void daemon_on_kick(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct daemon_sandbox *s, *next;
	struct box *box;

	(void)fd;
	(void)what;
	if (!daemon->stopping)
		daemon_make_namespaces(daemon);
	while (daemon->starting < STARTING_MAX && !daemon->stopping &&
	       (box = next_box(daemon)))
		start(box);
	for (s = daemon->first; s; s = next) {
		next = s->next;
		if (box_is_over(box_of(s)))
			box_finish(box_of(s));
	}
	daemon_stop_if_over(daemon);
}

/* --- what keepers say ---------------------------------------------------- */

/* What it had let in is let in again. */
static void forward_again(struct box *box)
{
	struct daemon_sandbox *s = &box->sandbox;
	size_t n = s->publishes;

	s->publishes = 0;
	for (size_t i = 0; i < n; i++) {
		const struct daemon_publish publish = s->publish[i];
		int fd =
			sock_listen_tcp(&publish.at.ip, publish.at.port, false);

		if (fd < 0 || daemon_forward(box->daemon, s, fd, &publish.at,
					     publish.inside, NULL, NULL))
			log_warn("%s: port %u is published no longer: %s",
				 s->spec.name, publish.at.port,
				 fd < 0 ? strerror(-fd) : "no answer");
	}
}

static void take_ready(struct box *box, const struct msg *msg)
{
	struct daemon_sandbox *s = &box->sandbox;
	daemon_done_fn *created = box->created;

	if (!box->starting || box->removing)
		return;
	stop_starting(box);
	box->spare = SPARE_NONE;
	close_fd(&box->ns);
	s->state = SANDBOX_READY;
	s->facts = msg->keep_ready;
	*s->why = '\0';
	box->served = true;
	box->created = NULL;
	if (!created)
		log_warn("%s: serves again", s->spec.name);
	/* The operator's word may have changed since it was put together. */
	if (box->generation != box->daemon->generation)
		box_reload(box);
	forward_again(box);
	if (created) {
		daemon_want_spares(box->daemon, box);
		created(box->created_arg, s, 0, "");
	}
}

static void answer(struct box *box, struct waiter *waiter, int err,
		   const char *why)
{
	if (waiter->done)
		waiter->done(waiter->arg, &box->sandbox, err, why);
	free(waiter);
}

/* What was agreed to is kept, and then told. */
static void settle(struct box *box, struct waiter *waiter)
{
	struct daemon_sandbox *s = &box->sandbox;

	if (waiter->type == MSG_KEEP_POLICY) {
		memcpy(s->spec.policy_text, waiter->text,
		       sizeof(s->spec.policy_text));
		memcpy(s->spec.policy_name, waiter->name,
		       sizeof(s->spec.policy_name));
		memcpy(s->facts.policy_digest, waiter->digest, DIGEST_HEX);
		box->bytes = waiter->bytes;
	} else if (waiter->type == MSG_KEEP_FORWARD &&
		   s->publishes < DAEMON_PUBLISH_MAX) {
		s->publish[s->publishes++] = waiter->publish;
	}
	box_keep(box, waiter);
}

static void take_done(struct box *box, const struct msg_keep_done *done)
{
	struct waiter *waiter = box->waiters;
	bool policy;

	if (!waiter) {
		keeper_kill(box->keeper);
		return;
	}
	box->waiters = waiter->next;
	if (!box->waiters)
		box->last = &box->waiters;
	policy = waiter->type == MSG_KEEP_POLICY;
	/* Of a command there is nothing to keep. */
	if (done->status == 0 && waiter->type != MSG_KEEP_EXEC &&
	    waiter->type != MSG_KEEP_ATTACKS)
		settle(box, waiter);
	else
		answer(box, waiter, done->status, done->text);
	if (policy)
		box_reload_late(box);
}

static void on_message(void *arg, const struct msg *msg)
{
	struct box *box = arg;

	/* It does not know yet what it is. */
	if (box->spare == SPARE_WAITS) {
		keeper_kill(box->keeper);
		return;
	}
	switch (msg->type) {
	case MSG_KEEP_READY:
		take_ready(box, msg);
		return;
	case MSG_KEEP_DONE:
		take_done(box, &msg->keep_done);
		return;
	case MSG_KEEP_COUNTS:
		box->sandbox.counts = msg->keep_counts;
		return;
	case MSG_KEEP_SUMMARY:
		close_fd(&box->sandbox.summary);
		box->sandbox.summary = fcntl(msg->fd, F_DUPFD_CLOEXEC, 0);
		return;
	case MSG_KEEP_PREPARED:
		keeper_kill(box->keeper);
		return;
	case MSG_KEEP_FAILED:
		memcpy(box->sandbox.why, msg->keep_failed.text,
		       sizeof(box->sandbox.why));
		return;
	default:
		box->sandbox.ended = msg->keep_ended;
	}
}

/* Three in a minute: it dies as fast as it is started. */
static bool dies_too_often(struct box *box)
{
	time_t now = time(NULL);

	memmove(box->crash, box->crash + 1,
		sizeof(box->crash) - sizeof(box->crash[0]));
	box->crash[DAEMON_CRASHES_MAX - 1] = now;
	return box->crash[0] && now - box->crash[0] < 60;
}

/* It reaches nothing, and its keeper did not die because we said so. */
static void lost(struct box *box)
{
	struct daemon_sandbox *s = &box->sandbox;

	if (!box->served) {
		s->state = SANDBOX_FAILED;
		box->removing = true;
		return;
	}
	if (dies_too_often(box)) {
		s->state = SANDBOX_FAILED;
		log_err("%s: its keeper died %d times in a minute; it reaches "
			"nothing: %s",
			s->spec.name, DAEMON_CRASHES_MAX, s->why);
		return;
	}
	log_err("%s: its keeper died, it reaches nothing until there is "
		"another one: %s",
		s->spec.name, s->why);
	s->state = SANDBOX_STARTING;
	box_queue(box);
}

/* A spare one may have been dead by the time it was told: as if there had been
 * none. What is wrong with the sandbox the next one finds, too. */
static void start_anew(struct box *box)
{
	if (box->spare == SPARE_TOLD)
		box_queue(box);
	box->spare = SPARE_NONE;
	*box->sandbox.why = '\0';
	stop_starting(box);
	daemon_kick(box->daemon);
}

static void on_died(void *arg, const char *last)
{
	struct box *box = arg;

	box->keeper = NULL;
	if (box->spare && !box->removing && !box->daemon->stopping) {
		start_anew(box);
		return;
	}
	daemon_metrics_departed(&box->sandbox.counts);
	box->sandbox.counts = (struct msg_keep_counts){ 0 };
	stop_starting(box);
	event_del(box->limit);
	/* What it said of its own end is better than its last line. */
	if (!*box->sandbox.why)
		snprintf(box->sandbox.why, sizeof(box->sandbox.why), "%s",
			 last);
	box_drop_waiters(box, -ECHILD, box->sandbox.why);
	if (!box->removing && !box->daemon->stopping)
		lost(box);
	daemon_kick(box->daemon);
}

const struct keeper_calls box_keeper_calls = { .message = on_message,
					       .died = on_died };
