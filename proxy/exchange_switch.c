/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_switch.c - a websocket: after the server's 101 the two sockets are a
 * tunnel's.
 */
#include <event2/event.h>

#include "base/cleanup.h"
#include "proxy/exchange_impl.h"
#include "proxy/tunnel.h"

static void on_accepted(void *arg)
{
	struct exchange *x = arg;

	tunnel_resume(x->tunnel);
}

static bool on_tunnel_progress(void *arg, uint64_t up, uint64_t down)
{
	struct exchange *x = arg;

	return flow_progress(x->flow, x->up + up, x->down + down, on_accepted,
			     x);
}

static void on_tunnel_closed(void *arg, uint64_t up, uint64_t down,
			     const char *how)
{
	struct exchange *x = arg;

	x->tunnel = NULL;
	x->up += up;
	x->down += down;
	if (how == tunnel_spent) {
		flow_cut(STEAL(x->flow), REASON_LIMIT_BYTES, x->up, x->down,
			 how);
		x->up = x->down = 0;
	}
	exchange_end_flow(x, how);
	exchange_phase(x, EXCHANGE_OVER);
	exchange_run(x);
}

static void start_tunnel(struct exchange *x)
{
	static const struct tunnel_ops ops = {
		.progress = on_tunnel_progress,
		.closed = on_tunnel_closed,
	};
	struct side *client = &x->side[CLIENT], *server = &x->side[SERVER];
	const struct tunnel_limits limits = {
		.meters = flow_meters(x->flow),
	};
	size_t len = buf_len(&client->in);
	int err;

	/* It goes up as it is, or not at all. */
	if (exchange_room(x, UP, len) < len) {
		exchange_over_budget(x);
		return;
	}
	exchange_spend(x, UP, len);

	wheel_cancel(&x->timer);
	exchange_phase(x, EXCHANGE_TUNNEL);
	err = tunnel_new(x->config.wheel, STEAL(client->watch),
			 STEAL(server->watch),
			 (const uint8_t *)client->in.data + client->in.start,
			 len, &limits, &ops, x, &x->tunnel);
	exchange_drop_buffers(x);
	if (err) {
		x->tunnel = NULL;
		exchange_end_flow(x, "error");
		exchange_phase(x, EXCHANGE_OVER);
	}
}

bool exchange_step_switch(struct exchange *x)
{
	struct buf *in = &x->side[SERVER].in, *out = &x->side[CLIENT].out;
	size_t len = buf_len(in), room = buf_room(out);

	if (len > room)
		len = room;
	if (len) {
		buf_put(out, in->data + in->start, len);
		buf_drop(in, len);
		return true;
	}
	if (buf_len(out) || buf_len(&x->side[SERVER].out))
		return false;
	start_tunnel(x);
	return true;
}
