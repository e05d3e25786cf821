/* SPDX-License-Identifier: Apache-2.0
 *
 * forward_impl.h - a published port from inside: forward.c and inbound.c only.
 */
#ifndef PROXY_FORWARD_IMPL_H
#define PROXY_FORWARD_IMPL_H

#include <event2/event.h>
#include <sys/queue.h>

#include "base/wheel.h"
#include "proxy/forward.h"

struct fold;
struct tunnel;
struct watch;

struct inbound {
	struct forward *forward;
	LIST_ENTRY(inbound) entry;
	enum {
		INBOUND_RECORD,
		INBOUND_SOCKET,
		INBOUND_DIAL,
		INBOUND_RELAY
	} step;
	int client, server; /* until a watch or the tunnel has them */
	struct watch *dialled;
	unsigned tries;
	uint64_t flow;
	int64_t start_ms;
	struct ip src_ip;
	uint16_t src_port;
	struct wait recorded, socket, progress;
	bool progressing, paused;
	struct timer timer;
	struct tunnel *tunnel;
};

struct forward {
	struct forward_config c;
	int fd;
	struct event *readable, *pause;
	struct wait room;
	struct fold *fold;
	struct wheel *wheel;
	char text[IP_TEXT_MAX + 20]; /* "127.0.0.1:8080:3000" */
	LIST_HEAD(, inbound) inbound;
};

/* Takes @client, and begins with its record; or refuses it. */
void inbound_start(struct forward *forward, int client,
		   const union sockaddr_any *peer);
/* Ends it, with a record. @how: for people. */
void inbound_end(struct inbound *in, const char *how);

#endif
