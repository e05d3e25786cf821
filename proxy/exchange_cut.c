/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_cut.c - requests that end before their time: the budget is used up,
 * or the policy does not allow them any more.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "proxy/exchange_impl.h"
#include "proxy/tunnel.h"

size_t exchange_room(const struct exchange *x, enum direction way, size_t len)
{
	const struct meters *meters = x->flow ? flow_meters(x->flow) : NULL;
	uint64_t room = meters_room(meters, way);

	return room < len ? (size_t)room : len;
}

size_t exchange_spend(struct exchange *x, enum direction way, size_t len)
{
	const struct meters *meters = x->flow ? flow_meters(x->flow) : NULL;

	if (!meters)
		return len;
	len = exchange_room(x, way, len);
	meters_spend(meters, way, len);
	return len;
}

/* With RST both ways, and a close record that says why. */
static void cut(struct exchange *x, enum reason reason, const char *how)
{
	uint64_t up = 0, down = 0;

	tunnel_abort(STEAL(x->tunnel), &up, &down);
	side_reset(&x->side[SERVER]);
	flow_cut(STEAL(x->flow), reason, x->up + up, x->down + down, how);
	x->up = x->down = 0;
	exchange_cut(x, how);
}

void exchange_over_budget(struct exchange *x)
{
	static const char how[] = "byte budget used up";

	x->spent = false;
	if (!x->flow)
		return;
	if (x->answered) {
		cut(x, REASON_LIMIT_BYTES, how);
		return;
	}
	side_reset(&x->side[SERVER]);
	exchange_refuse(x, REASON_LIMIT_BYTES, 0, NULL);
	flow_status(x->flow, reason_info(REASON_LIMIT_BYTES)->http_status);
	flow_cut(STEAL(x->flow), REASON_LIMIT_BYTES, x->up, x->down, how);
	x->up = x->down = 0;
	exchange_end_flow(x, how);
}

void exchange_revoke(struct exchange *x, enum reason reason)
{
	if (!x)
		return;
	cut(x, reason, "cut");
	exchange_free(x);
}

void exchange_recheck(struct exchange *x)
{
	enum reason reason;

	if (!x->flow)
		return;
	reason = flow_recheck(x->flow, x->config.sandbox, NULL, NULL);
	if (!reason_info(reason)->allow) {
		cut(x, reason, "cut");
		exchange_run(x);
	} else if (x->tunnel) {
		tunnel_meter(x->tunnel, flow_meters(x->flow));
	}
}
