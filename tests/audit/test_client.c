/* SPDX-License-Identifier: Apache-2.0
 *
 * test_client.c - what a client hands to the ledger is acknowledged in order.
 */
#include "tests/audit/client_case.h"

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

static void on_busy(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

/* Where something else is ready in each turn, events wait for company: but not
 * for long, nor for much. */
static void test_busy_loop(void **state)
{
	struct rig *rig = *state;
	struct audit_event event = question("busy");
	struct event *busy;
	int pair[2], count = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(send(pair[1], "", 1, 0), 1);
	audit_client_free(rig->client);
	close_fd(&rig->ledger);
	event_base_free(rig->base);
	rig->base = event_base_new();
	event_base_priority_init(rig->base, AUDIT_CLIENT_PRIORITY + 1);
	connect_rig(rig);
	busy = event_new(rig->base, pair[0], EV_READ | EV_PERSIST, on_busy,
			 rig->base);
	event_add(busy, NULL);

	audit_client_submit(rig->client, &event, NULL);
	for (int i = 0; i < 5000 && !message_size(rig); i++) {
		event_base_loop(rig->base, 0);
		usleep(1000);
	}
	assert_int_equal(ledger_read(rig, NULL, &count), 1);
	assert_int_equal(count, 1);
	for (int i = 0; i < 100 && !message_size(rig); i++, count++)
		audit_client_submit(rig->client, &event, NULL);
	assert_in_range(count, 2, 60);
	assert_true(message_size(rig) > 0);
	event_free(busy);
	close(pair[0]);
	close(pair[1]);
	ledger_ack(rig, (uint64_t)count);
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
	struct audit_event event = question("nobody waits"), last = { 0 };
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

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ack_in_order),    TEST(test_one_message),
		TEST(test_busy_loop),	    TEST(test_full_message),
		TEST(test_small_socket),    TEST(test_cancel_and_reentry),
		TEST(test_queue_and_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
