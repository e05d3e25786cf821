/* SPDX-License-Identifier: Apache-2.0
 *
 * floor_forward.c - the least that a forwarder by libevent and c-ares can do.
 *
 *	floor_forward ADDRESS PORT SERVER PORT
 *
 * No cache, no policy, no record: a question in, the same to the server, its
 * answer back.
 */
#include <ares.h>
#include <arpa/nameser.h>
#include <event2/event.h>
#include <string.h>

#include "tests/bench/net.h"

#define MESSAGE 512

struct asked {
	struct sockaddr_in from;
	unsigned char id[2];
};

static struct event_base *base;
static ares_channel channel;
static struct event *sockets[NET_FDS];
static int listener;

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	(void)arg;
	ares_process_fd(channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
}

static void on_state(void *arg, ares_socket_t fd, int reads, int writes)
{
	short what = (short)((reads ? EV_READ : 0) | (writes ? EV_WRITE : 0));

	(void)arg;
	if (sockets[fd])
		event_free(sockets[fd]);
	sockets[fd] = NULL;
	if (!what)
		return;
	sockets[fd] = event_new(base, fd, (short)(what | EV_PERSIST), on_socket,
				NULL);
	event_add(sockets[fd], NULL);
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *m,
		      int len)
{
	struct asked *asked = arg;

	(void)timeouts;
	if (m && (status == ARES_SUCCESS || status == ARES_ENODATA ||
		  status == ARES_ENOTFOUND)) {
		memcpy(m, asked->id, sizeof(asked->id));
		sendto(listener, m, (size_t)len, 0,
		       (struct sockaddr *)&asked->from, sizeof(asked->from));
	}
	free(asked);
}

static void on_question(evutil_socket_t fd, short what, void *arg)
{
	unsigned char m[MESSAGE];

	(void)what;
	(void)arg;
	for (int i = 0; i < 16; i++) {
		struct asked *asked = malloc(sizeof(*asked));
		socklen_t n = sizeof(asked->from);
		ssize_t len;

		if (!asked)
			net_fail("malloc");
		len = recvfrom(fd, m, sizeof(m), MSG_DONTWAIT,
			       (struct sockaddr *)&asked->from, &n);
		if (len < 12) {
			free(asked);
			return;
		}
		memcpy(asked->id, m, sizeof(asked->id));
		ares_send(channel, m, (int)len, on_answer, asked);
	}
}

int main(int argc, char **argv)
{
	struct ares_options options = { .flags = ARES_FLAG_NOSEARCH |
						 ARES_FLAG_NOALIASES,
					.sock_state_cb = on_state };
	struct sockaddr_in at;
	char server[64];

	if (argc != 5)
		return 2;
	at = net_address(argv[1], argv[2]);
	base = event_base_new();
	snprintf(server, sizeof(server), "%s:%s", argv[3], argv[4]);
	if (!base || ares_library_init(ARES_LIB_INIT_ALL) ||
	    ares_init_options(&channel, &options,
			      ARES_OPT_FLAGS | ARES_OPT_SOCK_STATE_CB) ||
	    ares_set_servers_ports_csv(channel, server))
		return 3;
	listener = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0)
		net_fail("bind");
	event_add(event_new(base, listener, EV_READ | EV_PERSIST, on_question,
			    NULL),
		  NULL);
	return event_base_dispatch(base);
}
