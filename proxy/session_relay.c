/* SPDX-License-Identifier: Apache-2.0
 *
 * session_relay.c - a session after its flow was allowed: the socket belongs to
 * a tunnel, which holds the client's first bytes until agree_check() has seen
 * them, or to an exchange, which judges request by request.
 */
#include <event2/event.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "proxy/exchange.h"
#include "proxy/session_door.h"
#include "proxy/tunnel.h"

/* What was read and not yet dealt with. */
static const uint8_t *unread(const struct session *s)
{
	return s->buf ? s->buf + s->used : NULL;
}

static void settled(struct session *s)
{
	flow_classified(s->flow, protocol_word(s->agree.protocol),
			*s->agree.sni ? s->agree.sni : NULL);
}

static enum sniff conclude(struct session *s, enum sniff found)
{
	uint8_t alert[7];

	if (found == SNIFF_DONE)
		settled(s);
	if (found != SNIFF_BAD)
		return found;
	flow_refuse(s->flow, s->agree.reason,
		    *s->agree.sni ? s->agree.sni : NULL, s->agree.detail);
	if (s->agree.protocol == PROTOCOL_TLS && s->tunnel)
		tunnel_refuse_with(s->tunnel, alert,
				   refuse_tls(s->agree.reason, alert));
	return SNIFF_BAD;
}

static enum sniff on_classify(void *arg, const uint8_t *data, size_t len)
{
	struct session *s = arg;

	return conclude(s, agree_check(&s->agree, data, len));
}

static enum sniff on_incomplete(void *arg, const uint8_t *data, size_t len)
{
	struct session *s = arg;

	return conclude(s, agree_incomplete(&s->agree, data, len));
}

static void on_progress(void *arg, uint64_t up, uint64_t down)
{
	struct session *s = arg;

	flow_progress(s->flow, up, down);
}

static void on_tunnel_closed(void *arg, uint64_t up, uint64_t down,
			     const char *how)
{
	struct session *s = arg;
	char text[64];

	/* The outer name decided; say that there may be an inner one. */
	snprintf(text, sizeof(text), "%s%s", how, s->agree.ech ? ", ech" : "");
	flow_close(STEAL(s->flow), up, down, text);
	s->tunnel = NULL;
	session_end(s);
}

static void on_exchange_closed(void *arg)
{
	struct session *s = arg;

	flow_close(STEAL(s->flow), 0, 0, "eof");
	s->exchange = NULL;
	session_end(s);
}

static const struct tunnel_ops held = {
	.classify = on_classify,
	.incomplete = on_incomplete,
	.progress = on_progress,
	.closed = on_tunnel_closed,
};

/* The first message has been seen already. */
static const struct tunnel_ops agreed = {
	.progress = on_progress,
	.closed = on_tunnel_closed,
};

void session_tunnel(struct session *s, int server_fd)
{
	const struct tunnel_ops *ops = s->form == &form_tls ? &agreed : &held;
	static const struct tunnel_limits limits = { .idle_ms = 0 };
	int fd = steal_fd(&s->fd);

	s->state = SESSION_RELAY;
	if (tunnel_new(s->c.base, fd, server_fd, unread(s), s->len - s->used,
		       &limits, ops, s, &s->tunnel)) {
		s->tunnel = NULL;
		session_end(s);
		return;
	}
	session_drop_buffer(s);
}

void session_exchange(struct session *s, bool fixed)
{
	const struct exchange_config config = {
		.base = s->c.base,
		.services = s->c.services,
		.sandbox = s->c.sandbox,
		.door = s->door,
		.src_ip = s->c.src_ip,
		.src_port = s->c.src_port,
		.host = fixed && *s->host ? s->host : NULL,
		.address = fixed ? s->address : (struct ip){ .len = 0 },
		.port = fixed ? s->port : 0,
		.closed = on_exchange_closed,
		.arg = s,
	};
	int fd = steal_fd(&s->fd);

	event_del(s->readable);
	event_del(s->timer);
	s->state = SESSION_RELAY;
	if (exchange_start(&config, fd, unread(s), s->len - s->used,
			   &s->exchange)) {
		s->exchange = NULL;
		session_end(s);
		return;
	}
	session_drop_buffer(s);
}
