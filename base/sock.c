/* SPDX-License-Identifier: Apache-2.0
 *
 * sock.c - sockets: passing file descriptors, and small settings.
 */
#include "base/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/fsuid.h>

#include "base/cleanup.h"

/* Of about 700 bytes a packet, as the kernel counts: hundreds of questions may
 * come at once, and what is lost is asked again only after seconds. */
#define UDP_ROOM (512 * 1024)

int fdpass_send(int sock, const void *data, size_t len, const int *fds,
		size_t nfds)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FDPASS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds > FDPASS_MAX)
		return -EINVAL;
	if (nfds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	for (;;) {
		ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL);

		if (n >= 0)
			return (size_t)n == len ? 0 : -EIO;
		if (errno != EINTR)
			return -errno;
	}
}

static size_t take_fds(struct msghdr *msg, int *fds)
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < FDPASS_MAX)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

ssize_t fdpass_recv(int sock, void *data, size_t cap, int *fds,
		    size_t *ret_nfds, int flags)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FDPASS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = cap };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	ssize_t len;

	do {
		len = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	size_t n = take_fds(&msg, fds);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		const bool none = !n && !(msg.msg_flags & MSG_TRUNC);

		while (n)
			close(fds[--n]);
		*ret_nfds = 0;
		return none ? -EMFILE : -EMSGSIZE;
	}
	*ret_nfds = n;
	return len;
}

static int open_bound(int type, const struct ip *ip, uint16_t port,
		      bool transparent)
{
	union sockaddr_any sa;
	socklen_t len = ip_to_sockaddr(ip, port, &sa);
	const int on = 1;

	if (!len)
		return -EINVAL;
	AUTO_FD int fd =
		socket(sa.sa.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (ip->len == 16 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno;
	if (transparent &&
	    setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0)
		return -errno;
	/* On a listener, IP_PKTINFO makes the kernel keep the interface of the
	 * SYN for IP_PKTOPTIONS on the accepted socket. */
	if (ip->len == 4 &&
	    setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0)
		return -errno;
	if (ip->len == 16 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0)
		return -errno;
	if (type == SOCK_DGRAM && ip->len == 4 &&
	    setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (bind(fd, &sa.sa, len) < 0)
		return -errno;
	return steal_fd(&fd);
}

int sock_listen_tcp(const struct ip *ip, uint16_t port, bool transparent)
{
	AUTO_FD int fd = open_bound(SOCK_STREAM, ip, port, transparent);
	const int on = 1;

	if (fd < 0)
		return fd;
	/* Accepted sockets inherit it: a relay must not wait for more. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    listen(fd, 1024) < 0)
		return -errno;
	return steal_fd(&fd);
}

int sock_bind_udp(const struct ip *ip, uint16_t port, bool transparent)
{
	const int room = UDP_ROOM;
	int fd = open_bound(SOCK_DGRAM, ip, port, transparent);

	/* The kernel gives what it may; less will do. */
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room,
				 sizeof(room));
	return fd;
}

int sock_make_as(uid_t uid)
{
	(void)setfsuid(uid);
	/* It does not say itself whether it did. */
	return setfsuid((uid_t)-1) == (int)uid ? 0 : -EPERM;
}

int sock_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int sock_ingress(int fd, uint32_t *ret_ifindex)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct in_pktinfo)) + 256];
		struct cmsghdr align;
	} control;
	socklen_t len = sizeof(control.buf);

	/* ip(7): the stored control messages of the SYN, on a socket whose
	 * listener had IP_PKTINFO. */
	if (getsockopt(fd, IPPROTO_IP, IP_PKTOPTIONS, control.buf, &len) < 0)
		return -errno;
	struct msghdr msg = { .msg_control = control.buf,
			      .msg_controllen = len };
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c)) {
		struct in_pktinfo info;

		if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO ||
		    c->cmsg_len < CMSG_LEN(sizeof(info)))
			continue;
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		*ret_ifindex = (uint32_t)info.ipi_ifindex;
		return 0;
	}
	return -ENOENT;
}

int sock_original_dst(int fd, union sockaddr_any *ret_dst)
{
	union sockaddr_any dst = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(dst.in4);

	if (getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, &dst.in4, &len) < 0)
		return -errno;
	if (len != sizeof(dst.in4) || dst.sa.sa_family != AF_INET)
		return -EBADMSG;
	*ret_dst = dst;
	return 0;
}

void sock_reset_on_close(int fd)
{
	struct linger now = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}
