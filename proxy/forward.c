/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.c - the listening socket of a published port, see forward.h. As
 * listener.c has it: one connection a turn, a pause where no descriptors are
 * left, and while the ledger is behind clients wait unseen.
 *
 * #syscalls accept4 close
 */
#include "proxy/forward.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "proxy/fold.h"
#include "proxy/forward_impl.h"

#define PAUSE_S 1

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval pause = { .tv_sec = PAUSE_S };
	struct forward *f = arg;
	union sockaddr_any peer = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(peer);
	int client;

	(void)what;
	if (!services_room(f->c.services, &f->room)) {
		event_del(f->readable);
		return;
	}
	client = accept4(fd, &peer.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client >= 0) {
		inbound_start(f, client, &peer);
		return;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
	    errno == ENOMEM) {
		event_del(f->readable);
		event_add(f->pause, &pause);
	}
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct forward *f = arg;

	(void)fd;
	(void)what;
	event_add(f->readable, NULL);
}

static void on_room(struct wait *wait, int status)
{
	struct forward *f = CONTAINER_OF(wait, struct forward, room);

	(void)status;
	if (!evtimer_pending(f->pause, NULL))
		event_add(f->readable, NULL);
}

int forward_new(const struct forward_config *config, int fd,
		struct forward **ret_forward)
{
	struct forward *f = calloc(1, sizeof(*f));
	char ip[IP_TEXT_MAX];

	if (!f) {
		close_fd(&fd);
		return -ENOMEM;
	}
	f->c = *config;
	f->fd = fd;
	f->room.done = on_room;
	snprintf(f->text, sizeof(f->text),
		 config->at.ip.len == 16 ? "[%s]:%u:%u" : "%s:%u:%u",
		 ip_format(&config->at.ip, ip), config->at.port, config->port);
	LIST_INIT(&f->inbound);
	f->readable = event_new(config->base, fd, EV_READ | EV_PERSIST,
				on_readable, f);
	f->pause = evtimer_new(config->base, on_pause_over, f);
	f->fold = fold_new(config->base, config->services);
	f->wheel = wheel_new(config->base);
	if (!f->readable || !f->pause || !f->fold || !f->wheel ||
	    event_add(f->readable, NULL)) {
		forward_free(f);
		return -ENOMEM;
	}
	*ret_forward = f;
	return 0;
}

void forward_end(struct forward *f)
{
	while (!LIST_EMPTY(&f->inbound))
		inbound_end(LIST_FIRST(&f->inbound), "ended by the gate");
	fold_end_sandbox(f->fold, f->c.sandbox->id);
}

void forward_free(struct forward *f)
{
	if (!f)
		return;
	while (!LIST_EMPTY(&f->inbound))
		inbound_end(LIST_FIRST(&f->inbound), "ended by the gate");
	services_room_cancel(f->c.services, &f->room);
	if (f->readable)
		event_free(f->readable);
	if (f->pause)
		event_free(f->pause);
	fold_free(f->fold);
	wheel_free(f->wheel);
	close_fd(&f->fd);
	free(f);
}
