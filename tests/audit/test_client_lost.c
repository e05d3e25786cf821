/* SPDX-License-Identifier: Apache-2.0
 *
 * test_client_lost.c - a ledger that dies, lies or is slow.
 */
#include "tests/audit/client_case.h"

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
		TEST(test_ledger_dies),
		cmocka_unit_test(test_ledger_lies),
		TEST(test_free_forgets),
		cmocka_unit_test(test_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
