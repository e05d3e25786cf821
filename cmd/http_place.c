/* SPDX-License-Identifier: Apache-2.0
 *
 * http_place.c - evhttp accepts, and tells nobody; nor does it say when a
 * connection is over. But it asks us for the bufferevent of each new one. So we
 * keep a reference to that: what evhttp has let go of has no callbacks any
 * more, and its place is free again (sweep()). Where there is no place, nobody
 * is accepted.
 *
 *	http_place_new	a place, and a look at the peer as soon as there is one
 *	on_new		too many of that user: hung up
 *	on_late		a request, or the taking of an answer, lasts too long
 *	on_bytes	a user's bodies together are too long
 *	on_no_accept	no descriptor is left: after a while again
 *
 * To hang up is to shut down: evhttp sees an end as from any peer.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "cmd/http_impl.h"

/* Closed connections are found on each accept, and that often. */
#define SWEEP_MS 200

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

/* A failed accept is told with the evhttp that it was for, not with us. */
static struct http_server *listening;

/* Who waits stays ready: without a pause we would ask for nothing else. */
static void on_no_accept(struct evconnlistener *listener, void *http)
{
	const struct timeval soon = { .tv_usec = SWEEP_MS * 1000 };
	struct http_server *server = listening;

	(void)http;
	while (server && server->listener != listener)
		server = server->next;
	if (!server)
		return;
	evconnlistener_disable(listener);
	event_add(server->sweeper, &soon);
}

void http_places_listen(struct http_server *server)
{
	server->next = listening;
	listening = server;
	evconnlistener_set_error_cb(server->listener, on_no_accept);
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

void http_place_arm(struct place *place)
{
	const struct timeval limit = { .tv_sec =
					       place->server->limits.seconds };

	event_add(place->late, &limit);
}

void http_place_disarm(struct place *place)
{
	event_del(place->late);
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

/* Places that are root's, or about to be known, are not counted. */
static size_t others_than_root(const struct http_server *server)
{
	size_t n = 0;

	for (size_t i = 0; i < server->limits.connections; i++) {
		const struct place *place = &server->place[i];

		n += place->bev && place->known && place->peer.uid != 0;
	}
	return n;
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

/* What was sent already could still be read, and be done for nobody. Nothing
 * more comes after that, so this ends. */
static void refuse(struct place *place)
{
	const int fd = bufferevent_getfd(place->bev);
	char unread[4096];

	hang_up(place);
	while (recv(fd, unread, sizeof(unread), MSG_DONTWAIT) > 0)
		;
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
		refuse(place);
		return;
	}
	sum(place, &places, &bytes);
	if (place->peer.uid != 0 &&
	    (places > place->server->limits.user_connections ||
	     others_than_root(place->server) +
			     place->server->limits.root_connections >
		     place->server->limits.connections))
		refuse(place);
}

static struct place *find_free(struct http_server *server)
{
	for (size_t i = 0; i < server->limits.connections; i++)
		if (!server->place[i].bev)
			return &server->place[i];
	return NULL;
}

struct bufferevent *http_place_new(struct event_base *base, void *arg)
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
	http_place_arm(place);
	event_add(server->sweeper, &soon);
	if (sweep(server) == server->limits.connections)
		evconnlistener_disable(server->listener);
	return bev;
}

struct place *http_place_find(struct http_server *server,
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

/* --- all of them --------------------------------------------------------- */

bool http_places_make(struct http_server *server)
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

static void free_event(struct event *event)
{
	if (event)
		event_free(event);
}

void http_places_free(struct http_server *server)
{
	for (struct http_server **at = &listening; *at; at = &(*at)->next)
		if (*at == server) {
			*at = server->next;
			break;
		}
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		struct place *place = &server->place[i];

		if (place->bev)
			leave(place);
		free_event(place->fresh);
		free_event(place->late);
	}
	free_event(server->sweeper);
}
