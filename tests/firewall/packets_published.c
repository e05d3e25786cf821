/* SPDX-License-Identifier: Apache-2.0
 *
 * packets_published.c - what is published can be reached, and nothing else.
 */
#include "tests/firewall/packets_case.h"

/* --- what is published --------------------------------------------------- */

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define URG 0x20

struct place {
	const char *address;
	uint16_t port;
	bool listens;
};

/* A socket bound there, in whichever namespace this is run. */
static int bound_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct place *place = arg;
	union sockaddr_any sa;
	const int on = 1;
	struct ip ip;
	int fd;

	if (!ip_parse(place->address, &ip))
		return -EINVAL;
	if (place->listens) {
		fd = sock_listen_tcp(&ip, place->port, false);
	} else {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, &sa.sa, ip_to_sockaddr(&ip, place->port, &sa)) < 0)
			return -errno;
	}
	if (fd < 0)
		return fd;
	ret_fds[0] = fd;
	*ret_n = 1;
	return 0;
}

static int bound_in(int ns_fd, const char *address, uint16_t port, bool listens)
{
	struct place place = { address, port, listens };
	int fds[8];
	size_t n = 0;

	assert_int_equal(netns_enter(ns_fd, bound_inside, &place, fds, &n), 0);
	assert_int_equal(n, 1);
	return fds[0];
}

/* Is @fd connected to @address within @ms? */
static bool connects(int fd, const char *address, uint16_t port, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	union sockaddr_any sa;
	socklen_t len = sizeof(int);
	int error = 0;
	struct ip ip;

	assert_true(ip_parse(address, &ip));
	if (connect(fd, &sa.sa, ip_to_sockaddr(&ip, port, &sa)) < 0 &&
	    errno != EINPROGRESS)
		return false;
	if (poll(&p, 1, ms) != 1)
		return false;
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return !error;
}

static void publish(struct lab *lab, int box)
{
	lab->link[box].published = true;
	assert_int_equal(ruleset_link_publish(lab->nft, &lab->link[box]), 0);
}

static void test_published(void **state)
{
	struct lab *lab = *state;
	AUTO_FD int server = bound_in(lab->box[0].fd, "0.0.0.0", 3000, true);
	AUTO_FD int other = bound_in(lab->box[1].fd, "0.0.0.0", 3000, true);
	AUTO_FD int before = bound_in(lab->gateway.fd, "198.19.0.1",
				      RULESET_DIAL_FIRST, false);
	char data[8];

	/* Nothing comes back where nothing is published. */
	assert_false(connects(before, "198.19.0.2", 3000, 500));
	assert_true(counters(lab).refused > 0);
	publish(lab, 0);

	AUTO_FD int first = bound_in(lab->gateway.fd, "198.19.0.1",
				     RULESET_DIAL_FIRST + 1, false);
	AUTO_FD int last = bound_in(lab->gateway.fd, "198.19.0.1",
				    RULESET_DIAL_LAST, false);
	AUTO_FD int below = bound_in(lab->gateway.fd, "198.19.0.1",
				     RULESET_DIAL_FIRST - 1, false);
	AUTO_FD int above = bound_in(lab->gateway.fd, "198.19.0.1",
				     RULESET_DIAL_LAST + 1, false);
	AUTO_FD int to_other = bound_in(lab->gateway.fd, "198.19.0.5",
					RULESET_DIAL_FIRST, false);

	assert_true(connects(first, "198.19.0.2", 3000, 10000));
	assert_true(connects(last, "198.19.0.2", 3000, 10000));
	assert_false(connects(below, "198.19.0.2", 3000, 500));
	assert_false(connects(above, "198.19.0.2", 3000, 500));
	assert_false(connects(to_other, "198.19.0.6", 3000, 500));
	assert_true(readable(server, 10000));
	AUTO_FD int accepted = accept(server, NULL, NULL);
	assert_int_equal(send(first, "hello", 5, 0), 5);
	(void)send(last, "hello", 5, 0);
	assert_true(readable(accepted, 10000));
	assert_int_equal(recv(accepted, data, sizeof(data), 0), 5);
	assert_int_equal(send(accepted, "world", 5, 0), 5);
	/* A RST comes through, so that it fails at once. */
	AUTO_FD int closed = bound_in(lab->gateway.fd, "198.19.0.1",
				      RULESET_DIAL_FIRST + 2, false);
	assert_false(connects(closed, "198.19.0.2", 3001, 500));
	assert_false(readable(other, 0));
}

/* A gate that was taken over may even listen there: the sandbox still can't
 * begin a connection, with whatever flags. */
static void test_published_lets_none_begin(void **state)
{
	static const uint8_t flags[] = {
		SYN,	    SYN | FIN,	SYN | RST,
		SYN | PSH,  SYN | URG,	SYN | FIN | PSH | URG,
		SYN | 0x40, SYN | 0x80, SYN | 0xc0,
	};
	static const uint8_t harmless[] = {
		ACK, ACK | PSH, ACK | FIN, SYN | ACK, SYN | ACK | PSH, FIN, 0
	};
	const uint16_t port = RULESET_DIAL_FIRST + 56;
	struct lab *lab = *state;

	publish(lab, 0);
	AUTO_FD int listener =
		bound_in(lab->gateway.fd, "198.19.0.1", port, true);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		uint64_t before = counters(lab).refused;

		frame_send_tcp(lab, 0, "198.19.0.2", 4000, "198.19.0.1", port,
			       flags[i]);
		for (int ms = 0; ms < 10000 && counters(lab).refused == before;
		     ms++)
			usleep(1000);
		if (counters(lab).refused != before + 1)
			fail_msg("flags %02x were let in", flags[i]);
	}
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.19.0.1", port),
			 ECONNREFUSED);
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		frame_send_tcp(lab, 0, "198.19.0.2", (uint16_t)(5000 + i),
			       "198.19.0.1", port, harmless[i]);
	assert_false(readable(listener, 100));
}

/* Both ends send a SYN: TCP would make that a connection. */
static void test_published_simultaneous(void **state)
{
	const uint16_t port = RULESET_DIAL_FIRST + 57;
	struct lab *lab = *state;
	union sockaddr_any sa;
	char *flush[] = { "ip", "addr", "flush", "dev", "eth0", NULL };
	struct ip ip = ip_v4(0xc6130002);
	char text[64];
	int error = 0;
	socklen_t len = sizeof(error);

	publish(lab, 0);
	/* Nobody answers, and nobody refuses. */
	lab_output(lab->box[0].fd, flush, text, sizeof(text));
	AUTO_FD int fd = bound_in(lab->gateway.fd, "198.19.0.1", port, false);
	assert_int_equal(connect(fd, &sa.sa, ip_to_sockaddr(&ip, 4001, &sa)),
			 -1);
	assert_int_equal(errno, EINPROGRESS);
	uint64_t before = counters(lab).refused;
	frame_send_tcp(lab, 0, "198.19.0.2", 4001, "198.19.0.1", port, SYN);
	for (int ms = 0; ms < 10000 && counters(lab).refused == before; ms++)
		usleep(1000);
	assert_true(counters(lab).refused > before);
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size),
			 0);
	assert_int_equal(info.tcpi_state, TCP_SYN_SENT);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	assert_int_equal(error, 0);
}

/* Nor does anything else of it become reachable. */
static void test_published_is_narrow(void **state)
{
	static const struct {
		int box;
		const char *src, *dst;
		uint16_t port;
		bool spoofed;
	} row[] = {
		{ 0, "198.19.0.2", "198.19.0.1", RULESET_DIAL_FIRST - 1,
		  false },
		{ 0, "198.19.0.2", "198.19.0.1", RULESET_DIAL_LAST + 1, false },
		{ 0, "198.19.0.2", "198.19.0.1", 3129, false },
		{ 0, "198.19.0.2", "198.19.0.5", RULESET_DIAL_FIRST, false },
		{ 0, "198.19.0.2", "198.19.0.6", RULESET_DIAL_FIRST, false },
		{ 0, "198.19.0.2", "93.184.216.34", RULESET_DIAL_FIRST, false },
		{ 0, "198.19.0.6", "198.19.0.1", RULESET_DIAL_FIRST, true },
		{ 1, "198.19.0.6", "198.19.0.5", RULESET_DIAL_FIRST, false },
		{ 1, "198.19.0.6", "198.19.0.1", RULESET_DIAL_FIRST, false },
		{ 1, "198.19.0.2", "198.19.0.1", RULESET_DIAL_FIRST, true },
	};
	struct lab *lab = *state;

	publish(lab, 0);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const struct ruleset_counters was = counters(lab);
		struct ruleset_counters is = was;

		frame_send_tcp(lab, row[i].box, row[i].src, 4000, row[i].dst,
			       row[i].port, ACK);
		for (int ms = 0; ms < 10000 && is.refused == was.refused &&
				 is.spoofed == was.spoofed;
		     ms++) {
			usleep(1000);
			is = counters(lab);
		}
		if (is.refused - was.refused != !row[i].spoofed ||
		    is.spoofed - was.spoofed != row[i].spoofed)
			fail_msg("row %zu", i);
	}
	/* UDP to such a port is refused as ever. */
	assert_int_equal(
		attempt(lab, 0, SOCK_DGRAM, "198.19.0.1", RULESET_DIAL_FIRST),
		ECONNREFUSED);
}

int packets_published_run(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(test_published),
		LAB_TEST(test_published_lets_none_begin),
		LAB_TEST(test_published_simultaneous),
		LAB_TEST(test_published_is_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
