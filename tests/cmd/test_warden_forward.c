/* SPDX-License-Identifier: Apache-2.0
 *
 * test_warden_forward.c - published ports as the warden sees them: before there
 * is a gate, while one serves, for the next one, and what a gate may ask for.
 */
#include "cmd/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/warden_give.h"

static struct warden w;
static struct gateway gateway;
static int gate; /* its end */
static int let_in_status, dials_status;

int gateway_let_answers_in(struct gateway *g)
{
	assert_ptr_equal(g, &gateway);
	if (!let_in_status)
		g->link.published = true;
	return let_in_status;
}

int gateway_dials(struct gateway *g, int ret_fd[GATEWAY_DIALS], size_t *ret_n)
{
	assert_true(g->link.published);
	for (*ret_n = 0; !dials_status && *ret_n < GATEWAY_DIALS; (*ret_n)++)
		ret_fd[*ret_n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return dials_status;
}

void warden_tell_gate(struct warden *warden, enum msg_type type,
		      const void *payload)
{
	assert_int_equal(msg_send(warden->gate.sock, type, payload, -1), 0);
}

static int setup(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	gateway = (struct gateway){ .nft = NULL };
	w = (struct warden){ .gateway = &gateway,
			     .gate = { .pid = -1, .sock = pair[0] } };
	gate = pair[1];
	let_in_status = dials_status = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	warden_close_forwards(&w);
	close_fd(&w.gate.sock);
	close_fd(&gate);
	return 0;
}

static const struct endpoint at = {
	.ip = { .len = 4, .byte = { 127, 0, 0, 1 } }, .port = 8080
};

static int publish(uint16_t port)
{
	return warden_forward(&w, open("/dev/zero", O_RDONLY | O_CLOEXEC), &at,
			      port);
}

static void expect_forward(uint16_t port)
{
	struct stat st;
	struct msg msg;

	assert_int_equal(msg_recv(gate, &msg, MSG_DONTWAIT), 1);
	assert_int_equal(msg.type, MSG_GATE_FORWARD);
	assert_int_equal(msg.keep_forward.port, port);
	assert_memory_equal(&msg.keep_forward.at, &at, sizeof(at));
	/* A copy: ours stays, for the next gate. */
	assert_int_equal(fstat(msg.fd, &st), 0);
	close(msg.fd);
}

static void expect_nothing(void)
{
	struct msg msg;

	assert_int_equal(msg_recv(gate, &msg, MSG_DONTWAIT), -EAGAIN);
}

static void test_before_and_after(void **state)
{
	(void)state;
	assert_int_equal(publish(3000), 0);
	assert_true(gateway.link.published);
	expect_nothing();
	w.starts = 1;
	assert_int_equal(warden_give_forwards(&w), 0);
	expect_forward(3000);
	assert_int_equal(publish(3001), 0);
	expect_forward(3001);
	expect_nothing();
	/* The gate died. */
	w.starts = 2;
	assert_int_equal(warden_give_forwards(&w), 0);
	expect_forward(3000);
	expect_forward(3001);
	expect_nothing();
	/* While there is none, the next one gets it. */
	int sock = w.gate.sock;
	w.gate.sock = -1;
	assert_int_equal(publish(3002), 0);
	w.gate.sock = sock;
	expect_nothing();
	assert_int_equal(w.forwards, 3);
}

static void test_refused(void **state)
{
	int fd;

	(void)state;
	w.starts = 1;
	let_in_status = -EPERM;
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(warden_forward(&w, fd, &at, 80), -EPERM);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* taken all the same */
	let_in_status = 0;
	assert_int_equal(publish(0), -EINVAL);
	for (int i = 0; i < WARDEN_FORWARDS_MAX; i++) {
		assert_int_equal(publish(80), 0);
		expect_forward(80);
	}
	assert_int_equal(publish(80), -ENOSPC);
	expect_nothing();
	w.gateway = NULL;
	assert_int_equal(publish(80), -EINVAL);
}

static void test_dials(void **state)
{
	struct msg msg;

	(void)state;
	/* A gate that asks where nothing is published has been taken over. */
	assert_int_equal(warden_give_dials(&w), -EBADMSG);
	expect_nothing();
	assert_int_equal(publish(3000), 0);
	assert_int_equal(warden_give_dials(&w), 0);
	for (int i = 0; i < GATEWAY_DIALS; i++) {
		assert_int_equal(msg_recv(gate, &msg, MSG_DONTWAIT), 1);
		assert_int_equal(msg.type, MSG_GATE_DIAL);
		close(msg.fd);
	}
	assert_int_equal(msg_recv(gate, &msg, MSG_DONTWAIT), 1);
	assert_int_equal(msg.type, MSG_GATE_DIALS);
	assert_int_equal(msg.dials.status, 0);

	dials_status = -EMFILE;
	assert_int_equal(warden_give_dials(&w), 0);
	assert_int_equal(msg_recv(gate, &msg, MSG_DONTWAIT), 1);
	assert_int_equal(msg.type, MSG_GATE_DIALS);
	assert_int_equal(msg.dials.status, -EMFILE);
	expect_nothing();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_before_and_after, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dials, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
