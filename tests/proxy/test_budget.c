/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte budgets: not a byte more than they have, copied, spliced, held or in
 * HTTP, by however many connections; and a close record that says why.
 */
#include "proxy/relay.h"
#include "tests/proxy/doors.h"

#define POLICY                                                    \
	"version: 1\n"                                            \
	"allow:\n"                                                \
	"  - host: ok.test\n"                                     \
	"    ports: [80, 443, 8443]\n"                            \
	"    upload: 1 GB\n" /* the numbers are world_meters() */ \
	"  - host: other.test\n"                                  \
	"    ports: [8443]\n"

static uint8_t chunk[256 * 1024];

/* Pushes @len bytes in at @from and counts what comes out at @to, until nothing
 * moves or an end is gone. */
static uint64_t push(struct world *w, int from, int to, uint64_t len,
		     bool *ret_cut)
{
	uint64_t sent = 0, heard = 0;
	int quiet = 0;

	*ret_cut = false;
	while (quiet < 100) {
		size_t n =
			len - sent < sizeof(chunk) ? len - sent : sizeof(chunk);
		ssize_t out = -1, in;

		if (n)
			out = send(from, chunk, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (out > 0)
			sent += (uint64_t)out;
		turn(w);
		in = recv(to, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (in > 0)
			heard += (uint64_t)in;
		if (in == 0 || (in < 0 && errno != EAGAIN))
			*ret_cut = true;
		quiet = in > 0 || out > 0 ? 0 : quiet + 1;
	}
	return heard;
}

static void assert_spent(const struct world *w, enum direction way,
			 uint64_t limit)
{
	const struct note *n = note_find(w, EVENT_FLOW_CLOSE);

	assert_note(w, EVENT_FLOW_CLOSE, false, REASON_LIMIT_BYTES);
	assert_string_equal(n->rule_text, "ok.test");
	assert_in_range(way == UP ? n->up : n->down, 0, limit);
}

/* A raw tunnel through @door: its first byte says that it is neither TLS nor
 * HTTP. */
static void open_raw(struct world *w, enum door door, int *client, int *server)
{
	*client = enter(w, door, 8443);
	*server = origin_expect(w);
	say(*client, "\x05", 1);
	assert_heard(w, *server, "\x05", 1);
}

static void over(enum direction way, size_t row, uint64_t limit)
{
	struct world *w = doors_world(8443, POLICY);
	uint64_t before = relay_spliced();

	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client, server;
		uint64_t heard;
		bool cut;

		print_message("%d %zu %u by %s\n", (int)way, row,
			      (unsigned)limit, door_word(doors[i]));
		w->notes = 0;
		w->limit[way][row] = limit + 1; /* and the first byte */
		w->used[way][row] = way == DOWN;
		open_raw(w, doors[i], &client, &server);
		heard = way == UP ? push(w, client, server, limit + 1, &cut)
				  : push(w, server, client, limit + 1, &cut);
		assert_true(cut);
		assert_in_range(heard, 0, limit);
		/* no more was read from the one than the budget had */
		assert_int_equal(w->used[way][row], limit + 1);
		turn_for(w, 20);
		assert_spent(w, way, limit + 1);
		assert_over(w, client);
		assert_over(w, server);
		part(w, client, server);
	}
	if (limit > 1000000)
		assert_true(relay_spliced() > before);
	world_free(w);
}

static void test_over(void **state)
{
	(void)state;
	for (enum direction way = UP; way <= DOWN; way++)
		for (size_t row = 0; row < 2; row++) {
			over(way, row, 1);
			over(way, row, 1000);
			over(way, row, 5 * 1000 * 1000 + 7);
		}
}

/* All of it, and no more: that is no reason to end anything. */
static void test_exactly(void **state)
{
	const uint64_t limit = 3 * 1000 * 1000;
	struct world *w = doors_world(8443, POLICY);
	int client, server;
	bool cut;

	(void)state;
	w->limit[UP][0] = limit + 1;
	w->limit[DOWN][1] = limit;
	open_raw(w, DOOR_CONNECT, &client, &server);
	assert_int_equal(push(w, client, server, limit, &cut), limit);
	assert_false(cut);
	assert_int_equal(push(w, server, client, limit, &cut), limit);
	assert_false(cut);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	assert_origin_silent(w, server);
	part(w, client, server);
	assert_note(w, EVENT_FLOW_CLOSE, true, REASON_RULE);
	world_free(w);
}

/* Two tunnels have one budget. */
static void test_shared(void **state)
{
	const uint64_t limit = 2 * 1000 * 1000;
	struct world *w = doors_world(8443, POLICY);
	int client[2], server[2];
	uint64_t heard;
	bool cut;

	(void)state;
	w->limit[UP][0] = limit;
	for (int i = 0; i < 2; i++)
		open_raw(w, DOOR_CONNECT, &client[i], &server[i]);
	heard = push(w, client[0], server[0], limit / 2, &cut);
	assert_int_equal(heard, limit / 2);
	heard += push(w, client[1], server[1], limit, &cut);
	assert_true(cut);
	assert_in_range(heard + 2, 0, limit);
	assert_int_equal(w->used[UP][0], limit);
	/* the first one ends with its next byte */
	turn_for(w, 20);
	assert_int_equal(w->sandbox.connections, 1);
	say(client[0], "x", 1);
	assert_origin_silent(w, server[0]);
	part(w, client[0], server[0]);
	close(client[1]);
	close(server[1]);
	assert_int_equal(notes_of(w, EVENT_FLOW_CLOSE), 2);
	world_free(w);
}

/* What was held goes up whole or not at all. */
static void test_held(void **state)
{
	struct world *w = doors_world(443, POLICY);
	uint8_t hello[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int client, server;
		size_t len;

		w->used[UP][0] = 0;
		w->limit[UP][0] = 60;
		client = enter(w, doors[i], 443);
		len = say_hello(client, "ok.test", hello, sizeof(hello));
		assert_true(len > 60);
		server = origin_expect(w);
		assert_origin_silent(w, server);
		assert_over(w, client);
		assert_spent(w, UP, 0);
		part(w, client, server);

		w->limit[UP][0] = len;
		client = enter(w, doors[i], 443);
		say_hello(client, "ok.test", hello, sizeof(hello));
		server = origin_expect(w);
		assert_heard(w, server, hello, len);
		assert_int_equal(w->used[UP][0], len);
		part(w, client, server);
	}
	world_free(w);
}

/* Used up before it began. */
static void test_used_up(void **state)
{
	struct world *w = doors_world(443, POLICY);
	int client = dial_to(PROXY, PROXY_PORT);

	(void)state;
	w->meters_status = REASON_LIMIT_BYTES;
	say_text(client, "CONNECT ok.test:443 HTTP/1.1\r\n"
			 "Host: ok.test:443\r\n\r\n");
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_refused(w, REASON_LIMIT_BYTES, "ok.test");
	assert_origin_quiet(w);
	part(w, client, -1);

	client = dial_to(PROXY, PROXY_PORT);
	say_text(client, "GET http://ok.test/ HTTP/1.1\r\n"
			 "Host: ok.test\r\n\r\n");
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_note(w, EVENT_HTTP_REQUEST, false, REASON_LIMIT_BYTES);
	part(w, client, -1);
	world_free(w);
}

#define GET "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"

static void begin_http(struct world *w, const char *head, int *client,
		       int *server)
{
	*client = dial_to(PROXY, PROXY_PORT);
	say_text(*client, head);
	*server = origin_expect(w);
}

/* The answer is larger than what is left: 403 if it has not begun, else RST. */
static void test_http_download(void **state)
{
	struct world *w = doors_world(80, POLICY);
	static const char head[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n";
	int client, server;
	uint64_t heard;
	bool cut;

	(void)state;
	w->limit[DOWN][1] = 20;
	begin_http(w, GET, &client, &server);
	say_text(server, head);
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_over(w, server);
	assert_spent(w, DOWN, 20);
	assert_int_equal(w->used[DOWN][1], 20);
	part(w, client, server);

	w->used[DOWN][1] = 0;
	w->limit[DOWN][1] = 1000000;
	begin_http(w, GET, &client, &server);
	say_text(server, head);
	heard = push(w, server, client, 3000000, &cut);
	assert_true(cut);
	assert_int_equal(w->used[DOWN][1], 1000000);
	assert_in_range(heard, 0, 1000000 + 200); /* our own fields */
	turn_for(w, 20);
	assert_spent(w, DOWN, 1000000);
	part(w, client, server);

	/* exactly as much as there is */
	w->used[DOWN][1] = 0;
	w->limit[DOWN][1] = sizeof(head) - 1 + 3000000;
	begin_http(w, GET, &client, &server);
	say_text(server, head);
	heard = push(w, server, client, 3000000, &cut);
	assert_false(cut);
	assert_true(heard > 3000000);
	part(w, client, server);
	assert_note(w, EVENT_FLOW_CLOSE, true, REASON_RULE);
	world_free(w);
}

static void test_http_upload(void **state)
{
	struct world *w = doors_world(80, POLICY);
	int client, server;
	uint64_t heard;
	bool cut;

	(void)state;
	w->limit[UP][0] = 1000000;
	begin_http(w,
		   "POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
		   "Content-Length: 3000000\r\n\r\n",
		   &client, &server);
	heard = push(w, client, server, 3000000, &cut);
	assert_true(cut);
	assert_in_range(heard, 1, 1000000);
	assert_int_equal(w->used[UP][0], 1000000);
	assert_spent(w, UP, 1000000);
	assert_in_range(note_find(w, EVENT_FLOW_CLOSE)->up, heard, 1000000);
	close(client);
	turn_for(w, 20);
	close(server);

	/* not even the head */
	w->used[UP][0] = 1000000 - 10;
	begin_http(w, GET, &client, &server);
	assert_memory_equal(hear_all(w, client), "HTTP/1.1 403", 12);
	assert_in_range(push(w, client, server, 0, &cut), 0, 10);
	assert_true(cut);
	part(w, client, server);
	world_free(w);
}

/* The budget of the request is the websocket's. */
static void test_websocket(void **state)
{
	struct world *w = doors_world(80, POLICY);
	char buf[1024];
	int client, server, end;
	uint64_t heard, head;
	bool cut;

	(void)state;
	w->limit[UP][1] = 500000;
	begin_http(w,
		   "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
		   "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		   "Sec-WebSocket-Version: 13\r\n"
		   "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\nfirst",
		   &client, &server);
	turn_for(w, 20);
	head = w->used[UP][1];
	assert_true(head > 100);
	say_text(server, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n"
			 "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n"
			 "\r\n");
	turn_for(w, 50);
	assert_int_equal(w->used[UP][1], head + 5);
	hear(w, server, buf, head + 5, &end);
	heard = push(w, client, server, 500000, &cut);
	assert_true(cut);
	assert_in_range(heard, 1, 500000 - head - 5);
	assert_int_equal(w->used[UP][1], 500000);
	turn_for(w, 20);
	assert_spent(w, UP, 500000);
	part(w, client, server);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_exactly),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_used_up),
		cmocka_unit_test(test_http_download),
		cmocka_unit_test(test_http_upload),
		cmocka_unit_test(test_websocket),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
