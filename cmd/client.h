/* SPDX-License-Identifier: Apache-2.0
 *
 * client.h - one request to the daemon, and its answer: HTTP/1.1 over the
 * control socket, a connection each.
 */
#ifndef CMD_CLIENT_H
#define CMD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/client_reply.h"

/* Longer than the daemon gives a request. */
#define CLIENT_TIMEOUT_MS 60000

struct client_request {
	const char *socket;	   /* path */
	const char *method, *path; /* path: of characters that need no escape */
	const char *body;	   /* JSON, or NULL */
	size_t len;
	int timeout_ms; /* for all of it */
};

/* Asks, and waits for the answer, whatever its status is; the caller frees it.
 * 0, or -errno and a sentence in @reterr: -ENOENT, -ECONNREFUSED where there is
 * no daemon; -EACCES where we may not ask it, or it is not root's (nor ours):
 * who answers says which namespace is entered. */
int client_ask(const struct client_request *request,
	       struct client_reply *ret_reply, char *reterr, size_t cap);

/* Is @name one that a sandbox can have: 1 to 63 small letters, digits, '.', '_'
 * and '-', a letter or digit first? Such a name is itself in a path. */
bool client_name(const char *name);

#endif
