/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - one event a socket.
 *
 * #syscalls close
 */
#include "proxy/watch.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct watch {
	struct event event;
	watch_call *call;
	void *arg;
	int fd;
	short what; /* is waited for */
};

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct watch *watch = arg;

	if (watch->call)
		watch->call(watch->arg, fd, what);
}

struct watch *watch_new(struct event_base *base, int fd)
{
	struct watch *watch = malloc(sizeof(*watch));

	if (!watch) {
		close_fd(&fd);
		return NULL;
	}
	watch->call = NULL;
	watch->arg = NULL;
	watch->fd = fd;
	watch->what = 0;
	event_assign(&watch->event, base, fd, 0, on_event, watch);
	return watch;
}

void watch_tell(struct watch *watch, watch_call *call, void *arg)
{
	watch->call = call;
	watch->arg = arg;
}

int watch_for(struct watch *watch, short what)
{
	if (what == watch->what)
		return 0;
	if (watch->what)
		event_del(&watch->event);
	watch->what = what;
	if (!what)
		return 0;
	event_assign(&watch->event, event_get_base(&watch->event), watch->fd,
		     (short)(what | EV_PERSIST), on_event, watch);
	if (event_add(&watch->event, NULL)) {
		watch->what = 0;
		return -ENOMEM;
	}
	return 0;
}

int watch_fd(const struct watch *watch)
{
	return watch ? watch->fd : -1;
}

int watch_end(struct watch *watch)
{
	int fd = watch->fd;

	watch_for(watch, 0);
	free(watch);
	return fd;
}

void watch_close(struct watch **watch)
{
	struct watch *closing = *watch;
	int fd;

	*watch = NULL;
	if (!closing)
		return;
	fd = watch_end(closing);
	close_fd(&fd);
}
