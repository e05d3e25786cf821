/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c - reading the first message, refusing.
 *
 * Nothing here frees a session from inside a call of its own: whatever goes
 * wrong, session_end() has the loop do it. So the doors can return from any
 * depth, and flow_start() may answer at once.
 */
#include "proxy/session.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "base/zalloc.h"
#include "proxy/exchange.h"
#include "proxy/session_door.h"
#include "proxy/tunnel.h"
#include "proxy/watch.h"

/* A test may be in a hurry. */
#ifndef FIRST_SECONDS
#define FIRST_SECONDS 10
#endif
#define LINGER_SECONDS 2
#define LINGER_MAX     (64 * 1024)
#define BUFFER_MIN     2048

/* A young connection has room for it; else the client is no client. */
static bool say(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool session_say(struct session *s, const void *data, size_t len)
{
	return say(watch_fd(s->watch), data, len);
}

void session_timer(struct session *s, unsigned seconds)
{
	wheel_set(s->c.wheel, &s->timer, seconds * 1000);
}

void session_drop_buffer(struct session *s)
{
	free(STEAL(s->buf));
	s->len = s->cap = s->used = 0;
}

static void cancel_room(struct session *s)
{
	if (s->first)
		services_room_cancel(s->c.services, &s->first->room);
}

void session_drop_first(struct session *s)
{
	cancel_room(s);
	free(STEAL(s->first));
}

void session_end(struct session *s)
{
	s->state = SESSION_ENDED;
	cancel_room(s);
	watch_close(&s->watch);
	session_drop_buffer(s);
	wheel_soon(s->c.wheel, &s->timer);
}

void session_reset(struct session *s)
{
	sock_reset_on_close(watch_fd(s->watch));
	session_end(s);
}

static void linger(struct session *s)
{
	s->state = SESSION_LINGER;
	session_drop_buffer(s);
	if (shutdown(watch_fd(s->watch), SHUT_WR) ||
	    watch_for(s->watch, EV_READ)) {
		session_end(s);
		return;
	}
	session_timer(s, LINGER_SECONDS);
}

/* The last words; none: the connection is reset. */
static void say_no(struct session *s, const void *no, size_t len)
{
	if (len && session_say(s, no, len))
		linger(s);
	else
		session_reset(s);
}

void session_tell(struct session *s, enum reason reason, uint16_t status,
		  const char *detail)
{
	char buf[REFUSE_MAX];

	say_no(s, buf, s->form->refuse(s, reason, status, detail, buf));
}

struct flow_ask session_asks(const struct session *s)
{
	return (struct flow_ask){
		.sandbox = s->c.sandbox,
		.door = s->door,
		.src_ip = s->c.src_ip,
		.src_port = s->c.src_port,
		.host = *s->first->host ? s->first->host : NULL,
		.address = s->several ? s->c.dst_ip : s->address,
		.port = s->port,
		.protocol = protocol_word(s->first->agree.protocol),
		.sni = *s->first->agree.sni ? s->first->agree.sni : NULL,
		.ech = s->first->agree.ech,
		.fold = s->c.fold,
	};
}

static void record_refusal(struct session *s, enum reason reason,
			   const char *detail)
{
	const struct flow_ask ask = session_asks(s);

	flow_record_refusal(s->c.services, &ask, reason,
			    *s->first->shown ? s->first->shown : ask.host,
			    detail);
}

void session_deny(struct session *s, enum reason reason, uint16_t status,
		  const char *detail)
{
	record_refusal(s, reason, detail);
	session_tell(s, reason, status, detail);
}

void session_deny_with(struct session *s, enum reason reason,
		       const char *detail, const void *no, size_t len)
{
	record_refusal(s, reason, detail);
	say_no(s, no, len);
}

static int grow(struct session *s)
{
	size_t cap = s->cap ? s->cap * 2 : BUFFER_MIN;
	uint8_t *buf;

	if (s->len < s->cap)
		return 0;
	if (s->cap >= SNIFF_MAX)
		return -EMSGSIZE;
	buf = realloc(s->buf, cap);
	if (!buf)
		return -ENOMEM;
	s->buf = buf;
	s->cap = cap;
	return 0;
}

/* A connection that ends without a word asked for nothing. */
static void on_early_end(struct session *s, enum reason reason, uint16_t status,
			 const char *detail)
{
	if (s->len)
		session_deny(s, reason, status, detail);
	else
		session_end(s);
}

static void on_input(struct session *s)
{
	int err = grow(s);
	ssize_t n;

	if (err == -EMSGSIZE)
		session_deny(s, REASON_MALFORMED, 431,
			     "first message too long");
	else if (err)
		session_end(s); /* no fault of the client's */
	if (err)
		return;
	n = recv(watch_fd(s->watch), s->buf + s->len, s->cap - s->len,
		 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		on_early_end(s, REASON_MALFORMED, 400,
			     "connection ended within the first message");
		return;
	}
	s->len += (size_t)n;
	s->first->input(s);
}

static void on_discard(struct session *s)
{
	char waste[4096];
	ssize_t n =
		recv(watch_fd(s->watch), waste, sizeof(waste), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		s->first->discarded += (size_t)n;
	if (n <= 0 || s->first->discarded > LINGER_MAX)
		session_end(s);
}

static void on_room(struct wait *wait, int status)
{
	struct session *s = CONTAINER_OF(wait, struct first, room)->session;

	(void)status;
	if (watch_for(s->watch, EV_READ))
		session_end(s);
	else
		session_timer(s, FIRST_SECONDS);
}

/* What comes next may have to be recorded. If that has to wait, the client
 * does, and it does not cost it its time. */
static bool has_room(struct session *s)
{
	if (services_room(s->c.services, &s->first->room))
		return true;
	watch_for(s->watch, 0);
	wheel_cancel(&s->timer);
	return false;
}

static void on_readable(void *arg, int fd, short what)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	if (s->state == SESSION_FIRST && has_room(s))
		on_input(s);
	else if (s->state == SESSION_ASKING)
		session_hangup(s);
	else if (s->state == SESSION_LINGER)
		on_discard(s);
}

static void session_free(struct session *s)
{
	uint64_t up = 0, down = 0;

	if (s->tunnel)
		tunnel_abort(s->tunnel, &up, &down);
	exchange_abort(s->exchange);
	flow_close(s->flow, up, down,
		   s->state == SESSION_RELAY ? "shutdown" : "refused");
	wheel_cancel(&s->timer);
	watch_close(&s->watch);
	free(s->buf);
	session_drop_first(s);
	policy_unref(s->policy);
	LIST_REMOVE(s, entry);
	s->c.sandbox->connections--;
	free(s);
}

static void on_timer(struct timer *timer)
{
	struct session *s = CONTAINER_OF(timer, struct session, timer);

	if (s->state == SESSION_FIRST && !has_room(s))
		return;
	if (s->state == SESSION_FIRST && s->several && !s->len)
		session_deny(s, REASON_NO_NAME, 0, session_nameless);
	else if (s->state == SESSION_FIRST)
		on_early_end(s, REASON_TIMEOUT, 408,
			     "first message never completed");
	else if (s->state == SESSION_ASKING)
		session_late(s);
	else if (s->state == SESSION_LINGER)
		session_end(s);
	else if (s->state == SESSION_ENDED)
		session_free(s);
}

void session_turn_away(const struct session_config *config, enum reason reason,
		       int fd)
{
	static const uint8_t no_method[2] = { 5, 0xff };
	const bool explicit = config->kind == LISTENER_EXPLICIT;
	struct first none = { .host = "" };
	struct session s = { .c = *config, .first = &none };
	char first[4096], no[REFUSE_MAX];
	size_t len = 0;

	s.door = explicit ? DOOR_CONNECT : DOOR_TRANSPARENT;
	s.form = explicit ? &form_http : &form_raw;
	if (!explicit) {
		s.address = config->dst_ip;
		s.port = config->dst_port;
	}
	record_refusal(&s, reason, NULL);
	/* Unread bytes would turn the close into an RST. */
	if (explicit && recv(fd, first, sizeof(first), MSG_DONTWAIT) > 0 &&
	    first[0] == 5)
		say(fd, no_method, sizeof(no_method));
	else
		len = s.form->refuse(&s, reason, 0, NULL, no);
	if (len)
		say(fd, no, len);
	if (!explicit)
		sock_reset_on_close(fd);
	close_fd(&fd);
}

void session_start(const struct session_config *config, int fd)
{
	struct session *s = zalloc(sizeof(*s));

	if (!s) {
		sock_reset_on_close(fd);
		close_fd(&fd);
		return;
	}
	s->c = *config;
	LIST_INSERT_HEAD(config->sessions, s, entry);
	s->c.sandbox->connections++;
	s->timer.ring = on_timer;
	s->first = zalloc(sizeof(*s->first));
	s->watch = watch_new(wheel_base(config->wheel), fd);
	if (!s->first || !s->watch || watch_for(s->watch, EV_READ)) {
		session_free(s);
		return;
	}
	s->first->session = s;
	s->first->room.done = on_room;
	watch_tell(s->watch, on_readable, s);
	session_renew(s);
	session_timer(s, FIRST_SECONDS);
	if (config->kind == LISTENER_EXPLICIT)
		session_explicit(s);
	else
		session_transparent(s);
}

void sessions_end(struct sessions *sessions, const struct sandbox *sandbox)
{
	struct session *s = LIST_FIRST(sessions), *next;

	for (; s; s = next) {
		next = LIST_NEXT(s, entry);
		if (!sandbox || s->c.sandbox == sandbox)
			session_free(s);
	}
}

void sessions_recheck(struct sessions *sessions, const struct sandbox *sandbox)
{
	struct session *s;

	LIST_FOREACH (s, sessions, entry)
		if (s->c.sandbox == sandbox)
			session_recheck(s);
}
