/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h - one client connection, from accept(2) until a tunnel or an
 * exchange has ended, or a refusal was told.
 *
 *	FIRST	reading the first message, up to SNIFF_MAX bytes and 10 s;
 *		then ASKING, RELAY (plain HTTP) or LINGER (refused)
 *	ASKING	a flow decides, records, resolves and dials, for 60 s at most;
 *		nothing is read; then RELAY or LINGER
 *	RELAY	a tunnel or an exchange has the socket; then ENDED
 *	LINGER	the refusal is sent: read and discard, so that the client gets
 *		to read it before an RST; then ENDED
 *	ENDED	the owner hears of it from the loop
 */
#ifndef PROXY_SESSION_H
#define PROXY_SESSION_H

#include "proxy/listener.h"

struct event_base;
struct fold;
struct session;

struct session_config {
	struct event_base *base;
	const struct services *services;
	struct sandbox *sandbox;
	struct fold *fold; /* for refusals by limits */
	enum listener_kind kind;
	struct ip src_ip, dst_ip; /* peer; where it meant to go */
	uint16_t src_port, dst_port;
	/* Never from within session_start(). Must call session_free(). */
	void (*ended)(void *arg, struct session *session);
	void *arg;
};

/* Takes @fd (closed also on failure). 0 or -errno. */
int session_start(const struct session_config *config, int fd,
		  struct session **ret_session);
/* Ends it now. NULL is fine. */
void session_free(struct session *session);
const struct sandbox *session_sandbox(const struct session *session);

/* The sandbox has another policy, or a rule expired: what is not allowed any
 * more is cut now, with RST both ways. */
void session_recheck(struct session *session);

/* One connection too many (at once, or this second): says so in the form fit
 * for the door, records it and closes @fd. */
void session_turn_away(const struct session_config *config, enum reason reason,
		       int fd);

#endif
