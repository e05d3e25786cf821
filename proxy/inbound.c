/* SPDX-License-Identifier: Apache-2.0
 *
 * inbound.c - one connection to a published port, see forward.h. No bytes are
 * looked at, in either direction: what a server says to who asks it is nobody's
 * to judge here.
 *
 * The tunnel's client is the one outside, so its bytes "up" are those that go
 * into the sandbox; in records up is out of the sandbox, as everywhere.
 *
 * #syscalls connect getsockopt close
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sock.h"
#include "proxy/fold.h"
#include "proxy/forward_impl.h"
#include "proxy/tunnel.h"
#include "proxy/watch.h"

#define OPENING_S 60
/* A port of ours may still be waiting for the end of an earlier connection. */
#define DIAL_TRIES 4

/* --- records ------------------------------------------------------------- */

static struct audit_event event_of(const struct inbound *in,
				   enum event_kind kind)
{
	const struct forward *f = in->forward;

	return (struct audit_event){
		.kind = kind,
		.sandbox = f->c.sandbox->id,
		.flow = in->flow,
		.verdict = { .allow = true, .reason = REASON_RULE },
		.door = DOOR_PUBLISHED,
		.rule = "--publish",
		.rule_text = f->text,
		.src_ip = in->src_ip,
		.src_port = in->src_port,
		.dst_ip = f->c.sandbox->ip,
		.dst_port = f->c.port,
		.protocol = "tcp",
		.duration_ms = kind == EVENT_FLOW_OPEN
				       ? 0
				       : (uint64_t)(now_ms() - in->start_ms),
	};
}

static void record(const struct inbound *in, const struct audit_event *event,
		   struct wait *wait)
{
	const struct services *services = in->forward->c.services;

	services->record(services->ctx, event, wait);
}

static void record_close(const struct inbound *in, uint64_t up, uint64_t down,
			 const char *how)
{
	struct audit_event event = event_of(in, EVENT_FLOW_CLOSE);

	event.bytes_up = up;
	event.bytes_down = down;
	event.detail = how;
	record(in, &event, NULL);
}

/* Too many at once, or this second. */
static void record_refusal(const struct inbound *in, enum reason reason)
{
	struct audit_event event = event_of(in, EVENT_FLOW_OPEN);

	event.verdict = (struct verdict){ .reason = reason };
	event.detail = "inbound";
	fold_record(in->forward->fold, &event);
}

/* --- one connection ------------------------------------------------------ */

static void inbound_free(struct inbound *in)
{
	const struct forward_config *c = &in->forward->c;

	switch (in->step) {
	case INBOUND_RECORD:
		c->services->record_cancel(c->services->ctx, &in->recorded);
		break;
	case INBOUND_SOCKET:
		c->socket_cancel(c->ctx, &in->socket);
		break;
	case INBOUND_DIAL:
	case INBOUND_RELAY:
		break;
	}
	if (in->progressing)
		c->services->record_cancel(c->services->ctx, &in->progress);
	wheel_cancel(&in->timer);
	watch_close(&in->dialled);
	close_fd(&in->server);
	if (in->client >= 0)
		sock_reset_on_close(in->client);
	close_fd(&in->client);
	LIST_REMOVE(in, entry);
	c->sandbox->connections--;
	free(in);
}

/* Nothing came of it, after its opening was recorded. */
static void fail(struct inbound *in, enum reason reason, const char *why)
{
	struct audit_event event = event_of(in, EVENT_FLOW_DIAL);

	event.verdict = (struct verdict){ .reason = reason };
	event.detail = why;
	record(in, &event, NULL);
	inbound_free(in);
}

static void on_progressed(struct wait *wait, int status)
{
	struct inbound *in = CONTAINER_OF(wait, struct inbound, progress);

	(void)status;
	in->progressing = false;
	if (!in->paused)
		return;
	in->paused = false;
	tunnel_resume(in->tunnel);
}

static bool on_progress(void *arg, uint64_t up, uint64_t down)
{
	struct inbound *in = arg;
	struct audit_event event = event_of(in, EVENT_FLOW_PROGRESS);

	if (in->progressing) {
		in->paused = true;
		return false;
	}
	event.bytes_up = down;
	event.bytes_down = up;
	in->progressing = true;
	in->progress.done = on_progressed;
	record(in, &event, &in->progress);
	return true;
}

static void on_closed(void *arg, uint64_t up, uint64_t down, const char *how)
{
	struct inbound *in = arg;

	in->tunnel = NULL;
	record_close(in, down, up, how);
	inbound_free(in);
}

static void relay(struct inbound *in)
{
	static const struct tunnel_ops ops = { .progress = on_progress,
					       .closed = on_closed };
	struct event_base *base = in->forward->c.base;
	struct audit_event event = event_of(in, EVENT_FLOW_DIAL);

	wheel_cancel(&in->timer);
	record(in, &event, NULL);
	in->step = INBOUND_RELAY;
	if (tunnel_new(
		    in->forward->wheel, watch_new(base, steal_fd(&in->client)),
		    STEAL(in->dialled), NULL, 0, NULL, &ops, in, &in->tunnel)) {
		record_close(in, 0, 0, "error");
		inbound_free(in);
	}
}

static void take_socket(struct inbound *in);

static void on_dialled(void *arg, int fd, short what)
{
	struct inbound *in = arg;
	socklen_t len = sizeof(int);
	int error = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error)
		fail(in, REASON_CONNECT_FAILED,
		     error == ECONNREFUSED ? "connection refused"
					   : "connection failed");
	else
		relay(in);
}

static void dial(struct inbound *in)
{
	const struct forward *f = in->forward;
	union sockaddr_any sa;
	socklen_t len = ip_to_sockaddr(&f->c.sandbox->ip, f->c.port, &sa);

	in->step = INBOUND_DIAL;
	if (connect(in->server, &sa.sa, len) < 0 && errno != EINPROGRESS) {
		bool taken = errno == EADDRNOTAVAIL || errno == EADDRINUSE;

		close_fd(&in->server);
		if (taken && ++in->tries < DIAL_TRIES)
			take_socket(in);
		else
			fail(in, REASON_CONNECT_FAILED, "connection failed");
		return;
	}
	in->dialled = watch_new(f->c.base, steal_fd(&in->server));
	if (!in->dialled || watch_for(in->dialled, EV_WRITE))
		fail(in, REASON_CONNECT_FAILED, "error");
	else
		watch_tell(in->dialled, on_dialled, in);
}

static void on_socket(struct wait *wait, int status)
{
	struct inbound *in = CONTAINER_OF(wait, struct inbound, socket);

	in->step = INBOUND_DIAL; /* not waiting any more */
	if (status)
		fail(in, REASON_CONNECT_FAILED, "no socket to connect with");
	else
		take_socket(in);
}

static void take_socket(struct inbound *in)
{
	const struct forward_config *c = &in->forward->c;
	int fd;

	in->socket.done = on_socket;
	in->step = INBOUND_SOCKET;
	fd = c->socket(c->ctx, &in->socket);
	if (fd == -EAGAIN)
		return;
	in->step = INBOUND_DIAL;
	if (fd < 0) {
		fail(in, REASON_CONNECT_FAILED, "no socket to connect with");
		return;
	}
	in->server = fd;
	dial(in);
}

static void on_recorded(struct wait *wait, int status)
{
	struct inbound *in = CONTAINER_OF(wait, struct inbound, recorded);

	in->step = INBOUND_DIAL;
	if (status)
		inbound_free(in); /* there is nobody to tell */
	else
		take_socket(in);
}

/* Its opening is written, or on the way. */
void inbound_end(struct inbound *in, const char *how)
{
	uint64_t up = 0, down = 0;

	if (in->tunnel)
		tunnel_abort(STEAL(in->tunnel), &up, &down);
	record_close(in, down, up, how);
	inbound_free(in);
}

static void on_late(struct timer *timer)
{
	struct inbound *in = CONTAINER_OF(timer, struct inbound, timer);

	if (in->step == INBOUND_RECORD)
		inbound_end(in, "the ledger took too long");
	else
		fail(in, REASON_TIMEOUT, "the sandbox does not answer");
}

/* --- its beginning ------------------------------------------------------- */

static enum reason objection(const struct forward *f)
{
	const struct services *services = f->c.services;
	struct sandbox *sandbox = f->c.sandbox;

	if (sandbox->connections > policy_limits(sandbox->policy)->connections)
		return REASON_LIMIT_CONNECTIONS;
	if (!services->rate(services->ctx, sandbox, RATE_CONNECTIONS))
		return REASON_LIMIT_RATE;
	return REASON_RULE;
}

void inbound_start(struct forward *f, int client,
		   const union sockaddr_any *peer)
{
	struct inbound *in = calloc(1, sizeof(*in));
	struct audit_event event;
	enum reason reason;

	if (!in) {
		sock_reset_on_close(client);
		close_fd(&client);
		return;
	}
	in->forward = f;
	in->client = client;
	in->server = -1;
	in->start_ms = now_ms();
	in->src_ip = ip_from_sockaddr(peer);
	in->src_port = port_from_sockaddr(peer);
	in->flow = f->c.services->flow_id(f->c.services->ctx);
	in->step = INBOUND_DIAL;
	in->timer.ring = on_late;
	LIST_INSERT_HEAD(&f->inbound, in, entry);
	f->c.sandbox->connections++;
	reason = objection(f);
	if (reason != REASON_RULE) {
		record_refusal(in, reason);
		inbound_free(in);
		return;
	}
	wheel_set(f->wheel, &in->timer, OPENING_S * 1000);
	event = event_of(in, EVENT_FLOW_OPEN);
	event.detail = "inbound";
	in->step = INBOUND_RECORD;
	in->recorded.done = on_recorded;
	record(in, &event, &in->recorded);
}
