/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel_hold.c - the client's first bytes in a tunnel: asked about until they
 * are let through or refused. What was refused never reaches the server.
 *
 *	asking	 each time bytes come, classify() is shown all that are held;
 *		 then through, refused, or (some of them passed) AWAITING
 *	awaiting the server's bytes are shown to answer(), the client's pile up;
 *		 then through, refused, or ASKING again
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

void tunnel_pass(struct tunnel *t, size_t len)
{
	if (t->hold)
		t->hold->pass = len < t->hold->len ? len : t->hold->len;
}

void tunnel_await(struct tunnel *t, size_t len)
{
	tunnel_pass(t, len);
	if (t->hold)
		t->hold->awaiting = true;
}

/* After one of the ops. False if it ended the tunnel. */
static bool survives(struct tunnel *t)
{
	if (!t->aborted)
		return true;
	hold_free(t->hold);
	free(t);
	return false;
}

/* Always false. */
static bool refuse(struct tunnel *t)
{
	/* Not into the middle of something else. */
	if (!relay_in_flight(&t->relay[SERVER]))
		hold_refuse(t->hold, tunnel_fd(t, CLIENT));
	tunnel_finish(t, "refused", false, true);
	return false;
}

/* Sends @len held bytes up, or none, if the budget has not as much. */
static void give(struct tunnel *t, const struct hold *hold, size_t len)
{
	struct relay *r = &t->relay[CLIENT];
	int err = 0;

	if (!len || r->dead)
		return;
	if (!relay_spend(r, len))
		t->spent = true;
	else
		err = relay_give(r, tunnel_fd(t, SERVER), hold->data, len);
	if (err && err != -EAGAIN)
		tunnel_write_failed(t, SERVER, -err);
}

/* Lets the held bytes through. */
static void let_through(struct tunnel *t)
{
	struct hold *hold = STEAL(t->hold);

	t->relay[SERVER].watched = false;
	give(t, hold, hold->len);
	hold_free(hold);
}

/* Does what tunnel_pass() and tunnel_await() asked for. */
static void pass_some(struct tunnel *t)
{
	struct hold *hold = t->hold;

	if (hold->pass) {
		give(t, hold, hold->pass);
		hold_drop(hold, hold->pass);
		hold->pass = 0;
	}
	if (!hold->awaiting)
		return;
	hold->since_ms = t->active_ms;
	t->relay[SERVER].watched = true;
	t->relay[SERVER].bulk = false;
}

/* The client ended, and it is known what is held. */
static bool at_end(struct tunnel *t)
{
	if (t->hold->len)
		return tunnel_judge(t, true);
	let_through(t); /* it never said anything, or nothing more */
	return true;
}

bool tunnel_judge(struct tunnel *t, bool last)
{
	const struct hold *hold = t->hold;
	const bool ended = t->relay[CLIENT].eof;
	enum sniff answer;

	t->inside++;
	if (last)
		answer = t->ops->incomplete(t->arg, hold->data, hold->len,
					    ended);
	else
		answer = t->ops->classify(t->arg, hold->data, hold->len);
	t->inside--;
	if (!survives(t))
		return false;
	t->hold->looked = true;
	if (answer == SNIFF_DONE) {
		let_through(t);
		return true;
	}
	if (answer == SNIFF_MORE && last && t->hold->unclear_ms &&
	    !t->hold->doubted && !ended) {
		t->hold->doubted = true;
		return true;
	}
	if (answer != SNIFF_MORE || last)
		return refuse(t);
	pass_some(t);
	if (ended && (!t->hold->awaiting || !t->hold->len))
		return at_end(t);
	return t->hold->len < SNIFF_MAX || t->hold->awaiting || refuse(t);
}

bool tunnel_held_readable(struct tunnel *t, int64_t now)
{
	struct hold *hold = t->hold;
	ssize_t n;

	if (hold->len && !hold->looked && !hold->awaiting)
		return tunnel_judge(t, false);
	n = hold_read(hold, tunnel_fd(t, CLIENT));
	if (n == -EAGAIN)
		return true;
	if (n < 0) {
		tunnel_finish(t, tunnel_lost(CLIENT, (int)-n), true, true);
		return false;
	}
	t->relay[CLIENT].eof = n == 0;
	if (hold->awaiting) {
		if (n == 0 && !hold->len)
			let_through(t);
		return true;
	}
	if (n == 0)
		return at_end(t);
	if (!hold->since_ms)
		hold->since_ms = now;
	return tunnel_judge(t, false);
}

/* The server wants to hear more before the rest may pass. */
static bool ask_again(struct tunnel *t, int64_t now)
{
	struct hold *hold = t->hold;

	hold->awaiting = false;
	hold->doubted = true; /* TLS for certain */
	hold->since_ms = hold->len ? now : 0;
	t->relay[SERVER].watched = false;
	if (hold->len)
		return tunnel_judge(t, false);
	return !t->relay[CLIENT].eof || at_end(t);
}

bool tunnel_answered(struct tunnel *t, int64_t now)
{
	struct relay *r = &t->relay[SERVER];
	enum tunnel_answer answer = TUNNEL_WATCH;

	if (r->fresh) {
		t->inside++;
		answer = t->ops->answer(t->arg, relay_fresh(), r->fresh);
		t->inside--;
		r->fresh = 0;
		if (!survives(t))
			return false;
	}
	if (answer == TUNNEL_WATCH && r->eof)
		answer = TUNNEL_RELEASE;
	switch (answer) {
	case TUNNEL_WATCH:
		break;
	case TUNNEL_CLASSIFY:
		return ask_again(t, now);
	case TUNNEL_RELEASE:
		let_through(t);
		break;
	case TUNNEL_REFUSE:
		return refuse(t);
	}
	return true;
}

int64_t tunnel_hold_alarm(const struct tunnel *t)
{
	const struct hold *hold = t->hold;

	if (!hold || !hold->since_ms)
		return INT64_MAX;
	if (hold->awaiting)
		return hold->since_ms + hold->answer_ms;
	return hold->since_ms + (hold->unclear_ms && !hold->doubted
					 ? hold->unclear_ms
					 : hold->classify_ms);
}

bool tunnel_hold_timer(struct tunnel *t, int64_t now)
{
	struct hold *hold = t->hold;

	if (hold->len && !hold->looked && !hold->awaiting)
		return tunnel_judge(t, false);
	return now < tunnel_hold_alarm(t) || tunnel_judge(t, true);
}
