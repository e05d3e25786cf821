/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_forward.c - ports of the sandbox that are published: where they
 * listen is ours to keep, for a gate that comes after, and what the gate
 * connects to the sandbox with is ours to make.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/warden.h"
#include "cmd/warden_give.h"

static int give(struct warden *w, const struct warden_forward *forward)
{
	const struct msg_keep_forward msg = { .at = forward->at,
					      .port = forward->port };

	return msg_send(w->gate.sock, MSG_GATE_FORWARD, &msg, forward->fd);
}

int warden_give_forwards(struct warden *w)
{
	int err = 0;

	for (size_t i = 0; !err && i < w->forwards; i++)
		err = give(w, &w->forward[i]);
	return err;
}

int warden_forward(struct warden *w, int listener, const struct endpoint *at,
		   uint16_t port)
{
	struct warden_forward *forward = &w->forward[w->forwards];
	AUTO_FD int fd = listener;
	int err;

	if (!w->gateway || !port)
		return -EINVAL;
	if (w->forwards == WARDEN_FORWARDS_MAX)
		return -ENOSPC;
	err = gateway_let_answers_in(w->gateway);
	if (err)
		return err;
	*forward = (struct warden_forward){ .fd = steal_fd(&fd),
					    .at = *at,
					    .port = port };
	w->forwards++;
	/* One that does not take it is dying: the next one gets it. */
	if (w->starts && w->gate.sock >= 0 && give(w, forward) &&
	    w->gate.pid > 0)
		kill(w->gate.pid, SIGKILL);
	return 0;
}

int warden_give_dials(struct warden *w)
{
	struct msg_dials done = { 0 };
	int fd[GATEWAY_DIALS];
	size_t n = 0;

	/* It has no use for any, and knows that. */
	if (!w->forwards)
		return -EBADMSG;
	done.status = gateway_dials(w->gateway, fd, &n);
	if (done.status) {
		log_warn("published ports: a socket to the sandbox: %s",
			 strerror(-done.status));
		n = 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (msg_send(w->gate.sock, MSG_GATE_DIAL, NULL, fd[i]) &&
		    w->gate.pid > 0)
			kill(w->gate.pid, SIGKILL);
		close_fd(&fd[i]);
	}
	warden_tell_gate(w, MSG_GATE_DIALS, &done);
	return 0;
}

void warden_close_forwards(struct warden *w)
{
	while (w->forwards)
		close_fd(&w->forward[--w->forwards].fd);
}
