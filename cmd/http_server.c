/* SPDX-License-Identifier: Apache-2.0
 *
 * http_server.c - evhttp, and its requests in our words. Who may connect, how
 * often and for how long is http_place.c's.
 */
#include "cmd/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/http_impl.h"

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
	struct place *place = http_place_find(arg, evreq);

	if (!place)
		return;
	place->bytes = 0;
	http_place_arm(place);
}

static void on_request(struct evhttp_request *evreq, void *arg)
{
	struct http_server *server = arg;
	struct place *place = http_place_find(server, evreq);
	struct http_request *request = calloc(1, sizeof(*request));

	/* Its peer has not been looked at; or there is no memory. */
	if (!place || place->peer.uid == (uid_t)-1 || !request) {
		free(request);
		evhttp_send_error(evreq, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	http_place_disarm(place);
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
	const struct place *place =
		request->server
			? http_place_find(request->server, request->request)
			: NULL;
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
	switch (request->server ? evhttp_request_get_command(request->request)
				: 0) {
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
		request->server
			? evhttp_request_get_evhttp_uri(request->request)
			: NULL;
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

	return path ? path : "";
}

const char *http_request_header(const struct http_request *request,
				const char *name)
{
	if (!request->server)
		return NULL;
	return evhttp_find_header(
		evhttp_request_get_input_headers(request->request), name);
}

const char *http_request_body(struct http_request *request, size_t *ret_len)
{
	struct evbuffer *in;

	*ret_len = 0;
	if (!request->server)
		return NULL;
	in = evhttp_request_get_input_buffer(request->request);
	*ret_len = evbuffer_get_length(in);
	return *ret_len ? (const char *)evbuffer_pullup(in, -1) : NULL;
}

struct evbuffer *http_request_take_body(struct http_request *request)
{
	struct evbuffer *body = evbuffer_new();

	if (body && request->server &&
	    evbuffer_add_buffer(
		    body, evhttp_request_get_input_buffer(request->request))) {
		evbuffer_free(body);
		return NULL;
	}
	return body;
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
	place = http_place_find(request->server, evreq);
	if (place)
		http_place_arm(place);
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

static int start(struct http_server *server, int *fd)
{
	const struct http_limits *limits = &server->limits;

	if (!http_places_make(server) ||
	    !(server->http = evhttp_new(server->base)))
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
	http_places_listen(server);
	evhttp_set_max_headers_size(server->http,
				    (ev_ssize_t)limits->header_bytes);
	evhttp_set_max_body_size(server->http, (ev_ssize_t)limits->body_bytes);
	evhttp_set_timeout(server->http, (int)limits->seconds);
	evhttp_set_allowed_methods(server->http,
				   EVHTTP_REQ_GET | EVHTTP_REQ_POST |
					   EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE);
	evhttp_set_bevcb(server->http, http_place_new, server);
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
	http_places_free(server);
	free(server);
}
