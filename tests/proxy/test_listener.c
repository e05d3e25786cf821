/* SPDX-License-Identifier: Apache-2.0
 *
 * test_listener.c - `serve`, and what the listener itself decides.
 */
#include "tests/proxy/transparent_case.h"

/* `serve`: no leases, our own address, any port: the name comes by SNI, and
 * the policy has the last word. */
static void test_serve(void **state)
{
	struct world *w = world_new();
	uint8_t hello[256];
	size_t len = make_hello("ok.test", hello, sizeof(hello));
	int client, server;

	(void)state;
	w->sandbox.leases = NULL;
	world_listen(w, LISTENER_TLS, PROXY, 10443);
	world_listen(w, LISTENER_HTTP, PROXY, 10080);
	w->origin = listen_at(ORIGIN, 443);
	client = dial_to(PROXY, 10443);
	say(client, hello, len);
	server = origin_expect(w);
	assert_heard(w, server, hello, len);
	close(client);
	close(server);

	client = dial_to(PROXY, 10443);
	len = make_hello("evil.test", hello, sizeof(hello));
	say(client, hello, len);
	assert_memory_equal(hear_all(w, client), "\x15\x03\x03", 3);
	assert_refused(w, REASON_NOT_IN_POLICY, "evil.test");
	close(client);

	close(w->origin);
	w->origin = listen_at(ORIGIN, 80);
	client = dial_to(PROXY, 10080);
	say(client, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n", 34);
	server = origin_expect(w);
	assert_heard(w, server, "GET /a HTTP/1.1\r\n", 17);
	close(client);
	close(server);
	client = dial_to(PROXY, 10080);
	say(client, "GET /a HTTP/1.1\r\nHost: evil.test\r\n\r\n", 36);
	assert_int_equal(strncmp(hear_all(w, client), "HTTP/1.1 403", 12), 0);
	close(client);
	world_free(w);
}

static void test_stranger(void **state)
{
	struct world *w = transparent_world(LEASE, 22, 22);
	int client;

	(void)state;
	w->stranger = true;
	client = dial_to(LEASE, 22);
	assert_reset(w, client);
	assert_origin_quiet(w);
	assert_int_equal(w->notes, 0);
	close(client);
	world_free(w);
}

/* Four more connections fit. */
static void test_limit(void **state)
{
	struct world *w = transparent_world(LEASE, 443, 0);
	unsigned others = policy_limits(w->sandbox.policy)->connections - 4;
	int held[4], client;

	(void)state;
	w->sandbox.connections = others;
	world_listen(w, LISTENER_EXPLICIT, PROXY, PROXY_PORT);
	for (int i = 0; i < 4; i++)
		held[i] = dial_to(LEASE, 443);
	turn_for(w, 30);
	assert_int_equal(w->sandbox.connections, others + 4);

	client = dial_to(LEASE, 443);
	assert_reset(w, client);
	assert_refused(w, REASON_LIMIT_CONNECTIONS, "");
	close(client);
	client = dial_to(PROXY, PROXY_PORT);
	say(client, "CONNECT ok.test:443 HTTP/1.1\r\n", 30);
	assert_int_equal(strncmp(hear_all(w, client), "HTTP/1.1 503", 12), 0);
	close(client);
	client = dial_to(PROXY, PROXY_PORT);
	say(client, "\x05\x01\x00", 3);
	assert_memory_equal(hear_all(w, client), "\x05\xff", 3);
	close(client);
	assert_int_equal(w->sandbox.connections, others + 4);

	for (int i = 0; i < 4; i++)
		close(held[i]);
	turn_for(w, 30);
	assert_int_equal(w->sandbox.connections, others);
	client = dial_to(PROXY, PROXY_PORT);
	turn_for(w, 30);
	assert_int_equal(w->sandbox.connections, others + 1);
	close(client);
	w->sandbox.connections -= others;
	world_free(w);
}

/* Without descriptors the loop rests, and goes on when there are some. */
static void test_descriptors(void **state)
{
	struct world *w = transparent_world(LEASE, 443, 0);
	struct rlimit was, none;
	int client, spare = dup(0);
	int64_t began, idle;

	(void)state;
	client = dial_to(LEASE, 443);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)spare;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	/* A loop that spins would go round all the time. */
	began = now_ms();
	event_base_loop(w->base, EVLOOP_ONCE); /* accept fails */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	event_base_loop(w->base, EVLOOP_ONCE); /* the pause ends */
	idle = now_ms() - began;
	assert_in_range(idle, 800, 3000);
	turn_for(w, 30);
	assert_int_equal(w->sandbox.connections, 1);
	close(client);
	close(spare);
	world_free(w);
}

/* So long for the first message, in every form (CMakeLists.txt), and as long
 * until one is told apart that looks like none. */
#define FIRST_MS (FIRST_SECONDS * 1000)
_Static_assert(FIRST_MS == CLASSIFY_MS && FIRST_MS == HEAD_MS,
	       "both tests wait alike");

static void test_timeouts(void **state)
{
	static const struct {
		bool explicit;
		const char *first;
		size_t len;
		const char *last; /* NULL: silence */
	} rows[] = {
		{ true, "CONNECT ok.", 11, "HTTP/1.1 408 " },
		{ true, "\x05\x01\x00\x05", 4, "\x05\x00\x05" },
		{ true, "", 0, "" },
		{ false, "\x16\x03\x01", 3, "\x15\x03\x03" },
	};
	struct world *w = transparent_world(LEASE, 443, 443);
	int client[ARRAY_SIZE(rows)];
	int64_t began = now_ms();

	(void)state;
	world_listen(w, LISTENER_EXPLICIT, PROXY, PROXY_PORT);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		client[i] = rows[i].explicit ? dial_to(PROXY, PROXY_PORT)
					     : dial_to(LEASE, 443);
		say(client[i], rows[i].first, rows[i].len);
	}
	turn_for(w, FIRST_MS - 1000);
	if (now_ms() - began < FIRST_MS)
		assert_int_equal(w->sandbox.connections, 4);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *text = hear_all(w, client[i]);

		assert_memory_equal(text, rows[i].last, strlen(rows[i].last));
		close(client[i]);
	}
	assert_in_range(now_ms() - began, FIRST_MS - 500, FIRST_MS + 2000);
	assert_int_equal(w->notes, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(w->note[i].reason, REASON_TIMEOUT);
	assert_origin_quiet(w);
	world_free(w);
}

/* What is or may become TLS or HTTP on another port never gets through; the
 * rest of it would come behind it. */
static void test_held_timeouts(void **state)
{
	static const char *const rows[] = {
		"\x16",	     "\x16\x03\x01",
		"G",	     "\r\n",
		"HELLO you", "GET / HTTP/1.1\r\nHost: ok.test:8443\r\n",
	};
	struct world *w = transparent_world(LEASE, 8443, 8443);
	int client[ARRAY_SIZE(rows)], server[ARRAY_SIZE(rows)];
	const int64_t began = now_ms();
	size_t late = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		client[i] = dial_to(LEASE, 8443);
		server[i] = origin_expect(w);
		say(client[i], rows[i], strlen(rows[i]));
	}
	turn_for(w, FIRST_MS - 1000);
	for (size_t i = 0; now_ms() - began < FIRST_MS && i < ARRAY_SIZE(rows);
	     i++) {
		char byte;
		bool http = i == ARRAY_SIZE(rows) - 1;

		/* not yet; what it was for HTTP is closed already */
		assert_int_equal(recv(server[i], &byte, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, http ? ECONNRESET : EAGAIN);
	}
	turn_for(w, 1500);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *more = "ET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";

		send(client[i], more, strlen(more), MSG_NOSIGNAL);
		if (i < ARRAY_SIZE(rows) - 1)
			assert_origin_silent(w, server[i]);
		close(client[i]);
		close(server[i]);
	}
	assert_refused(w, REASON_TIMEOUT, "ok.test");
	for (size_t i = 0; i < w->notes; i++)
		late += w->note[i].kind == EVENT_FLOW_OPEN &&
			w->note[i].reason == REASON_TIMEOUT;
	assert_int_equal(late, ARRAY_SIZE(rows));
	assert_origin_quiet(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serve),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_held_timeouts),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
