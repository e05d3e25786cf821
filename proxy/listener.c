/* SPDX-License-Identifier: Apache-2.0
 *
 * listener.c - accepts, finds out who it is, and starts a session.
 *
 * One connection a turn, so that a flood of them does not starve what is under
 * way. Without file descriptors left, accepting pauses: the event would fire
 * again at once. While the ledger is behind, clients wait unseen.
 */
#include "proxy/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "base/wheel.h"
#include "proxy/fold.h"
#include "proxy/session.h"

#define PAUSE_SECONDS 1

struct listener {
	struct wheel *wheel;
	enum listener_kind kind;
	const struct services *services;
	int fd;
	union sockaddr_any own; /* where it listens */
	struct event *readable, *pause;
	struct wait room; /* while nothing is accepted */
	struct fold *fold;
	struct sessions sessions;
};

/* A redirected connection has our own address for its destination: one of
 * TPROXY never does. Who came straight to us meant to. */
static bool is_redirected(const struct listener *listener,
			  const union sockaddr_any *local)
{
	const struct ip own = ip_from_sockaddr(&listener->own),
			ip = ip_from_sockaddr(local);

	return listener->kind == LISTENER_TRANSPARENT && own.len == 4 &&
	       ip_equal(&own, &ip) &&
	       port_from_sockaddr(&listener->own) == port_from_sockaddr(local);
}

/* Who it is and where it meant to go; -ENOENT for a stranger. */
static int identify(struct listener *listener, int fd,
		    const union sockaddr_any *peer,
		    struct session_config *config)
{
	const struct services *services = listener->services;
	union sockaddr_any local = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(local);
	uint32_t ifindex = 0;

	if (getsockname(fd, &local.sa, &len))
		return -errno;
	/* Where the kernel does not know, that is where it meant to go. */
	if (is_redirected(listener, &local))
		(void)sock_original_dst(fd, &local);
	if (sock_ingress(fd, &ifindex))
		ifindex = 0; /* no veth has it: only `serve` knows such */
	config->src_ip = ip_from_sockaddr(peer);
	config->src_port = port_from_sockaddr(peer);
	config->dst_ip = ip_from_sockaddr(&local);
	config->dst_port = port_from_sockaddr(&local);
	config->sandbox =
		services->sandbox_of(services->ctx, ifindex, &config->src_ip);
	return config->sandbox ? 0 : -ENOENT;
}

static void on_accept(struct listener *listener, int fd,
		      const union sockaddr_any *peer)
{
	struct session_config config = {
		.wheel = listener->wheel,
		.services = listener->services,
		.kind = listener->kind,
		.fold = listener->fold,
		.sessions = &listener->sessions,
	};
	const struct services *services = listener->services;
	struct sandbox *sandbox;

	if (identify(listener, fd, peer, &config)) {
		sock_reset_on_close(fd);
		close_fd(&fd);
		return;
	}
	sandbox = config.sandbox;
	if (sandbox->connections >= policy_limits(sandbox->policy)->connections)
		session_turn_away(&config, REASON_LIMIT_CONNECTIONS, fd);
	else if (!services->rate(services->ctx, sandbox, RATE_CONNECTIONS))
		session_turn_away(&config, REASON_LIMIT_RATE, fd);
	else
		session_start(&config, fd);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval pause = { .tv_sec = PAUSE_SECONDS };
	struct listener *listener = arg;
	union sockaddr_any peer = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(peer);
	int client;

	(void)what;
	if (!services_room(listener->services, &listener->room)) {
		event_del(listener->readable);
		return;
	}
	client = accept4(fd, &peer.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client >= 0) {
		on_accept(listener, client, &peer);
		return;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
	    errno == ENOMEM) {
		event_del(listener->readable);
		event_add(listener->pause, &pause);
	}
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;

	(void)fd;
	(void)what;
	event_add(listener->readable, NULL);
}

static void on_room(struct wait *wait, int status)
{
	struct listener *listener = CONTAINER_OF(wait, struct listener, room);

	(void)status;
	if (!evtimer_pending(listener->pause, NULL))
		event_add(listener->readable, NULL);
}

int listener_new(struct event_base *base, enum listener_kind kind, int fd,
		 const struct services *services,
		 struct listener **ret_listener)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	socklen_t len = sizeof(listener->own);

	if (!listener) {
		close_fd(&fd);
		return -ENOMEM;
	}
	listener->own.sa.sa_family = AF_UNSPEC;
	(void)getsockname(fd, &listener->own.sa, &len);
	LIST_INIT(&listener->sessions);
	listener->kind = kind;
	listener->services = services;
	listener->fd = fd;
	listener->room.done = on_room;
	listener->readable = event_new(base, fd, EV_READ | EV_PERSIST,
				       on_readable, listener);
	listener->pause = evtimer_new(base, on_pause_over, listener);
	listener->fold = fold_new(base, services);
	listener->wheel = wheel_new(base);
	if (!listener->readable || !listener->pause || !listener->fold ||
	    !listener->wheel || event_add(listener->readable, NULL)) {
		listener_free(listener);
		return -ENOMEM;
	}
	*ret_listener = listener;
	return 0;
}

void listener_end_sandbox(struct listener *listener,
			  const struct sandbox *sandbox)
{
	sessions_end(&listener->sessions, sandbox);
	fold_end_sandbox(listener->fold, sandbox->id);
}

void listener_recheck(struct listener *listener, const struct sandbox *sandbox)
{
	sessions_recheck(&listener->sessions, sandbox);
}

void listener_free(struct listener *listener)
{
	if (!listener)
		return;
	sessions_end(&listener->sessions, NULL);
	services_room_cancel(listener->services, &listener->room);
	if (listener->readable)
		event_free(listener->readable);
	if (listener->pause)
		event_free(listener->pause);
	fold_free(listener->fold);
	wheel_free(listener->wheel);
	close_fd(&listener->fd);
	free(listener);
}
