/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_inbound.c - where the gate listens beside the explicit proxy: for
 * names, for what the rules redirect to it, and for whoever comes from outside
 * to a port of --inbound.
 *
 * A socket is whose it was when it was made, and rules about who sends go by
 * that. Those in here are root's: an answer to a forged address does not leave.
 * Those for outside are the gate's, as their answers have to leave.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/guard.h"
#include "cmd/warden.h"

uint16_t guard_port_of(int fd)
{
	union sockaddr_any sa = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(sa);

	return getsockname(fd, &sa.sa, &len) < 0 ? 0 : port_from_sockaddr(&sa);
}

/* --- names, by IPv6 ------------------------------------------------------ */

static int bind_names6(struct warden *w, const struct guard_spec *spec)
{
	const struct ip own = { .len = 16, .byte = { [15] = 1 } };
	AUTO_FD int udp = sock_bind_udp(&own, spec->dns_udp_port, false);
	AUTO_FD int tcp = sock_listen_tcp(&own, spec->dns_tcp_port, false);

	if (udp < 0 || tcp < 0)
		return udp < 0 ? udp : tcp;
	w->bound[GATE_DNS6_UDP] =
		(struct endpoint){ .ip = own, .port = spec->dns_udp_port };
	w->bound[GATE_DNS6_TCP] =
		(struct endpoint){ .ip = own, .port = spec->dns_tcp_port };
	w->socket[GATE_DNS6_UDP] = steal_fd(&udp);
	w->socket[GATE_DNS6_TCP] = steal_fd(&tcp);
	return 0;
}

void guard_bind_names6(struct warden *w, struct guard_spec *spec)
{
	const int err = bind_names6(w, spec);

	spec->dns6 = err == 0;
	/* Engines switch IPv6 off, mostly; then nobody can ask by it. */
	if (err && err != -EADDRNOTAVAIL && err != -EAFNOSUPPORT)
		log_warn("questions for names by IPv6 are refused: ::1: %s",
			 strerror(-err));
}

/* --- from outside -------------------------------------------------------- */

int guard_inbound_listen(const uint16_t *port, size_t n,
			 struct guard_spec *spec, int *ret_fd)
{
	const struct ip any = ip_v4(INADDR_ANY);
	int err = sock_make_as(spec->uid);

	for (size_t i = 0; !err && i < n; i++) {
		ret_fd[i] = sock_listen_tcp(&any, 0, false);
		if (ret_fd[i] < 0) {
			err = ret_fd[i];
			break;
		}
		spec->inbound[i].port = port[i];
		spec->inbound[i].listener = guard_port_of(ret_fd[i]);
		spec->inbounds++;
	}
	(void)sock_make_as(geteuid());
	return err;
}

int guard_inbound_forward(struct warden *w, const struct guard_spec *spec,
			  const int *fd)
{
	int err = 0;

	for (size_t i = 0; !err && i < spec->inbounds; i++) {
		const struct endpoint at = { .ip = ip_v4(INADDR_ANY),
					     .port = spec->inbound[i].port };

		err = warden_forward(w, fd[i], &at, at.port);
	}
	return err;
}
