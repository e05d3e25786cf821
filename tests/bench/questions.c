/* SPDX-License-Identifier: Apache-2.0
 *
 * questions.c - the load of a resolver.
 *
 *	questions ADDRESS PORT ZONE NAMES WINDOW SECONDS COUNT [SPREAD]
 *
 * Asks for the A of qN.ZONE, N below NAMES (0: never the same twice), WINDOW
 * at a time from each of SOCKETS sockets, RATE a second at most, and ends after
 * COUNT, if that is not 0. With SPREAD for the names of names.h. Prints answers
 * with an address, other answers, lost ones, seconds.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/names.h"
#include "tests/bench/net.h"
#include "tests/bench/timing.h"

#define SOCKETS 8
#define BATCH	32
#define LATE_S	1.0
#define RATE	90000 /* a sandbox may be given 100,000, and is then refused */
#define SLEPT_S 0.01
#define PAUSE_S 0.0001
#define MESSAGE 512

static struct asker {
	int fd;
	unsigned out; /* asked and not answered */
	double heard;
} askers[SOCKETS];

static unsigned char tail[256]; /* of a question */
static size_t tail_len;
static struct names spread;
static unsigned long next, names, most, addresses, others, lost;

static void put_zone(const char *zone)
{
	while (*zone) {
		size_t n = strcspn(zone, ".");

		tail[tail_len++] = (unsigned char)n;
		memcpy(tail + tail_len, zone, n);
		tail_len += n;
		zone += n + (zone[n] == '.');
	}
	memcpy(tail + tail_len, "\0\0\1\0\1", 5);
	tail_len += 5;
}

static size_t question(unsigned char *m)
{
	static const unsigned char head[12] = { 0, 0, 1, 0, 0, 1 };
	int n;

	memcpy(m, head, sizeof(head));
	m[0] = (unsigned char)(next >> 8);
	m[1] = (unsigned char)next;
	if (spread.spread) {
		n = sprintf((char *)m + 13, "q000000%cn000000", NAMES_LABEL);
		names_put(&spread, (char *)m + 13, next);
		m[12] = NAMES_LABEL;
	} else {
		n = sprintf((char *)m + 13, "q%lu",
			    names ? next % names : next);
		m[12] = (unsigned char)n;
	}
	next++;
	memcpy(m + 13 + n, tail, tail_len);
	return 13 + (size_t)n + tail_len;
}

static void ask(struct asker *a, unsigned count)
{
	static unsigned char message[BATCH][MESSAGE];
	struct iovec iov[BATCH];
	struct mmsghdr all[BATCH];

	for (unsigned i = 0; i < count; i++) {
		iov[i] = (struct iovec){ message[i], question(message[i]) };
		all[i].msg_hdr =
			(struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	if (sendmmsg(a->fd, all, count, 0) != (int)count)
		net_fail("sendmmsg");
	a->out += count;
}

static void hear(struct asker *a, double now)
{
	static unsigned char message[BATCH][MESSAGE];
	struct iovec iov[BATCH];
	struct mmsghdr all[BATCH];
	int n;

	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ message[i], MESSAGE };
		all[i].msg_hdr =
			(struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	n = recvmmsg(a->fd, all, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		bool has = message[i][7] && (message[i][3] & 0xf) == 0;

		addresses += has;
		others += !has;
	}
	if (n <= 0)
		return;
	a->heard = now;
	a->out -= (unsigned)n < a->out ? (unsigned)n : a->out;
}

static bool is_over(void)
{
	return most && next + BATCH / 2 > most &&
	       addresses + others + lost >= next;
}

/* So many more may be asked now; who slept does not make up for it. */
static bool may_ask(unsigned count, double now)
{
	static double due;

	if (most && next + count > most)
		return false;
	if (due < now - SLEPT_S)
		due = now - SLEPT_S;
	if (due > now)
		return false;
	due += (double)count / RATE;
	return true;
}

static double run(unsigned window, double seconds)
{
	const struct timespec pause = { .tv_nsec = (long)(PAUSE_S * 1e9) };
	struct pollfd p[SOCKETS];
	double start = now_s(), now = start;

	for (int i = 0; i < SOCKETS; i++) {
		p[i] = (struct pollfd){ .fd = askers[i].fd, .events = POLLIN };
		askers[i].heard = now;
	}
	while (now - start < seconds && !is_over()) {
		for (int i = 0; i < SOCKETS; i++) {
			struct asker *a = &askers[i];

			if (now - a->heard > LATE_S) {
				lost += a->out;
				a->out = 0;
				a->heard = now;
			}
			while (a->out + BATCH / 2 <= window &&
			       may_ask(BATCH / 2, now))
				ask(a, BATCH / 2);
		}
		ppoll(p, SOCKETS, &pause, NULL);
		now = now_s();
		for (int i = 0; i < SOCKETS; i++)
			if (p[i].revents)
				hear(&askers[i], now);
	}
	return now - start;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at;
	double passed;

	if (argc != 8 && argc != 9)
		return 2;
	at = net_address(argv[1], argv[2]);
	put_zone(argv[3]);
	names = strtoul(argv[4], NULL, 10);
	most = strtoul(argv[7], NULL, 10);
	if (argc == 9)
		spread = (struct names){ names, strtoul(argv[8], NULL, 10) };
	for (int i = 0; i < SOCKETS; i++) {
		askers[i].fd = socket(AF_INET, SOCK_DGRAM, 0);
		if (connect(askers[i].fd, (struct sockaddr *)&at, sizeof(at)) <
		    0)
			net_fail("connect");
	}
	passed = run((unsigned)strtoul(argv[5], NULL, 10),
		     strtod(argv[6], NULL));
	printf("%lu %lu %lu %.4f\n", addresses, others, lost, passed);
	return addresses + others ? 0 : 1;
}
