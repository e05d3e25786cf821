/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.h - packets written by hand and put on a sandbox's veth, as a hostile
 * root in it could.
 */
#ifndef TESTS_FIREWALL_FRAME_H
#define TESTS_FIREWALL_FRAME_H

#include <stdbool.h>

#include "lab.h"

struct frame {
	const char *src, *dst;
	uint8_t l4;
	uint16_t port;	   /* of the destination; the source's is 999 */
	uint16_t fragment; /* the field of the header, host byte order */
	uint8_t payload;   /* bytes after the eight of a UDP header */
	bool broadcast;	   /* to the link's broadcast address */
	bool bare;	   /* no transport header: a later fragment */
};

/* Sends an IPv4 packet from @box (0 or 1). */
void frame_send(struct lab *lab, int box, const struct frame *frame);
/* Sends a TCP segment without data. */
void frame_send_tcp(struct lab *lab, int box, const char *src, uint16_t from,
		    const char *dst, uint16_t to, uint8_t flags);
/* Sends an IPv6 packet: UDP to @dst. */
void frame_send_ipv6(struct lab *lab, int box, const char *src, const char *dst,
		     uint16_t port);
/* Any bytes with any ethertype. */
void frame_send_raw(struct lab *lab, int box, uint16_t ethertype,
		    const void *data, size_t len);

/* A socket that sees what comes to the sandbox's eth0, IPv4 only. */
int frame_capture(struct lab *lab, int box);
/* How many packets came there so far. */
unsigned frame_count(int capture);

#endif
