/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL clients and servers with a session between them that ask for a second
 * ClientHello: an honest one passes, one with another name does not, whatever
 * the door. The proof that it matters is test_servers_take_the_second.
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "tests/proxy/tls_peer.h"
#include "tests/proxy/world.h"

#define NAME  "ok.test"
#define OTHER "ev.test"

enum way { TRANSPARENT_443, TRANSPARENT_8443, BY_CONNECT, BY_SOCKS, WAYS };

static const char connect_head[] = "CONNECT ok.test:443 HTTP/1.1\r\n"
				   "Host: ok.test:443\r\n\r\n";
static const char socks_head[] = "\x05\x01\x00\x05\x01\x00\x03\x07ok.test"
				 "\x01\xbb";

/* A connection through a session, with a TLS library at either end. */
struct line {
	struct world *w;
	struct tls_peer client, server;
	int client_fd, server_fd;
	int client_end, server_end; /* as hear() says */
	size_t up;		    /* bytes that reached the server */
	bool client_done, server_done;
};

static void line_world(struct line *l, enum way way)
{
	const uint16_t port = way == TRANSPARENT_8443 ? 8443 : 443;

	*l = (struct line){ .w = world_new() };
	world_listen(l->w, LISTENER_TRANSPARENT, LEASE, port);
	world_listen(l->w, LISTENER_EXPLICIT, PROXY, PROXY_PORT);
	l->w->origin = listen_at(ORIGIN, port);
}

static void line_dial(struct line *l, enum way way)
{
	char yes[64];
	int end;

	l->up = 0;
	l->client_end = l->server_end = 0;
	l->client_done = l->server_done = false;
	l->server_fd = -1;
	if (way == TRANSPARENT_443 || way == TRANSPARENT_8443) {
		l->client_fd =
			dial_to(LEASE, way == TRANSPARENT_443 ? 443 : 8443);
		return;
	}
	l->client_fd = dial_to(PROXY, PROXY_PORT);
	if (way == BY_CONNECT)
		say(l->client_fd, connect_head, sizeof(connect_head) - 1);
	else
		say(l->client_fd, socks_head, sizeof(socks_head) - 1);
	assert_int_equal(hear(l->w, l->client_fd, yes,
			      way == BY_CONNECT ? 39 : 12, &end),
			 way == BY_CONNECT ? 39 : 12);
}

static void line_hang_up(struct line *l)
{
	close_fd(&l->client_fd);
	close_fd(&l->server_fd);
	turn_for(l->w, 20);
	assert_int_equal(l->w->sandbox.connections, 0);
}

static void line_end(struct line *l)
{
	line_hang_up(l);
	tls_end(&l->client);
	tls_end(&l->server);
	world_free(l->w);
}

/* Sends in segments of at most @cut bytes. */
static void send_cut(struct line *l, int fd, const uint8_t *data, size_t len,
		     size_t cut)
{
	for (size_t at = 0; at < len;) {
		size_t n = len - at < cut ? len - at : cut;
		ssize_t sent =
			send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		turn(l->w);
		if (sent < 0 && errno != EAGAIN)
			return;
		at += sent > 0 ? (size_t)sent : 0;
	}
}

/* What came on @fd, for @peer. */
static size_t bring(struct tls_peer *peer, int fd, int *end)
{
	uint8_t buf[16384];
	ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n > 0)
		tls_hear(peer, buf, (size_t)n);
	else if (!n || errno != EAGAIN)
		*end = n ? -errno : 1;
	return n > 0 ? (size_t)n : 0;
}

static bool step_or_alert(struct tls_peer *p)
{
	int n = SSL_do_handshake(p->ssl);

	return n == 1;
}

static void client_turn(struct line *l, size_t cut)
{
	static uint8_t buf[256 * 1024];
	size_t len;

	bring(&l->client, l->client_fd, &l->client_end);
	l->client_done = step_or_alert(&l->client);
	len = tls_said(&l->client, buf, sizeof(buf));
	send_cut(l, l->client_fd, buf, len, cut);
}

static void server_turn(struct line *l, size_t cut)
{
	uint8_t buf[16384];
	size_t len;

	if (l->server_fd < 0)
		l->server_fd = accept4(l->w->origin, NULL, NULL, SOCK_CLOEXEC);
	if (l->server_fd < 0)
		return;
	l->up += bring(&l->server, l->server_fd, &l->server_end);
	l->server_done = step_or_alert(&l->server);
	len = tls_said(&l->server, buf, sizeof(buf));
	send_cut(l, l->server_fd, buf, len, cut);
}

static bool shake(struct line *l, size_t cut)
{
	for (int64_t end = clock_ms() + HEAR_MS; clock_ms() < end;) {
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

/* Bytes both ways, inside TLS. */
static void check_talk(struct line *l)
{
	char buf[8] = "";
	int64_t end = clock_ms() + HEAR_MS;

	assert_int_equal(SSL_write(l->client.ssl, "ping", 4), 4);
	client_turn(l, SIZE_MAX);
	while (SSL_read(l->server.ssl, buf, 4) != 4 && clock_ms() < end) {
		turn(l->w);
		server_turn(l, SIZE_MAX);
	}
	assert_string_equal(buf, "ping");
	assert_int_equal(SSL_write(l->server.ssl, "pong", 4), 4);
	server_turn(l, SIZE_MAX);
	while (SSL_read(l->client.ssl, buf, 4) != 4 && clock_ms() < end) {
		turn(l->w);
		client_turn(l, SIZE_MAX);
	}
	assert_string_equal(buf, "pong");
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
	int64_t end = clock_ms() + HEAR_MS;
	size_t len = 0;

	assert_false(tls_step(&l->client));
	len = tls_said(&l->client, buf, sizeof(buf));
	say(l->client_fd, buf, len);
	while (!len || !BIO_ctrl_pending(l->client.in)) {
		assert_true(clock_ms() < end);
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
		for (int64_t until = clock_ms() + HEAR_MS;
		     !l.server_end && clock_ms() < until;) {
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

/* Early data behind the first hello: taken, or refused by a retry, after which
 * the client's second hello comes behind it. More than we hold, too. */
static void check_early(enum way way, size_t much, bool retry)
{
	static uint8_t data[EARLY_MAX], got[EARLY_MAX];
	uint8_t flight[8192];
	struct line l;
	size_t n, len = 0;
	int status = SSL_READ_EARLY_DATA_ERROR;

	line_world(&l, way);
	tls_client(&l.client, NAME, "X25519:P-256", TLS1_3_VERSION);
	tls_server(&l.server, "X25519:P-256");
	tls_get_ticket(&l.client, &l.server);
	if (retry)
		SSL_CTX_set1_groups_list(l.server.ctx, "P-256");
	tls_begin(&l.client, NAME);
	tls_begin(&l.server, NULL);
	assert_int_equal(SSL_set_session(l.client.ssl, tls_ticket), 1);
	/* OpenSSL 3.0 does not skip full records before a second hello. */
	SSL_set_max_send_fragment(l.client.ssl, 8192);
	line_dial(&l, way);

	memset(data, 'e', sizeof(data));
	for (size_t at = 0; at < much; at += n)
		assert_int_equal(SSL_write_early_data(l.client.ssl, data + at,
						      much - at, &n),
				 1);
	for (int64_t end = clock_ms() + HEAR_MS;
	     !(l.client_done && l.server_done) && clock_ms() < end;) {
		client_turn(&l, SIZE_MAX);
		turn(l.w);
		if (l.server_fd < 0) {
			l.server_fd =
				accept4(l.w->origin, NULL, NULL, SOCK_CLOEXEC);
			continue;
		}
		bring(&l.server, l.server_fd, &l.server_end);
		for (n = 1; n && status != SSL_READ_EARLY_DATA_FINISH;) {
			status = SSL_read_early_data(l.server.ssl, got + len,
						     sizeof(got) - len, &n);
			if (status == SSL_READ_EARLY_DATA_ERROR)
				break;
			len += n;
		}
		if (status == SSL_READ_EARLY_DATA_FINISH)
			l.server_done = step_or_alert(&l.server);
		n = tls_said(&l.server, flight, sizeof(flight));
		send_cut(&l, l.server_fd, flight, n, SIZE_MAX);
	}
	assert_true(l.client_done && l.server_done);
	assert_int_equal(SSL_get_early_data_status(l.client.ssl),
			 retry ? SSL_EARLY_DATA_REJECTED
			       : SSL_EARLY_DATA_ACCEPTED);
	assert_int_equal(len, retry ? 0 : much);
	assert_memory_equal(got, data, len);
	check_talk(&l);
	SSL_SESSION_free(STEAL(tls_ticket));
	line_end(&l);
}

static void test_early_data(void **state)
{
	static const size_t much[] = { 5, 20000, 60000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(much); i++)
		for (int retry = 0; retry < 2; retry++) {
			print_message("%zu %d\n", much[i], retry);
			check_early(TRANSPARENT_443, much[i], retry);
			check_early(BY_CONNECT, much[i], retry);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_honest),
		cmocka_unit_test(test_servers_take_the_second),
		cmocka_unit_test(test_switched),
		cmocka_unit_test(test_both_at_once),
		cmocka_unit_test(test_half_a_second),
		cmocka_unit_test(test_early_data),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
