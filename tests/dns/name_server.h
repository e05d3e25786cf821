/* SPDX-License-Identifier: Apache-2.0
 *
 * name_server.h - a name server on loopback for tests, UDP and TCP, in a thread
 * of its own. What it does is said by the first label of the name:
 *
 *	a4 both v6 nx nodata servfail refused	as they say
 *	silent		never answers
 *	slow6		answers A, but never AAAA
 *	big		TC by UDP, the answer by TCP
 *	forged		a flood of wrong answers before the right one
 *	lucky		the same, and the second would be believed
 *	noedns		FORMERR to questions with OPT
 *	priv mixed meta	addresses that must not be dialled (mixed: one may)
 *	alias		a CNAME to elsewhere
 *	ten zero	ten addresses; a TTL of 0
 *
 * and, asked for TXT, MX or SRV:
 *	good		two records, names in them compressed
 *	root		names that are the root
 *	owner		records of another owner, before and after one of ours
 *	many		100 records, by TCP only
 *	large		(TXT) one too long, and one that is not
 *	names		names in them that are no host names, beside one that is
 *	circle forward tail short empty
 *			malformed data: pointers, bytes left over or missing
 *	alias nx nodata silent servfail big
 *			as above
 *
 * Every question is written down.
 */
#ifndef TESTS_DNS_NAME_SERVER_H
#define TESTS_DNS_NAME_SERVER_H

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "dns/name.h"
#include "policy/services.h"

#define SEEN_MAX   512
#define SERVER_MAX 16384

struct seen {
	uint16_t id, type, port;
	bool tcp, edns;
	char name[NAME_TEXT_MAX];
};

struct name_server {
	int udp, tcp, stop[2];
	struct endpoint at;
	pthread_t thread;
	pthread_mutex_t lock;
	size_t count;
	struct seen seen[SEEN_MAX];
};

/* One question as the server sees it. */
struct asked {
	uint8_t data[2048];
	size_t len, question_len;
	struct name name;
	uint16_t id, type;
	bool edns, tcp;
};

static inline bool server_read(struct asked *asked)
{
	struct wire w = wire_of(asked->data, asked->len);

	asked->id = wire_u16(&w);
	wire_take(&w, 8);
	asked->edns = wire_u16(&w) == 1;
	const uint8_t *from = w.at;
	name_read_plain(&w, &asked->name);
	asked->type = wire_u16(&w);
	wire_u16(&w);
	asked->question_len = (size_t)(w.at - from);
	return wire_ok(&w);
}

static inline bool server_is(const struct asked *asked, const char *label)
{
	return asked->name.wire[0] == strlen(label) &&
	       memcmp(asked->name.wire + 1, label, strlen(label)) == 0;
}

static inline void server_rr(struct wirebuf *b, uint16_t type, uint32_t ttl,
			     const void *data, size_t len)
{
	wirebuf_u16(b, 0xc00c);
	wirebuf_u16(b, type);
	wirebuf_u16(b, 1);
	wirebuf_u32(b, ttl);
	wirebuf_u16(b, (uint16_t)len);
	wirebuf_put(b, data, len);
}

/* A TXT, MX or SRV record whose text or target is @data, on the wire. */
static inline void server_data(const struct asked *asked, struct wirebuf *b,
			       const char *owner, size_t owner_len,
			       const void *data, size_t len)
{
	size_t numbers = asked->type == 33 ? 6 : asked->type == 15 ? 2 : 0;

	wirebuf_put(b, owner, owner_len);
	wirebuf_u16(b, asked->type);
	wirebuf_u16(b, 1);
	wirebuf_u32(b, 77);
	wirebuf_u16(b, (uint16_t)(numbers + len));
	wirebuf_put(b, "\0\1\0\2\1\273", numbers);
	wirebuf_put(b, data, len);
}

static inline uint16_t server_many(const struct asked *asked, struct wirebuf *b)
{
	for (int i = 0; i < 100; i++)
		server_data(asked, b, "\xc0\x0c", 2, "\2n1\3net", 8);
	return 100;
}

/* One that is left out, and one that is not. */
static inline uint16_t server_large(const struct asked *asked,
				    struct wirebuf *b)
{
	uint8_t text[600] = { 255, [256] = 255, [512] = 87 };

	server_data(asked, b, "\xc0\x0c", 2, text, sizeof(text));
	server_data(asked, b, "\xc0\x0c", 2, "\2ok\0", 4);
	return 2;
}

struct server_data {
	const char *label, *owner;
	size_t owner_len;
	const char *data;
	size_t len;
};

#define OURS	 "\xc0\x0c", 2
#define BYTES(s) (s), sizeof(s) - 1

/* Records other than addresses; returns how many. Offset 12 is the name that
 * was asked. As text a name is strings, with an empty one at the end. */
static inline uint16_t server_others(const struct asked *asked,
				     struct wirebuf *b)
{
	static const struct server_data rows[] = {
		{ "good", OURS, BYTES("\2S1\3net\0") },
		{ "good", OURS, BYTES("\2s2\xc0\x0c") },
		{ "root", OURS, BYTES("\0") },
		{ "owner", BYTES("\4evil\4test\0"), BYTES("\2e1\3net\0") },
		{ "owner", OURS, BYTES("\2s1\3net\0") },
		{ "owner", BYTES("\1x\xc0\x0c"), BYTES("\2e2\3net\0") },
		{ "names", OURS, BYTES("\3a b\3net\0") },
		{ "names", OURS, BYTES("\3a.b\3net\0") },
		{ "names", OURS, BYTES("\3\x61\0c\3net\0") },
		{ "names", OURS,
		  BYTES("\3"
			"127\1"
			"0\1"
			"0\1"
			"1\0") },
		{ "names", OURS, BYTES("\2\xc3\xa4\3net\0") },
		{ "names", OURS, BYTES("\2ok\3net\0") },
		{ "forward", OURS, BYTES("\2s1\xff\xff") },
		{ "tail", OURS, BYTES("\2s1\3net\0\7") },
		{ "short", OURS, BYTES("\2s1\4net") },
		{ "empty", OURS, BYTES("") },
	};
	uint16_t count = 0;

	if (server_is(asked, "many") || server_is(asked, "big"))
		return server_many(asked, b);
	if (server_is(asked, "large"))
		return server_large(asked, b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!server_is(asked, rows[i].label))
			continue;
		server_data(asked, b, rows[i].owner, rows[i].owner_len,
			    rows[i].data,
			    asked->type == 16 && server_is(asked, "good")
				    ? 3
				    : rows[i].len);
		count++;
	}
	if (server_is(asked, "circle")) {
		size_t numbers = asked->type == 33 ? 6 : 2;
		uint16_t self = (uint16_t)(0xc000 + b->len + 12 + numbers);
		uint8_t at[] = { (uint8_t)(self >> 8), (uint8_t)self };

		server_data(asked, b, OURS, at, 2);
		count++;
	}
	return count;
}

/* The records of the answer section; returns how many. */
static inline uint16_t server_records(const struct asked *asked,
				      struct wirebuf *b)
{
	static const uint8_t v6[16] = { 0x26, 0x06, 0x28, 0, [15] = 1 };
	bool a = asked->type == 1, aaaa = asked->type == 28;

	if (a && server_is(asked, "mixed")) {
		server_rr(b, 1, 77, "\x0a\0\0\1", 4);
		server_rr(b, 1, 77, "\x5d\xb8\xd8\x22", 4);
		return 2;
	}
	if (a && server_is(asked, "ten")) {
		for (uint8_t i = 0; i < 10; i++)
			server_rr(b, 1, 500, (uint8_t[]){ 0x5d, 0xb8, 0xd8, i },
				  4);
		return 10;
	}
	if (server_is(asked, "alias")) {
		server_rr(b, 5, 33, "\6target\3net\0", 12);
		if (asked->type == 15 || asked->type == 16 ||
		    asked->type == 33) {
			server_data(asked, b, "\6target\3net\0", 12,
				    "\2s1\3net\0", 8);
			return 2;
		}
		if (!a)
			return 1;
		wirebuf_put(b,
			    "\6target\3net\0\0\1\0\1\0\0\0\x63\0\4\x5d"
			    "\xb8\xd8\x22",
			    12 + 14);
		return 2;
	}
	if ((aaaa && server_is(asked, "both")) ||
	    (aaaa && server_is(asked, "v6"))) {
		server_rr(b, 28, 50, v6, 16);
		return 1;
	}
	if (asked->type == 15 || asked->type == 16 || asked->type == 33)
		return server_others(asked, b);
	if (!a || server_is(asked, "v6") || server_is(asked, "nodata"))
		return 0;
	uint32_t ttl = server_is(asked, "zero") ? 0 : 77;
	if (server_is(asked, "priv"))
		server_rr(b, 1, ttl, "\x0a\0\0\1", 4);
	else if (server_is(asked, "meta"))
		server_rr(b, 1, ttl, "\xa9\xfe\xa9\xfe", 4);
	else
		server_rr(b, 1, ttl, "\x5d\xb8\xd8\x22", 4);
	return 1;
}

static inline size_t server_answer(const struct asked *asked, uint8_t *buf,
				   size_t cap)
{
	struct wirebuf b = wirebuf_of(buf, cap);
	bool noedns = server_is(asked, "noedns") && asked->edns;
	bool cut = (server_is(asked, "big") || server_is(asked, "many")) &&
		   !asked->tcp;
	unsigned rcode = server_is(asked, "nx")		? 3
			 : server_is(asked, "servfail") ? 2
			 : server_is(asked, "refused")	? 5
			 : noedns			? 1
							: 0;
	bool opt = asked->edns && !noedns;
	uint8_t *counts;

	wirebuf_u16(&b, asked->id);
	wirebuf_u16(&b, (uint16_t)(0x8180 | rcode | (cut ? 0x200 : 0)));
	wirebuf_u16(&b, 1);
	counts = wirebuf_reserve(&b, 6);
	memset(counts, 0, 6);
	counts[5] = opt ? 1 : 0;
	wirebuf_put(&b, asked->data + 12, asked->question_len);
	if (!rcode && !cut)
		counts[1] = (uint8_t)server_records(asked, &b);
	if (rcode == 3) {
		counts[3] = 1;
		server_rr(&b, 6, 40,
			  "\0\0\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1"
			  "\0\0\0\x1e",
			  22);
	}
	if (opt)
		wirebuf_put(&b, "\0\0\x29\4\xd0\0\0\0\0\0\0", 11);
	return b.full ? 0 : b.len;
}

/* Guesses of somebody who does not see our questions, or sees only some. */
static inline void server_forge(struct name_server *s,
				const struct asked *asked,
				const union sockaddr_any *to, socklen_t to_len)
{
	struct asked other = *asked;
	uint8_t buf[2048];

	for (unsigned i = 1; i <= 200; i++) {
		other.data[14] = asked->data[14] ^ (i % 4 == 0);
		other.id = asked->id; /* even for another question */
		if (i % 4 && !(i == 2 && server_is(asked, "lucky")))
			other.id = (uint16_t)(asked->id + i);
		size_t len = server_answer(&other, buf, sizeof(buf));
		buf[len > 40 ? len - 12 : 0] ^= 0xff;
		sendto(s->udp, buf, len, 0, &to->sa, to_len);
	}
}

static inline void server_note(struct name_server *s, const struct asked *asked,
			       uint16_t port)
{
	pthread_mutex_lock(&s->lock);
	if (s->count < SEEN_MAX) {
		struct seen *seen = &s->seen[s->count++];

		*seen = (struct seen){ .id = asked->id,
				       .type = asked->type,
				       .port = port,
				       .tcp = asked->tcp,
				       .edns = asked->edns };
		name_format(&asked->name, seen->name);
	}
	pthread_mutex_unlock(&s->lock);
}

static inline bool server_mute(const struct asked *asked)
{
	return server_is(asked, "silent") ||
	       (asked->type == 28 && server_is(asked, "slow6"));
}

static inline void server_udp(struct name_server *s)
{
	struct asked asked = { .tcp = false };
	union sockaddr_any from;
	socklen_t from_len = sizeof(from);
	uint8_t buf[SERVER_MAX];
	ssize_t n = recvfrom(s->udp, asked.data, sizeof(asked.data), 0,
			     &from.sa, &from_len);

	asked.len = n > 0 ? (size_t)n : 0;
	if (!server_read(&asked))
		return;
	server_note(s, &asked, port_from_sockaddr(&from));
	if (server_mute(&asked))
		return;
	if (server_is(&asked, "forged") || server_is(&asked, "lucky"))
		server_forge(s, &asked, &from, from_len);
	size_t len = server_answer(&asked, buf, sizeof(buf));
	sendto(s->udp, buf, len, 0, &from.sa, from_len);
}

static inline void server_tcp(struct name_server *s)
{
	struct asked asked = { .tcp = true };
	const struct timeval limit = { .tv_sec = 2 };
	uint8_t prefix[2], buf[SERVER_MAX];
	AUTO_FD int fd = accept(s->tcp, NULL, NULL);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (recv(fd, prefix, 2, MSG_WAITALL) != 2)
		return;
	asked.len = (size_t)(prefix[0] << 8 | prefix[1]);
	if (asked.len > sizeof(asked.data) ||
	    recv(fd, asked.data, asked.len, MSG_WAITALL) !=
		    (ssize_t)asked.len ||
	    !server_read(&asked))
		return;
	server_note(s, &asked, 0);
	if (server_mute(&asked))
		return;
	size_t len = server_answer(&asked, buf + 2, sizeof(buf) - 2);
	buf[0] = (uint8_t)(len >> 8);
	buf[1] = (uint8_t)len;
	send(fd, buf, len + 2, MSG_NOSIGNAL);
}

static inline void *server_main(void *arg)
{
	struct name_server *s = arg;
	struct pollfd fds[] = { { s->stop[0], POLLIN, 0 },
				{ s->udp, POLLIN, 0 },
				{ s->tcp, POLLIN, 0 } };

	while (poll(fds, 3, -1) >= 0 && !fds[0].revents) {
		if (fds[1].revents)
			server_udp(s);
		if (fds[2].revents)
			server_tcp(s);
	}
	return NULL;
}

static inline uint16_t bound_port(int fd)
{
	union sockaddr_any sa;
	socklen_t len = sizeof(sa);

	assert_int_equal(getsockname(fd, &sa.sa, &len), 0);
	return port_from_sockaddr(&sa);
}

static inline struct name_server *server_start(void)
{
	struct name_server *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->at.ip = ip_v4(0x7f000001);
	/* The port that UDP got may be taken for TCP. */
	for (int i = 0; i < 20 && s->tcp <= 0; i++) {
		s->udp = sock_bind_udp(&s->at.ip, 0, false);
		assert_true(s->udp >= 0);
		s->at.port = bound_port(s->udp);
		s->tcp = sock_listen_tcp(&s->at.ip, s->at.port, false);
		if (s->tcp < 0)
			close(s->udp);
	}
	assert_true(s->tcp >= 0);
	assert_int_equal(pipe(s->stop), 0);
	pthread_mutex_init(&s->lock, NULL);
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
	return s;
}

static inline void server_stop(struct name_server *s)
{
	assert_int_equal(write(s->stop[1], "x", 1), 1);
	pthread_join(s->thread, NULL);
	close(s->stop[0]);
	close(s->stop[1]);
	close(s->udp);
	close(s->tcp);
	free(s);
}

static inline size_t server_count(struct name_server *s)
{
	pthread_mutex_lock(&s->lock);
	size_t count = s->count;
	pthread_mutex_unlock(&s->lock);
	return count;
}

#endif
