/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_world.h - an exchange between a real client socket and a real origin
 * (world.h), with what its records say about HTTP.
 */
#ifndef TESTS_PROXY_EXCHANGE_WORLD_H
#define TESTS_PROXY_EXCHANGE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/exchange.h"
#include "proxy/watch.h"
#include "tests/proxy/world_origin.h"

struct place { /* where an exchange runs */
	struct world *w;
	struct exchange *exchange;
	int listener, client;
	bool closed;
	/* of the last EVENT_HTTP_REQUEST and EVENT_FLOW_CLOSE */
	char method[40], target[300];
	uint16_t status;
	unsigned requests;
};

static struct place place;

static inline void place_record(void *ctx, const struct audit_event *event,
				struct wait *wait)
{
	if (event->kind == EVENT_HTTP_REQUEST) {
		place.requests++;
		copy_text(place.method, sizeof(place.method), event->method);
		copy_text(place.target, sizeof(place.target), event->target);
	}
	if (event->kind == EVENT_FLOW_CLOSE)
		place.status = event->status;
	world_record(ctx, event, wait);
}

static inline void place_closed(void *arg)
{
	struct place *p = arg;

	p->closed = true;
	p->exchange = NULL;
}

static inline struct exchange_config http_door(void)
{
	return (struct exchange_config){ .door = DOOR_HTTP };
}

/* The other end of place.client is an exchange. */
static inline struct world *place_open_with(struct exchange_config config,
					    const char *first)
{
	struct world *w = world_new();
	int fd;

	place = (struct place){ .w = w };
	w->services.record = place_record;
	w->origin = listen_at(ORIGIN, 80);
	place.listener = listen_at(PROXY, PROXY_PORT);
	place.client = dial_to(PROXY, PROXY_PORT);
	fd = accept4(place.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(fd >= 0);
	config.wheel = w->wheel;
	config.services = &w->services;
	config.sandbox = &w->sandbox;
	config.closed = place_closed;
	config.arg = &place;
	assert_int_equal(exchange_start(&config, watch_new(w->base, fd), first,
					strlen(first), &place.exchange),
			 0);
	assert_false(place.closed);
	return w;
}

static inline struct world *place_open(void)
{
	return place_open_with(http_door(), "");
}

static inline void place_close(void)
{
	close_fd(&place.client);
	close_fd(&place.listener);
	exchange_abort(place.exchange);
	world_free(place.w);
}

static inline void ask(const char *text)
{
	say(place.client, text, strlen(text));
}

/* @text arrives at the origin, exactly. */
static inline void assert_sent_up(int origin, const char *text)
{
	assert_heard(place.w, origin, text, strlen(text));
}

static inline void assert_answered(const char *text)
{
	assert_heard(place.w, place.client, text, strlen(text));
}

/* The client got a refusal with this start and this reason, then an orderly
 * end; the exchange ended too. */
static inline void assert_refusal(const char *start, const char *reason)
{
	const char *text = hear_all(place.w, place.client);
	char want[80];

	snprintf(want, sizeof(want), "details=\"%s\"", reason);
	print_message("%s\n", text);
	assert_memory_equal(text, start, strlen(start));
	assert_non_null(strstr(text, want));
	assert_null(strstr(text + 1, "HTTP/1.1 "));
	close_fd(&place.client);
	turn_for(place.w, 20);
	assert_true(place.closed);
}

/* The last verdict about a request. */
static inline const struct note *last_request(void)
{
	const struct note *n = note_find(place.w, EVENT_HTTP_REQUEST);

	assert_non_null(n);
	return n;
}

#endif
