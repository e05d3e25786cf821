/* SPDX-License-Identifier: Apache-2.0
 *
 * retry_case.h - TLS clients and servers that are OpenSSL's, and a tunnel
 * between.
 */
#ifndef TESTS_PROXY_RETRY_CASE_H
#define TESTS_PROXY_RETRY_CASE_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "tests/proxy/tls_peer.h"
#include "tests/proxy/world_origin.h"

#define NAME "ok.test"
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

static inline void line_world(struct line *l, enum way way)
{
	const uint16_t port = way == TRANSPARENT_8443 ? 8443 : 443;

	*l = (struct line){ .w = world_new() };
	world_listen(l->w, LISTENER_TRANSPARENT, LEASE, port);
	world_listen(l->w, LISTENER_EXPLICIT, PROXY, PROXY_PORT);
	l->w->origin = listen_at(ORIGIN, port);
}

static inline void line_dial(struct line *l, enum way way)
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

static inline void line_hang_up(struct line *l)
{
	close_fd(&l->client_fd);
	close_fd(&l->server_fd);
	turn_for(l->w, 20);
	assert_int_equal(l->w->sandbox.connections, 0);
}

static inline void line_end(struct line *l)
{
	line_hang_up(l);
	tls_end(&l->client);
	tls_end(&l->server);
	world_free(l->w);
}

/* Sends in segments of at most @cut bytes. */
static inline void send_cut(struct line *l, int fd, const uint8_t *data,
			    size_t len, size_t cut)
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
static inline size_t bring(struct tls_peer *peer, int fd, int *end)
{
	uint8_t buf[16384];
	ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n > 0)
		tls_hear(peer, buf, (size_t)n);
	else if (!n || errno != EAGAIN)
		*end = n ? -errno : 1;
	return n > 0 ? (size_t)n : 0;
}

static inline bool step_or_alert(struct tls_peer *p)
{
	int n = SSL_do_handshake(p->ssl);

	return n == 1;
}

static inline void client_turn(struct line *l, size_t cut)
{
	static uint8_t buf[256 * 1024];
	size_t len;

	bring(&l->client, l->client_fd, &l->client_end);
	l->client_done = step_or_alert(&l->client);
	len = tls_said(&l->client, buf, sizeof(buf));
	send_cut(l, l->client_fd, buf, len, cut);
}

static inline void server_turn(struct line *l, size_t cut)
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

/* Bytes both ways, inside TLS. */
static inline void check_talk(struct line *l)
{
	char buf[8] = "";
	int64_t end = now_ms() + HEAR_MS;

	assert_int_equal(SSL_write(l->client.ssl, "ping", 4), 4);
	client_turn(l, SIZE_MAX);
	while (SSL_read(l->server.ssl, buf, 4) != 4 && now_ms() < end) {
		turn(l->w);
		server_turn(l, SIZE_MAX);
	}
	assert_string_equal(buf, "ping");
	assert_int_equal(SSL_write(l->server.ssl, "pong", 4), 4);
	server_turn(l, SIZE_MAX);
	while (SSL_read(l->client.ssl, buf, 4) != 4 && now_ms() < end) {
		turn(l->w);
		client_turn(l, SIZE_MAX);
	}
	assert_string_equal(buf, "pong");
}

#endif
