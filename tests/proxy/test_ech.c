/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ech.c - what becomes of a connection with an encrypted ClientHello, by
 * every door and after a retry.
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "tests/proxy/ech.h"

#define FRONT "cloudflare-ech.com"

#define V                     \
	"version: 1\n"        \
	"allow:\n"            \
	"  - host: ok.test\n" \
	"    ports: [443, 8443]\n"
#define DENY  "    tls: {ech: deny}\n"
#define ALLOW "    tls: {ech: allow}\n"

/* --- doors ---------------------------------------------------------------- */

static size_t make(const char *name, bool ech, uint8_t *buf, size_t cap)
{
	uint8_t body[512];
	const struct hello_spec spec = {
		.name = name,
		.extra = ech ? ECH : 0x0a0a,
		.body = body,
		.body_len = outer(body, sizeof(body), 32, 208, 0),
	};

	return hello_make(&spec, buf, cap);
}

/* A TLS alert (fatal) of @reason, and the end. */
static void assert_alert(struct world *w, int fd, enum reason reason)
{
	const uint8_t want[] = {
		0x15, 3, 3, 0, 2, 2, reason_info(reason)->tls_alert
	};
	uint8_t got[7];
	int end;

	assert_int_equal(hear(w, fd, got, sizeof(got), &end), sizeof(got));
	assert_int_equal(got[0], 0x15);
	assert_int_equal(got[5], 2);
	assert_int_equal(got[6], want[6]);
	assert_over(w, fd);
}

/* A hello for @sni on the way to ok.test:@port by @door: @want, and the record
 * says what it saw. */
static void check(const char *yaml, enum door door, uint16_t port,
		  const char *sni, bool ech, enum reason want)
{
	struct world *w = doors_world(port, yaml);
	int client = enter(w, door, port), server = -1;
	const struct note *n;
	uint8_t hello[1024];
	size_t len = make(sni, ech, hello, sizeof(hello));

	say(client, hello, len);
	if (want == REASON_RULE) {
		server = origin_expect(w);
		assert_heard(w, server, hello, len);
		part(w, client, server);
		n = note_find(w, EVENT_FLOW_CLOSE);
		assert_int_equal(n->ech, ech);
		assert_string_equal(n->sni, sni);
		world_free(w);
		return;
	}
	assert_alert(w, client, want);
	assert_note(w, EVENT_FLOW_OPEN, false, want);
	n = note_find(w, EVENT_FLOW_OPEN);
	assert_int_equal(n->ech, ech);
	assert_string_equal(n->sni, sni);
	server = origin_accept(w, 50);
	if (server >= 0)
		assert_origin_silent(w, server);
	part(w, client, server);
	world_free(w);
}

static void test_doors(void **state)
{
	static const struct {
		const char *yaml, *sni;
		bool ech;
		enum reason want;
	} rows[] = {
		{ V, "ok.test", true, REASON_RULE }, /* GREASE, or not */
		{ V, FRONT, true, REASON_ECH },
		{ V, "public.example", true, REASON_ECH },
		{ V, FRONT, false, REASON_NAME_MISMATCH },
		{ V ALLOW, "ok.test", true, REASON_RULE },
		{ V ALLOW, FRONT, true, REASON_NAME_MISMATCH },
		{ V DENY, "ok.test", true, REASON_ECH },
		{ V DENY, "ok.test", false, REASON_RULE },
		/* Observing does not let names be hidden. */
		{ V DENY "mode: observe\n", "ok.test", true, REASON_ECH },
		{ V "mode: observe\n", FRONT, true, REASON_ECH },
	};

	(void)state;
	for (size_t d = 0; d < ARRAY_SIZE(doors); d++)
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			check(rows[i].yaml, doors[d], 443, rows[i].sni,
			      rows[i].ech, rows[i].want);
			check(rows[i].yaml, doors[d], 8443, rows[i].sni,
			      rows[i].ech, rows[i].want);
		}
}

/* Where the hello alone says which host it is (`serve`): a front's name is
 * allowed, and what is inside is not seen. */
static void check_front(const char *yaml, bool ech, enum reason want)
{
	struct world *w = world_new();
	uint8_t hello[1024];
	size_t len = make(FRONT, ech, hello, sizeof(hello));
	int client, server = -1;

	world_policy(w, yaml);
	world_listen(w, LISTENER_TLS, PROXY, 4443);
	w->origin = listen_at(ORIGIN, 443);
	client = dial_to(PROXY, 4443);
	say(client, hello, len);
	if (want == REASON_RULE) {
		server = origin_expect(w);
		assert_heard(w, server, hello, len);
	} else {
		assert_alert(w, client, want);
		assert_note(w, EVENT_FLOW_OPEN, false, want);
		assert_origin_quiet(w);
	}
	assert_int_equal(note_find(w, EVENT_FLOW_OPEN)->ech, ech);
	part(w, client, server);
	world_free(w);
}

static void test_fronts(void **state)
{
#define RULE "version: 1\nallow:\n  - host: " FRONT "\n"

	(void)state;
	check_front(RULE, false, REASON_RULE);
	check_front(RULE, true, REASON_ECH);
	check_front(RULE ALLOW, true, REASON_RULE);
	check_front(RULE DENY, true, REASON_ECH);
	/* What is not allowed at all is refused for that. */
	check_front(V, true, REASON_NOT_IN_POLICY);
	check_front("version: 1\ndefault: public\n", true, REASON_ECH);
}

/* At an address its rule and the name's both have a say. */
static void check_address(const char *of_address, const char *of_name,
			  enum reason want)
{
	struct world *w = world_new();
	char yaml[300];
	uint8_t hello[1024];
	size_t len = make("ok.test", true, hello, sizeof(hello));
	int client, server = -1;

	snprintf(yaml, sizeof(yaml), V "%s  - address: " LITERAL "\n%s",
		 of_name, of_address);
	world_policy(w, yaml);
	world_listen(w, LISTENER_TRANSPARENT, LITERAL, 443);
	client = dial_to(LITERAL, 443);
	say(client, hello, len);
	if (want != REASON_RULE) {
		assert_alert(w, client, want);
		assert_note(w, EVENT_FLOW_OPEN, false, want);
	} else {
		turn_for(w, 30);
		assert_note(w, EVENT_FLOW_OPEN, true, REASON_RULE);
	}
	part(w, client, server);
	world_free(w);
}

static void test_address(void **state)
{
	(void)state;
	check_address("", "", REASON_RULE);
	check_address(DENY, "", REASON_ECH);
	check_address("", DENY, REASON_ECH);
	check_address(ALLOW, DENY, REASON_ECH);
}

/* --- a second hello ------------------------------------------------------- */

/* A record with a HelloRetryRequest, as far as it has to be one. */
static size_t retry(uint8_t *buf, size_t cap)
{
	static const uint8_t random[32] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11,
		0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
		0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
		0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	struct wirebuf b = wirebuf_of(buf, cap);

	wirebuf_u8(&b, 0x16);
	wirebuf_u16(&b, 0x0303);
	wirebuf_u16(&b, 4 + 2 + 32 + 1 + 2 + 1 + 2);
	wirebuf_u32(&b, 0x02000000 | (2 + 32 + 1 + 2 + 1 + 2));
	wirebuf_u16(&b, 0x0303);
	wirebuf_put(&b, random, sizeof(random));
	wirebuf_u8(&b, 0);
	wirebuf_u16(&b, 0x1301);
	wirebuf_u8(&b, 0);
	wirebuf_u16(&b, 0);
	return b.len;
}

static void check_second(enum door door, bool first, bool second,
			 const char *sni, enum reason want)
{
	struct world *w = doors_world(443, V);
	int client = enter(w, door, 443), server;
	uint8_t hello[1024], answer[128];
	size_t len = make("ok.test", first, hello, sizeof(hello)), n;

	say(client, hello, len);
	server = origin_expect(w);
	assert_heard(w, server, hello, len);
	n = retry(answer, sizeof(answer));
	say(server, answer, n);
	assert_heard(w, client, answer, n);
	len = make(sni, second, hello, sizeof(hello));
	say(client, hello, len);
	if (want == REASON_RULE) {
		assert_heard(w, server, hello, len);
		part(w, client, server);
		assert_int_equal(note_find(w, EVENT_FLOW_CLOSE)->ech, first);
	} else {
		assert_alert(w, client, want);
		assert_origin_silent(w, server);
		assert_note(w, EVENT_FLOW_OPEN, false, want);
		part(w, client, server);
	}
	world_free(w);
}

static void test_second(void **state)
{
	(void)state;
	for (size_t d = 0; d < ARRAY_SIZE(doors); d++) {
		check_second(doors[d], true, true, "ok.test", REASON_RULE);
		check_second(doors[d], true, false, "ok.test", REASON_RULE);
		check_second(doors[d], false, false, "ok.test", REASON_RULE);
		check_second(doors[d], false, true, "ok.test",
			     REASON_MALFORMED);
		check_second(doors[d], true, true, FRONT, REASON_NAME_MISMATCH);
	}
}

/* --- another policy ------------------------------------------------------- */

static void test_reload(void **state)
{
	(void)state;
	for (size_t d = 0; d < ARRAY_SIZE(doors); d++)
		for (int ech = 0; ech < 2; ech++) {
			struct world *w = doors_world(443, V);
			int client = enter(w, doors[d], 443), server;
			uint8_t hello[1024];
			size_t len = make("ok.test", ech, hello, sizeof(hello));

			say(client, hello, len);
			server = origin_expect(w);
			assert_heard(w, server, hello, len);
			world_policy(w, V DENY);
			for (size_t i = 0; i < w->listeners; i++)
				listener_recheck(w->listener[i], &w->sandbox);
			turn_for(w, 20);
			if (ech) {
				assert_note(w, EVENT_FLOW_CLOSE, false,
					    REASON_POLICY_REVOKED);
				assert_true(
					note_find(w, EVENT_FLOW_CLOSE)->ech);
			} else {
				assert_null(note_find(w, EVENT_FLOW_CLOSE));
			}
			part(w, client, server);
			world_free(w);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doors),	cmocka_unit_test(test_fronts),
		cmocka_unit_test(test_address), cmocka_unit_test(test_second),
		cmocka_unit_test(test_reload),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
