/* SPDX-License-Identifier: Apache-2.0
 *
 * test_retry.c - a server that asks for a second hello: it is judged as the
 * first.
 */
#include "tests/proxy/retry_case.h"

#define OTHER "ev.test"

static bool shake(struct line *l, size_t cut)
{
	for (int64_t end = now_ms() + HEAR_MS; now_ms() < end;) {
		client_turn(l, cut);
		turn(l->w);
		server_turn(l, cut);
		turn(l->w);
		if (l->client_done && l->server_done)
			return true;
		if (l->client_end || l->server_end)
			break;
	}
	return false;
}

/* The server has X25519 only: a key share for P-521 is asked for again. */
static void test_honest(void **state)
{
	static const size_t cuts[] = { SIZE_MAX, 7 };

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		for (int retry = 0; retry < 2; retry++) {
			for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
				struct line l;

				line_world(&l, way);
				tls_client(&l.client, NAME,
					   retry ? "P-521:X25519" : "X25519",
					   TLS1_3_VERSION);
				tls_server(&l.server, "X25519");
				line_dial(&l, way);
				assert_true(shake(&l, cuts[i]));
				check_talk(&l);
				assert_string_equal(
					SSL_get_servername(l.server.ssl, 0),
					NAME);
				line_end(&l);
			}
		}
	}
}

/* Without a session in between, the second name is what the server takes. */
static void test_servers_take_the_second(void **state)
{
	struct tls_peer client, server;
	uint8_t buf[4096];
	size_t len;

	(void)state;
	tls_client(&client, NAME, "P-521:X25519", TLS1_3_VERSION);
	tls_server(&server, "X25519");
	for (int i = 0; i < 2; i++) {
		assert_false(tls_step(&client));
		len = tls_said(&client, buf, sizeof(buf));
		tls_forge(buf, len, NAME, i ? OTHER : NAME);
		tls_hear(&server, buf, len);
		assert_false(tls_step(&server));
		len = tls_said(&server, buf, sizeof(buf));
		tls_hear(&client, buf, len);
	}
	assert_string_equal(SSL_get_servername(server.ssl, 0), OTHER);
	tls_end(&client);
	tls_end(&server);
}

/* Makes the second flight: a retry was asked for. Without @name: no SNI. */
static size_t second_flight(struct line *l, const char *name, uint8_t *buf,
			    size_t cap)
{
	size_t len;
	uint8_t *sni;

	assert_false(tls_step(&l->client));
	len = tls_said(&l->client, buf, cap);
	if (name) {
		assert_int_equal(tls_forge(buf, len, NAME, name), 1);
		return len;
	}
	/* As another extension the name is nobody's: RFC 8701 reserves it. */
	sni = memmem(buf, len, "\0\0\0\x0c\0\x0a\0\0\x07" NAME, 16);
	assert_non_null(sni);
	memset(sni, 0x0a, 2);
	return len;
}

/* The first flight goes out, and a HelloRetryRequest comes back. */
static void until_retry(struct line *l)
{
	uint8_t buf[4096];
	int64_t end = now_ms() + HEAR_MS;
	size_t len = 0;

	assert_false(tls_step(&l->client));
	len = tls_said(&l->client, buf, sizeof(buf));
	say(l->client_fd, buf, len);
	while (!len || !BIO_ctrl_pending(l->client.in)) {
		assert_true(now_ms() < end);
		turn(l->w);
		server_turn(l, SIZE_MAX);
		bring(&l->client, l->client_fd, &l->client_end);
	}
	assert_int_equal(l->up, len);
}

static void check_switch(enum way way, const char *name, size_t cut)
{
	struct line l;
	uint8_t buf[4096], alert[8];
	size_t len, up;
	int end;
	const struct note *n;

	line_world(&l, way);
	tls_client(&l.client, NAME, "P-521:X25519", TLS1_3_VERSION);
	tls_server(&l.server, "X25519");
	line_dial(&l, way);
	until_retry(&l);
	up = l.up;
	len = second_flight(&l, name, buf, sizeof(buf));
	l.w->notes = 0;
	send_cut(&l, l.client_fd, buf, len, cut);
	assert_int_equal(hear(l.w, l.client_fd, alert, 8, &end), 7);
	assert_int_equal(end, 1);
	assert_memory_equal(alert, "\x15\x03\x03\0\x02\x02", 6);
	assert_int_equal(alert[6], reason_info(name ? REASON_NAME_MISMATCH
						    : REASON_NO_NAME)
					   ->tls_alert);
	while (!l.server_end)
		l.up += bring(&l.server, l.server_fd, &l.server_end);
	/* the ChangeCipherSpec in front may have passed, the hello did not */
	assert_in_range(l.up, up, up + 6);
	assert_string_equal(SSL_get_servername(l.server.ssl, 0), NAME);

	assert_refused(l.w, name ? REASON_NAME_MISMATCH : REASON_NO_NAME, NAME);
	n = note_find(l.w, EVENT_FLOW_OPEN);
	assert_string_equal(n->sni, name ? name : NAME);
	assert_non_null(strstr(n->detail, "second ClientHello"));
	n = note_find(l.w, EVENT_FLOW_CLOSE);
	assert_int_equal(n->up, l.up);
	line_end(&l);
}

static void test_switched(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		check_switch(way, OTHER, SIZE_MAX);
		check_switch(way, OTHER, 1);
		check_switch(way, NULL, SIZE_MAX);
	}
}

/* Who knows the server can send both hellos before it has said anything. */
static void test_both_at_once(void **state)
{
	struct tls_peer server;
	uint8_t buf[8192], answer[4096], alert[8];
	size_t first, len;

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		struct line l;
		int end;

		line_world(&l, way);
		tls_client(&l.client, NAME, "P-521:X25519", TLS1_3_VERSION);
		tls_server(&l.server, "X25519");
		tls_server(&server, "X25519");
		/* what the server is going to say */
		assert_false(tls_step(&l.client));
		first = tls_said(&l.client, buf, sizeof(buf));
		tls_hear(&server, buf, first);
		assert_false(tls_step(&server));
		len = tls_said(&server, answer, sizeof(answer));
		tls_hear(&l.client, answer, len);
		len = first + second_flight(&l, OTHER, buf + first,
					    sizeof(buf) - first);
		tls_end(&server);

		line_dial(&l, way);
		say(l.client_fd, buf, len);
		for (int64_t until = now_ms() + HEAR_MS;
		     !l.server_end && now_ms() < until;) {
			turn(l.w);
			server_turn(&l, SIZE_MAX);
		}
		assert_int_not_equal(l.server_end, 0);
		assert_in_range(l.up, first, first + 6);
		assert_string_equal(SSL_get_servername(l.server.ssl, 0), NAME);
		assert_refused(l.w, REASON_NAME_MISMATCH, NAME);
		/* the server's own words first, then ours */
		len = hear(l.w, l.client_fd, answer, sizeof(answer), &end);
		assert_true(len > 7);
		memcpy(alert, answer + len - 7, 7);
		assert_memory_equal(alert, "\x15\x03\x03\0\x02\x02\x70", 7);
		line_end(&l);
	}
}

/* Half a second hello is never the end of it. */
static void test_half_a_second(void **state)
{
	struct line l;
	uint8_t buf[4096];
	size_t len;
	int end;

	(void)state;
	line_world(&l, TRANSPARENT_443);
	tls_client(&l.client, NAME, "P-521:X25519", TLS1_3_VERSION);
	tls_server(&l.server, "X25519");
	line_dial(&l, TRANSPARENT_443);
	until_retry(&l);
	len = second_flight(&l, NAME, buf, sizeof(buf));
	say(l.client_fd, buf, len - 1);
	shutdown(l.client_fd, SHUT_WR);
	assert_int_equal(hear(l.w, l.client_fd, buf, 8, &end), 7);
	assert_refused(l.w, REASON_TIMEOUT, NAME);
	line_end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_honest),
		cmocka_unit_test(test_servers_take_the_second),
		cmocka_unit_test(test_switched),
		cmocka_unit_test(test_both_at_once),
		cmocka_unit_test(test_half_a_second),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
