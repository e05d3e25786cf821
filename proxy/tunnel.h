/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel.h - bytes between two sockets: copied while few, splice(2)d through
 * pooled pipes once a read fills the buffer; half-close kept; idle timeout.
 *
 * The client's first bytes can be held until they are classified, while the
 * server's already flow (it may speak first).
 */
#ifndef PROXY_TUNNEL_H
#define PROXY_TUNNEL_H

#include <stddef.h>
#include <stdint.h>

#include "proxy/sniff/sniff.h"

struct event_base;
struct tunnel;

struct tunnel_ops {
	/* All client bytes so far (at most SNIFF_MAX). DONE: let them and what
	 * follows through; MORE: wait; BAD: the tunnel ends with "refused" and
	 * no held byte goes upstream. NULL: nothing is held. */
	enum sniff (*classify)(void *arg, const uint8_t *data, size_t len);
	/* The client half-closed or was silent for 10 s (or @held_ms) while held
	 * bytes were incomplete: BAD ends it, DONE lets them through. Required
	 * with classify. */
	enum sniff (*incomplete)(void *arg, const uint8_t *data, size_t len);
	/* Every 10 MB or 30 s with traffic. May be NULL. */
	void (*progress)(void *arg, uint64_t up, uint64_t down);
	/* Once, at the end; both sockets are closed. @how: static text: "eof",
	 * "reset by client", "reset by server", "idle timeout", "refused",
	 * "error". The tunnel is freed after it returns. Never called from
	 * within tunnel_new(). */
	void (*closed)(void *arg, uint64_t up, uint64_t down, const char *how);
};

struct tunnel_limits {
	unsigned idle_ms;     /* both ways silent; 0: 1 h */
	unsigned classify_ms; /* 0: 10 s */
};

/* Takes both sockets, which must be non-blocking (closed also on failure).
 * @first, @len: client bytes read already, copied, classified like the rest,
 * but never from within this call. @ops outlives the tunnel. 0 or -errno. */
int tunnel_new(struct event_base *base, int client_fd, int server_fd,
	       const uint8_t *first, size_t len, const struct tunnel_limits *limits,
	       const struct tunnel_ops *ops, void *arg,
	       struct tunnel **ret_tunnel);

/* Ends it now, with RST both ways; closed() is not called. May be called from
 * any of the ops. NULL is fine. */
void tunnel_abort(struct tunnel *tunnel, uint64_t *ret_up, uint64_t *ret_down);

/* What to send to the client before it is closed when classify() refuses, e.g.
 * a TLS alert. At most 64 bytes; copied. Call from within classify(). */
void tunnel_refuse_with(struct tunnel *tunnel, const void *data, size_t len);

/* Frees pipes kept for reuse. */
void tunnel_pool_free(void);

#endif
