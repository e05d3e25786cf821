/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_policy.c - another policy while flows go on, and rules that expire.
 *
 * A policy is built whole before anything is changed, and all sandboxes get it
 * between two events: nobody is ever judged by half of it. Then what goes on is
 * judged again. Those who still hold the old one (a question under way, a flow
 * whose end is being recorded) keep it alive until they are done.
 */
#include "cmd/gate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "dns/resolver.h"
#include "dns/server.h"
#include "policy/bundle.h"
#include "proxy/listener.h"

/* Somebody may set the clock: then a timer alone would come too late. */
#define CLOCK_CHECK_S 30
/* time(2) may lag behind the timers by a tick. */
#define TICK_US 20000

static void first(struct gate *gate, const struct msg_gate_policy *msg, int fd)
{
	struct policy_error error;
	AUTO_FD int file = fd;
	int err = -EBADMSG;

	if (!gate->policy)
		err = gate_build(file, msg->len, &gate->policy, &error);
	if (err)
		die(EXIT_SALLYPORT, "policy: %s",
		    err == -EINVAL ? error.text : strerror(-err));
}

static void recheck(struct gate *gate)
{
	for (size_t i = 0; i < gate->sandboxes; i++) {
		const struct sandbox *sandbox = &gate->sandbox[i]->pub;

		for (size_t j = 0; j < gate->listeners; j++)
			listener_recheck(gate->listener[j], sandbox);
		for (size_t j = 0; j < ARRAY_SIZE(gate->dns); j++)
			if (gate->dns[j].server)
				dns_server_recheck(gate->dns[j].server,
						   sandbox);
	}
}

static void swap(struct gate *gate, struct policy *policy)
{
	policy_unref(gate->policy);
	gate->policy = policy;
	for (size_t i = 0; i < gate->sandboxes; i++) {
		struct sandbox *sandbox = &gate->sandbox[i]->pub;

		policy_unref(sandbox->policy);
		sandbox->policy = policy_ref(policy);
	}
	resolver_flush(gate->resolver);
}

static void arm(struct gate *gate);

static int put_in_force(struct gate *gate, struct policy *policy)
{
	struct policy *old = policy_ref(gate->policy);
	int64_t now_s = time(NULL), since_s = gate->checked_s;
	struct msg_reloaded done = { 0 };
	int err;

	swap(gate, policy);
	gate->checked_s = now_s;
	recheck(gate);
	err = gate_publish_changes(gate, old, since_s, now_s);
	if (!err)
		err = gate_publish_uncovered(gate, old, now_s);
	if (!err)
		err = msg_send(gate->control, MSG_GATE_RELOADED, &done, -1);
	policy_unref(old);
	arm(gate);
	return err;
}

static int refuse(struct gate *gate, int err, const char *why)
{
	struct msg_reloaded refused = { .status = err };

	snprintf(refused.text, sizeof(refused.text), "%.500s",
		 *why ? why : strerror(-err));
	return msg_send(gate->control, MSG_GATE_RELOADED, &refused, -1);
}

static void on_built(struct gate *gate, int err, struct policy *policy,
		     const struct policy_error *error)
{
	err = err ? refuse(gate, err, error->text) : put_in_force(gate, policy);
	/* The end of the control socket is seen by who reads it. */
	if (err && err != -EPIPE && err != -ECONNRESET)
		die(EXIT_SALLYPORT, "telling the warden: %s", strerror(-err));
}

static void replace(struct gate *gate, const struct msg_gate_policy *msg,
		    int fd)
{
	static const struct policy_error none;
	int err;

	/* The warden waits for an answer before it gives another one. */
	if (gate->build)
		die(EXIT_SALLYPORT, "policy: %s", strerror(EBADMSG));
	err = fd < 0 ? -EMFILE : gate_build_start(gate, fd, msg->len, on_built);
	if (err)
		on_built(gate, err, NULL, &none);
}

void gate_policy_take(struct gate *gate, const struct msg_gate_policy *msg,
		      int fd)
{
	if (gate->serving)
		replace(gate, msg, fd);
	else
		first(gate, msg, fd);
}

/* --- expiry -------------------------------------------------------------- */

/* Does what @policy allows differ between the two times? */
static bool expires_between(const struct policy *policy, int64_t a, int64_t b)
{
	int64_t first = a < b ? a : b, last = a < b ? b : a;
	int64_t next = policy_next_expiry(policy, first);

	return next && next <= last;
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
	struct gate *gate = arg;
	int64_t now_s = time(NULL), since_s = gate->checked_s;
	int err = 0;

	(void)fd;
	(void)what;
	gate->checked_s = now_s;
	if (expires_between(gate->policy, since_s, now_s)) {
		recheck(gate);
		err = gate_publish_changes(gate, gate->policy, since_s, now_s);
	}
	if (err && err != -EPIPE && err != -ECONNRESET)
		die(EXIT_SALLYPORT, "telling the warden: %s", strerror(-err));
	arm(gate);
}

/* Also a rule that has expired may be valid again if the clock is set back, so
 * that the clock is looked at as long as there is any. */
static void arm(struct gate *gate)
{
	struct timeval after = { .tv_sec = CLOCK_CHECK_S };
	struct timespec now;
	int64_t next;

	event_del(gate->expiry);
	if (!policy_next_expiry(gate->policy, 0))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	next = policy_next_expiry(gate->policy, now.tv_sec);
	if (next && next - now.tv_sec <= CLOCK_CHECK_S) {
		int64_t us = (next - now.tv_sec) * 1000000 -
			     now.tv_nsec / 1000 + TICK_US;

		after.tv_sec = us / 1000000;
		after.tv_usec = us % 1000000;
	}
	evtimer_add(gate->expiry, &after);
}

int gate_policy_watch(struct gate *gate)
{
	gate->expiry = evtimer_new(gate->base, on_expiry, gate);
	if (!gate->expiry)
		return -ENOMEM;
	gate->checked_s = time(NULL);
	arm(gate);
	return gate_publish_changes(gate, NULL, 0, gate->checked_s);
}

void gate_policy_unwatch(struct gate *gate)
{
	gate_build_unwatch(gate);
	if (gate->expiry)
		event_free(gate->expiry);
	gate->expiry = NULL;
}
