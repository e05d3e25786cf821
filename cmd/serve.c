/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.c - `sallyport serve`: the same gate and ledger on given addresses,
 * without namespaces of sandboxes. The boundary is somebody else's
 * ("external"): an internal network, a firewall.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cell_notice.h"
#include "cmd/command.h"
#include "cmd/stay.h"
#include "launch/userns.h"

static void bind_one(struct warden *w, enum gate_socket which,
		     const struct endpoint *at)
{
	char ip[IP_TEXT_MAX];
	int fd;

	if (!at->ip.len)
		return;
	fd = which == GATE_DNS_UDP ? sock_bind_udp(&at->ip, at->port, false)
				   : sock_listen_tcp(&at->ip, at->port, false);
	if (fd < 0)
		die(EXIT_SALLYPORT, "%s port %u: %s", ip_format(&at->ip, ip),
		    at->port, strerror(-fd));
	w->socket[which] = fd;
	w->bound[which] = *at;
}

static void bind_all(struct stay *serve)
{
	const struct options *o = &serve->options;
	struct warden *w = &serve->warden;

	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		w->socket[i] = -1;
	bind_one(w, GATE_EXPLICIT, &o->proxy);
	bind_one(w, GATE_DNS_UDP, &o->dns);
	bind_one(w, GATE_DNS_TCP, &o->dns);
	bind_one(w, GATE_TLS, &o->tls);
	bind_one(w, GATE_HTTP, &o->http);
	w->answer = o->tls.ip.len ? o->tls.ip : o->proxy.ip;
}

/* Loopback may always; the others as --client says. */
static void set_clients(struct stay *serve)
{
	struct msg_gate_uplink *clients = &serve->warden.clients;
	static const char *const local[] = { "127.0.0.0/8", "::1" };

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		cidr_parse(local[i], &clients->prefix[clients->count++]);
	for (size_t i = 0; i < serve->options.clients; i++)
		clients->prefix[clients->count++] = serve->options.client[i];
}

static void say_ready(void *arg)
{
	const struct stay *serve = arg;

	if (!serve->options.quiet)
		fprintf(stderr, "sallyport: serving; log: %s\n",
			serve->session.log);
}

int serve_main(int argc, char **argv)
{
	static struct stay serve = { .what = "serve" };
	char why[600];
	int status;

	log_init("sallyport", LOG_LEVEL_WARN);
	options_parse(OPTIONS_SERVE, argc, argv, &serve.options);
	session_open(&serve.options, &serve.session);
	cell_notice(&serve.options.bundle, "behind this gate");
	bind_all(&serve);
	set_clients(&serve);
	stay_listen(&serve);
	serve.warden.boundary = "external";
	serve.warden.root = session_root();
	if (!serve.warden.root && userns_enter(why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	if (stay_start(&serve, "", why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	if (stay_loop(&serve, say_ready, &serve))
		die(EXIT_SALLYPORT, "event loop: out of memory");
	status = stay_finish(&serve);
	stay_close(&serve);
	return status;
}
