/* SPDX-License-Identifier: Apache-2.0
 *
 * floor_dns.c - answers each question with one address: the least that a
 * resolver can do, and the server behind those that are measured.
 *
 *	floor_dns ADDRESS PORT ANSWER
 */
#include <string.h>

#include "tests/bench/net.h"

#define BATCH	32
#define MESSAGE 512
#define HEADER	12
#define RECORD	16

static unsigned char record[RECORD] = {
	0xc0, HEADER,	       /* the name of the question */
	0,    1,      0, 1,    /* A, IN */
	0,    0,      1, 0x2c, /* 300 seconds */
	0,    4,
};

/* Its length; 0: it is no question that we know. */
static size_t answer(unsigned char *m, size_t len)
{
	size_t at = HEADER;

	if (len < HEADER + 5 || m[2] & 0x80 || m[5] != 1)
		return 0;
	while (at < len && m[at])
		at += 1U + m[at];
	at += 5;
	if (at > len || at + RECORD > MESSAGE)
		return 0;
	m[2] = 0x81;
	m[3] = 0x80;
	m[8] = m[9] = m[10] = m[11] = 0;
	m[6] = 0;
	m[7] = m[at - 3] == 1; /* A; there is nothing of others */
	if (m[7])
		memcpy(m + at, record, RECORD);
	return at + (m[7] ? RECORD : 0);
}

static unsigned char message[BATCH][MESSAGE];
static struct sockaddr_in from[BATCH];
static struct iovec iov[BATCH];
static struct mmsghdr in[BATCH], out[BATCH];

static void turn(int fd)
{
	unsigned n = 0;
	int got;

	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ message[i], MESSAGE };
		in[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
						 .msg_namelen = sizeof(from[i]),
						 .msg_iov = &iov[i],
						 .msg_iovlen = 1 };
	}
	got = recvmmsg(fd, in, BATCH, MSG_WAITFORONE, NULL);
	for (int i = 0; i < got; i++) {
		iov[i].iov_len = answer(message[i], in[i].msg_len);
		if (iov[i].iov_len)
			out[n++] = in[i];
	}
	if (n)
		sendmmsg(fd, out, n, 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at, what;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (argc != 4)
		return 2;
	at = net_address(argv[1], argv[2]);
	what = net_address(argv[3], "0");
	memcpy(record + 12, &what.sin_addr, 4);
	net_set(fd, SOL_SOCKET, SO_RCVBUF, 4 << 20);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		net_fail("bind");
	for (;;)
		turn(fd);
}
