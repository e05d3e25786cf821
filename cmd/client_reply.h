/* SPDX-License-Identifier: Apache-2.0
 *
 * client_reply.h - the daemon's answer to one request, read piece by piece:
 * proxy/sniff's parsers, which refuse what could be read in two ways.
 *
 * Its end must be said (Content-Length or chunks), so that one that was cut off
 * is never taken for a whole one.
 */
#ifndef CMD_CLIENT_REPLY_H
#define CMD_CLIENT_REPLY_H

#include <stddef.h>

#include "proxy/sniff/http_body.h"

/* A thousand sandboxes, and all that is said of each. */
#define CLIENT_BODY_MAX ((size_t)16 << 20)

struct client_reply {
	int status; /* 200-599 */
	char *body; /* ends in a NUL, which .len does not count */
	size_t len;

	/* Its own. */
	char *data; /* what came and was not yet taken */
	size_t held;
	bool has_head;
	struct http_body reading;
	const char *error; /* static text, after SNIFF_BAD */
};

/* Takes the next @len bytes that came. MORE; DONE: it is whole, nothing came
 * behind it; BAD and .error. */
enum sniff client_reply_read(struct client_reply *reply, const void *data,
			     size_t len);

void client_reply_free(struct client_reply *reply);

#endif
