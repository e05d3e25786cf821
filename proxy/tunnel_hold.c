/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel_hold.c - the client's first bytes in a tunnel: asked about until they
 * are let through or refused. What was refused never reaches the server.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "proxy/tunnel_impl.h"

void tunnel_refuse_with(struct tunnel *t, const void *data, size_t len)
{
	if (!t->hold || len > HOLD_REFUSAL_MAX)
		return;
	memcpy(t->hold->refusal, data, len);
	t->hold->refusal_len = len;
}

static void refuse(struct tunnel *t)
{
	/* Not into the middle of something else. */
	if (!relay_in_flight(&t->relay[SERVER]))
		hold_refuse(t->hold, t->side[CLIENT].fd);
	tunnel_finish(t, "refused", false, true);
}

/* Lets the held bytes through. */
static void let_through(struct tunnel *t)
{
	struct hold *hold = STEAL(t->hold);
	struct relay *r = &t->relay[CLIENT];
	int err = 0;

	if (hold->len && !r->dead)
		err = relay_give(r, t->side[SERVER].fd, hold->data, hold->len);
	hold_free(hold);
	if (err && err != -EAGAIN)
		tunnel_write_failed(t, SERVER, -err);
}

bool tunnel_judge(struct tunnel *t, bool last)
{
	const struct hold *hold = t->hold;
	enum sniff answer;

	t->inside++;
	if (last)
		answer = t->ops->incomplete(t->arg, hold->data, hold->len);
	else
		answer = t->ops->classify(t->arg, hold->data, hold->len);
	t->inside--;
	if (t->aborted) {
		free(t);
		return false;
	}
	t->hold->looked = true;
	if (answer == SNIFF_DONE) {
		let_through(t);
		return true;
	}
	if (answer == SNIFF_MORE && !last && t->hold->len < SNIFF_MAX)
		return true;
	refuse(t);
	return false;
}

bool tunnel_held_readable(struct tunnel *t, int64_t now)
{
	ssize_t n;

	if (t->hold->len && !t->hold->looked)
		return tunnel_judge(t, false);
	n = hold_read(t->hold, t->side[CLIENT].fd);
	if (n == -EAGAIN)
		return true;
	if (n < 0) {
		tunnel_finish(t, tunnel_lost(CLIENT, (int)-n), true, true);
		return false;
	}
	if (n > 0) {
		if (!t->hold->since_ms)
			t->hold->since_ms = now;
		return tunnel_judge(t, false);
	}
	t->relay[CLIENT].eof = true;
	if (t->hold->len)
		return tunnel_judge(t, true);
	hold_free(STEAL(t->hold)); /* it never said anything */
	return true;
}
