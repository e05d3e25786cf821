/* SPDX-License-Identifier: Apache-2.0
 *
 * server.h - the DNS door: UDP and TCP sockets in, filtered answers out.
 */
#ifndef DNS_SERVER_H
#define DNS_SERVER_H

#include "policy/services.h"

struct event_base;
struct dns_server;

/* At most so many questions are under way. */
#define DNS_SERVER_QUERIES_MAX 1024
/* And so many answers may be repeated (repeat.h): one record for each. */
#define DNS_SERVER_REPEATS_MAX 4096

/* Serves on @udp_fd (IP_PKTINFO and IP_RECVORIGDSTADDR set; answers leave from
 * the address and port that was asked) and @tcp_fd (listening). Both are owned
 * from here on, also if it fails. @services outlives the server. 0 or -errno.
 */
int dns_server_new(struct event_base *base, int udp_fd, int tcp_fd,
		   const struct services *services,
		   struct dns_server **ret_server);
void dns_server_free(struct dns_server *server);

/* Ends what is under way for @sandbox, which is going away. */
void dns_server_forget(struct dns_server *server,
		       const struct sandbox *sandbox);

/* To be called when @sandbox->policy was replaced, or one of its rules has
 * expired: what is under way is judged again at once. Whoever does not call it
 * only waits longer: no verdict of another policy is ever acted upon. */
void dns_server_recheck(struct dns_server *server,
			const struct sandbox *sandbox);

/* To be called when the ledger is lost: no answer is repeated any more. */
void dns_server_ledger_lost(struct dns_server *server);

#endif
