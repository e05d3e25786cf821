/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_flows.c - what the gate asks for: that addresses of names be let
 * through to it, or no longer.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/warden.h"
#include "cmd/warden_give.h"

/* Others have their turn between two rounds of what is to be closed. */
#define FLOWS_PAUSE_US 20000

/* The kernel has more or less than it should: what comes to the gate is judged
 * there all the same. */
static void check_flows(struct warden *w, int err)
{
	char text[128];

	if (!err)
		return;
	snprintf(text, sizeof(text),
		 "the kernel did not take what is let through now: %s",
		 strerror(-err));
	log_err("%s", text);
	warden_finding(w, text);
}

/* A gate that takes another policy asks for what that one allows, and until it
 * has it for what the old one does. Real addresses are the most. */
static const struct policy *asked_policy(const struct warden *w)
{
	return w->coming && policy_answers_real(w->coming) ? w->coming
							   : w->policy;
}

/* One by one only if there is something wrong with one of them. */
void warden_answer_asked(struct warden *w)
{
	const bool fresh = w->starts == 1;
	const size_t n = w->askeds;
	int err;

	if (!n)
		return;
	w->askeds = 0;
	err = gateway_publish(w->gateway, asked_policy(w), w->asked, n, fresh);
	for (size_t i = 0; i < n; i++) {
		struct msg_published answer = { .id = w->asked[i].id,
						.status = err };

		if (err && n > 1)
			answer.status =
				gateway_publish(w->gateway, asked_policy(w),
						&w->asked[i], 1, fresh);
		warden_tell_gate(w, MSG_GATE_PUBLISHED, &answer);
	}
}

static void publish(struct warden *w, const struct msg_publish *msg)
{
	const struct msg_published no = { .id = msg->id, .status = -EPERM };

	if (!w->gateway) {
		if (msg->id)
			warden_tell_gate(w, MSG_GATE_PUBLISHED, &no);
		return;
	}
	if (!msg->id) {
		warden_answer_asked(w);
		check_flows(w, gateway_publish_later(w->gateway,
						     asked_policy(w), msg));
		return;
	}
	w->asked[w->askeds++] = *msg;
	if (w->askeds == WARDEN_ASKED_MAX)
		warden_answer_asked(w);
}

void warden_flush_flows(struct warden *w)
{
	const struct timeval soon = { .tv_usec = FLOWS_PAUSE_US };
	int got;

	warden_answer_asked(w);
	got = w->gateway ? gateway_flush(w->gateway, w->policy) : 0;
	if (got > 0)
		evtimer_add(w->flows_event, &soon);
	else
		check_flows(w, got);
}

void warden_on_flows_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	warden_flush_flows(arg);
}

int warden_take_message(struct warden *w, struct msg *msg)
{
	close_fd(&msg->fd);
	switch (msg->type) {
	case MSG_GATE_PUBLISH:
		publish(w, &msg->publish);
		return 0;
	case MSG_GATE_WITHDRAW:
		warden_answer_asked(w);
		if (w->gateway)
			check_flows(w, gateway_withdraw_later(w->gateway,
							      &msg->publish));
		return 0;
	case MSG_GATE_WANT_DIALS:
		return warden_give_dials(w);
	default:
		return -EBADMSG;
	}
}
