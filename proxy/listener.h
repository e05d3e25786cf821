/* SPDX-License-Identifier: Apache-2.0
 *
 * listener.h - a listening socket and the sessions that come from it.
 *
 * Identity is the interface of the SYN (IP_PKTOPTIONS), never an address that
 * the sandbox chose.
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H

#include "policy/services.h"

struct event_base;
struct listener;

enum listener_kind {
	LISTENER_EXPLICIT,    /* CONNECT, absolute-form HTTP, SOCKS5 */
	LISTENER_TRANSPARENT, /* the accepted socket's own address is where the
				 sandbox meant to go (TPROXY); where it is the
				 listener's, the kernel is asked (redirect) */
	LISTENER_TLS,	      /* `serve`: TLS to port 443, told apart by SNI */
	LISTENER_HTTP,	      /* `serve`: HTTP to port 80, told apart by Host */
};

/* Takes @fd. @services outlives it. 0 or -errno. */
int listener_new(struct event_base *base, enum listener_kind kind, int fd,
		 const struct services *services,
		 struct listener **ret_listener);
/* Ends the sessions of @sandbox, which may be freed then. */
void listener_end_sandbox(struct listener *listener,
			  const struct sandbox *sandbox);
/* @sandbox->policy was replaced, or a rule of it has expired: what it does not
 * allow any more is cut before this returns, the rest goes on by it. */
void listener_recheck(struct listener *listener, const struct sandbox *sandbox);
/* Ends its sessions too. NULL is fine. */
void listener_free(struct listener *listener);

#endif
