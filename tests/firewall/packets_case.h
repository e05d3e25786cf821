/* SPDX-License-Identifier: Apache-2.0
 *
 * packets_case.h - a lab, and what is counted and logged of its packets.
 */
#ifndef TESTS_FIREWALL_PACKETS_CASE_H
#define TESTS_FIREWALL_PACKETS_CASE_H

#include "packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "firewall/nflog.h"
#include "frame.h"
#include "lab.h"
#include "launch/link.h"

static inline int setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	lab_make(lab);
	*state = lab;
	return 0;
}

static inline int teardown(void **state)
{
	lab_free(*state);
	free(*state);
	return 0;
}

static inline struct ruleset_counters counters(struct lab *lab)
{
	struct ruleset_counters c;

	assert_int_equal(ruleset_counters(lab->nft, &c), 0);
	return c;
}

/* As far as the kernel has come with what was sent, but until @want of them are
 * counted at most 10 s: it may go on with a packet after sendto(2). */
static inline uint64_t counted(struct lab *lab, size_t field, uint64_t want)
{
	struct ruleset_counters c = counters(lab);
	uint64_t n;

	memcpy(&n, (char *)&c + field, sizeof(n));
	for (int i = 0; i < 10000 && n < want; i++) {
		usleep(1000);
		c = counters(lab);
		memcpy(&n, (char *)&c + field, sizeof(n));
	}
	return n;
}
#define COUNTED(lab, what, want) \
	counted(lab, offsetof(struct ruleset_counters, what), want)

static inline bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* What the log of dropped packets said. */
struct seen {
	struct nflog_packet last;
	unsigned n;
};

static inline void see(void *arg, const struct nflog_packet *packet)
{
	struct seen *seen = arg;

	seen->last = *packet;
	seen->n++;
}

static inline struct seen read_log(struct lab *lab)
{
	struct seen seen = { 0 };
	uint8_t buf[16384] __attribute__((aligned(8)));
	ssize_t n;

	/* A packet is counted first. */
	(void)readable(lab->nflog, 10000);
	while ((n = recv(lab->nflog, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		assert_int_equal(nflog_parse(buf, (size_t)n, see, &seen), 0);
	return seen;
}

/* One attempt from inside: how it ends, and within which time. */
struct attempt {
	int type, protocol;
	const char *address;
	uint16_t port;
};

#define SLOW 100 /* added to the result if it took 200 ms or more */

/* Milliseconds, but for those in which this thread could have gone on and
 * others had the processors. */
static inline double own_ms(void)
{
	AUTO_FILE FILE *file = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long waited = 0;
	struct timespec now;

	if (file && fscanf(file, "%*u %llu", &waited) != 1)
		waited = 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 -
	       (double)waited / 1e6;
}

/* An error number, or 0. */
static inline int try(void *arg)
{
	const struct attempt *a = arg;
	union sockaddr_any sa;
	int error = 0;
	char c = 'x';
	struct ip ip;

	if (!ip_parse(a->address, &ip))
		return EINVAL;
	socklen_t len = ip_to_sockaddr(&ip, a->port, &sa);
	AUTO_FD int fd = socket(AF_INET, a->type, a->protocol);
	const struct timeval limit = { .tv_sec = 2 };
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	const double began = own_ms();
	if (connect(fd, &sa.sa, len) < 0)
		error = errno;
	else if (a->type != SOCK_STREAM &&
		 (send(fd, &c, 1, 0) < 0 || recv(fd, &c, 1, 0) < 0))
		error = errno;
	return own_ms() - began < 200 ? error : error + SLOW;
}

static inline int attempt(struct lab *lab, int box, int type,
			  const char *address, uint16_t port)
{
	struct attempt a = { .type = type, .address = address, .port = port };

	return lab_in(lab->box[box].fd, try, &a);
}

/* Accepts, and checks where it was going and by which link it came. */
static inline void assert_accepted(struct lab *lab, int listener,
				   const char *address, uint16_t port,
				   const char *ifname)
{
	union sockaddr_any sa;
	socklen_t len = sizeof(sa);
	char text[IP_TEXT_MAX];
	uint32_t index, wanted;

	assert_true(readable(listener, 10000));
	AUTO_FD int fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, &sa.sa, &len), 0);
	const struct ip local = ip_from_sockaddr(&sa);
	assert_string_equal(ip_format(&local, text), address);
	assert_int_equal(port_from_sockaddr(&sa), port);
	assert_int_equal(sock_ingress(fd, &index), 0);
	assert_int_equal(link_index(lab->gateway.route, ifname, &wanted), 0);
	assert_int_equal(index, wanted);
}

#define LAB_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
