/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.c - AF_PACKET, in a child inside the sandbox's namespace.
 */
#include "frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/wire.h"

struct injection {
	uint8_t mac[6];
	uint16_t ethertype;
	const void *data;
	size_t len;
};

static int inject(void *arg)
{
	const struct injection *in = arg;
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(in->ethertype),
		.sll_ifindex = (int)if_nametoindex("eth0"),
		.sll_halen = 6,
	};
	AUTO_FD int fd = socket(AF_PACKET, SOCK_DGRAM, 0);

	memcpy(to.sll_addr, in->mac, sizeof(in->mac));
	ssize_t n = sendto(fd, in->data, in->len, 0, (struct sockaddr *)&to,
			   sizeof(to));
	return n == (ssize_t)in->len ? 0 : 1;
}

static void send_frame(struct lab *lab, int box, uint16_t ethertype,
		       const void *data, size_t len, bool broadcast)
{
	struct injection in = { .ethertype = ethertype,
				.data = data,
				.len = len };
	struct ifreq request = { 0 };

	memset(in.mac, 0xff, sizeof(in.mac));
	if (!broadcast) {
		/* A socket of the gateway asks there, wherever we are. */
		(void)stpcpy(request.ifr_name, lab->link[box].ifname);
		assert_int_equal(ioctl(lab->proxy, SIOCGIFHWADDR, &request), 0);
		memcpy(in.mac, request.ifr_hwaddr.sa_data, sizeof(in.mac));
	}
	assert_int_equal(lab_in(lab->box[box].fd, inject, &in), 0);
}

static uint16_t checksum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put_address(struct wirebuf *b, const char *text)
{
	struct ip ip;

	assert_true(ip_parse(text, &ip));
	wirebuf_put(b, ip.byte, ip.len);
}

static void put_udp(struct wirebuf *b, uint16_t port, uint8_t payload)
{
	wirebuf_u16(b, 999);
	wirebuf_u16(b, port);
	wirebuf_u16(b, (uint16_t)(8 + payload));
	wirebuf_u16(b, 0); /* no checksum: fine with IPv4 */
}

void frame_send(struct lab *lab, int box, const struct frame *frame)
{
	uint8_t packet[512] = { 0 };
	struct wirebuf b = wirebuf_of(packet, sizeof(packet));
	const size_t header = frame->bare ? 0 : 8;
	const size_t total = 20 + header + frame->payload;

	wirebuf_u16(&b, 0x4500);
	wirebuf_u16(&b, (uint16_t)total);
	wirebuf_u16(&b, 0x1234);
	wirebuf_u16(&b, frame->fragment);
	wirebuf_u8(&b, 64);
	wirebuf_u8(&b, frame->l4);
	wirebuf_u16(&b, 0);
	put_address(&b, frame->src);
	put_address(&b, frame->dst);
	uint16_t sum = checksum(packet, 20);
	packet[10] = (uint8_t)(sum >> 8);
	packet[11] = (uint8_t)sum;
	if (header)
		put_udp(&b, frame->port, frame->payload);
	assert_true(total <= sizeof(packet));
	send_frame(lab, box, ETH_P_IP, packet, total, frame->broadcast);
}

static uint16_t tcp_checksum(const uint8_t *packet)
{
	uint8_t pseudo[12 + 20] = { 0 };

	memcpy(pseudo, packet + 12, 8); /* both addresses */
	pseudo[9] = IPPROTO_TCP;
	pseudo[11] = 20;
	memcpy(pseudo + 12, packet + 20, 20);
	return checksum(pseudo, sizeof(pseudo));
}

void frame_send_tcp(struct lab *lab, int box, const char *src, uint16_t from,
		    const char *dst, uint16_t to, uint8_t flags)
{
	uint8_t packet[40] = { 0 };
	struct wirebuf b = wirebuf_of(packet, sizeof(packet));

	wirebuf_u32(&b, 0x45000000 | sizeof(packet));
	wirebuf_u32(&b, 0x12340000);
	wirebuf_u32(&b, 64 << 24 | IPPROTO_TCP << 16);
	put_address(&b, src);
	put_address(&b, dst);
	uint16_t sum = checksum(packet, 20);
	packet[10] = (uint8_t)(sum >> 8);
	packet[11] = (uint8_t)sum;
	wirebuf_u16(&b, from);
	wirebuf_u16(&b, to);
	wirebuf_u32(&b, 1000);
	wirebuf_u32(&b, 2000);
	wirebuf_u8(&b, 0x50);
	wirebuf_u8(&b, flags);
	wirebuf_u16(&b, 65535);
	sum = tcp_checksum(packet);
	packet[36] = (uint8_t)(sum >> 8);
	packet[37] = (uint8_t)sum;
	send_frame(lab, box, ETH_P_IP, packet, sizeof(packet), false);
}

void frame_send_ipv6(struct lab *lab, int box, const char *src, const char *dst,
		     uint16_t port)
{
	uint8_t packet[64] = { 0 };
	struct wirebuf b = wirebuf_of(packet, sizeof(packet));

	wirebuf_u32(&b, 0x60000000);
	wirebuf_u16(&b, 8);
	wirebuf_u8(&b, IPPROTO_UDP);
	wirebuf_u8(&b, 64);
	put_address(&b, src);
	put_address(&b, dst);
	put_udp(&b, port, 0);
	send_frame(lab, box, ETH_P_IPV6, packet, b.len, false);
}

void frame_send_raw(struct lab *lab, int box, uint16_t ethertype,
		    const void *data, size_t len)
{
	send_frame(lab, box, ethertype, data, len, false);
}

static int capture_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = (int)if_nametoindex("eth0"),
	};

	(void)arg;
	ret_fds[0] = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (ret_fds[0] < 0 ||
	    bind(ret_fds[0], (struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	*ret_n = 1;
	return 0;
}

int frame_capture(struct lab *lab, int box)
{
	int fds[8];
	size_t n = 0;

	assert_int_equal(
		netns_enter(lab->box[box].fd, capture_inside, NULL, fds, &n),
		0);
	assert_int_equal(n, 1);
	return fds[0];
}

unsigned frame_count(int capture)
{
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	unsigned n = 0;
	char buf[2048];

	while (recvfrom(capture, buf, sizeof(buf), 0, (struct sockaddr *)&from,
			&len) >= 0) {
		if (from.sll_pkttype != PACKET_OUTGOING)
			n++;
		len = sizeof(from);
	}
	return n;
}
