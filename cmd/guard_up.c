/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_up.c - `sallyport guard up`: from the command to the process that
 * stays.
 *
 *	check	nothing is changed yet, and what is wrong ends it
 *	load	from here on nobody leaves; a later failure leaves it at that
 *	gate	as under `serve`, but names have addresses of their own
 *	loop	until SIGTERM, or until the rules can't be kept
 *
 * In the background all of it is done by a child (cmd/guard_detach.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cell_notice.h"
#include "cmd/command.h"
#include "cmd/guard.h"
#include "cmd/guard_gateway.h"
#include "cmd/stay.h"
#include "dns/lease.h"

#define PROXY_PORT 3128

struct guard {
	struct stay stay;
	struct gateway gateway;
	struct guard_state state;
	int inbound[GUARD_INBOUND_MAX];
	int lock, ready; /* ready: to who waits for us, or -1 */
	bool loaded;
	pid_t raw; /* has CAP_NET_RAW, or 0 */
};

/* Where the rules are loaded already, that is how it stays. */
static _Noreturn void give_up(const struct guard *g, const char *why)
{
	if (g->loaded)
		log_err("nothing leaves this network now; `sallyport guard "
			"down` opens it again");
	die(EXIT_SALLYPORT, "%s", why);
}

/* --- check --------------------------------------------------------------- */

static void check_identity(struct guard *g)
{
	struct warden *w = &g->stay.warden;
	pid_t other;

	if (guard_uids(&w->gate_uid, &w->ledger_uid))
		die(EXIT_SALLYPORT,
		    "this user namespace has too few uids for the gate to have "
		    "one of its own");
	other = guard_uid_user(w->gate_uid);
	if (other)
		die(EXIT_SALLYPORT,
		    "process %d has the uid %u, which only the gate may have",
		    (int)other, (unsigned)w->gate_uid);
	g->state.spec.uid = w->gate_uid;
}

static void take_lock(struct guard *g)
{
	struct guard_state state;

	g->lock = guard_lock();
	if (g->lock == -EWOULDBLOCK && guard_state_read(&state) == 0)
		die(EXIT_SALLYPORT,
		    "a guard is up already (session %s)\n`sallyport reload` "
		    "makes it read its policy again, `sallyport guard down` "
		    "ends it.",
		    state.session);
	if (g->lock == -EWOULDBLOCK)
		die(EXIT_SALLYPORT, "a guard is just being started");
	if (g->lock < 0)
		die(EXIT_SALLYPORT, "the guard's lock: %s", strerror(-g->lock));
}

static void check_names(struct guard *g)
{
	struct upstream_instead *instead = &g->stay.warden.instead;
	char why[400];

	for (size_t i = 0; i < g->stay.options.upstreams; i++)
		instead->servers.server[instead->servers.count++] =
			g->stay.options.upstream[i];
	if (guard_find_resolvers(g->stay.session.policy, &g->state.spec,
				 instead, why, sizeof(why)))
		give_up(g, why);
}

/* Names get addresses that are nowhere; what goes there has to be routed before
 * it can be redirected. */
static void check_route(void)
{
	const struct ip lease = ip_v4(LEASE_POOL_BASE + 1);
	union sockaddr_any sa;
	const socklen_t len = ip_to_sockaddr(&lease, 9, &sa);
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, &sa.sa, len) < 0 && errno == ENETUNREACH)
		log_warn("there is no IPv4 default route: only the explicit "
			 "proxy is of use");
}

/* --- load ---------------------------------------------------------------- */

static void bind_one(struct guard *g, enum gate_socket which,
		     const struct endpoint *at, const char *hint)
{
	const int fd = which == GATE_DNS_UDP
			       ? sock_bind_udp(&at->ip, at->port, false)
			       : sock_listen_tcp(&at->ip, at->port, false);
	char ip[IP_TEXT_MAX];

	if (fd < 0)
		die(EXIT_SALLYPORT, "%s port %u: %s%s", ip_format(&at->ip, ip),
		    at->port, strerror(-fd), hint);
	g->stay.warden.socket[which] = fd;
	g->stay.warden.bound[which] =
		(struct endpoint){ .ip = at->ip, .port = guard_port_of(fd) };
}

static void listen_outside(struct guard *g)
{
	const struct options *o = &g->stay.options;
	const int err = guard_inbound_listen(o->inbound, o->inbounds,
					     &g->state.spec, g->inbound);

	if (err)
		die(EXIT_SALLYPORT, "listening for --inbound: %s",
		    strerror(-err));
}

static void bind_all(struct guard *g)
{
	const struct endpoint any = { .ip = ip_v4(INADDR_LOOPBACK) };
	struct endpoint proxy = g->stay.options.proxy;
	struct warden *w = &g->stay.warden;
	char ip[IP_TEXT_MAX];

	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		w->socket[i] = -1;
	if (!proxy.ip.len)
		proxy = (struct endpoint){ any.ip, PROXY_PORT };
	bind_one(g, GATE_EXPLICIT, &proxy,
		 "\nSay another place for the proxy with --proxy ADDR:PORT.");
	bind_one(g, GATE_DNS_UDP, &any, "");
	bind_one(g, GATE_DNS_TCP, &any, "");
	bind_one(g, GATE_TRANSPARENT, &any, "");
	g->state.spec.dns_udp_port = w->bound[GATE_DNS_UDP].port;
	g->state.spec.dns_tcp_port = w->bound[GATE_DNS_TCP].port;
	g->state.spec.transparent_port = w->bound[GATE_TRANSPARENT].port;
	guard_bind_names6(w, &g->state.spec);
	listen_outside(g);
	snprintf(g->state.proxy, sizeof(g->state.proxy),
		 proxy.ip.len == 16 ? "[%s]:%u" : "%s:%u",
		 ip_format(&proxy.ip, ip), proxy.port);
}

static void remember(struct guard *g)
{
	int err;

	g->state.pid = getpid();
	snprintf(g->state.session, sizeof(g->state.session), "%s",
		 g->stay.session.id);
	snprintf(g->state.dir, sizeof(g->state.dir), "%s", g->stay.session.dir);
	snprintf(g->state.policy, sizeof(g->state.policy), "sha256:%s",
		 policy_digest(g->stay.session.policy));
	snprintf(g->state.ruleset, sizeof(g->state.ruleset), "%s",
		 g->gateway.digest);
	err = guard_state_write(&g->state);
	if (err) {
		log_err("what `status` and `down` need to know: %s",
			strerror(-err));
		give_up(g, "the guard's state could not be written");
	}
}

/* Packet sockets see neither address nor port: they have a rule of their own,
 * or nobody may have them. */
static void check_packet_sockets(struct guard *g)
{
	const pid_t other = guard_raw_user();
	/* AF_XDP passes every hook. Who has no right to it here may not see who
	 * else has. */
	const int err = guard_gateway_hold(&g->gateway);

	if (!other)
		return;
	if (!g->state.spec.egress) {
		log_err("this kernel has no hook for packet sockets (Linux "
			"5.16), and process %d may have CAP_NET_RAW",
			(int)other);
		give_up(g, "packets could pass the rules: drop the capability "
			   "(docker run --cap-drop NET_RAW)");
	}
	if (err) {
		log_err("process %d may have CAP_NET_RAW, and AF_XDP can't be "
			"kept from it: %s",
			(int)other, strerror(-err));
		give_up(g, "packets could pass the rules: drop the capability "
			   "(docker run --cap-drop NET_RAW)");
	}
	g->raw = other;
}

static void load_rules(struct guard *g)
{
	char why[600];

	if (guard_gateway_open(g->stay.session.policy, &g->state.spec,
			       &g->gateway, &g->loaded, why, sizeof(why)))
		give_up(g, why);
	g->stay.warden.socket[GATE_NFLOG] = g->gateway.socket[GATE_NFLOG];
	remember(g);
	check_packet_sockets(g);
}

/* --- gate ---------------------------------------------------------------- */

static void start_gate(struct guard *g)
{
	struct warden *w = &g->stay.warden;
	char why[600];

	w->root = true;
	w->boundary = "in-container";
	w->gateway = &g->gateway;
	/* By a socket on loopback come those of this namespace alone. */
	cidr_parse("0.0.0.0/0", &w->clients.prefix[w->clients.count++]);
	cidr_parse("::/0", &w->clients.prefix[w->clients.count++]);
	if (guard_inbound_forward(w, &g->state.spec, g->inbound))
		give_up(g, "the inbound ports could not be published");
	if (stay_start(&g->stay,
		       g->raw ? "CAP_NET_RAW is in reach, AF_XDP is taken; "
			      : "",
		       why, sizeof(why)))
		give_up(g, why);
}

/* --- loop ---------------------------------------------------------------- */

static void say_ready(void *arg)
{
	struct guard *g = arg;

	if (!g->stay.options.quiet)
		fprintf(stderr,
			"sallyport: the guard is up: nothing leaves but by the "
			"gate; proxy: http://%s; log: %s\n",
			g->state.proxy, g->stay.session.log);
	if (g->ready >= 0 && write(g->ready, "", 1) != 1)
		log_warn("who started the guard is gone");
	close_fd(&g->ready);
}

static int finish(struct guard *g)
{
	int status;

	boundary_end(&g->stay.warden);
	/* Whatever somebody made of the rules: what stays lets nobody out. */
	if (g->stay.failed && guard_gateway_install(&g->gateway))
		log_err("the rules could not be put back: this network may be "
			"open");
	status = stay_finish(&g->stay);
	log_warn("the gate has ended; the rules remain until `sallyport guard "
		 "down`");
	return status;
}

/* @ready: to who waits for us, or -1. */
static int stay(void *arg, int ready)
{
	struct guard *g = arg;
	int status;

	g->ready = ready;
	check_identity(g);
	session_open(&g->stay.options, &g->stay.session);
	cell_notice(&g->stay.options.bundle, "in here");
	check_names(g);
	check_route();
	bind_all(g);
	stay_listen(&g->stay);
	load_rules(g);
	start_gate(g);
	if (stay_loop(&g->stay, say_ready, g))
		give_up(g, "event loop: out of memory");
	status = finish(g);
	stay_close(&g->stay);
	gateway_close(&g->gateway);
	close(g->lock);
	return status;
}

int guard_up(int argc, char **argv)
{
	static struct guard guard = { .stay = { .what = "guard" },
				      .lock = -1,
				      .ready = -1 };

	options_parse(OPTIONS_GUARD, argc, argv, &guard.stay.options);
	if (geteuid() != 0)
		die(EXIT_SALLYPORT, "`sallyport guard up` needs root");
	take_lock(&guard);
	return guard.stay.options.foreground
		       ? stay(&guard, -1)
		       : guard_detach(guard.lock, stay, &guard);
}
