/* SPDX-License-Identifier: Apache-2.0
 *
 * tcp.h - questions by TCP (RFC 7766): several on a connection, answered in the
 * order in which their answers come.
 */
#ifndef DNS_TCP_H
#define DNS_TCP_H

#include "dns/filter.h"

struct tcp;

/* Serves the listening @fd, which it owns from here on also if it fails. 0 or
 * -errno. */
int tcp_new(struct event_base *base, int fd, const struct services *services,
	    struct filter *filter, struct tcp **ret_tcp);
/* Closes all connections and forgets their questions. */
void tcp_free(struct tcp *tcp);

/* Answers a question with peer->conn set. */
void tcp_reply(struct tcp *tcp, const struct dns_peer *peer, const void *data,
	       size_t len);

/* Closes the connections of a sandbox that is going away. */
void tcp_forget_sandbox(struct tcp *tcp, const struct sandbox *sandbox);

#endif
