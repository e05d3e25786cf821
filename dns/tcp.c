/* SPDX-License-Identifier: Apache-2.0
 *
 * tcp.c - connections with fixed buffers and one deadline.
 *
 * A connection reads a question only while there is room for its answer, so
 * that a client that does not read its answers stops being heard and never
 * makes us hold more. Its deadline moves only with whole questions and answers:
 * sending a byte now and then does not keep it open. When there are too many,
 * the one that was idle for the longest time makes room, among those of the
 * same sandbox if that one has its share.
 *
 * A half-closed connection gets its answers, then it is closed.
 */
#include "dns/tcp.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/sock.h"

#define CONNS_MAX	  64
#define CONNS_SANDBOX_MAX 16
#define PIPELINE_MAX	  8 /* questions under way on one connection */
#define IDLE_S		  10
#define PAUSE_S		  1 /* without file descriptors */
#define PREFIX_LEN	  2
#define REPLY_SIZE	  (PREFIX_LEN + DNS_REPLY_TCP_MAX)

struct conn {
	TAILQ_ENTRY(conn) entry; /* by age of the last whole message */
	struct tcp *tcp;
	const struct sandbox *sandbox;
	struct dns_peer peer;
	int fd;
	struct event *readable, *writable, *deadline;
	unsigned in_flight;
	struct wait room; /* whole questions are left unread meanwhile */
	bool ended;	  /* the client sends no more */
	bool parsing;	  /* on the stack: freed by whoever parses */
	bool broken;
	size_t in_len, out_at, out_len; /* out: from out_at to out_len */
	uint8_t in[PREFIX_LEN + DNS_QUERY_MAX];
	uint8_t out[PIPELINE_MAX * REPLY_SIZE];
};

struct tcp {
	struct event_base *base;
	const struct services *services;
	struct filter *filter;
	int fd;
	struct event *acceptable, *resume;
	TAILQ_HEAD(conn_list, conn) conns;
	unsigned count;
};

static void conn_free(struct conn *conn)
{
	struct tcp *tcp = conn->tcp;

	filter_forget(tcp->filter, conn);
	filter_room_cancel(tcp->filter, &conn->room);
	TAILQ_REMOVE(&tcp->conns, conn, entry);
	tcp->count--;
	if (conn->readable)
		event_free(conn->readable);
	if (conn->writable)
		event_free(conn->writable);
	if (conn->deadline)
		event_free(conn->deadline);
	close(conn->fd);
	free(conn);
}

/* Something whole came or went: the youngest of all, with a new deadline. */
static void conn_touch(struct conn *conn)
{
	static const struct timeval idle = { .tv_sec = IDLE_S };

	evtimer_add(conn->deadline, &idle);
	TAILQ_REMOVE(&conn->tcp->conns, conn, entry);
	TAILQ_INSERT_TAIL(&conn->tcp->conns, conn, entry);
}

/* Is there room for the answer to one more question? */
static bool has_room(const struct conn *conn)
{
	size_t used = conn->out_len - conn->out_at;

	return conn->in_flight < PIPELINE_MAX &&
	       used + (conn->in_flight + 1) * REPLY_SIZE <= sizeof(conn->out);
}

/* What is watched follows from what the buffers hold. */
static void conn_rearm(struct conn *conn)
{
	if (!conn->ended && has_room(conn) && !conn->room.seq)
		event_add(conn->readable, NULL);
	else
		event_del(conn->readable);
	if (conn->out_len > conn->out_at)
		event_add(conn->writable, NULL);
	else
		event_del(conn->writable);
}

/* Sends what can be sent. False if the connection is broken. */
static bool conn_send(struct conn *conn)
{
	while (conn->out_at < conn->out_len) {
		ssize_t n = send(conn->fd, conn->out + conn->out_at,
				 conn->out_len - conn->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		conn->out_at += (size_t)n;
	}
	conn->out_at = conn->out_len = 0;
	return true;
}

/* Hands whole questions to the filter, while there is room for the answers. */
static void conn_parse(struct conn *conn)
{
	size_t at = 0;

	conn->parsing = true;
	while (!conn->broken && has_room(conn)) {
		struct wire w = wire_of(conn->in + at, conn->in_len - at);
		size_t len = wire_u16(&w);

		if (!wire_ok(&w) ||
		    !filter_room(conn->tcp->filter, &conn->room))
			break;
		if (len < DNS_HEADER_LEN || len > DNS_QUERY_MAX) {
			/* No question: recorded as one, and the end. */
			conn->broken = true;
			conn->in_flight++;
			filter_query(conn->tcp->filter, &conn->peer, w.at, 0);
			break;
		}
		const uint8_t *data = wire_take(&w, len);
		if (!data)
			break;
		at += PREFIX_LEN + len;
		conn->in_flight++;
		conn_touch(conn);
		filter_query(conn->tcp->filter, &conn->peer, data, len);
	}
	conn->parsing = false;
	memmove(conn->in, conn->in + at, conn->in_len - at);
	conn->in_len -= at;
}

/* Goes on with whatever can go on. @conn may be gone after that. */
static void conn_advance(struct conn *conn)
{
	conn_parse(conn);
	if (!conn_send(conn))
		conn->broken = true;
	/* Sending may have made room for what was read already. */
	if (!conn->broken && conn->in_len > PREFIX_LEN && has_room(conn)) {
		conn_parse(conn);
		if (!conn_send(conn))
			conn->broken = true;
	}
	if (conn->broken || (conn->ended && !conn->in_flight &&
			     !conn->room.seq && conn->out_at == conn->out_len))
		conn_free(conn);
	else
		conn_rearm(conn);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;
	ssize_t n;

	(void)what;
	if (conn->in_len < sizeof(conn->in)) {
		n = recv(fd, conn->in + conn->in_len,
			 sizeof(conn->in) - conn->in_len, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
		if (n < 0)
			conn->broken = true;
		else if (n == 0)
			conn->ended = true;
		else
			conn->in_len += (size_t)n;
	}
	conn_advance(conn);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_advance(arg);
}

static void on_room(struct wait *wait, int status)
{
	(void)status;
	conn_advance(CONTAINER_OF(wait, struct conn, room));
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_free(arg);
}

void tcp_reply(struct tcp *tcp, const struct dns_peer *peer, const void *data,
	       size_t len)
{
	struct conn *conn = peer->conn;
	struct wirebuf b;

	(void)tcp;
	conn->in_flight--;
	/* What was sent already makes room; has_room() saw to the rest. */
	memmove(conn->out, conn->out + conn->out_at,
		conn->out_len - conn->out_at);
	conn->out_len -= conn->out_at;
	conn->out_at = 0;
	b = wirebuf_of(conn->out + conn->out_len,
		       sizeof(conn->out) - conn->out_len);
	wirebuf_u16(&b, (uint16_t)len);
	wirebuf_put(&b, data, len);
	if (!len || b.full)
		conn->broken = true;
	else
		conn->out_len += b.len;
	conn_touch(conn);
	if (!conn->parsing)
		conn_advance(conn);
}

/* --- new connections ----------------------------------------------------- */

/* Closes the connection that was idle for the longest time, of @sandbox or, if
 * that is NULL, of any. False if all are busy. */
static bool make_room(struct tcp *tcp, const struct sandbox *sandbox)
{
	struct conn *conn;

	TAILQ_FOREACH (conn, &tcp->conns, entry) {
		if (conn->in_flight || conn->out_len > conn->out_at ||
		    (sandbox && conn->sandbox != sandbox))
			continue;
		conn_free(conn);
		return true;
	}
	return false;
}

static bool within_limits(struct tcp *tcp, const struct sandbox *sandbox)
{
	struct conn *conn;
	unsigned own = 0;

	TAILQ_FOREACH (conn, &tcp->conns, entry)
		own += conn->sandbox == sandbox;
	if (own >= CONNS_SANDBOX_MAX)
		return make_room(tcp, sandbox);
	return tcp->count < CONNS_MAX || make_room(tcp, NULL);
}

static struct conn *conn_new(struct tcp *tcp, int fd,
			     const struct sandbox *sandbox)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		close(fd);
		return NULL;
	}
	conn->tcp = tcp;
	conn->fd = fd;
	conn->sandbox = sandbox;
	conn->room.done = on_room;
	TAILQ_INSERT_TAIL(&tcp->conns, conn, entry);
	tcp->count++;
	conn->readable = event_new(tcp->base, fd, EV_READ | EV_PERSIST,
				   on_readable, conn);
	conn->writable = event_new(tcp->base, fd, EV_WRITE | EV_PERSIST,
				   on_writable, conn);
	conn->deadline = evtimer_new(tcp->base, on_deadline, conn);
	if (!conn->readable || !conn->writable || !conn->deadline) {
		conn_free(conn);
		return NULL;
	}
	return conn;
}

/* Takes @fd, if its sandbox is known and has not too many connections. */
static void greet(struct tcp *tcp, int fd, const union sockaddr_any *from)
{
	struct dns_peer peer = { .src = ip_from_sockaddr(from),
				 .src_port = port_from_sockaddr(from) };
	union sockaddr_any own;
	socklen_t len = sizeof(own);
	const struct sandbox *sandbox;
	struct conn *conn;

	/* 0 is no interface: a sandbox that has one is not found by it. */
	if (sock_ingress(fd, &peer.ifindex))
		peer.ifindex = 0;
	if (getsockname(fd, &own.sa, &len) == 0) {
		peer.dst = ip_from_sockaddr(&own);
		peer.dst_port = port_from_sockaddr(&own);
	}
	sandbox = tcp->services->sandbox_of(tcp->services->ctx, peer.ifindex,
					    &peer.src);
	if (!sandbox || !within_limits(tcp, sandbox)) {
		sock_reset_on_close(fd);
		close(fd);
		return;
	}
	conn = conn_new(tcp, fd, sandbox);
	if (!conn)
		return;
	conn->peer = peer;
	conn->peer.conn = conn;
	conn_touch(conn);
	conn_rearm(conn);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval pause = { .tv_sec = PAUSE_S };
	struct tcp *tcp = arg;

	(void)what;
	for (int i = 0; i < CONNS_SANDBOX_MAX; i++) {
		union sockaddr_any from;
		socklen_t len = sizeof(from);
		int got = accept4(fd, &from.sa, &len,
				  SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (got >= 0) {
			greet(tcp, got, &from);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS) {
			event_del(tcp->acceptable);
			evtimer_add(tcp->resume, &pause);
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct tcp *tcp = arg;

	(void)fd;
	(void)what;
	event_add(tcp->acceptable, NULL);
}

int tcp_new(struct event_base *base, int fd, const struct services *services,
	    struct filter *filter, struct tcp **ret_tcp)
{
	struct tcp *tcp = calloc(1, sizeof(*tcp));
	int err;

	if (!tcp) {
		close(fd);
		return -ENOMEM;
	}
	tcp->base = base;
	tcp->fd = fd;
	tcp->services = services;
	tcp->filter = filter;
	TAILQ_INIT(&tcp->conns);
	err = sock_nonblock(fd);
	if (!err) {
		tcp->acceptable = event_new(base, fd, EV_READ | EV_PERSIST,
					    on_acceptable, tcp);
		tcp->resume = evtimer_new(base, on_resume, tcp);
		if (!tcp->acceptable || !tcp->resume ||
		    event_add(tcp->acceptable, NULL))
			err = -ENOMEM;
	}
	if (err) {
		tcp_free(tcp);
		return err;
	}
	*ret_tcp = tcp;
	return 0;
}

void tcp_forget_sandbox(struct tcp *tcp, const struct sandbox *sandbox)
{
	struct conn *next;

	for (struct conn *c = TAILQ_FIRST(&tcp->conns); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->sandbox == sandbox)
			conn_free(c);
	}
}

void tcp_free(struct tcp *tcp)
{
	if (!tcp)
		return;
	while (!TAILQ_EMPTY(&tcp->conns))
		conn_free(TAILQ_FIRST(&tcp->conns));
	if (tcp->acceptable)
		event_free(tcp->acceptable);
	if (tcp->resume)
		event_free(tcp->resume);
	close(tcp->fd);
	free(tcp);
}
