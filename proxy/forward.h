/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.h - a port of the sandbox that is published: connections that come in
 * from outside. Each is recorded before a byte of it moves, as a flow of the
 * door "published"; it is no way out, for only its own answers go back on it.
 *
 *	RECORD	the ledger has its opening; then SOCKET
 *	SOCKET	for one that can be connected to the sandbox; then DIAL
 *	DIAL	connecting; then RELAY
 *	RELAY	a tunnel has both sockets, until it ends
 *
 * What goes wrong ends it, recorded, with RST to the client; so does a minute
 * without getting to RELAY.
 */
#ifndef PROXY_FORWARD_H
#define PROXY_FORWARD_H

#include "policy/services.h"

struct event_base;
struct forward;

struct forward_config {
	struct event_base *base;
	const struct services *services; /* outlives it, as does: */
	struct sandbox *sandbox;
	struct endpoint at; /* where it listens, for the record */
	uint16_t port;	    /* of the sandbox */
	/* A non-blocking TCP socket, the callee's, that is bound and can be
	 * connected to the sandbox. -EAGAIN: @wait is done with 0 when it is
	 * time to ask again, or with -errno. Else -errno. */
	int (*socket)(void *ctx, struct wait *wait);
	void (*socket_cancel)(void *ctx, struct wait *wait);
	void *ctx;
};

/* Takes @fd, which listens. 0 or -errno. */
int forward_new(const struct forward_config *config, int fd,
		struct forward **ret_forward);
/* Ends its connections, with a record each. */
void forward_end(struct forward *forward);
/* The same, and itself. NULL is fine. */
void forward_free(struct forward *forward);

#endif
