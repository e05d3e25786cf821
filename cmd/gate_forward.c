/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_forward.c - published ports: listening sockets that the warden made, and
 * a small stock of sockets to connect to the sandbox with.
 *
 * A socket belongs to the namespace that it was made in, and we may make none
 * in the gateway's. So the warden does, a few at a time; whoever finds the
 * stock empty waits for the next few.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/gate.h"
#include "proxy/forward.h"

static int want_dials(struct gate *gate)
{
	struct gate_dials *dials = &gate->dials;
	int err;

	if (dials->wanted)
		return 0;
	err = msg_send(gate->control, MSG_GATE_WANT_DIALS, NULL, -1);
	dials->wanted = !err;
	return err;
}

static int take_dial(void *ctx, struct wait *wait)
{
	struct gate *gate = ctx;
	struct gate_dials *dials = &gate->dials;
	int err = 0;

	if (dials->n <= GATE_DIALS_LOW)
		err = want_dials(gate);
	if (dials->n)
		return dials->fd[--dials->n];
	if (err)
		return err;
	wait->seq = 1;
	TAILQ_INSERT_TAIL(&dials->waiting, wait, entry);
	return -EAGAIN;
}

static void take_dial_cancel(void *ctx, struct wait *wait)
{
	struct gate *gate = ctx;

	if (!wait->seq)
		return;
	wait->seq = 0;
	TAILQ_REMOVE(&gate->dials.waiting, wait, entry);
}

static void wake_one(struct gate_dials *dials, int status)
{
	struct wait *wait = TAILQ_FIRST(&dials->waiting);

	if (!wait)
		return;
	TAILQ_REMOVE(&dials->waiting, wait, entry);
	wait->seq = 0;
	wait->done(wait, status);
}

void gate_dial_take(struct gate *gate, int fd)
{
	struct gate_dials *dials = &gate->dials;

	dials->lost |= fd < 0;
	if (fd < 0)
		return;
	if (dials->n == GATE_DIALS_MAX) {
		close_fd(&fd);
		return;
	}
	dials->fd[dials->n++] = fd;
	wake_one(dials, 0);
}

/* Those who still wait are more than were made, or none were. */
void gate_dials_done(struct gate *gate, int status)
{
	struct gate_dials *dials = &gate->dials;

	dials->wanted = false;
	/* Who asks again at once gets no more than before. */
	if (dials->lost)
		status = -EMFILE;
	dials->lost = false;
	if (!status && !TAILQ_EMPTY(&dials->waiting))
		status = want_dials(gate);
	while (status && !TAILQ_EMPTY(&dials->waiting))
		wake_one(dials, status);
}

int gate_forward_take(struct gate *gate, const struct msg_keep_forward *msg,
		      int fd)
{
	struct forward_config config = { .base = gate->base,
					 .services = &gate->services,
					 .at = msg->at,
					 .port = msg->port,
					 .socket = take_dial,
					 .socket_cancel = take_dial_cancel,
					 .ctx = gate };
	int err;

	if (gate->forwards == GATE_FORWARDS_MAX || !gate->sandboxes ||
	    !gate->audit || gate->selves == ARRAY_SIZE(gate->self)) {
		close_fd(&fd);
		return -EBADMSG;
	}
	config.sandbox = &gate->sandbox[0]->pub;
	err = forward_new(&config, fd, &gate->forward[gate->forwards]);
	if (err)
		return err;
	gate->forwards++;
	gate->self[gate->selves++] = msg->at;
	return gate_forwards_serve(gate);
}

int gate_forwards_serve(struct gate *gate)
{
	return gate->serving && gate->forwards ? want_dials(gate) : 0;
}

void gate_forwards_end(struct gate *gate)
{
	for (size_t i = 0; i < gate->forwards; i++)
		forward_end(gate->forward[i]);
}

void gate_forwards_free(struct gate *gate)
{
	while (gate->forwards)
		forward_free(gate->forward[--gate->forwards]);
	while (gate->dials.n)
		close_fd(&gate->dials.fd[--gate->dials.n]);
}
