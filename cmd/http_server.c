/* SPDX-License-Identifier: Apache-2.0
 *
 * http_server.c - evhttp accepts, and tells nobody; nor does it say when a
 * connection is over. But it asks us for the bufferevent of each new one. So we
 * keep a reference to that: what evhttp has let go of has no callbacks any
 * more, and its place is free again (sweep()). Where there is no place, nobody
 * is accepted.
 *
 *	new_bufferevent	a place, and a look at the peer as soon as there is one
 *	on_new		too many of that user: hung up
 *	on_late		a request, or the taking of an answer, lasts too long
 *	on_bytes	a user's bodies together are too long
 *
 * To hang up is to shut down: evhttp sees an end as from any peer.
 */
#include "cmd/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Closed connections are found on each accept, and that often. */
#define SWEEP_MS 200

struct place {
	struct http_server *server;
	struct bufferevent *bev; /* NULL: free */
	struct ucred peer;
	size_t bytes; /* read since the last answer */
	bool known;   /* .peer was asked for */
	struct event *fresh, *late;
};

struct http_request {
	struct http_server *server; /* NULL: it is closed */
	struct evhttp_request *request;
	struct ucred peer;
	struct http_request *next, **at;
};

struct http_server {
	struct event_base *base;
	struct evhttp *http;
	struct evconnlistener *listener;
	struct http_limits limits;
	http_handler_fn *handler;
	void *arg;
	struct event *sweeper;
	struct http_request *requests; /* that wait for their answer */
	struct place place[HTTP_CONNECTIONS_MAX];
};

/* --- places -------------------------------------------------------------- */

static void leave(struct place *place)
{
	event_del(place->fresh);
	event_del(place->late);
	bufferevent_decref(place->bev);
	place->bev = NULL;
}

static bool let_go(struct place *place)
{
	bufferevent_event_cb event_cb;

	/* Until it is accepted, evhttp has not put its own there. */
	if (!place->known)
		return false;
	bufferevent_getcb(place->bev, NULL, NULL, &event_cb, NULL);
	return !event_cb;
}

static size_t sweep(struct http_server *server)
{
	size_t busy = 0;

	for (size_t i = 0; i < server->limits.connections; i++) {
		struct place *place = &server->place[i];

		if (place->bev && let_go(place))
			leave(place);
		busy += place->bev != NULL;
	}
	return busy;
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *server = arg;
	const struct timeval soon = { .tv_usec = SWEEP_MS * 1000 };
	size_t busy = sweep(server);

	(void)fd;
	(void)what;
	if (busy < server->limits.connections)
		evconnlistener_enable(server->listener);
	if (busy)
		event_add(server->sweeper, &soon);
}

static void hang_up(struct place *place)
{
	shutdown(bufferevent_getfd(place->bev), SHUT_RDWR);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hang_up(arg);
}

static void arm(struct place *place)
{
	const struct timeval limit = { .tv_sec =
					       place->server->limits.seconds };

	event_add(place->late, &limit);
}

/* What the same user has, this place included. */
static void sum(const struct place *of, size_t *ret_places, size_t *ret_bytes)
{
	const struct http_server *server = of->server;

	*ret_places = *ret_bytes = 0;
	for (size_t i = 0; i < server->limits.connections; i++) {
		const struct place *place = &server->place[i];

		if (!place->bev || place->peer.uid != of->peer.uid)
			continue;
		(*ret_places)++;
		*ret_bytes += place->bytes;
	}
}

static void on_bytes(struct evbuffer *buffer,
		     const struct evbuffer_cb_info *info, void *arg)
{
	struct place *place = arg;
	size_t places, bytes;

	(void)buffer;
	place->bytes += info->n_added;
	sum(place, &places, &bytes);
	if (bytes > place->server->limits.held_bytes)
		hang_up(place);
}

/* Runs before anything is read: what is active goes before what is ready. */
static void on_new(evutil_socket_t fd, short what, void *arg)
{
	struct place *place = arg;
	socklen_t len = sizeof(place->peer);
	size_t places, bytes;

	(void)what;
	place->known = true;
	fd = bufferevent_getfd(place->bev);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &place->peer, &len) < 0) {
		place->peer.uid = (uid_t)-1;
		hang_up(place);
		return;
	}
	sum(place, &places, &bytes);
	if (place->peer.uid != 0 &&
	    places > place->server->limits.user_connections)
		hang_up(place);
}

static struct place *find_free(struct http_server *server)
{
	for (size_t i = 0; i < server->limits.connections; i++)
		if (!server->place[i].bev)
			return &server->place[i];
	return NULL;
}

static struct bufferevent *new_bufferevent(struct event_base *base, void *arg)
{
	struct http_server *server = arg;
	const struct timeval soon = { .tv_usec = SWEEP_MS * 1000 };
	struct place *place = find_free(server);
	struct bufferevent *bev =
		bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	/* evhttp makes one itself then: of a peer that nobody knows, whom
	 * find() does not find. */
	if (!place || !bev)
		return bev;
	bufferevent_incref(bev);
	place->bev = bev;
	place->bytes = 0;
	place->known = false;
	place->peer = (struct ucred){ .uid = (uid_t)-1 };
	evbuffer_add_cb(bufferevent_get_input(bev), on_bytes, place);
	event_active(place->fresh, EV_TIMEOUT, 0);
	arm(place);
	event_add(server->sweeper, &soon);
	if (sweep(server) == server->limits.connections)
		evconnlistener_disable(server->listener);
	return bev;
}

static struct place *find(struct http_server *server,
			  struct evhttp_request *request)
{
	struct evhttp_connection *connection =
		evhttp_request_get_connection(request);

	for (size_t i = 0; connection && i < server->limits.connections; i++)
		if (server->place[i].bev &&
		    server->place[i].bev ==
			    evhttp_connection_get_bufferevent(connection))
			return &server->place[i];
	return NULL;
}

/* --- requests ------------------------------------------------------------ */

static void forget(struct http_request *request)
{
	*request->at = request->next;
	if (request->next)
		request->next->at = request->at;
}

/* The answer has been taken: a time for the next request begins. */
static void on_taken(struct evhttp_request *evreq, void *arg)
{
	struct place *place = find(arg, evreq);

	if (!place)
		return;
	place->bytes = 0;
	arm(place);
}

static void on_request(struct evhttp_request *evreq, void *arg)
{
	struct http_server *server = arg;
	struct place *place = find(server, evreq);
	struct http_request *request = calloc(1, sizeof(*request));

	/* Its peer has not been looked at; or there is no memory. */
	if (!place || place->peer.uid == (uid_t)-1 || !request) {
		free(request);
		evhttp_send_error(evreq, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	event_del(place->late);
	*request = (struct http_request){ .server = server,
					  .request = evreq,
					  .peer = place->peer,
					  .next = server->requests,
					  .at = &server->requests };
	if (request->next)
		request->next->at = &request->next;
	server->requests = request;
	evhttp_request_set_on_complete_cb(evreq, on_taken, server);
	server->handler(server->arg, request);
}

const struct ucred *http_request_peer(const struct http_request *request)
{
	return &request->peer;
}

bool http_request_member(const struct http_request *request, gid_t group)
{
	const struct place *place = find(request->server, request->request);
	gid_t groups[NGROUPS_MAX / 64];
	socklen_t len = sizeof(groups);

	if (request->peer.gid == group)
		return true;
	/* Who is in more groups than that is in none. */
	if (!place || getsockopt(bufferevent_getfd(place->bev), SOL_SOCKET,
				 SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}

const char *http_request_method(const struct http_request *request)
{
	switch (evhttp_request_get_command(request->request)) {
	case EVHTTP_REQ_GET:
		return "GET";
	case EVHTTP_REQ_POST:
		return "POST";
	case EVHTTP_REQ_PUT:
		return "PUT";
	case EVHTTP_REQ_DELETE:
		return "DELETE";
	default:
		return "?";
	}
}

const char *http_request_path(const struct http_request *request)
{
	const struct evhttp_uri *uri =
		evhttp_request_get_evhttp_uri(request->request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

	return path ? path : "";
}

const char *http_request_header(const struct http_request *request,
				const char *name)
{
	return evhttp_find_header(
		evhttp_request_get_input_headers(request->request), name);
}

const char *http_request_body(struct http_request *request, size_t *ret_len)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(request->request);

	*ret_len = evbuffer_get_length(in);
	return *ret_len ? (const char *)evbuffer_pullup(in, -1) : NULL;
}

void http_reply(struct http_request *request, int status, const char *type,
		const char *body, size_t len)
{
	struct evhttp_request *evreq = request->request;
	struct place *place;
	struct evbuffer *out;

	if (!request->server) {
		free(request);
		return;
	}
	place = find(request->server, evreq);
	if (place)
		arm(place);
	forget(request);
	free(request);
	out = evbuffer_new();
	if (!out || evbuffer_add(out, body, len)) {
		if (out)
			evbuffer_free(out);
		evhttp_send_error(evreq, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	evhttp_add_header(evhttp_request_get_output_headers(evreq),
			  "Content-Type", type);
	evhttp_send_reply(evreq, status, NULL, out); /* the usual phrase */
	evbuffer_free(out);
}

/* --- the server ---------------------------------------------------------- */

static bool make_events(struct http_server *server)
{
	server->sweeper = evtimer_new(server->base, on_sweep, server);
	for (size_t i = 0; i < server->limits.connections; i++) {
		struct place *place = &server->place[i];

		place->server = server;
		place->fresh = evtimer_new(server->base, on_new, place);
		place->late = evtimer_new(server->base, on_late, place);
		if (!place->fresh || !place->late)
			return false;
	}
	return server->sweeper != NULL;
}

static int start(struct http_server *server, int *fd)
{
	const struct http_limits *limits = &server->limits;

	if (!make_events(server) || !(server->http = evhttp_new(server->base)))
		return -ENOMEM;
	server->listener = evconnlistener_new(
		server->base, NULL, NULL,
		LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, *fd);
	if (!server->listener)
		return -ENOMEM;
	*fd = -1;
	if (!evhttp_bind_listener(server->http, server->listener)) {
		evconnlistener_free(server->listener);
		return -ENOMEM;
	}
	evhttp_set_max_headers_size(server->http,
				    (ev_ssize_t)limits->header_bytes);
	evhttp_set_max_body_size(server->http, (ev_ssize_t)limits->body_bytes);
	evhttp_set_timeout(server->http, (int)limits->seconds);
	evhttp_set_allowed_methods(server->http,
				   EVHTTP_REQ_GET | EVHTTP_REQ_POST |
					   EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE);
	evhttp_set_bevcb(server->http, new_bufferevent, server);
	evhttp_set_gencb(server->http, on_request, server);
	return 0;
}

int http_server_open(struct event_base *base, int fd,
		     const struct http_limits *limits, http_handler_fn *handler,
		     void *arg, struct http_server **ret_server)
{
	struct http_server *server = calloc(1, sizeof(*server));
	int err = server ? 0 : -ENOMEM;

	if (!err) {
		server->base = base;
		server->limits = *limits;
		if (server->limits.connections > HTTP_CONNECTIONS_MAX)
			server->limits.connections = HTTP_CONNECTIONS_MAX;
		server->handler = handler;
		server->arg = arg;
		if (evutil_make_socket_nonblocking(fd) < 0)
			err = -errno;
	}
	if (!err)
		err = start(server, &fd);
	if (err) {
		close_fd(&fd);
		http_server_close(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

static void free_event(struct event *event)
{
	if (event)
		event_free(event);
}

void http_server_close(struct http_server *server)
{
	if (!server)
		return;
	while (server->requests) {
		struct http_request *request = server->requests;

		forget(request);
		request->server = NULL;
	}
	if (server->http)
		evhttp_free(server->http);
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		struct place *place = &server->place[i];

		if (place->bev)
			leave(place);
		free_event(place->fresh);
		free_event(place->late);
	}
	free_event(server->sweeper);
	free(server);
}
