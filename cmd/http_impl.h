/* SPDX-License-Identifier: Apache-2.0
 *
 * http_impl.h - what the two files of the server share; nobody else's.
 */
#ifndef CMD_HTTP_IMPL_H
#define CMD_HTTP_IMPL_H

#include <event2/util.h>

#include "cmd/http_server.h"

struct bufferevent;
struct event;
struct evhttp_request;

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
	struct http_server *next; /* that listens */
};

/* http_place.c. Makes the events of all places. False: no memory. */
bool http_places_make(struct http_server *server);
void http_places_free(struct http_server *server);
/* Looks after the listener, once evhttp has it. */
void http_places_listen(struct http_server *server);
/* For evhttp_set_bevcb(): a bufferevent, and its place. */
struct bufferevent *http_place_new(struct event_base *base, void *server);
/* The place of a request's connection, or NULL. */
struct place *http_place_find(struct http_server *server,
			      struct evhttp_request *request);
/* From now on there is a limited time, or none. */
void http_place_arm(struct place *place);
void http_place_disarm(struct place *place);

#endif
