/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate's end of the line, against a ledger that the test plays: one that
 * answers, one that stops reading, one that dies, one that lies.
 */
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

static void on_gone(void *arg)
{
	struct rig *rig = arg;

	rig->gone++;
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	int sock[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	rig->base = event_base_new();
	rig->ledger = sock[1];
	assert_int_equal(audit_client_new(rig->base, sock[0], on_gone, rig,
					  &rig->client),
			 0);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	audit_client_free(rig->client);
	close_fd(&rig->ledger);
	event_base_free(rig->base);
	free(rig);
	return 0;
}

static void turn(struct rig *rig)
{
	for (int i = 0; i < 4; i++)
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
}

static struct audit_event question(const char *host)
{
	return (struct audit_event){ .kind = EVENT_DNS_QUERY, .host = host };
}

static void on_done(struct wait *wait, int status)
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

static void submit(struct rig *rig, struct waiter *waiter)
{
	struct audit_event event = question("host");

	waiter->rig = rig;
	waiter->wait.done = on_done;
	audit_client_submit(rig->client, &event, &waiter->wait);
}

/* Takes what is in a pack; its last number. */
static uint64_t unpack(const uint8_t *data, size_t len, uint64_t seq,
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
static uint64_t ledger_read(struct rig *rig, struct audit_event *ret_last,
			    int *count)
{
	static uint8_t buf[RECORD_PACK_MAX + 1];
	uint64_t seq = 0;
	ssize_t n;

	while ((n = recv(rig->ledger, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		seq = unpack(buf, (size_t)n, seq, ret_last, count);
	return seq;
}

static void ledger_ack(struct rig *rig, uint64_t seq)
{
	uint8_t ack[RECORD_ACK_LEN];

	record_ack_encode(seq, ack);
	assert_int_equal(send(rig->ledger, ack, sizeof(ack), MSG_NOSIGNAL),
			 sizeof(ack));
}

static void test_ack_in_order(void **state)
{
	struct rig *rig = *state;
	struct waiter a = { 0 }, b = { 0 }, c = { 0 };

	submit(rig, &a);
	submit(rig, &b);
	submit(rig, &c);
	turn(rig);
	assert_int_equal(a.calls, 0); /* sent is not accepted */
	assert_int_equal(audit_client_pending(rig->client), 3);
	assert_int_equal(ledger_read(rig, NULL, NULL), 3);
	ledger_ack(rig, 2);
	turn(rig);
	assert_int_equal(a.calls + b.calls, 2);
	assert_int_equal(c.calls, 0);
	assert_int_equal(a.status | b.status, 0);
	ledger_ack(rig, 3);
	turn(rig);
	assert_int_equal(c.calls, 1);
	assert_int_equal(rig->gone, 0);
	assert_int_equal(audit_client_pending(rig->client), 0);
}

/* Bytes of the next message that the ledger would find, or 0. */
static size_t message_size(struct rig *rig)
{
	static uint8_t buf[RECORD_PACK_MAX + 1];
	ssize_t n = recv(rig->ledger, buf, sizeof(buf),
			 MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);

	return n > 0 ? (size_t)n : 0;
}

/* What one turn of the loop has to say is one message, at its end. */
static void test_one_message(void **state)
{
	struct rig *rig = *state;
	struct waiter a = { .submit = 1 }, b = { .submit = 1 };
	static uint8_t buf[RECORD_PACK_MAX];
	int count = 0;

	submit(rig, &a);
	submit(rig, &b);
	assert_int_equal(message_size(rig), 0);
	event_base_loop(rig->base, EVLOOP_NONBLOCK);
	ssize_t n = recv(rig->ledger, buf, sizeof(buf), MSG_DONTWAIT);
	assert_true(n > 0);
	assert_int_equal(unpack(buf, (size_t)n, 0, NULL, &count), 2);
	assert_int_equal(count, 2);
	/* Those that their waiters submit leave in that very turn, too. */
	ledger_ack(rig, 2);
	event_base_loop(rig->base, EVLOOP_NONBLOCK);
	assert_int_equal(a.calls + b.calls, 2);
	n = recv(rig->ledger, buf, sizeof(buf), MSG_DONTWAIT);
	assert_true(n > 0);
	assert_int_equal(unpack(buf, (size_t)n, 2, NULL, &count), 4);
	assert_int_equal(count, 4);
	assert_int_equal(message_size(rig), 0);
	/* And then there is nothing to do. */
	ledger_ack(rig, 4);
	turn(rig);
	assert_int_equal(a.calls + b.calls, 4);
	assert_int_equal(message_size(rig), 0);
}

/* A turn that has more to say than fits: what is full leaves at once. */
static void test_full_message(void **state)
{
	struct rig *rig = *state;
	static char target[4001];
	struct audit_event event = question("long");
	int count = 0;

	memset(target, 'x', sizeof(target) - 1);
	event.target = target;
	for (int i = 0; i < 40; i++)
		audit_client_submit(rig->client, &event, NULL);
	assert_true(message_size(rig) > RECORD_PACK_MAX - RECORD_PACKED_MAX);
	assert_true(message_size(rig) <= RECORD_PACK_MAX);
	turn(rig);
	assert_int_equal(ledger_read(rig, NULL, &count), 40);
	assert_int_equal(count, 40);
}

/* A socket that takes less than a pack gets smaller ones. */
static void test_small_socket(void **state)
{
	struct rig *rig = *state;
	struct audit_event event = question("small");
	const int size = 10000;
	socklen_t len = sizeof(int);
	int sock[2], has, count = 0;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	assert_int_equal(
		setsockopt(sock[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
		0);
	assert_int_equal(getsockopt(sock[0], SOL_SOCKET, SO_SNDBUF, &has, &len),
			 0);
	assert_true(has < RECORD_PACK_MAX);
	audit_client_free(rig->client);
	close(rig->ledger);
	rig->ledger = sock[1];
	assert_int_equal(audit_client_new(rig->base, sock[0], on_gone, rig,
					  &rig->client),
			 0);
	for (int i = 0; i < 2000; i++)
		audit_client_submit(rig->client, &event, NULL);
	while (count < 2000) {
		int before = count;

		turn(rig);
		assert_true(message_size(rig) < (size_t)has);
		ledger_read(rig, NULL, &count);
		assert_true(count > before);
	}
	assert_int_equal(rig->gone, 0);
}

static void test_cancel_and_reentry(void **state)
{
	struct rig *rig = *state;
	struct waiter a = { .submit = 1 }, b = { 0 }, c = { 0 };

	a.cancel = &b; /* b's turn would have come right after */
	submit(rig, &a);
	submit(rig, &b);
	submit(rig, &c);
	audit_client_cancel(rig->client, &c.wait);
	audit_client_cancel(rig->client, &c.wait); /* twice is fine */
	turn(rig);
	assert_int_equal(ledger_read(rig, NULL, NULL), 3);
	ledger_ack(rig, 3);
	turn(rig);
	assert_int_equal(a.calls, 1); /* and waits again */
	assert_int_equal(b.calls + c.calls, 0);
	assert_true(a.wait.seq != 0);
	assert_int_equal(ledger_read(rig, NULL, NULL), 4);
	ledger_ack(rig, 4);
	turn(rig);
	assert_int_equal(a.calls, 2);
	assert_int_equal(a.wait.seq, 0);
}

static void test_queue_and_limit(void **state)
{
	struct rig *rig = *state;
	struct waiter *w = calloc(CLIENT_QUEUE_MAX + 3, sizeof(*w));
	struct audit_event event = question("nobody waits"), last;
	uint64_t seq = 0;
	int count = 0;

	/* Far more than the socket holds. */
	for (int i = 0; i < CLIENT_QUEUE_MAX + 3; i++)
		submit(rig, &w[i]);
	audit_client_submit(rig->client, &event, NULL);
	assert_int_equal(w[CLIENT_QUEUE_MAX].calls, 0); /* not from submit */
	audit_client_cancel(rig->client, &w[CLIENT_QUEUE_MAX + 1].wait);
	turn(rig);
	assert_int_equal(w[CLIENT_QUEUE_MAX].calls, 1);
	assert_int_equal(w[CLIENT_QUEUE_MAX].status, -EIO);
	assert_int_equal(w[CLIENT_QUEUE_MAX + 1].calls, 0);
	assert_int_equal(w[CLIENT_QUEUE_MAX + 2].status, -EIO);
	assert_int_equal(w[0].calls + w[CLIENT_QUEUE_MAX - 1].calls, 0);

	/* All of those that were taken arrive, in order. */
	while (count < CLIENT_QUEUE_MAX) {
		uint64_t upto = ledger_read(rig, NULL, &count);

		seq = upto ? upto : seq;
		turn(rig);
	}
	assert_int_equal(seq, CLIENT_QUEUE_MAX);
	ledger_ack(rig, seq);
	turn(rig);
	for (int i = 0; i < CLIENT_QUEUE_MAX; i++)
		assert_true(w[i].calls == 1 && w[i].status == 0);

	/* And the loss is told. */
	assert_int_equal(ledger_read(rig, &last, NULL), CLIENT_QUEUE_MAX + 1);
	assert_int_equal(last.kind, EVENT_FINDING);
	assert_int_equal(last.count, 4);
	assert_non_null(strstr(last.detail, "4 events"));
	assert_int_equal(rig->gone, 0);
	free(w);
}

static void test_ledger_dies(void **state)
{
	struct rig *rig = *state;
	struct waiter a = { .submit = 1 }, b = { 0 }, c = { 0 };

	submit(rig, &a);
	turn(rig);
	submit(rig, &b);
	turn(rig);
	/* It acknowledges one, and dies with the other unread. */
	uint8_t buf[RECORD_MESSAGE_MAX];
	assert_true(recv(rig->ledger, buf, sizeof(buf), 0) > 0);
	ledger_ack(rig, 1);
	close_fd(&rig->ledger);
	turn(rig);
	assert_int_equal(a.calls, 2); /* accepted; the next one was not */
	assert_int_equal(a.status, -EIO);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.status, -EIO);
	assert_int_equal(rig->gone, 1);
	assert_int_equal(audit_client_pending(rig->client), 0);
	submit(rig, &c);
	assert_int_equal(c.calls, 0);
	turn(rig);
	assert_int_equal(c.calls, 1);
	assert_int_equal(c.status, -EIO);
	assert_int_equal(rig->gone, 1);
}

/* Acknowledging what was never sent must not let anything through. */
static void test_ledger_lies(void **state)
{
	static const struct {
		uint64_t seq;
		size_t len;
	} lies[] = { { 2, 8 }, { 0, 8 }, { 1, 7 }, { 1, 9 }, { 1, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		uint8_t ack[16] = { 0 };
		struct waiter a = { 0 };
		void *own = NULL;

		setup(&own);
		struct rig *rig = own;
		submit(rig, &a);
		turn(rig);
		record_ack_encode(lies[i].seq, ack);
		assert_true(send(rig->ledger, ack, lies[i].len, 0) > 0);
		turn(rig);
		assert_int_equal(a.status, -EIO);
		assert_int_equal(a.calls, 1);
		assert_int_equal(rig->gone, 1);
		teardown(&own);
	}
}

static void test_free_forgets(void **state)
{
	struct rig *rig = *state;
	struct waiter a = { 0 };

	submit(rig, &a);
	audit_client_free(rig->client);
	audit_client_cancel(NULL, &a.wait); /* harmless */
	assert_int_equal(a.calls, 0);
	/* But not what it waited for: that was on its way. */
	assert_int_equal(ledger_read(rig, NULL, NULL), 1);
	rig->client = NULL;
	audit_client_free(NULL);
}

static void *slow_ledger(void *arg)
{
	uint8_t buf[RECORD_MESSAGE_MAX], ack[RECORD_ACK_LEN];
	const int *sock = arg;

	if (recv(*sock, buf, sizeof(buf), 0) <= 0)
		return NULL;
	usleep(50000);
	for (uint64_t seq = 1; seq <= 2; seq++) {
		record_ack_encode(seq, ack);
		send(*sock, ack, sizeof(ack), MSG_NOSIGNAL);
	}
	if (recv(*sock, buf, sizeof(buf), 0) > 0)
		close(*sock);
	return NULL;
}

static void test_sync(void **state)
{
	struct audit_event event = question("sync");
	pthread_t thread;
	int sock[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	assert_int_equal(pthread_create(&thread, NULL, slow_ledger, &sock[1]),
			 0);
	assert_int_equal(audit_submit_sync(sock[0], &event, 2), 0);
	/* The next is read, but never acknowledged. */
	assert_int_equal(audit_submit_sync(sock[0], &event, 3), -EIO);
	pthread_join(thread, NULL);
	assert_int_equal(audit_submit_sync(sock[0], &event, 4), -EIO);
	close(sock[0]);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ack_in_order),
		TEST(test_one_message),
		TEST(test_full_message),
		TEST(test_small_socket),
		TEST(test_cancel_and_reentry),
		TEST(test_queue_and_limit),
		TEST(test_ledger_dies),
		cmocka_unit_test(test_ledger_lies),
		TEST(test_free_forgets),
		cmocka_unit_test(test_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
