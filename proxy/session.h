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
 *	ENDED	the loop frees it
 */
#ifndef PROXY_SESSION_H
#define PROXY_SESSION_H

#include <sys/queue.h>

#include "proxy/listener.h"

struct fold;
struct wheel;

/* Those of a listener; each is one of them until it has ended. */
LIST_HEAD(sessions, session);

struct session_config {
	struct wheel *wheel;
	const struct services *services;
	struct sandbox *sandbox;
	struct fold *fold; /* for refusals by limits */
	struct sessions *sessions;
	enum listener_kind kind;
	struct ip src_ip, dst_ip; /* peer; where it meant to go */
	uint16_t src_port, dst_port;
};

/* Takes @fd, which is closed if there is no memory. */
void session_start(const struct session_config *config, int fd);

/* Ends those of @sandbox now; NULL: all. */
void sessions_end(struct sessions *sessions, const struct sandbox *sandbox);

/* The sandbox has another policy, or a rule expired: what is not allowed any
 * more is cut now, with RST both ways. */
void sessions_recheck(struct sessions *sessions, const struct sandbox *sandbox);

/* One connection too many (at once, or this second): says so in the form fit
 * for the door, records it and closes @fd. */
void session_turn_away(const struct session_config *config, enum reason reason,
		       int fd);

#endif
