/* SPDX-License-Identifier: Apache-2.0
 *
 * hold.c - the client's first bytes, kept back until it is clear what they
 * are.
 *
 * #syscalls recvfrom sendto shutdown
 */
#include "proxy/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/zalloc.h"
#include "proxy/sniff/sniff.h"

#define FIRST_CAP 2048
#define DRAIN_MAX (64 * 1024)

void hold_free(struct hold *hold)
{
	if (!hold)
		return;
	free(hold->data);
	free(hold);
}

/* Makes room for @cap bytes, never more than SNIFF_MAX. */
static int reserve(struct hold *hold, size_t cap)
{
	uint8_t *data;

	if (cap > SNIFF_MAX)
		cap = SNIFF_MAX;
	if (cap <= hold->cap)
		return hold->len < hold->cap ? 0 : -EMSGSIZE;
	data = realloc(hold->data, cap);
	if (!data)
		return -ENOMEM;
	hold->data = data;
	hold->cap = cap;
	return 0;
}

int hold_new(const uint8_t *first, size_t len, int64_t now_ms,
	     struct hold **ret_hold)
{
	AUTO_FREE struct hold *hold = zalloc(sizeof(*hold));
	int err;

	if (!hold)
		return -ENOMEM;
	if (len > SNIFF_MAX)
		return -EMSGSIZE;
	if (len) {
		err = reserve(hold, len);
		if (err)
			return err;
		memcpy(hold->data, first, len);
		hold->len = len;
		hold->since_ms = now_ms;
	}
	*ret_hold = STEAL(hold);
	return 0;
}

void hold_drop(struct hold *hold, size_t len)
{
	hold->len -= len;
	memmove(hold->data, hold->data + len, hold->len);
}

ssize_t hold_read(struct hold *hold, int fd)
{
	ssize_t n;
	int err = 0;

	if (hold->len == hold->cap)
		err = reserve(hold, hold->cap ? hold->cap * 4 : FIRST_CAP);
	if (err)
		return err;
	do {
		n = recv(fd, hold->data + hold->len, hold->cap - hold->len,
			 MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	hold->len += (size_t)n;
	return n;
}

/* What the client still sends would turn our close into a reset, which may
 * overtake the refusal: so it is read, within reason. */
void hold_refuse(const struct hold *hold, int fd)
{
	uint8_t unread[4096];
	size_t seen = 0;
	ssize_t n;

	if (!hold->refusal_len)
		return;
	n = send(fd, hold->refusal, hold->refusal_len,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return;
	shutdown(fd, SHUT_WR);
	do {
		n = recv(fd, unread, sizeof(unread), MSG_DONTWAIT);
		seen += n > 0 ? (size_t)n : 0;
	} while (n > 0 && seen < DRAIN_MAX);
}
