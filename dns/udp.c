/* SPDX-License-Identifier: Apache-2.0
 *
 * udp.c - recvmmsg(2), sendmmsg(2), and the addresses that go with each packet.
 *
 * The socket is bound to any address and the packets were sent to any address
 * (TPROXY): which one comes with the packet as IP_PKTINFO, and goes back the
 * same way, with the interface, so that the answer leaves as from the server
 * that was asked. Needs recvmmsg, sendmmsg, getsockname.
 */
#include "dns/udp.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/sock.h"

#define BATCH	    32
#define TURNS_MAX   4 /* batches before others on the loop get their turn */
#define CONTROL_MAX 256

/* One packet in either direction. */
struct packet {
	union sockaddr_any peer;
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_MAX];
	struct iovec iov;
	uint8_t data[DNS_QUERY_MAX];
};

static_assert(DNS_REPLY_MAX <= DNS_QUERY_MAX, "a packet holds either");

struct udp {
	struct filter *filter;
	int fd;
	uint16_t port; /* ours */
	struct event *readable;
	struct event *flush; /* pending while answers wait to be sent */
	struct wait room;    /* while questions are left to the kernel */
	unsigned waiting;
	struct mmsghdr in_msg[BATCH], out_msg[BATCH];
	struct packet in[BATCH], out[BATCH];
};

/* Reads who sent the packet, to whom, by which interface. */
static bool read_peer(struct msghdr *msg, struct dns_peer *peer)
{
	const union sockaddr_any *from = msg->msg_name;

	peer->src = ip_from_sockaddr(from);
	peer->src_port = port_from_sockaddr(from);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		struct in_pktinfo info4;
		struct in6_pktinfo info6;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(info4))) {
			memcpy(&info4, CMSG_DATA(c), sizeof(info4));
			peer->ifindex = (uint32_t)info4.ipi_ifindex;
			peer->dst = ip_v4(ntohl(info4.ipi_spec_dst.s_addr));
		} else if (c->cmsg_level == IPPROTO_IPV6 &&
			   c->cmsg_type == IPV6_PKTINFO &&
			   c->cmsg_len >= CMSG_LEN(sizeof(info6))) {
			memcpy(&info6, CMSG_DATA(c), sizeof(info6));
			peer->ifindex = info6.ipi6_ifindex;
			peer->dst.len = 16;
			memcpy(peer->dst.byte, &info6.ipi6_addr, 16);
		}
	}
	/* Port 0 can't be answered. */
	return peer->src.len && peer->src_port && peer->dst.len;
}

/* Says where the answer has to leave from. */
static void write_source(struct msghdr *msg, uint8_t *control,
			 const struct dns_peer *peer)
{
	bool v4 = peer->dst.len == 4;
	struct in_pktinfo info4 = { .ipi_ifindex = (int)peer->ifindex };
	struct in6_pktinfo info6 = { .ipi6_ifindex = peer->ifindex };
	size_t len = v4 ? sizeof(info4) : sizeof(info6);
	struct cmsghdr *c;

	memset(control, 0, CONTROL_MAX);
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(len);
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = v4 ? IP_PKTINFO : IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(len);
	info4.ipi_spec_dst.s_addr = htonl(ip_v4_value(&peer->dst));
	memcpy(&info6.ipi6_addr, peer->dst.byte, 16);
	memcpy(CMSG_DATA(c), v4 ? (void *)&info4 : (void *)&info6, len);
}

/* What the socket does not take at once is lost, as UDP may be: clients ask
 * again, and nothing is kept for one that does not read. */
static void flush(struct udp *udp)
{
	unsigned sent = 0;

	while (sent < udp->waiting) {
		int n = sendmmsg(udp->fd, udp->out_msg + sent,
				 udp->waiting - sent, MSG_DONTWAIT);

		if (n > 0)
			sent += (unsigned)n;
		else if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			break;
		else if (n == 0 || errno != EINTR)
			sent++; /* this one can't be sent, the next may */
	}
	udp->waiting = 0;
	event_del(udp->flush);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
}

void udp_reply(struct udp *udp, const struct dns_peer *peer, const void *data,
	       size_t len)
{
	static const struct timeval now;
	struct packet *packet = &udp->out[udp->waiting];
	struct msghdr *msg = &udp->out_msg[udp->waiting].msg_hdr;

	if (!len || len > sizeof(packet->data))
		return;
	memcpy(packet->data, data, len);
	packet->iov =
		(struct iovec){ .iov_base = packet->data, .iov_len = len };
	*msg = (struct msghdr){ .msg_name = &packet->peer,
				.msg_iov = &packet->iov,
				.msg_iovlen = 1 };
	msg->msg_namelen =
		ip_to_sockaddr(&peer->src, peer->src_port, &packet->peer);
	write_source(msg, packet->control, peer);
	if (udp->waiting == 0)
		evtimer_add(udp->flush, &now);
	if (++udp->waiting == BATCH)
		flush(udp);
}

static void take(struct udp *udp, unsigned i)
{
	struct msghdr *msg = &udp->in_msg[i].msg_hdr;
	struct dns_peer peer = { .dst_port = udp->port };
	size_t len = udp->in_msg[i].msg_len;

	/* Of a packet that was cut off only the header is read: it is no
	 * question, and is answered as such. */
	if (msg->msg_flags & MSG_TRUNC)
		len = DNS_HEADER_LEN;
	if (!(msg->msg_flags & MSG_CTRUNC) && read_peer(msg, &peer))
		filter_query(udp->filter, &peer, udp->in[i].data, len);
}

/* Returns how many were read. */
static unsigned receive(struct udp *udp)
{
	int n;

	for (unsigned i = 0; i < BATCH; i++) {
		struct packet *packet = &udp->in[i];

		packet->iov = (struct iovec){ .iov_base = packet->data,
					      .iov_len = sizeof(packet->data) };
		udp->in_msg[i].msg_hdr = (struct msghdr){
			.msg_name = &packet->peer,
			.msg_namelen = sizeof(packet->peer),
			.msg_iov = &packet->iov,
			.msg_iovlen = 1,
			.msg_control = packet->control,
			.msg_controllen = sizeof(packet->control),
		};
	}
	do {
		n = recvmmsg(udp->fd, udp->in_msg, BATCH, MSG_DONTWAIT, NULL);
	} while (n < 0 && errno == EINTR);
	for (int i = 0; i < n; i++)
		take(udp, (unsigned)i);
	return n > 0 ? (unsigned)n : 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct udp *udp = arg;

	(void)fd;
	(void)what;
	for (int i = 0; i < TURNS_MAX; i++) {
		/* What the kernel has no place for meanwhile is asked again. */
		if (!filter_room(udp->filter, &udp->room)) {
			event_del(udp->readable);
			break;
		}
		if (receive(udp) < BATCH)
			break;
	}
	flush(udp);
}

static void on_room(struct wait *wait, int status)
{
	struct udp *udp = CONTAINER_OF(wait, struct udp, room);

	(void)status;
	event_add(udp->readable, NULL);
}

int udp_new(struct event_base *base, int fd, struct filter *filter,
	    struct udp **ret_udp)
{
	struct udp *udp = calloc(1, sizeof(*udp));
	union sockaddr_any own;
	socklen_t len = sizeof(own);
	int err;

	if (!udp) {
		close(fd);
		return -ENOMEM;
	}
	udp->fd = fd;
	udp->filter = filter;
	udp->room.done = on_room;
	err = sock_nonblock(fd);
	if (!err && getsockname(fd, &own.sa, &len) < 0)
		err = -errno;
	if (!err) {
		udp->port = port_from_sockaddr(&own);
		udp->readable = event_new(base, fd, EV_READ | EV_PERSIST,
					  on_readable, udp);
		udp->flush = evtimer_new(base, on_flush, udp);
		if (!udp->readable || !udp->flush ||
		    event_add(udp->readable, NULL))
			err = -ENOMEM;
	}
	if (err) {
		udp_free(udp);
		return err;
	}
	*ret_udp = udp;
	return 0;
}

void udp_free(struct udp *udp)
{
	if (!udp)
		return;
	filter_room_cancel(udp->filter, &udp->room);
	if (udp->readable)
		event_free(udp->readable);
	if (udp->flush)
		event_free(udp->flush);
	close(udp->fd);
	free(udp);
}
