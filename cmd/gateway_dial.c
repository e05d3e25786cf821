/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_dial.c - what it takes to reach a port of the sandbox from outside:
 * sockets of the gateway's namespace, bound to our address and to ports on
 * which nobody listens, and a rule for what answers them.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/gateway.h"

int gateway_let_answers_in(struct gateway *g)
{
	int err;

	/* In our own namespace it is a connection on loopback. */
	if (g->guard)
		return 0;
	if (g->link.published)
		return 0;
	err = ruleset_link_publish(g->nft, &g->link);
	if (!err)
		g->link.published = true;
	return err;
}

static int make_dial(const struct gateway *g, uint16_t port)
{
	AUTO_FD int fd =
		socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	union sockaddr_any sa;
	const int on = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, g->link.ifname,
		       (socklen_t)strlen(g->link.ifname)) < 0 ||
	    bind(fd, &sa.sa, ip_to_sockaddr(&g->link.gateway, port, &sa)) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* So that a port which was used a second ago can be used again. */
static int dials_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct gateway *g = arg;
	int err = netns_sysctl("ipv4/tcp_tw_reuse", "1");

	for (size_t i = 0; !err && i < GATEWAY_DIALS; i++) {
		int fd = make_dial(
			g, (uint16_t)(RULESET_DIAL_FIRST +
				      (g->dialled + i) % RULESET_DIAL_PORTS));

		if (fd < 0)
			return fd;
		ret_fds[(*ret_n)++] = fd;
	}
	return err;
}

static int dials_here(int *ret_fds, size_t *ret_n)
{
	for (size_t i = 0; i < GATEWAY_DIALS; i++) {
		int fd = socket(AF_INET,
				SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (fd < 0) {
			const int err = -errno;

			while (*ret_n)
				close(ret_fds[--*ret_n]);
			return err;
		}
		ret_fds[(*ret_n)++] = fd;
	}
	return 0;
}

int gateway_dials(struct gateway *g, int ret_fd[GATEWAY_DIALS], size_t *ret_n)
{
	if (g->guard)
		return dials_here(ret_fd, ret_n);
	int err = netns_enter(g->ns.fd, dials_inside, g, ret_fd, ret_n);

	g->dialled = (g->dialled + GATEWAY_DIALS) % RULESET_DIAL_PORTS;
	return err;
}
