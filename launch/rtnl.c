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
#include <stdbool.h>
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

struct attrs {
	const struct nlattr **tb;
	uint16_t max;
};

static int attr_cb(const struct nlattr *attr, void *arg)
{
	const struct attrs *attrs = arg;

	if (mnl_attr_get_type(attr) <= attrs->max)
		attrs->tb[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

void rtnl_attrs(const struct nlmsghdr *nlh, size_t offset,
		const struct nlattr **tb, uint16_t max)
{
	struct attrs attrs = { .tb = tb, .max = max };

	memset(tb, 0, (max + 1u) * sizeof(*tb));
	(void)mnl_attr_parse(nlh, (unsigned int)offset, attr_cb, &attrs);
}

uint32_t rtnl_u32(const struct nlattr *attr)
{
	if (!attr || mnl_attr_get_payload_len(attr) != sizeof(uint32_t))
		return 0;
	return mnl_attr_get_u32(attr);
}

/* Where one exchange stands. */
struct answer {
	uint32_t seq;
	mnl_cb_t cb;
	void *arg;
	int error; /* the first */
	bool done;
};

static void fail(struct answer *a, int error)
{
	if (!a->error)
		a->error = error;
}

static void take_message(struct answer *a, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *report = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_seq != a->seq)
		return;
	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		fail(a, -EINTR);
	if (nlh->nlmsg_type == NLMSG_DONE) {
		a->done = true;
	} else if (nlh->nlmsg_type == NLMSG_ERROR) {
		a->done = true;
		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*report))
			fail(a, -EBADMSG);
		else if (report->error)
			fail(a, report->error);
	} else if (a->cb && !a->error && a->cb(nlh, a->arg) < 0) {
		fail(a, -errno);
	}
}

static int send_request(int fd, const struct nlmsghdr *nlh)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t n;

	do {
		n = sendto(fd, nlh, nlh->nlmsg_len, 0,
			   (const struct sockaddr *)&kernel, sizeof(kernel));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* After an error the rest of a dump is read all the same, so that the socket is
 * clean for the next request. */
static int exchange(int fd, const struct rtnl *m, mnl_cb_t cb, void *arg)
{
	struct answer answer = { .seq = m->nlh->nlmsg_seq,
				 .cb = cb,
				 .arg = arg };
	uint8_t buf[32768] __attribute__((aligned(8)));

	int r = send_request(fd, m->nlh);
	if (r < 0)
		return r;
	while (!answer.done) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_TRUNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n > sizeof(buf))
			return -EMSGSIZE;
		int left = (int)n;
		for (struct nlmsghdr *nlh = (struct nlmsghdr *)buf;
		     mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			take_message(&answer, nlh);
	}
	return answer.error;
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
