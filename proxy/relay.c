/* SPDX-License-Identifier: Apache-2.0
 *
 * relay.c - one direction of a tunnel.
 *
 * Few bytes are copied through one buffer a thread: splicing from the first
 * byte costs 1.4 times as much on a ping-pong. Once a read fills the buffer
 * the rest is spliced through a pipe; once little comes at a time it is copied
 * again. Memory is held only for what the destination did not take, and the
 * source is not read while there is any: a slow reader slows its sender.
 *
 * #syscalls recvfrom sendto splice
 */
#include "proxy/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "proxy/pipes.h"

/* Below this a splice does not pay. */
#define BULK_LEAST (16 * 1024)
/* So many of them in a row: a pause of a busy sender is none. */
#define SMALL_MAX 32

static _Thread_local uint8_t scratch[RELAY_COPY_MAX];
static _Thread_local uint64_t spliced;

uint64_t relay_spliced(void)
{
	return spliced;
}

const uint8_t *relay_fresh(void)
{
	return scratch;
}

void relay_drop(struct relay *relay)
{
	free(STEAL(relay->left));
	relay->left_at = relay->left_len = 0;
	if (relay->piped)
		pipes_drop(relay->pipe);
	else
		pipes_put(relay->pipe);
	relay->pipe = NULL;
	relay->piped = 0;
}

/* 0 once all is sent, else how much was, in @ret_sent, and -errno. */
static int send_all(int to, const uint8_t *data, size_t len, size_t *ret_sent)
{
	size_t sent = 0;
	int err = 0;

	while (sent < len && !err) {
		ssize_t n = send(to, data + sent, len - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			sent += (size_t)n;
		else if (errno != EINTR)
			err = -errno;
	}
	*ret_sent = sent;
	return err;
}

static int flush_left(struct relay *relay, int to)
{
	size_t sent;
	int err = send_all(to, relay->left + relay->left_at, relay->left_len,
			   &sent);

	relay->bytes += sent;
	relay->left_at += (uint32_t)sent;
	relay->left_len -= (uint32_t)sent;
	if (!relay->left_len)
		relay_drop(relay);
	return err;
}

static int flush_pipe(struct relay *relay, int to)
{
	while (relay->piped) {
		ssize_t n =
			splice(relay->pipe->out, NULL, to, NULL, relay->piped,
			       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		relay->bytes += (uint64_t)n;
		relay->piped -= (uint32_t)n;
		spliced += (uint64_t)n;
	}
	pipes_put(STEAL(relay->pipe));
	return 0;
}

static int flush(struct relay *relay, int to)
{
	if (relay->left_len)
		return flush_left(relay, to);
	if (relay->piped)
		return flush_pipe(relay, to);
	return 0;
}

/* @len bytes behind what is left already. */
static int keep(struct relay *relay, const uint8_t *data, size_t len)
{
	uint8_t *left = malloc(relay->left_len + len);

	if (!left)
		return -ENOMEM;
	if (relay->left_len)
		memcpy(left, relay->left + relay->left_at, relay->left_len);
	memcpy(left + relay->left_len, data, len);
	free(relay->left);
	relay->left = left;
	relay->left_at = 0;
	relay->left_len += (uint32_t)len;
	return -EAGAIN;
}

int relay_give(struct relay *relay, int to, const uint8_t *data, size_t len)
{
	size_t sent = 0;
	int err = -EAGAIN;

	if (!relay->left_len)
		err = send_all(to, data, len, &sent);
	relay->bytes += sent;
	return err == -EAGAIN ? keep(relay, data + sent, len - sent) : err;
}

/* Both return 0 (also if nothing came), or -errno of the source. */
static int copy_in(struct relay *relay, int from, size_t room, size_t *ret_len)
{
	ssize_t n;

	if (room > sizeof(scratch))
		room = sizeof(scratch);
	do {
		n = recv(from, scratch, room, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	*ret_len = 0;
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	*ret_len = (size_t)n;
	if (relay->meters)
		meters_spend(relay->meters, relay->way, (uint64_t)n);
	relay->eof = n == 0;
	relay->fresh = relay->watched ? (uint32_t)n : 0;
	relay->small = 0;
	relay->bulk = (size_t)n == sizeof(scratch) && !relay->no_splice &&
		      !relay->watched;
	return 0;
}

static int splice_in(struct relay *relay, int from, size_t room)
{
	ssize_t n;
	int err = 0;

	if (room > relay->pipe->size)
		room = relay->pipe->size;
	do {
		n = splice(from, NULL, relay->pipe->in, NULL, room,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		err = errno;
	if (n <= 0)
		pipes_put(STEAL(relay->pipe));
	if (err == EINVAL) {
		relay->no_splice = true; /* this kind of socket can't */
		relay->bulk = false;
		return 0;
	}
	if (err)
		return err == EAGAIN ? 0 : -err;
	if (relay->meters)
		meters_spend(relay->meters, relay->way, (uint64_t)n);
	relay->eof = n == 0;
	relay->piped = (uint32_t)n;
	relay->small = n < BULK_LEAST ? relay->small + 1 : 0;
	relay->bulk = relay->small < SMALL_MAX;
	return 0;
}

static enum relay_result wrote(int err, int *reterr)
{
	if (!err)
		return RELAY_IDLE;
	if (err == -EAGAIN)
		return RELAY_BLOCKED;
	*reterr = -err;
	return RELAY_WRITE_ERROR;
}

enum relay_result relay_flush(struct relay *relay, int to, int *reterr)
{
	return wrote(flush(relay, to), reterr);
}

bool relay_spend(const struct relay *relay, size_t len)
{
	if (!relay->meters)
		return true;
	if (meters_room(relay->meters, relay->way) < len)
		return false;
	meters_spend(relay->meters, relay->way, len);
	return true;
}

static size_t room_of(const struct relay *relay)
{
	uint64_t room;

	if (!relay->meters)
		return SIZE_MAX;
	room = meters_room(relay->meters, relay->way);
	return room < SIZE_MAX ? (size_t)room : SIZE_MAX;
}

/* Nothing may be read any more; is there anything? */
static enum relay_result look_for_more(struct relay *relay, int from,
				       int *reterr)
{
	uint8_t byte;
	ssize_t n;

	do {
		n = recv(from, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return RELAY_SPENT;
	relay->eof = n == 0;
	if (n == 0 || errno == EAGAIN)
		return RELAY_IDLE;
	*reterr = errno;
	return RELAY_READ_ERROR;
}

enum relay_result relay_pump(struct relay *relay, int from, int to, int *reterr)
{
	const size_t room = room_of(relay);
	size_t len = 0;
	int err = flush(relay, to);

	relay->fresh = 0;
	if (err || relay->eof)
		return wrote(err, reterr);

	if (!room)
		return look_for_more(relay, from, reterr);
	if (relay->bulk)
		relay->pipe = pipes_take();
	if (relay->pipe)
		err = splice_in(relay, from, room);
	else
		err = copy_in(relay, from, room, &len);
	if (err) {
		*reterr = -err;
		return RELAY_READ_ERROR;
	}
	if (len)
		return wrote(relay_give(relay, to, scratch, len), reterr);
	return wrote(flush(relay, to), reterr);
}
