/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.h - plain HTTP/1 on one client connection: each request decided
 * alone, re-serialised from its parsed form, sent on an upstream connection of
 * its own, the response re-serialised too; then the next request.
 */
#ifndef PROXY_EXCHANGE_H
#define PROXY_EXCHANGE_H

#include "policy/services.h"

struct exchange;
struct fold;
struct watch;
struct wheel;

struct exchange_config {
	struct wheel *wheel;
	const struct services *services;
	struct sandbox *sandbox;
	enum door door; /* DOOR_HTTP: absolute-form; else origin-form */
	struct ip src_ip;
	uint16_t src_port;
	/* The authority all requests must name: the lease of a transparent
	 * connection, or what CONNECT or SOCKS asked for. NULL and .len 0: the
	 * request's own (explicit proxy, or `serve`). */
	const char *host;
	struct ip address;
	uint16_t port; /* 0: the request's own */
	/* If there is no host nor address, but .len: each request must name one
	 * of the names that were answered with this address. */
	struct ip names_at;
	struct fold *fold; /* for refusals by rate; may be NULL */
	/* The connection ended; the exchange is freed after it returns. Never
	 * called from within exchange_start(). */
	void (*closed)(void *arg);
	void *arg;
	/* Limits in ms; 0: 10 s for a head, 60 s without a request, 60 s for a
	 * response to begin, 5 min of silence in bodies. */
	unsigned head_ms, idle_ms, response_ms, body_ms;
};

/* Takes @client (closed also on failure). @first: bytes read already, copied. 0
 * or -errno. */
int exchange_start(const struct exchange_config *config, struct watch *client,
		   const void *first, size_t len,
		   struct exchange **ret_exchange);
/* Ends it now. closed() is not called. NULL is fine. */
void exchange_abort(struct exchange *exchange);

/* The same, with RST both ways; a request under way is recorded as cut for
 * @reason. */
void exchange_revoke(struct exchange *exchange, enum reason reason);
/* The sandbox has another policy: a request under way that is not allowed any
 * more is cut, and the connection with it. May call closed(). */
void exchange_recheck(struct exchange *exchange);

#endif
