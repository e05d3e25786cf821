/* SPDX-License-Identifier: Apache-2.0
 *
 * name_server.h - questions for an A, and a name server that has one for each
 * name, and nothing else.
 */
#ifndef TESTS_COST_NAME_SERVER_H
#define TESTS_COST_NAME_SERVER_H

#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/wire.h"
#include "dns/message.h"
#include "tests/cost/cost.h"

#define NAME_SERVER_MAX 1500

/* With EDNS, as stub resolvers ask. Its length. */
static inline size_t name_server_question(const char *name,
					  uint8_t buf[NAME_SERVER_MAX])
{
	struct wirebuf b = wirebuf_of(buf, NAME_SERVER_MAX);

	wirebuf_put(&b, "\x2a\x17\1\0\0\1\0\0\0\0\0\1", DNS_HEADER_LEN);
	for (size_t n; *name; name += n + (name[n] == '.')) {
		n = strcspn(name, ".");
		wirebuf_u8(&b, (uint8_t)n);
		wirebuf_put(&b, name, n);
	}
	wirebuf_put(&b, "\0\0\1\0\1", 5);
	wirebuf_put(&b, "\0\0\x29\4\xd0\0\0\0\0\0\0", 11);
	cost_check(!b.full, "a question's room");
	return b.len;
}

/* Past the name at @at; 0: there is none. */
static inline size_t name_server_skip(const uint8_t *data, size_t len,
				      size_t at)
{
	while (at < len && data[at] && data[at] < 64)
		at += data[at] + 1u;
	if (at + 1 >= len)
		return 0;
	return data[at] ? at + 2 : at + 1; /* a pointer ends it, too */
}

/* An answer of ours: its rcode, and its first address. */
static inline unsigned name_server_read(const uint8_t *data, size_t len,
					struct ip *ret_ip)
{
	size_t at = name_server_skip(data, len, DNS_HEADER_LEN);

	*ret_ip = (struct ip){ .len = 0 };
	at = at && data[7] ? name_server_skip(data, len, at + 4) : 0;
	if (at && at + 14 <= len && data[at + 1] == DNS_A) {
		ret_ip->len = 4;
		memcpy(ret_ip->byte, data + at + 10, 4);
	}
	return data[3] & 15;
}

/* Takes a question from @fd and answers it. */
static inline void name_server_answer(int fd)
{
	uint8_t data[NAME_SERVER_MAX];
	union sockaddr_any from;
	socklen_t from_len = sizeof(from);
	ssize_t n =
		recvfrom(fd, data, sizeof(data) - 16, 0, &from.sa, &from_len);
	size_t at =
		n > 0 ? name_server_skip(data, (size_t)n, DNS_HEADER_LEN) : 0;

	cost_check(at && at + 4 <= (size_t)n, "a question upstream");
	struct wirebuf b = wirebuf_of(data, sizeof(data));
	bool has = data[at + 1] == DNS_A;

	b.len = at + 4;
	memcpy(data + 2, "\x81\x80\0\1\0\0\0\0\0\0", 10);
	data[7] = has;
	if (has)
		wirebuf_put(&b, "\xc0\x0c\0\1\0\1\0\0\x0e\x10\0\4\x7f\0\0\x09",
			    16);
	sendto(fd, data, b.len, 0, &from.sa, from_len);
}

#endif
