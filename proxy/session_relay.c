/* SPDX-License-Identifier: Apache-2.0
 *
 * session_relay.c - a session after its flow was allowed: the socket belongs to
 * a tunnel, which holds the client's first bytes until agree_check() has seen
 * them, or to an exchange, which judges request by request.
 *
 * TLS: only the first hello passes; the rest is held until the server's answer
 * shows that there won't be a second one, or that has been seen as well.
 * HTTP on a port of its own: the socket goes on to an exchange.
 */
#include <event2/event.h>

#include "base/cleanup.h"
#include "proxy/exchange.h"
#include "proxy/session_door.h"
#include "proxy/tunnel.h"

/* So long a client may be unclear where its rule wants nothing of it. */
#define UNCLEAR_MS 800

/* What was read and not yet dealt with. */
static const uint8_t *unread(const struct session *s)
{
	return s->buf ? s->buf + s->used : NULL;
}

static void settled(struct session *s)
{
	const struct agree *a = &s->first->agree;

	s->settled = true;
	s->spoke = a->protocol;
	if (a->ech)
		flow_saw_ech(s->flow);
	flow_classified(s->flow, protocol_word(a->protocol),
			*a->sni ? a->sni : NULL);
}

/* Nothing is held any more. */
static enum sniff let_through(struct session *s)
{
	session_drop_first(s);
	return SNIFF_DONE;
}

static void on_exchange_closed(void *arg)
{
	struct session *s = arg;

	flow_close(STEAL(s->flow), 0, 0, "eof");
	s->exchange = NULL;
	session_end(s);
}

/* False if that ended the session. */
static bool start_exchange(struct session *s, struct watch *client,
			   const uint8_t *data, size_t len, bool fixed)
{
	const struct exchange_config config = {
		.wheel = s->c.wheel,
		.services = s->c.services,
		.sandbox = s->c.sandbox,
		.door = s->door,
		.src_ip = s->c.src_ip,
		.src_port = s->c.src_port,
		.host = fixed && *s->first->host ? s->first->host : NULL,
		.address = fixed ? s->address : (struct ip){ .len = 0 },
		.port = fixed ? s->port : 0,
		.names_at = s->several && !*s->first->host
				    ? s->c.dst_ip
				    : (struct ip){ .len = 0 },
		.fold = s->c.fold,
		.closed = on_exchange_closed,
		.arg = s,
	};

	if (!exchange_start(&config, client, data, len, &s->exchange)) {
		session_drop_first(s);
		return true;
	}
	s->exchange = NULL;
	session_end(s);
	return false;
}

/* Records what @agree has against it, and tells the client. */
static enum sniff refuse(struct session *s)
{
	const struct agree *a = &s->first->agree;
	uint8_t alert[7];

	if (a->ech)
		flow_saw_ech(s->flow);
	flow_refuse(s->flow, a->reason, *a->sni ? a->sni : NULL, a->detail);
	if (a->protocol == PROTOCOL_TLS)
		tunnel_refuse_with(s->tunnel, alert,
				   refuse_tls(a->reason, alert));
	return SNIFF_BAD;
}

/* The connection that was made for all of it is not used. */
static enum sniff go_to_exchange(struct session *s, const uint8_t *data,
				 size_t len)
{
	struct watch *client;

	if (tunnel_detach(s->tunnel, &client)) {
		s->first->agree.reason = REASON_PROTOCOL;
		s->first->agree.detail = "HTTP where the server spoke first";
		return refuse(s);
	}
	s->tunnel = NULL;
	flow_close(STEAL(s->flow), 0, 0, "http: a flow for each request");
	start_exchange(s, client, data, len, true);
	return SNIFF_BAD;
}

/* The first message is whole and agrees. */
static enum sniff accept_first(struct session *s, const uint8_t *data,
			       size_t len)
{
	settled(s);
	if (s->spoke == PROTOCOL_HTTP)
		return go_to_exchange(s, data, len);
	if (s->spoke != PROTOCOL_TLS)
		return let_through(s);
	s->hello = HELLO_ANSWER;
	tunnel_await(s->tunnel, s->first->agree.hello_len);
	return SNIFF_MORE;
}

static enum sniff on_second(struct session *s, const uint8_t *data, size_t len)
{
	size_t pass;
	enum sniff found = agree_second(&s->first->agree, data, len, &pass);

	if (found == SNIFF_BAD)
		return refuse(s);
	if (found == SNIFF_DONE)
		return let_through(s);
	tunnel_pass(s->tunnel, pass);
	return found;
}

static enum sniff on_classify(void *arg, const uint8_t *data, size_t len)
{
	struct session *s = arg;

	if (s->hello != HELLO_FIRST)
		return on_second(s, data, len);
	switch (agree_check(&s->first->agree, data, len)) {
	case SNIFF_DONE:
		return accept_first(s, data, len);
	case SNIFF_BAD:
		return refuse(s);
	case SNIFF_MORE:
		break;
	}
	return SNIFF_MORE;
}

/* What stays unclear passes where it may. */
static enum sniff incomplete(struct session *s, const uint8_t *data, size_t len,
			     bool ended)
{
	enum sniff found = agree_incomplete(&s->first->agree, data, len, ended);

	/* More time is given once. */
	if (found == SNIFF_MORE && s->doubted)
		found = agree_late(&s->first->agree,
				   "first message never completed");
	s->doubted = true;
	if (found == SNIFF_BAD)
		return refuse(s);
	if (found != SNIFF_DONE)
		return found;
	settled(s);
	return let_through(s);
}

static enum sniff on_incomplete(void *arg, const uint8_t *data, size_t len,
				bool ended)
{
	struct session *s = arg;
	struct agree *a = &s->first->agree;

	if (s->hello == HELLO_ANSWER)
		agree_late(a, "the server did not answer in time");
	else if (s->hello == HELLO_SECOND)
		agree_late(a, "second ClientHello never completed");
	else
		return incomplete(s, data, len, ended);
	return refuse(s);
}

static enum tunnel_answer on_answer(void *arg, const uint8_t *data, size_t len)
{
	struct session *s = arg;

	switch (agree_answer(&s->first->agree, data, len)) {
	case TLS_ANSWER_MORE:
		return TUNNEL_WATCH;
	case TLS_ANSWER_FINAL:
		session_drop_first(s);
		return TUNNEL_RELEASE;
	case TLS_ANSWER_RETRY:
		s->hello = HELLO_SECOND;
		return TUNNEL_CLASSIFY;
	case TLS_ANSWER_BAD:
		break;
	}
	refuse(s);
	return TUNNEL_REFUSE;
}

static void on_accepted(void *arg)
{
	struct session *s = arg;

	tunnel_resume(s->tunnel);
}

static bool on_progress(void *arg, uint64_t up, uint64_t down)
{
	struct session *s = arg;

	return flow_progress(s->flow, up, down, on_accepted, s);
}

static void on_tunnel_closed(void *arg, uint64_t up, uint64_t down,
			     const char *how)
{
	struct session *s = arg;

	if (how == tunnel_spent)
		flow_cut(STEAL(s->flow), REASON_LIMIT_BYTES, up, down, how);
	else
		flow_close(STEAL(s->flow), up, down, how);
	s->tunnel = NULL;
	session_end(s);
}

static const struct tunnel_ops held = {
	.classify = on_classify,
	.incomplete = on_incomplete,
	.answer = on_answer,
	.progress = on_progress,
	.closed = on_tunnel_closed,
};

void session_tunnel(struct session *s, struct watch *server)
{
	const struct tunnel_limits limits = {
		.unclear_ms =
			s->first->agree.wanted == WANTED_ANY ? UNCLEAR_MS : 0,
		.meters = flow_meters(s->flow),
	};
	struct watch *client = STEAL(s->watch);

	s->state = SESSION_RELAY;
	s->doubted = !limits.unclear_ms;
	if (tunnel_new(s->c.wheel, client, server, unread(s), s->len - s->used,
		       &limits, &held, s, &s->tunnel)) {
		s->tunnel = NULL;
		session_end(s);
		return;
	}
	session_drop_buffer(s);
}

void session_exchange(struct session *s, bool fixed)
{
	struct watch *client = STEAL(s->watch);

	wheel_cancel(&s->timer);
	s->state = SESSION_RELAY;
	if (start_exchange(s, client, unread(s), s->len - s->used, fixed))
		session_drop_buffer(s);
}
