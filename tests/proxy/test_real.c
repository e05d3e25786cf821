/* SPDX-License-Identifier: Apache-2.0
 *
 * `dns.answers: real`: the sandbox goes to real addresses, and the names that
 * were answered with one say what it is for. What is dialled is our own look-up
 * all the same.
 */
#include "tests/proxy/doors.h"

#define POLICY                         \
	"version: 1\n"                 \
	"dns: {answers: real}\n"       \
	"allow:\n"                     \
	"  - host: ok.test\n"          \
	"    ports: [80, 443, 8443]\n" \
	"  - host: other.test\n"       \
	"    ports: [80, 443, 8443]\n" \
	"  - host: third.test\n"       \
	"    ports: [80, 443, 8443]\n" \
	"  - host: web.test\n"         \
	"    ports: [8443]\n"          \
	"    protocol: http\n"

static struct world *real_world(uint16_t port, const char *first,
				const char *second, const char *third)
{
	struct world *w = doors_world(port, POLICY);

	world_listen(w, LISTENER_TRANSPARENT, UNLEASED, port);
	w->at[0] = first;
	w->at[1] = second;
	w->at[2] = third;
	return w;
}

/* One name is as good as a lease. */
static void test_one_name(void **state)
{
	struct world *w = real_world(443, "ok.test", NULL, NULL);
	uint8_t hello[512];
	int client = dial_to(UNLEASED, 443), server;
	size_t len = say_hello(client, "ok.test", hello, sizeof(hello));

	(void)state;
	server = origin_expect(w);
	assert_heard(w, server, hello, len);
	assert_string_equal(w->resolved, "ok.test");
	part(w, client, server);

	client = dial_to(UNLEASED, 443);
	say_hello(client, "other.test", hello, sizeof(hello));
	assert_over(w, client);
	assert_refused(w, REASON_NAME_MISMATCH, "ok.test");
	assert_origin_quiet(w);
	part(w, client, -1);
	world_free(w);
}

/* On a port for anything it needs to say nothing. */
static void test_one_name_raw(void **state)
{
	struct world *w = real_world(8443, "ok.test", NULL, NULL);
	int client = dial_to(UNLEASED, 8443), server = origin_expect(w);

	(void)state;
	say_text(server, "220 hello\r\n");
	assert_heard(w, client, "220 hello\r\n", 11);
	part(w, client, server);
	world_free(w);
}

/* An address without a name is only an address, also if another kind of answer
 * is asked for. */
static void test_no_name(void **state)
{
	struct world *w = real_world(443, NULL, NULL, NULL);
	uint8_t hello[512];
	int client = dial_to(UNLEASED, 443);

	(void)state;
	say_hello(client, NULL, hello, sizeof(hello));
	assert_over(w, client);
	assert_refused(w, REASON_LITERAL_ADDRESS, "");
	part(w, client, -1);

	w->at[0] = "ok.test";
	world_policy(w, WORLD_POLICY);
	client = dial_to(UNLEASED, 443);
	say_hello(client, NULL, hello, sizeof(hello));
	assert_over(w, client);
	assert_refused(w, REASON_LITERAL_ADDRESS, "");
	part(w, client, -1);
	assert_origin_quiet(w);
	world_free(w);
}

static void test_several_tls(void **state)
{
	static const struct {
		const char *name;
		enum reason reason;
		const char *host;
	} rows[] = {
		{ "ok.test", REASON_RULE, "ok.test" },
		{ "other.test", REASON_RULE, "other.test" },
		{ "third.test", REASON_NAME_MISMATCH, "" },
		{ "evil.test", REASON_NAME_MISMATCH, "" },
		{ NULL, REASON_NO_NAME, "" },
	};
	static const uint16_t ports[] = { 443, 8443 };

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(ports); p++) {
		struct world *w =
			real_world(ports[p], "ok.test", "other.test", NULL);

		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			int client = dial_to(UNLEASED, ports[p]), server = -1;
			uint8_t hello[512];
			size_t len = say_hello(client, rows[i].name, hello,
					       sizeof(hello));

			copy_text(w->resolved, sizeof(w->resolved), "");
			if (rows[i].reason == REASON_RULE) {
				server = origin_expect(w);
				assert_heard(w, server, hello, len);
				assert_string_equal(w->resolved, rows[i].name);
			} else {
				assert_over(w, client);
				assert_origin_quiet(w);
				assert_refused(w, rows[i].reason, "");
				assert_string_equal(w->resolved, "");
			}
			part(w, client, server);
		}
		world_free(w);
	}
}

static void test_several_http(void **state)
{
	static const uint16_t ports[] = { 80, 8443 };
	static const char *const name[] = { "ok.test", "other.test",
					    "third.test" };
	char text[200];

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(ports); p++) {
		struct world *w =
			real_world(ports[p], "ok.test", "other.test", NULL);

		for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
			int client = dial_to(UNLEASED, ports[p]), server = -1;

			snprintf(text, sizeof(text),
				 "GET / HTTP/1.1\r\nHost: %s:%u\r\n\r\n",
				 name[i], ports[p]);
			say_text(client, text);
			if (i < 2) {
				server = origin_expect(w);
				assert_string_equal(w->resolved, name[i]);
			} else {
				assert_over(w, client);
				assert_note(w, EVENT_HTTP_REQUEST, false,
					    REASON_NAME_MISMATCH);
				assert_origin_quiet(w);
			}
			part(w, client, server);
		}
		world_free(w);
	}
}

/* A protocol without names, or a client that waits for the server. */
static void test_several_nameless(void **state)
{
	static const uint16_t ports[] = { 80, 443, 8443 };

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(ports); p++) {
		struct world *w =
			real_world(ports[p], "ok.test", "other.test", NULL);
		int client = dial_to(UNLEASED, ports[p]);

		say_text(client, "SSH-2.0-x\r\n");
		assert_reset(w, client);
		assert_refused(w, REASON_NO_NAME, "");
		assert_origin_quiet(w);
		part(w, client, -1);
		world_free(w);
	}
}

static void test_several_silent(void **state)
{
	struct world *w = real_world(8443, "ok.test", "other.test", NULL);
	const int64_t began = now_ms();
	int client = dial_to(UNLEASED, 8443);

	(void)state;
	turn_for(w, 9000);
	if (now_ms() - began < 10000)
		assert_int_equal(w->notes, 0);
	assert_reset(w, client);
	assert_refused(w, REASON_NO_NAME, "");
	part(w, client, -1);
	world_free(w);
}

/* What the name's rule wants is only known with the name. */
static void test_several_wanted(void **state)
{
	struct world *w = real_world(8443, "ok.test", "web.test", NULL);
	uint8_t hello[512];
	int client = dial_to(UNLEASED, 8443), server;

	(void)state;
	say_hello(client, "web.test", hello, sizeof(hello));
	assert_over(w, client);
	assert_refused(w, REASON_PROTOCOL, "web.test");
	assert_origin_quiet(w);
	part(w, client, -1);

	client = dial_to(UNLEASED, 8443);
	say_text(client, "GET / HTTP/1.1\r\nHost: web.test:8443\r\n\r\n");
	server = origin_expect(w);
	part(w, client, server);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_name),
		cmocka_unit_test(test_one_name_raw),
		cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_several_tls),
		cmocka_unit_test(test_several_http),
		cmocka_unit_test(test_several_nameless),
		cmocka_unit_test(test_several_silent),
		cmocka_unit_test(test_several_wanted),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
