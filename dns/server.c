/* SPDX-License-Identifier: Apache-2.0
 *
 * server.c - puts the two doors and the filter together.
 */
#include "dns/server.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dns/filter.h"
#include "dns/tcp.h"
#include "dns/udp.h"

struct dns_server {
	struct filter *filter;
	struct udp *udp;
	struct tcp *tcp;
};

static void on_reply(void *ctx, const struct dns_peer *peer, const void *data,
		     size_t len)
{
	struct dns_server *server = ctx;

	if (peer->conn)
		tcp_reply(server->tcp, peer, data, len);
	else
		udp_reply(server->udp, peer, data, len);
}

int dns_server_new(struct event_base *base, int udp_fd, int tcp_fd,
		   const struct services *services,
		   struct dns_server **ret_server)
{
	AUTO_FD int udp = udp_fd;
	AUTO_FD int tcp = tcp_fd;
	struct dns_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	err = filter_new(base, services, on_reply, server, &server->filter);
	if (!err)
		err = udp_new(base, steal_fd(&udp), server->filter,
			      &server->udp);
	if (!err)
		err = tcp_new(base, steal_fd(&tcp), services, server->filter,
			      &server->tcp);
	if (err) {
		dns_server_free(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

void dns_server_forget(struct dns_server *server, const struct sandbox *sandbox)
{
	tcp_forget_sandbox(server->tcp, sandbox);
	filter_forget_sandbox(server->filter, sandbox);
}

void dns_server_recheck(struct dns_server *server,
			const struct sandbox *sandbox)
{
	filter_recheck(server->filter, sandbox);
}

void dns_server_ledger_lost(struct dns_server *server)
{
	filter_forget_repeats(server->filter);
}

void dns_server_free(struct dns_server *server)
{
	if (!server)
		return;
	tcp_free(server->tcp); /* forgets its questions: before the filter */
	udp_free(server->udp);
	filter_free(server->filter);
	free(server);
}
