/* SPDX-License-Identifier: Apache-2.0
 *
 * session_door.h - what a session and the doors it can come through know of
 * each other. For session*.c only.
 */
#ifndef PROXY_SESSION_DOOR_H
#define PROXY_SESSION_DOOR_H

#include <sys/types.h>

#include "base/wheel.h"
#include "proxy/agree.h"
#include "proxy/flow.h"
#include "proxy/refuse.h"
#include "proxy/session.h"

struct exchange;
struct tunnel;
struct watch;

/* How one kind of client is spoken to. */
struct session_form {
	/* The message that says no, at most REFUSE_MAX bytes; 0 where there is
	 * none: then the connection is reset. */
	size_t (*refuse)(const struct session *s, enum reason reason,
			 uint16_t status, const char *detail,
			 char buf[REFUSE_MAX]);
	/* The message that says yes; 0 where none is expected. */
	size_t (*accept)(char buf[REFUSE_MAX]);
};

extern const struct session_form form_http, form_socks, form_tls, form_raw;

enum session_state {
	SESSION_FIRST,
	SESSION_ASKING,
	SESSION_RELAY,
	SESSION_LINGER,
	SESSION_ENDED,
};

/* What is only of interest until it is clear what the client speaks, and of
 * whom: a connection that lasts is small. */
struct first {
	char host[HOST_MAX + 1]; /* "" if it is an address */
	char shown[256];	 /* as sent, where it is malformed */
	struct agree agree;
	struct session *session;
	struct wait room;		  /* FIRST: nothing is read meanwhile */
	void (*input)(struct session *s); /* FIRST: there are new bytes */
	size_t discarded;		  /* LINGER */
};

struct session {
	LIST_ENTRY(session) entry; /* of c.sessions */
	struct session_config c;
	enum session_state state;
	/* RELAY, TLS: which of its messages the tunnel holds. */
	enum { HELLO_FIRST, HELLO_ANSWER, HELLO_SECOND } hello;
	struct watch *watch; /* the client; NULL: in other hands, or closed */
	struct timer timer;
	uint8_t *buf; /* client bytes from @used on are not yet dealt with */
	size_t len, cap, used;

	const struct session_form *form;

	/* What the client wants, as far as it is known. */
	enum door door;
	struct ip address; /* .len 0: it is first->host */
	uint16_t port;
	struct first *first; /* NULL: it does not matter any more */
	bool several; /* names were answered with c.dst_ip: one of them it is */
	bool doubted; /* RELAY: the first message was unclear for a while */
	bool settled; /* RELAY, a tunnel: the first message agreed */
	enum protocol spoke;   /* if settled */
	struct policy *policy; /* the agree's; a reload must not take it away */

	struct flow *flow;
	struct tunnel *tunnel;
	struct exchange *exchange;
};

/* session.c */

/* Sends a few bytes at once; false if the socket does not take them. */
bool session_say(struct session *s, const void *data, size_t len);
void session_drop_buffer(struct session *s);
/* Nothing is asked about the first message any more. */
void session_drop_first(struct session *s);
/* Goes to ENDED, from where the loop frees the session. */
void session_end(struct session *s);
/* The same, with RST. */
void session_reset(struct session *s);
/* Records a refusal for which there is no flow, says no in the client's form
 * (@status: see refuse_http()), and lingers or resets. */
void session_deny(struct session *s, enum reason reason, uint16_t status,
		  const char *detail);
/* The same with these last words. */
void session_deny_with(struct session *s, enum reason reason,
		       const char *detail, const void *no, size_t len);
void session_timer(struct session *s, unsigned seconds);
/* Says no in the client's form, and lingers or resets. */
void session_tell(struct session *s, enum reason reason, uint16_t status,
		  const char *detail);
/* What it wants, as far as it is known. */
struct flow_ask session_asks(const struct session *s);

/* session_ask.c */

/* By the sandbox's present policy from now on. */
void session_renew(struct session *s);
/* Fills first->agree from host, address, port and door. */
void session_agree(struct session *s);
/* What the connection would have to speak. */
enum wanted session_ahead(const struct session *s);
/* Asks for host or address and port. What has to be HTTP becomes an exchange,
 * anything else a tunnel. @protocol is static; @sni may be NULL. */
void session_ask(struct session *s, const char *protocol, const char *sni);
/* Its sandbox has another policy. May end it. */
void session_recheck(struct session *s);
/* There is no answer in time. */
void session_late(struct session *s);
/* Something happened on a socket that is not to be read yet. */
void session_hangup(struct session *s);

/* session_relay.c: both hand the socket and the unread bytes over. */

/* @fixed: all requests must name the session's host and port. */
void session_exchange(struct session *s, bool fixed);
void session_tunnel(struct session *s, struct watch *server);

/* Several names have the address, and the client says none of them. */
extern const char session_nameless[];

/* session_explicit.c, session_transparent.c: the first step of a door. */
void session_explicit(struct session *s);
void session_transparent(struct session *s);

#endif
