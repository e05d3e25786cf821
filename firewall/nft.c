/* SPDX-License-Identifier: Apache-2.0
 *
 * nft.c - nf_tables over one netlink socket.
 *
 * The kernel works off a batch while we are in sendto(): when it returns, all
 * acknowledgements are in our queue. So they are read without waiting, and one
 * that is missing is an error, not a hang.
 */
#include "firewall/nft.h"

#include <errno.h>
#include <libnftnl/common.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define BATCH_MAX   (128u * 1024)
#define MESSAGE_MAX (32u * 1024) /* room that one message is sure to have */
#define RECV_MAX    (32u * 1024)

struct nft {
	struct mnl_socket *socket;
	const char *table;
	uint32_t seq;
	uint32_t first; /* of the batch: its header */
	uint32_t count; /* messages in it */
	size_t len;
	bool full;
	/* A message started without room is written behind the end. */
	uint8_t batch[BATCH_MAX + MESSAGE_MAX] __attribute__((aligned(8)));
	uint8_t recv[RECV_MAX] __attribute__((aligned(8)));
};

int nft_open(int fd, struct nft **ret_nft)
{
	AUTO_FD int owned = fd;
	const int on = 1;

	AUTO_FREE struct nft *nft = calloc(1, sizeof(*nft));
	if (!nft)
		return -ENOMEM;
	nft->table = RULESET_TABLE;
	nft->socket = mnl_socket_fdopen(fd);
	if (!nft->socket)
		return -errno;
	/* Errors without a copy of what we sent. */
	(void)mnl_socket_setsockopt(nft->socket, NETLINK_CAP_ACK, (void *)&on,
				    sizeof(on));
	(void)steal_fd(&owned);
	*ret_nft = STEAL(nft);
	return 0;
}

const char *nft_table(const struct nft *nft)
{
	return nft->table;
}

void nft_use_table(struct nft *nft, const char *table)
{
	nft->table = table;
}

int nft_port(struct nft *nft, uint32_t *ret_port)
{
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	const int fd = mnl_socket_get_fd(nft->socket);
	struct sockaddr_nl own;
	socklen_t len = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)&own, &len) < 0)
		return -errno;
	/* The first request would give it one. */
	if (!own.nl_pid &&
	    (bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 ||
	     getsockname(fd, (struct sockaddr *)&own, &len) < 0))
		return -errno;
	if (!own.nl_pid)
		return -EADDRNOTAVAIL;
	*ret_port = own.nl_pid;
	return 0;
}

void nft_close(struct nft *nft)
{
	if (!nft)
		return;
	mnl_socket_close(nft->socket);
	free(nft);
}

void nft_begin(struct nft *nft)
{
	nft->first = ++nft->seq;
	nft->count = 0;
	nft->full = false;
	const struct nlmsghdr *nlh =
		nftnl_batch_begin((char *)nft->batch, nft->first);
	nft->len = nlh->nlmsg_len;
}

struct nlmsghdr *nft_start(struct nft *nft, uint16_t type, uint16_t flags)
{
	if (nft->len + MESSAGE_MAX > BATCH_MAX)
		nft->full = true;
	uint8_t *at = nft->batch + (nft->full ? BATCH_MAX : nft->len);
	return nftnl_nlmsg_build_hdr((char *)at, type, NFPROTO_INET,
				     (uint16_t)(flags | NLM_F_ACK), ++nft->seq);
}

void nft_end(struct nft *nft, struct nlmsghdr *nlh)
{
	if (nft->full)
		return;
	nft->len += nlh->nlmsg_len;
	nft->count++;
}

static int send_all(struct nft *nft, const void *data, size_t len)
{
	for (;;) {
		ssize_t n = mnl_socket_sendto(nft->socket, data, len);

		if (n >= 0)
			return (size_t)n == len ? 0 : -EIO;
		if (errno != EINTR)
			return -errno;
	}
}

/* One datagram. Its length, or -errno. */
static ssize_t receive(struct nft *nft, int flags)
{
	for (;;) {
		ssize_t n = recv(mnl_socket_get_fd(nft->socket), nft->recv,
				 sizeof(nft->recv), flags | MSG_TRUNC);

		if (n > (ssize_t)sizeof(nft->recv))
			return -EMSGSIZE;
		if (n >= 0)
			return n;
		if (errno != EINTR)
			return -errno;
	}
}

/* The error in an NLMSG_ERROR message, 0 in an acknowledgement. */
static int error_of(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *report = mnl_nlmsg_get_payload(nlh);

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*report))
		return -EBADMSG;
	return report->error;
}

/* Counts the acknowledgements in one datagram. 0 or the first error. */
static int take_acks(struct nft *nft, ssize_t len, uint32_t *acks)
{
	int left = (int)len;
	int first = 0;

	for (struct nlmsghdr *nlh = (struct nlmsghdr *)nft->recv;
	     mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (nlh->nlmsg_type != NLMSG_ERROR ||
		    nlh->nlmsg_seq - nft->first > nft->seq - nft->first)
			continue;
		int r = error_of(nlh);
		if (r < 0 && !first)
			first = r;
		if (r == 0)
			(*acks)++;
	}
	return first;
}

int nft_commit(struct nft *nft)
{
	uint32_t acks = 0;
	int first = 0;

	if (nft->full)
		return -E2BIG;
	const struct nlmsghdr *end =
		nftnl_batch_end((char *)nft->batch + nft->len, ++nft->seq);
	int r = send_all(nft, nft->batch, nft->len + end->nlmsg_len);
	if (r < 0)
		return r;
	for (;;) {
		ssize_t len = receive(nft, MSG_DONTWAIT);
		if (len == -EAGAIN)
			break;
		if (len < 0)
			return (int)len;
		r = take_acks(nft, len, &acks);
		if (r < 0 && !first)
			first = r;
	}
	if (first)
		return first;
	return acks == nft->count ? 0 : -EPROTO;
}

struct nlmsghdr *nft_ask(struct nft *nft, uint16_t type, uint16_t flags,
			 uint8_t family)
{
	/* An answer ends with an acknowledgement, a dump with NLMSG_DONE. */
	if (!(flags & NLM_F_DUMP))
		flags |= NLM_F_ACK;
	return nftnl_nlmsg_build_hdr((char *)nft->batch, type, family, flags,
				     ++nft->seq);
}

/* Where the reading of one answer stands. */
struct reading {
	uint32_t seq;
	mnl_cb_t cb;
	void *arg;
	int error;
	bool done;
};

static void take_answer(struct reading *reading, const struct nlmsghdr *nlh)
{
	int r = 0;

	if (nlh->nlmsg_seq != reading->seq)
		return;
	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		r = -EINTR;
	if (nlh->nlmsg_type == NLMSG_DONE) {
		reading->done = true;
	} else if (nlh->nlmsg_type == NLMSG_ERROR) {
		reading->done = true;
		r = error_of(nlh);
	} else if (r == 0 && !reading->error && reading->cb &&
		   reading->cb(nlh, reading->arg) < 0) {
		r = -errno;
	}
	if (!reading->error)
		reading->error = r;
}

int nft_read(struct nft *nft, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg)
{
	struct reading reading = { .seq = nlh->nlmsg_seq,
				   .cb = cb,
				   .arg = arg };

	int r = send_all(nft, nlh, nlh->nlmsg_len);
	if (r < 0)
		return r;
	/* After an error the rest is read all the same: the next request needs
	 * a clean socket. */
	while (!reading.done) {
		ssize_t len = receive(nft, 0);
		if (len < 0)
			return (int)len;
		int left = (int)len;
		for (const struct nlmsghdr *m = (struct nlmsghdr *)nft->recv;
		     mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left))
			take_answer(&reading, m);
	}
	return reading.error;
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

int nft_attrs(const struct nlmsghdr *nlh, const struct nlattr **tb,
	      uint16_t max)
{
	struct attrs attrs = { .tb = tb, .max = max };

	memset(tb, 0, (max + 1u) * sizeof(*tb));
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nfgenmsg))
		return -EBADMSG;
	return mnl_attr_parse(nlh, sizeof(struct nfgenmsg), attr_cb, &attrs) < 0
		       ? -EBADMSG
		       : 0;
}

int nft_nested(const struct nlattr *nest, const struct nlattr **tb,
	       uint16_t max)
{
	struct attrs attrs = { .tb = tb, .max = max };

	memset(tb, 0, (max + 1u) * sizeof(*tb));
	if (!nest)
		return -EBADMSG;
	return mnl_attr_parse_nested(nest, attr_cb, &attrs) < 0 ? -EBADMSG : 0;
}
