/* SPDX-License-Identifier: Apache-2.0
 *
 * rtnl.c - one request, its answers, its acknowledgement.
 *
 * The sockets are used by one process and are members of no group, so that the
 * answers in the queue are those to our last request.
 */
#include "launch/rtnl.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

void rtnl_start(struct rtnl *m, uint16_t type, uint16_t flags, const void *body,
		size_t len)
{
	static uint32_t sequence;

	m->nlh = mnl_nlmsg_put_header(m->buf);
	m->nlh->nlmsg_type = type;
	m->nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	m->nlh->nlmsg_seq = ++sequence;
	if (len)
		memcpy(mnl_nlmsg_put_extra_header(m->nlh, len), body, len);
}

static int exchange(int fd, const struct rtnl *m, mnl_cb_t cb, void *arg)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	uint8_t buf[32768] __attribute__((aligned(8)));
	ssize_t n;
	int r;

	do {
		n = sendto(fd, m->nlh, m->nlh->nlmsg_len, 0,
			   (const struct sockaddr *)&kernel, sizeof(kernel));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	do {
		do {
			n = recv(fd, buf, sizeof(buf), MSG_TRUNC);
		} while (n < 0 && errno == EINTR);
		if (n < 0)
			return -errno;
		if ((size_t)n > sizeof(buf))
			return -EMSGSIZE;
		r = mnl_cb_run(buf, (size_t)n, m->nlh->nlmsg_seq, 0, cb, arg);
	} while (r > MNL_CB_STOP);
	return r < 0 ? -errno : 0;
}

int rtnl_ask(int fd, struct rtnl *m)
{
	m->nlh->nlmsg_flags |= NLM_F_ACK;
	return exchange(fd, m, NULL, NULL);
}

int rtnl_read(int fd, struct rtnl *m, mnl_cb_t cb, void *arg)
{
	/* One answer ends with an acknowledgement, a dump with NLMSG_DONE. */
	if (!(m->nlh->nlmsg_flags & NLM_F_DUMP))
		m->nlh->nlmsg_flags |= NLM_F_ACK;
	return exchange(fd, m, cb, arg);
}
