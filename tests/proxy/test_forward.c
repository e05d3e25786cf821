/* SPDX-License-Identifier: Apache-2.0
 *
 * test_forward.c - a published port: a real client, a real server where the
 * sandbox would be, and what is recorded of them.
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "proxy/forward.h"
#include "tests/proxy/world_origin.h"

#define OUTSIDE_PORT 18080
#define INSIDE_PORT  3000

/* Where sockets to dial with come from. */
static struct {
	int status;    /* -EAGAIN, another error, or 0 */
	unsigned busy; /* so many are of a port that is taken */
	unsigned given, cancelled;
	struct wait *waiting;
} stock;

static int bound_socket(uint16_t port)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = inet_addr("127.0.0.8"),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (const void *)&at, sizeof(at)), 0);
	return fd;
}

static unsigned notes_of(const struct world *w, enum event_kind kind)
{
	unsigned n = 0;

	for (size_t i = 0; i < w->notes; i++)
		n += w->note[i].kind == kind;
	return n;
}

static int take(void *ctx, struct wait *wait)
{
	(void)ctx;
	if (stock.status == -EAGAIN)
		stock.waiting = wait;
	if (stock.status)
		return stock.status;
	stock.given++;
	return bound_socket(stock.given <= stock.busy
				    ? 40000
				    : (uint16_t)(40000 + stock.given));
}

static void take_cancel(void *ctx, struct wait *wait)
{
	(void)ctx;
	assert_ptr_equal(wait, stock.waiting);
	stock.waiting = NULL;
	stock.cancelled++;
}

static struct world *published_world(struct forward **ret_forward, bool server)
{
	struct world *w = world_new();
	struct forward_config config = {
		.base = w->base,
		.services = &w->services,
		.sandbox = &w->sandbox,
		.at = { .port = OUTSIDE_PORT },
		.port = INSIDE_PORT,
		.socket = take,
		.socket_cancel = take_cancel,
	};

	memset(&stock, 0, sizeof(stock));
	assert_true(ip_parse(ORIGIN, &w->sandbox.ip));
	assert_true(ip_parse(PROXY, &config.at.ip));
	if (server)
		w->origin = listen_at(ORIGIN, INSIDE_PORT);
	assert_int_equal(forward_new(&config, listen_at(PROXY, OUTSIDE_PORT),
				     ret_forward),
			 0);
	return w;
}

static void end_world(struct world *w, struct forward *forward)
{
	forward_free(forward);
	assert_int_equal(w->sandbox.connections, 0);
	world_free(w);
}

static void assert_kinds(const struct world *w, const enum event_kind *kind,
			 size_t n)
{
	assert_int_equal(w->notes, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(w->note[i].kind, kind[i]);
		assert_int_equal(w->note[i].door, DOOR_PUBLISHED);
	}
}

static void test_both_ways(void **state)
{
	static const enum event_kind kinds[] = { EVENT_FLOW_OPEN,
						 EVENT_FLOW_DIAL,
						 EVENT_FLOW_CLOSE };
	char ip[IP_TEXT_MAX];
	struct forward *f;
	struct world *w = published_world(&f, true);
	int client = dial_to(PROXY, OUTSIDE_PORT), server;

	(void)state;
	server = origin_accept(w, 1000);
	assert_true(server >= 0);
	assert_int_equal(w->sandbox.connections, 1);
	/* Nobody looks at it: a server may speak first, and in any language. */
	say(server, "220 hello\r\n", 11);
	assert_heard(w, client, "220 hello\r\n", 11);
	say(client, "\x16\x03\x01", 3);
	assert_heard(w, server, "\x16\x03\x01", 3);
	/* Half a close is kept. */
	shutdown(client, SHUT_WR);
	assert_string_equal(hear_all(w, server), "");
	say(server, "late", 4);
	assert_heard(w, client, "late", 4);
	close(server);
	assert_string_equal(hear_all(w, client), "");
	close(client);
	turn_for(w, 30);
	assert_kinds(w, kinds, ARRAY_SIZE(kinds));
	assert_true(w->note[0].allow);
	assert_string_equal(w->note[0].rule_text, "127.0.0.1:18080:3000");
	assert_string_equal(w->note[0].detail, "inbound");
	assert_string_equal(ip_format(&w->note[0].ip, ip), ORIGIN);
	assert_int_equal(w->note[0].port, INSIDE_PORT);
	/* Up is out of the sandbox. */
	assert_int_equal(w->note[2].up, 15);
	assert_int_equal(w->note[2].down, 3);
	assert_string_equal(w->note[2].detail, "eof");
	assert_int_equal(w->sandbox.connections, 0);
	end_world(w, f);
}

static void test_much(void **state)
{
	enum { MUCH = 30 << 20 };
	static char block[1 << 16];
	struct forward *f;
	struct world *w = published_world(&f, true);
	int client = dial_to(PROXY, OUTSIDE_PORT);
	size_t sent = 0, heard = 0;
	int server;

	(void)state;
	server = origin_accept(w, 1000);
	assert_true(server >= 0);
	while (heard < MUCH) {
		ssize_t n;

		turn(w);
		n = sent < MUCH ? send(server, block, sizeof(block),
				       MSG_DONTWAIT | MSG_NOSIGNAL)
				: 0;
		if (n > 0)
			sent += (size_t)n;
		while ((n = recv(client, block, sizeof(block), MSG_DONTWAIT)) >
		       0)
			heard += (size_t)n;
		if (sent >= MUCH && heard == sent)
			break;
	}
	close(client);
	close(server);
	turn_for(w, 50);
	assert_true(notes_of(w, EVENT_FLOW_PROGRESS) >= 1);
	assert_int_equal(note_find(w, EVENT_FLOW_CLOSE)->up, heard);
	end_world(w, f);
}

/* Write-ahead: before the ledger has it, not even a SYN. */
static void test_recorded_first(void **state)
{
	struct forward *f;
	struct world *w = published_world(&f, true);
	int client;

	(void)state;
	w->ledger_silent = true;
	client = dial_to(PROXY, OUTSIDE_PORT);
	assert_int_equal(origin_accept(w, 100), -1);
	assert_int_equal(stock.given, 0);
	assert_int_equal(w->notes, 1);
	forward_end(f);
	assert_int_equal(w->cancelled, 1);
	assert_int_equal(notes_of(w, EVENT_FLOW_CLOSE), 1);
	close(client);
	end_world(w, f);

	w = published_world(&f, true);
	w->ledger_dead = true;
	client = dial_to(PROXY, OUTSIDE_PORT);
	assert_reset(w, client);
	assert_int_equal(origin_accept(w, 50), -1);
	assert_int_equal(stock.given, 0);
	close(client);
	end_world(w, f);
}

static void test_nobody_listens(void **state)
{
	static const enum event_kind kinds[] = { EVENT_FLOW_OPEN,
						 EVENT_FLOW_DIAL };
	struct forward *f;
	struct world *w = published_world(&f, false);
	int client = dial_to(PROXY, OUTSIDE_PORT);

	(void)state;
	assert_reset(w, client);
	assert_kinds(w, kinds, ARRAY_SIZE(kinds));
	assert_int_equal(w->note[1].reason, REASON_CONNECT_FAILED);
	assert_string_equal(w->note[1].detail, "connection refused");
	close(client);
	end_world(w, f);
}

static void test_waits_for_a_socket(void **state)
{
	struct forward *f;
	struct world *w = published_world(&f, true);
	struct wait *wait;
	int client, server;

	(void)state;
	stock.status = -EAGAIN;
	client = dial_to(PROXY, OUTSIDE_PORT);
	assert_int_equal(origin_accept(w, 50), -1);
	assert_non_null(stock.waiting);
	stock.status = 0;
	wait = STEAL(stock.waiting);
	wait->done(wait, 0);
	server = origin_accept(w, 1000);
	assert_true(server >= 0);
	close(client);
	close(server);
	turn_for(w, 30);

	/* There is none after all. */
	stock.status = -EAGAIN;
	client = dial_to(PROXY, OUTSIDE_PORT);
	assert_int_equal(origin_accept(w, 50), -1);
	wait = STEAL(stock.waiting);
	wait->done(wait, -EPERM);
	assert_reset(w, client);
	close(client);

	/* The end comes first. */
	client = dial_to(PROXY, OUTSIDE_PORT);
	assert_int_equal(origin_accept(w, 50), -1);
	assert_non_null(stock.waiting);
	end_world(w, f);
	assert_int_equal(stock.cancelled, 1);
	close(client);
}

/* A port of ours that an earlier connection has to the same place. */
static void test_taken_port(void **state)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(INSIDE_PORT),
		.sin_addr.s_addr = inet_addr(ORIGIN),
	};
	struct forward *f;
	struct world *w = published_world(&f, true);
	int first, client, server;
	AUTO_FD int earlier = bound_socket(40000);

	(void)state;
	(void)connect(earlier, (const void *)&to, sizeof(to));
	first = origin_accept(w, 1000);
	assert_true(first >= 0);
	stock.busy = 2;
	client = dial_to(PROXY, OUTSIDE_PORT);
	server = origin_accept(w, 1000);
	assert_true(server >= 0);
	assert_int_equal(stock.given, 3);
	close(client);
	close(server);
	turn_for(w, 30);
	/* Not for ever. */
	stock.busy = 100;
	stock.given = 0;
	client = dial_to(PROXY, OUTSIDE_PORT);
	assert_reset(w, client);
	assert_int_equal(stock.given, 4);
	close(client);
	close(first);
	end_world(w, f);
}

static void test_limits(void **state)
{
	struct forward *f;
	struct world *w = published_world(&f, true);
	int client[3], server[2];

	(void)state;
	world_policy(w, "version: 1\nlimits: {connections: 2}\n");
	for (int i = 0; i < 2; i++) {
		client[i] = dial_to(PROXY, OUTSIDE_PORT);
		server[i] = origin_accept(w, 1000);
		assert_true(server[i] >= 0);
	}
	client[2] = dial_to(PROXY, OUTSIDE_PORT);
	assert_reset(w, client[2]);
	assert_int_equal(w->note[w->notes - 1].reason,
			 REASON_LIMIT_CONNECTIONS);
	assert_int_equal(w->note[w->notes - 1].door, DOOR_PUBLISHED);
	assert_int_equal(w->sandbox.connections, 2);
	close(client[2]);
	close(client[0]);
	close(server[0]);
	turn_for(w, 30);
	w->rate = 0;
	client[0] = dial_to(PROXY, OUTSIDE_PORT);
	assert_reset(w, client[0]);
	assert_int_equal(w->note[w->notes - 1].reason, REASON_LIMIT_RATE);
	close(client[0]);
	/* What goes on is ended, and said to have been. */
	forward_end(f);
	assert_string_equal(w->note[w->notes - 1].detail, "ended by the gate");
	assert_reset(w, client[1]);
	close(client[1]);
	close(server[1]);
	end_world(w, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_much),
		cmocka_unit_test(test_recorded_first),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_waits_for_a_socket),
		cmocka_unit_test(test_taken_port),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
