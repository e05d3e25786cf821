/* SPDX-License-Identifier: Apache-2.0
 *
 * test_watch.c - commits of others are told, with who it was; ours are not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "firewall/nft.h"
#include "firewall/watch.h"
#include "lab.h"

struct world {
	struct lab lab;
	int watch; /* listens already */
	int plain; /* just a socket there */
	struct nft *other;
};

static int make_sockets(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	for (*ret_n = 0; *ret_n < 3; ++*ret_n) {
		ret_fds[*ret_n] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
					 NETLINK_NETFILTER);
		if (ret_fds[*ret_n] < 0)
			return -errno;
	}
	return 0;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int fds[8];
	size_t n = 0;

	assert_non_null(w);
	lab_make(&w->lab);
	assert_int_equal(
		netns_enter(w->lab.gateway.fd, make_sockets, NULL, fds, &n), 0);
	w->watch = fds[0];
	w->plain = fds[1];
	assert_int_equal(nft_open(fds[2], &w->other), 0);
	assert_int_equal(watch_listen(w->watch, w->lab.nft), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	close(w->watch);
	close(w->plain);
	nft_close(w->other);
	lab_free(&w->lab);
	free(w);
	return 0;
}

static void add_table(struct nft *nft, const char *name)
{
	nft_begin(nft);
	struct nlmsghdr *nlh = nft_start(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, name);
	nft_end(nft, nlh);
	assert_int_equal(nft_commit(nft), 0);
}

static void test_ours(void **state)
{
	struct world *w = *state;
	struct watch_change change;

	assert_int_equal(watch_read(w->watch, &change), 0);
	lab_flow(&w->lab, "spA", "198.18.0.1", 443);
	assert_int_equal(ruleset_install(w->lab.nft, &w->lab.spec), 0);
	assert_int_equal(watch_read(w->watch, &change), 0);
}

static void test_tool(void **state)
{
	struct world *w = *state;
	struct watch_change change;
	uint32_t before, after;

	assert_int_equal(watch_generation(w->lab.nft, &before), 0);
	assert_int_equal(lab_nft(&w->lab, "add table inet other"), 0);
	lab_flow(&w->lab, "spA", "198.18.0.1", 443);
	assert_int_equal(lab_nft(&w->lab, "delete table inet other"), 0);
	assert_int_equal(watch_generation(w->lab.nft, &after), 0);
	assert_int_equal(after - before, 3);
	for (uint32_t i = 1; i <= 3; i += 2) {
		assert_int_equal(watch_read(w->watch, &change), 1);
		assert_false(change.lost);
		assert_string_equal(change.process, "nft");
		assert_true(change.pid != 0 &&
			    change.pid != (uint32_t)getpid());
		assert_int_equal(change.generation, before + i);
	}
	assert_int_equal(watch_read(w->watch, &change), 0);
	/* To look is no change. */
	assert_int_equal(lab_nft(&w->lab, "list ruleset"), 0);
	assert_int_equal(watch_read(w->watch, &change), 0);
}

/* Our own process by another socket: the pid is not what tells us apart. */
static void test_other_socket(void **state)
{
	struct world *w = *state;
	struct watch_change change;

	add_table(w->other, "other");
	assert_int_equal(watch_read(w->watch, &change), 1);
	assert_false(change.lost);
	assert_int_equal(change.pid, getpid());
	assert_int_equal(watch_read(w->watch, &change), 0);
}

/* What the filter goes by: the kernel's message has the address of the socket
 * that the batch came by, and the number of one of its messages. */
static void test_kernel(void **state)
{
	struct world *w = *state;
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	const int group = NFNLGRP_NFTABLES;
	uint8_t buf[8192] __attribute__((aligned(8)));
	const struct nlmsghdr *nlh = (struct nlmsghdr *)buf;
	uint32_t port;

	assert_int_equal(nft_port(w->other, &port), 0);
	assert_int_equal(
		bind(w->plain, (const struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(setsockopt(w->plain, SOL_NETLINK,
				    NETLINK_ADD_MEMBERSHIP, &group,
				    sizeof(group)),
			 0);
	/* The first batch of that socket: beginning, table and end. */
	add_table(w->other, "other");
	for (;;) {
		ssize_t n = recv(w->plain, buf, sizeof(buf), MSG_DONTWAIT);

		assert_true(n >= (ssize_t)sizeof(*nlh));
		if (nlh->nlmsg_type ==
		    (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN))
			break;
	}
	assert_int_equal(nlh->nlmsg_pid, port);
	assert_in_range(nlh->nlmsg_seq, 1, 3);
}

/* More than the socket holds: that much is told. */
static void test_too_many(void **state)
{
	struct world *w = *state;
	struct watch_change change = { .lost = false };
	const int small = 1;
	int lost = 0;

	assert_int_equal(setsockopt(w->watch, SOL_SOCKET, SO_RCVBUF, &small,
				    sizeof(small)),
			 0);
	/* Ours do not count. */
	for (int i = 0; i < 50; i++)
		assert_int_equal(ruleset_install(w->lab.nft, &w->lab.spec), 0);
	assert_int_equal(watch_read(w->watch, &change), 0);
	for (char name[] = "a"; *name <= 'z'; ++*name)
		add_table(w->other, name);
	while (watch_read(w->watch, &change) == 1)
		lost += change.lost;
	assert_int_equal(lost, 1);
}

static void test_later(void **state)
{
	(void)state;
	assert_true(watch_later(2, 1));
	assert_false(watch_later(1, 1));
	assert_false(watch_later(1, 2));
	assert_true(watch_later(1, UINT32_MAX));
}

static void test_errors(void **state)
{
	struct world *w = *state;
	struct watch_change change;
	int pair[2];

	assert_int_equal(pipe(pair), 0);
	assert_int_equal(watch_listen(pair[0], w->lab.nft), -ENOTSOCK);
	assert_int_equal(watch_read(pair[0], &change), -ENOTSOCK);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ours),	 TEST(test_tool),
		TEST(test_other_socket), TEST(test_kernel),
		TEST(test_too_many),	 cmocka_unit_test(test_later),
		TEST(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
