/* SPDX-License-Identifier: Apache-2.0
 *
 * http_server.h - HTTP/1.1 on a unix socket: libevent's evhttp, with what it
 * does not do itself. Who asks is known by the kernel (SO_PEERCRED), and what
 * anybody can make us hold is limited.
 *
 * A request is whole when its handler sees it, and gets exactly one answer, at
 * once or later. Until then nothing is read from its connection.
 */
#ifndef CMD_HTTP_SERVER_H
#define CMD_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct evbuffer;
struct event_base;
struct http_request;
struct http_server;

#define HTTP_CONNECTIONS_MAX 64

struct http_limits {
	size_t header_bytes, body_bytes; /* of one request */
	size_t held_bytes;    /* of the bodies of all connections of a user */
	unsigned seconds;     /* for sending one, and for taking an answer */
	unsigned connections; /* at most HTTP_CONNECTIONS_MAX */
	unsigned user_connections; /* of one uid other than 0 */
	unsigned root_connections; /* that all others leave to root */
};

typedef void http_handler_fn(void *arg, struct http_request *request);

/* Serves who connects to @fd, a listening unix socket, which is taken. SIGPIPE
 * has to be ignored. 0 or -errno. */
int http_server_open(struct event_base *base, int fd,
		     const struct http_limits *limits, http_handler_fn *handler,
		     void *arg, struct http_server **ret_server);
/* Requests that wait for an answer are dropped; what is said to them later is
 * lost. NULL is fine. */
void http_server_close(struct http_server *server);

/* All valid until the answer; empty when the server is closed. */
const struct ucred *http_request_peer(const struct http_request *request);
/* Is it of that group, by the kernel's word? */
bool http_request_member(const struct http_request *request, gid_t group);
/* "GET", "POST", "PUT", "DELETE", or "?". */
const char *http_request_method(const struct http_request *request);
/* Without the query; never NULL. */
const char *http_request_path(const struct http_request *request);
/* NULL: there is none. */
const char *http_request_header(const struct http_request *request,
				const char *name);
/* Not terminated; NULL and 0 where there is none. */
const char *http_request_body(struct http_request *request, size_t *ret_len);

/* All of it, the caller's to free with evbuffer_free(): there is no body any
 * more. NULL: no memory. */
struct evbuffer *http_request_take_body(struct http_request *request);

/* The one answer; @type is its Content-Type. @request is gone. */
void http_reply(struct http_request *request, int status, const char *type,
		const char *body, size_t len);

#endif
