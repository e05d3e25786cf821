/* SPDX-License-Identifier: Apache-2.0
 *
 * udp.h - questions by UDP, in batches both ways.
 */
#ifndef DNS_UDP_H
#define DNS_UDP_H

#include "dns/filter.h"

struct udp;

/* Serves @fd, which it owns from here on also if it fails. 0 or -errno. */
int udp_new(struct event_base *base, int fd, struct filter *filter,
	    struct udp **ret_udp);
void udp_free(struct udp *udp);

/* Sends an answer, from the address that was asked. */
void udp_reply(struct udp *udp, const struct dns_peer *peer, const void *data,
	       size_t len);

#endif
