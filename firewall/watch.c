/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - commits, seen from a socket of their multicast group.
 *
 * The group tells each rule and element, too; a filter in the kernel leaves
 * only the last message of a commit by somebody else. So what we open and close
 * ourselves, thousands at a time, neither wakes us nor fills the socket, and a
 * socket that overflows all the same is news by itself.
 *
 * That last message has the address of the socket which the batch came by.
 */
#include "firewall/watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/filter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "firewall/nft.h"

#define NEW_GENERATION (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN)
#define MESSAGE_MAX    8192

/* Filters load words in network byte order, netlink has them in the host's. */
static int filter_out(int fd, uint32_t port)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS,
			 offsetof(struct nlmsghdr, nlmsg_type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(NEW_GENERATION), 0,
			 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct nlmsghdr, nlmsg_pid)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(port), 1, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code),
					    .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)) < 0
		       ? -errno
		       : 0;
}

int watch_listen(int fd, struct nft *nft)
{
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	const int group = NFNLGRP_NFTABLES;
	uint32_t port;

	int r = nft_port(nft, &port);
	if (r == 0)
		r = filter_out(fd, port);
	if (r < 0)
		return r;
	/* Without an address of its own it would look like the sender of
	 * everything, and be told nothing. */
	if (bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group,
		       sizeof(group)) < 0)
		return -errno;
	return 0;
}

static void take_process(const struct nlattr *name, struct watch_change *ret)
{
	size_t len = mnl_attr_get_payload_len(name);

	if (len > sizeof(ret->process) - 1)
		len = sizeof(ret->process) - 1;
	memcpy(ret->process, mnl_attr_get_payload(name), len);
	ret->process[len] = '\0';
}

static uint32_t number(const struct nlattr *attr)
{
	if (!attr || mnl_attr_get_payload_len(attr) != sizeof(uint32_t))
		return 0;
	return ntohl(mnl_attr_get_u32(attr));
}

static int take_generation(const struct nlmsghdr *nlh, struct watch_change *ret)
{
	const struct nlattr *tb[NFTA_GEN_MAX + 1];

	*ret = (struct watch_change){ 0 };
	if (nlh->nlmsg_type != NEW_GENERATION ||
	    nft_attrs(nlh, tb, NFTA_GEN_MAX) < 0)
		return -EBADMSG;
	ret->generation = number(tb[NFTA_GEN_ID]);
	ret->pid = number(tb[NFTA_GEN_PROC_PID]);
	if (tb[NFTA_GEN_PROC_NAME])
		take_process(tb[NFTA_GEN_PROC_NAME], ret);
	return 0;
}

int watch_read(int fd, struct watch_change *ret)
{
	uint8_t buf[MESSAGE_MAX] __attribute__((aligned(8)));
	struct sockaddr_nl from;
	socklen_t from_len;
	ssize_t n;

	for (;;) {
		from_len = sizeof(from);
		n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &from_len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		/* Only the kernel has a word in this. */
		if (from.nl_pid ||
		    !mnl_nlmsg_ok((struct nlmsghdr *)buf, (int)n))
			continue;
		/* What we can't read is a change all the same. */
		if (take_generation((struct nlmsghdr *)buf, ret) < 0)
			ret->lost = true;
		return 1;
	}
	if (errno == EAGAIN)
		return 0;
	if (errno != ENOBUFS)
		return -errno;
	*ret = (struct watch_change){ .lost = true };
	return 1;
}

static int generation_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct watch_change change;

	if (take_generation(nlh, &change) == 0)
		*(uint32_t *)arg = change.generation;
	return MNL_CB_OK;
}

int watch_generation(struct nft *nft, uint32_t *ret)
{
	struct nlmsghdr *nlh = nft_ask(nft, NFT_MSG_GETGEN, 0, AF_UNSPEC);
	uint32_t generation = 0;
	int r = nft_read(nft, nlh, generation_cb, &generation);

	if (r == 0)
		*ret = generation;
	return r;
}
