/* SPDX-License-Identifier: Apache-2.0
 *
 * client_sync.c - one event, for a process that has no loop: a pack of one, and
 * the wait for its acknowledgement.
 */
#include "audit/client.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "audit/record.h"
#include "base/clock.h"

#define TIMEOUT_MS 10000

/* Waits until @sock is ready for @events, or the deadline. 0 or -EIO. */
static int wait_until(int sock, short events, int64_t deadline)
{
	struct pollfd pfd = { .fd = sock, .events = events };

	for (;;) {
		int64_t left = deadline - now_ms();
		int n = left > 0 ? poll(&pfd, 1, (int)left) : 0;

		if (n > 0)
			return 0;
		if (n == 0 || errno != EINTR)
			return -EIO;
	}
}

static int send_sync(int sock, const void *data, size_t len, int64_t deadline)
{
	for (;;) {
		ssize_t n = send(sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || wait_until(sock, POLLOUT, deadline) < 0)
			return -EIO;
	}
}

int audit_submit_sync(int sock, const struct audit_event *event, uint64_t seq)
{
	int64_t deadline = now_ms() + TIMEOUT_MS;
	uint8_t buf[RECORD_PACKED_MAX], ack[RECORD_ACK_LEN + 1];
	uint64_t acked = 0;

	if (send_sync(sock, buf, record_pack(event, seq, buf), deadline) < 0)
		return -EIO;
	while (acked < seq) {
		ssize_t n = recv(sock, ack, sizeof(ack), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN) {
			if (wait_until(sock, POLLIN, deadline) < 0)
				return -EIO;
		} else if (n < 0 && (errno == EINTR || errno == ECONNRESET)) {
			continue;
		} else if (n <= 0 ||
			   record_ack_decode(ack, (size_t)n, &acked) < 0) {
			return -EIO;
		}
	}
	return acked == seq ? 0 : -EIO;
}
