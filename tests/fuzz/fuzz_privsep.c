/* SPDX-License-Identifier: Apache-2.0
 *
 * A message from a process that was taken over. The first byte says how many
 * descriptors come with it, the rest is the message. None may leak.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int sock[2], fds[FDPASS_MAX], before = lowest_free(), r;
	struct msg msg = { .fd = -1 };
	size_t nfds;

	if (before < 0 || size == 0 || size > 65536)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return 0;
	nfds = data[0] % (FDPASS_MAX + 1);
	for (size_t i = 0; i < nfds; i++)
		fds[i] = sock[0];
	if (fdpass_send(sock[0], data + 1, size - 1, fds, nfds) == 0) {
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
