/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropped packets, from the socket to records: the first of a kind at once,
 * then counts; and whatever happens, as many as there were. The rest of the
 * gate is played by what is noted here.
 */
#include "cmd/gate.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "firewall/nflog.h"

/* --- the rest of the gate ------------------------------------------------ */

#define NOTES 1024

static struct told {
	uint32_t count;
	char detail[32];
	bool place;
} note[NOTES];
static size_t notes;

static void take(void *ctx, const struct audit_event *event, struct wait *wait)
{
	(void)ctx;
	assert_null(wait);
	assert_int_equal(event->kind, EVENT_PACKET);
	assert_int_equal(event->verdict.reason, REASON_BYPASS);
	assert_true(notes < NOTES);
	note[notes].count = event->count;
	note[notes].place = event->dst_ip.len != 0;
	snprintf(note[notes].detail, sizeof(note[0].detail), "%s",
		 event->detail);
	notes++;
}

struct gate_sandbox *gate_sandbox_by_ifindex(struct gate *gate,
					     uint32_t ifindex)
{
	return ifindex == 2 ? gate->sandbox[0] : NULL;
}

static bool behind;

bool gate_is_behind(struct gate *asked)
{
	(void)asked;
	return behind;
}

static struct gate gate;
static struct gate_sandbox sandbox;
static struct packets *packets;
static int kernel; /* its end */
static int64_t made;

static int setup(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
	sandbox = (struct gate_sandbox){ .pub = { .id = 1, .ifindex = 2 } };
	gate = (struct gate){ .base = event_base_new(),
			      .services = { .record = take },
			      .sandbox = { &sandbox },
			      .sandboxes = 1 };
	assert_non_null(gate.base);
	made = now_ms();
	assert_int_equal(packets_new(&gate, pair[0], &packets), 0);
	kernel = pair[1];
	notes = 0;
	behind = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	packets_free(packets);
	packets = NULL;
	event_base_free(gate.base);
	close(kernel);
	return 0;
}

/* --- the kernel ---------------------------------------------------------- */

static void send_packet(uint16_t port, uint8_t l4)
{
	struct {
		struct nlmsghdr nlh;
		struct nfgenmsg gen;
		struct nlattr header_attr;
		struct nfulnl_msg_packet_hdr header;
		struct nlattr index_attr;
		uint32_t index;
		struct nlattr payload_attr;
		uint8_t payload[28];
	} d = {
		.nlh = { .nlmsg_len = sizeof(d),
			 .nlmsg_type =
				 NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET },
		.header_attr = { sizeof(d.header_attr) + sizeof(d.header),
				 NFULA_PACKET_HDR },
		.header = { .hw_protocol = htons(ETH_P_IP) },
		.index_attr = { sizeof(d.index_attr) + sizeof(d.index),
				NFULA_IFINDEX_INDEV },
		.index = htonl(2),
		.payload_attr = { sizeof(d.payload_attr) + sizeof(d.payload),
				  NFULA_PAYLOAD },
		.payload = { 0x45,
			     0,
			     0,
			     28,
			     0,
			     0,
			     0,
			     0,
			     64,
			     l4,
			     0,
			     0,
			     198,
			     19,
			     0,
			     2,
			     8,
			     8,
			     8,
			     8,
			     0x80,
			     0,
			     (uint8_t)(port >> 8),
			     (uint8_t)port },
	};

	if (l4 == IPPROTO_ICMP)
		d.payload[20] = 8;
	assert_int_equal(send(kernel, &d, sizeof(d), 0), sizeof(d));
}

static void turn(void)
{
	assert_true(event_base_loop(gate.base, EVLOOP_NONBLOCK | EVLOOP_ONCE) >=
		    0);
}

/* Nothing that was held back can have been told yet. */
static bool is_quick(void)
{
	return now_ms() - made < 1000;
}

static void wait_second(void)
{
	const struct timeval limit = { .tv_sec = 1, .tv_usec = 100000 };

	event_base_loopexit(gate.base, &limit);
	event_base_dispatch(gate.base);
}

static uint64_t total(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < notes; i++)
		sum += note[i].count;
	return sum;
}

/* --- */

static void test_first_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++)
		send_packet(9, IPPROTO_UDP);
	turn();
	if (is_quick())
		assert_int_equal(notes, 1);
	assert_int_equal(note[0].count, 1);
	assert_string_equal(note[0].detail, "UDP");
	wait_second();
	assert_int_equal(notes, 2);
	assert_int_equal(note[1].count, 49);
	/* A second without any is told by nothing. */
	wait_second();
	assert_int_equal(notes, 2);
}

static void test_kinds(void **state)
{
	(void)state;
	for (uint16_t port = 1; port <= 20; port++)
		send_packet(port, port % 2 ? IPPROTO_UDP : IPPROTO_TCP);
	turn();
	assert_int_equal(notes, 20);
	assert_int_equal(total(), 20);
}

/* The end: what waits in the socket, and what was not told yet. */
static void test_end(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		send_packet(9, IPPROTO_UDP);
	turn();
	for (int i = 0; i < 90; i++)
		send_packet(9, IPPROTO_UDP);
	packets_free(packets);
	packets = NULL;
	if (is_quick())
		assert_int_equal(notes, 2);
	assert_int_equal(total(), 100);
}

/* More kinds than there is room for share a row, which names no place. */
static void test_many_kinds(void **state)
{
	bool rest = false;

	(void)state;
	for (uint16_t port = 1; port <= 400; port++) {
		send_packet(port, IPPROTO_TCP);
		turn();
	}
	if (is_quick())
		assert_int_equal(notes, 256);
	packets_free(packets);
	packets = NULL;
	assert_int_equal(total(), 400);
	if (!is_quick())
		return;
	assert_int_equal(notes, 257);
	for (size_t i = 0; i < notes; i++)
		if (strcmp(note[i].detail, "many kinds of packet") == 0) {
			assert_int_equal(note[i].count, 144);
			assert_false(note[i].place);
			rest = true;
		}
	assert_true(rest);
}

/* While the ledger is behind they are counted, and told once it is not. */
static void test_behind(void **state)
{
	(void)state;
	behind = true;
	for (int i = 0; i < 30; i++)
		send_packet(9, IPPROTO_UDP);
	turn();
	wait_second();
	assert_int_equal(notes, 0);
	behind = false;
	wait_second();
	assert_int_equal(notes, 1);
	assert_int_equal(total(), 30);
}

/* One ping is a ping. */
static void test_pings(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++)
		send_packet(0, IPPROTO_ICMP);
	turn();
	wait_second();
	assert_int_equal(notes, 2);
	assert_string_equal(note[0].detail, "ICMP");
	assert_string_equal(note[1].detail, "ICMP tunnel?");
}

static void test_nonsense(void **state)
{
	(void)state;
	assert_int_equal(send(kernel, "nonsense", 8, 0), 8);
	send_packet(9, IPPROTO_UDP);
	turn();
	assert_int_equal(notes, 1);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_first_at_once), TEST(test_kinds), TEST(test_end),
		TEST(test_many_kinds),	  TEST(test_pings), TEST(test_nonsense),
		TEST(test_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
