/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel.h - bytes between two sockets: copied while few, splice(2)d through
 * pooled pipes once a read fills the buffer; half-close kept; idle timeout.
 *
 * The client's first bytes can be held until they are classified, while the
 * server's already flow (it may speak first). Some of them can be let through
 * and the rest held until it is known what the server makes of those: TLS may
 * start twice.
 */
#ifndef PROXY_TUNNEL_H
#define PROXY_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/sniff/sniff.h"

struct meters;
struct tunnel;
struct watch;
struct wheel;

enum tunnel_answer {
	TUNNEL_WATCH,	 /* show me the next bytes too */
	TUNNEL_CLASSIFY, /* classify() is asked again */
	TUNNEL_RELEASE,	 /* nothing is held any more */
	TUNNEL_REFUSE,	 /* as BAD of classify() */
};

struct tunnel_ops {
	/* All client bytes held so far (at most SNIFF_MAX). DONE: let them and
	 * what follows through; MORE: wait; BAD: the tunnel ends with "refused"
	 * and no held byte goes upstream. NULL: nothing is held. */
	enum sniff (*classify)(void *arg, const uint8_t *data, size_t len);
	/* Held bytes did not become complete: the client half-closed (@ended),
	 * or time passed, or the server did not answer (then @len may be 0).
	 * BAD ends it, DONE lets them through, MORE after unclear_ms: they have
	 * until classify_ms. Required with classify. */
	enum sniff (*incomplete)(void *arg, const uint8_t *data, size_t len,
				 bool ended);
	/* After tunnel_await(): what the server says next, each byte once. It
	 * goes to the client whatever the answer. Required with that. */
	enum tunnel_answer (*answer)(void *arg, const uint8_t *data,
				     size_t len);
	/* Every 10 MB or 30 s with traffic. False: nothing more moves until
	 * tunnel_resume(), which tells it again. May be NULL. */
	bool (*progress)(void *arg, uint64_t up, uint64_t down);
	/* Once, at the end; both sockets are closed. @how: static text: "eof",
	 * "reset by client", "reset by server", "idle timeout", "refused",
	 * "error", or tunnel_spent. The tunnel is freed after it returns. Never
	 * called from within tunnel_new(). */
	void (*closed)(void *arg, uint64_t up, uint64_t down, const char *how);
};

/* @how, to be compared as a pointer: a byte budget is used up. */
extern const char tunnel_spent[];

struct tunnel_limits {
	unsigned idle_ms;     /* both ways silent; 0: 1 h */
	unsigned classify_ms; /* 0: 10 s */
	unsigned unclear_ms;  /* incomplete() is asked by then; 0: not before */
	unsigned answer_ms;   /* after tunnel_await(); 0: 60 s */
	const struct meters *meters; /* see tunnel_meter() */
};

/* Takes both sockets (closed also on failure, which one that is NULL is).
 * @first, @len: client bytes read already, copied, classified like the rest,
 * but never from within this call; without classify they are paid for. @ops
 * outlives the tunnel. 0 or -errno. */
int tunnel_new(struct wheel *wheel, struct watch *client, struct watch *server,
	       const uint8_t *first, size_t len,
	       const struct tunnel_limits *limits, const struct tunnel_ops *ops,
	       void *arg, struct tunnel **ret_tunnel);

/* Ends it now, with RST both ways; closed() is not called. May be called from
 * any of the ops. NULL is fine. */
void tunnel_abort(struct tunnel *tunnel, uint64_t *ret_up, uint64_t *ret_down);

/* After a progress() that was false; from the loop, may call any of the ops. */
void tunnel_resume(struct tunnel *tunnel);

/* What it moves is taken off @meters, which stay with the caller, from now on;
 * NULL: nothing is counted. With more to move than they have it ends, with RST
 * both ways. */
void tunnel_meter(struct tunnel *tunnel, const struct meters *meters);

/* What to send to the client before it is closed when it is refused, e.g. a TLS
 * alert. At most 64 bytes; copied. Call from within classify(), incomplete() or
 * answer(). */
void tunnel_refuse_with(struct tunnel *tunnel, const void *data, size_t len);

/* The first @len held bytes go up now and are not shown again. Call from within
 * classify(), which returns MORE. */
void tunnel_pass(struct tunnel *tunnel, size_t len);
/* The same; and what else the client says is held, unseen, until answer() has
 * made up its mind, or the server has ended, which is a release. */
void tunnel_await(struct tunnel *tunnel, size_t len);

/* Ends it without closed(), but for the client's socket, which is the caller's
 * now. Call from within classify(), whose bytes stay valid until it returns;
 * what it returns does not matter. -EBUSY if the server spoke: then there is
 * more to this connection than the held bytes. */
int tunnel_detach(struct tunnel *tunnel, struct watch **ret_client);

/* Frees pipes kept for reuse. */
void tunnel_pool_free(void);

#endif
