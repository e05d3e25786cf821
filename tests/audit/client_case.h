/* SPDX-License-Identifier: Apache-2.0
 *
 * client_case.h - a client of a ledger that is the test's.
 */
#ifndef TESTS_AUDIT_CLIENT_CASE_H
#define TESTS_AUDIT_CLIENT_CASE_H

#include "audit/client.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"

struct rig {
	struct event_base *base;
	struct audit_client *client;
	int ledger; /* the other end */
	int gone;
};

struct waiter {
	struct wait wait;
	struct rig *rig;
	int calls, status;
	struct waiter *cancel; /* from within done() */
	int submit;	       /* this many more, from within done() */
};

static inline void on_gone(void *arg)
{
	struct rig *rig = arg;

	rig->gone++;
}

/* A client in rig->base. */
static inline void connect_rig(struct rig *rig)
{
	int sock[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	rig->ledger = sock[1];
	assert_int_equal(audit_client_new(rig->base, sock[0], on_gone, rig,
					  &rig->client),
			 0);
}

static inline int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	rig->base = event_base_new();
	connect_rig(rig);
	*state = rig;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *rig = *state;

	audit_client_free(rig->client);
	close_fd(&rig->ledger);
	event_base_free(rig->base);
	free(rig);
	return 0;
}

static inline void turn(struct rig *rig)
{
	for (int i = 0; i < 4; i++)
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
}

static inline struct audit_event question(const char *host)
{
	return (struct audit_event){ .kind = EVENT_DNS_QUERY, .host = host };
}

static inline void on_done(struct wait *wait, int status)
{
	struct waiter *waiter = CONTAINER_OF(wait, struct waiter, wait);
	struct audit_event event = question("again");

	waiter->calls++;
	waiter->status = status;
	if (waiter->cancel)
		audit_client_cancel(waiter->rig->client, &waiter->cancel->wait);
	if (waiter->submit-- > 0)
		audit_client_submit(waiter->rig->client, &event, wait);
}

static inline void submit(struct rig *rig, struct waiter *waiter)
{
	struct audit_event event = question("host");

	waiter->rig = rig;
	waiter->wait.done = on_done;
	audit_client_submit(rig->client, &event, &waiter->wait);
}

/* Takes what is in a pack; its last number. */
static inline uint64_t unpack(const uint8_t *data, size_t len, uint64_t seq,
			      struct audit_event *ret_last, int *count)
{
	static char text[RECORD_MESSAGE_MAX];
	struct wire pack = wire_of(data, len), message;
	struct audit_event event;
	uint64_t before;
	int r;

	assert_true(len <= RECORD_PACK_MAX);
	while ((r = record_unpack(&pack, &message)) > 0) {
		before = seq;
		assert_int_equal(record_decode(message.at, message.left, &event,
					       &seq, text),
				 0);
		assert_true(before == 0 || seq == before + 1);
		if (ret_last)
			*ret_last = event;
		if (count)
			++*count;
	}
	assert_int_equal(r, 0);
	return seq;
}

/* Reads what is there as the ledger would; the last number, or 0. */
static inline uint64_t ledger_read(struct rig *rig,
				   struct audit_event *ret_last, int *count)
{
	static uint8_t buf[RECORD_PACK_MAX + 1];
	uint64_t seq = 0;
	ssize_t n;

	while ((n = recv(rig->ledger, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		seq = unpack(buf, (size_t)n, seq, ret_last, count);
	return seq;
}

static inline void ledger_ack(struct rig *rig, uint64_t seq)
{
	uint8_t ack[RECORD_ACK_LEN];

	record_ack_encode(seq, ack);
	assert_int_equal(send(rig->ledger, ack, sizeof(ack), MSG_NOSIGNAL),
			 sizeof(ack));
}

#endif
