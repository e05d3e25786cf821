/* SPDX-License-Identifier: Apache-2.0
 *
 * A message from a process that was taken over. The first byte says how many
 * descriptors come with it, the rest is the message. None may leak. With its
 * highest bit, the second one is a type, and the rest the beginning of a
 * message that has the right length, zeros behind it: so all types are reached,
 * however long they become.
 */
#include "cmd/privsep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The lowest free descriptor: the same after as before. */
static int lowest_free(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

static void check(const struct msg *msg)
{
	if (msg->type <= 0 || msg->type >= MSG_TYPE_COUNT)
		abort();
	if (msg->fd >= 0 && fcntl(msg->fd, F_GETFD) != FD_CLOEXEC)
		abort();
	if (msg->type == MSG_TALLY_ROW &&
	    (strnlen(msg->tally_row.host, sizeof(msg->tally_row.host)) ==
		     sizeof(msg->tally_row.host) ||
	     msg->tally_row.reason >= REASON_COUNT ||
	     msg->tally_row.observed >= REASON_COUNT))
		abort();
	if (msg->type == MSG_GATE_PUBLISH && msg->publish.count > MSG_PORTS_MAX)
		abort();
	if (msg->type == MSG_GATE_UPLINK &&
	    msg->gate_uplink.count > MSG_UPLINK_MAX)
		abort();
}

/* False: there is no such type. */
static bool send_whole(int sock, const uint8_t *data, size_t size)
{
	static uint8_t payload[sizeof(struct msg)];
	const enum msg_type type = (enum msg_type)(data[1] % MSG_TYPE_COUNT);
	size_t len = size - 2 < sizeof(payload) ? size - 2 : sizeof(payload);

	memset(payload, 0, sizeof(payload));
	memcpy(payload, data + 2, len);
	return msg_send(sock, type, payload, -1) == 0 ||
	       msg_send(sock, type, payload, sock) == 0 ||
	       msg_send(sock, type, NULL, -1) == 0 ||
	       msg_send(sock, type, NULL, sock) == 0;
}

static bool send_input(int sock, const uint8_t *data, size_t size)
{
	size_t nfds = data[0] % (FDPASS_MAX + 1);
	int fds[FDPASS_MAX];

	if (data[0] & 0x80 && size > 1)
		return send_whole(sock, data, size);
	for (size_t i = 0; i < nfds; i++)
		fds[i] = sock;
	return fdpass_send(sock, data + 1, size - 1, fds, nfds) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int sock[2], before = lowest_free(), r;
	struct msg msg = { .fd = -1 };

	if (before < 0 || size == 0 || size > 65536)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return 0;
	if (send_input(sock[0], data, size)) {
		r = msg_recv(sock[1], &msg, MSG_DONTWAIT);
		if (r == 1)
			check(&msg);
		else if (r != -EBADMSG && (r != 0 || size > 1))
			abort();
		if (r != 1 && msg.fd != -1)
			abort();
	}
	if (msg.fd >= 0)
		close(msg.fd);
	close(sock[0]);
	close(sock[1]);
	if (lowest_free() != before)
		abort();
	return 0;
}
