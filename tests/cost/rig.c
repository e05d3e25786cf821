/* SPDX-License-Identifier: Apache-2.0
 *
 * rig.c - the gate and what is around it, each in its turn.
 *
 * The gate's state is filled in as its warden's messages would do it
 * (cmd/gate.c), without what isolates it: under valgrind there is more to do
 * than a gate may.
 */
#include "tests/cost/rig.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit/client.h"
#include "base/cleanup.h"
#include "base/sock.h"
#include "cmd/ledger_impl.h"
#include "cmd/sandbox_file.h"
#include "dns/resolver.h"
#include "dns/server.h"
#include "policy/bundle.h"
#include "tests/cost/name_server.h"

#define LOOPBACK 1 /* its interface's index */
#define TICK_US	 50000

struct ip rig_ip(const char *text)
{
	struct ip ip;

	cost_check(ip_parse(text, &ip), text);
	return ip;
}

bool rig_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

int rig_connect(int type, const struct ip *ip, uint16_t port)
{
	const struct ip own = rig_ip(RIG_SANDBOX);
	union sockaddr_any sa;
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	socklen_t len = ip_to_sockaddr(&own, 0, &sa);

	cost_check(fd >= 0 && bind(fd, &sa.sa, len) == 0, "bind");
	len = ip_to_sockaddr(ip, port, &sa);
	cost_check(connect(fd, &sa.sa, len) == 0, "connect");
	return fd;
}

/* --- making it ----------------------------------------------------------- */

static void take_policy(struct rig *rig, const char *yaml)
{
	struct bundle bundle = { 0 };
	struct policy_error error = { "" };

	cost_check(bundle_add(&bundle, BUNDLE_FILE, "p.yaml", yaml,
			      strlen(yaml)) == 0 &&
			   policy_build(bundle.data, bundle.len,
					&rig->gate.policy, &error) == 0,
		   error.text);
	bundle_free(&bundle);
}

static void take_sandbox(struct rig *rig)
{
	struct gate_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	AUTO_FD int fd = memfd_create("leases", MFD_CLOEXEC);

	cost_check(sandbox && fd >= 0 &&
			   ftruncate(fd, (off_t)sandbox_file_size()) == 0,
		   "memory");
	sandbox->pub = (struct sandbox){
		.id = 1,
		.ifindex = LOOPBACK,
		.ip = rig_ip(RIG_SANDBOX),
		.gateway = rig_ip(RIG_SANDBOX),
		.policy = policy_ref(rig->gate.policy),
	};
	cost_check(lease_table_attach(fd, &sandbox->names) == 0 &&
			   counters_attach(fd, sandbox_file_counters(),
					   &sandbox->counters) == 0,
		   "the sandbox's file");
	sandbox->pub.leases = sandbox->names;
	rig->gate.sandbox[rig->gate.sandboxes++] = sandbox;
}

static void take_ledger(struct rig *rig)
{
	int sock[2];

	rig->ledger = rig_ledger_new();
	cost_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			      sock) == 0,
		   "socketpair");
	ledger_add_link(rig->ledger, sock[1], false);
	cost_check(audit_client_new(rig->gate.base, sock[0], NULL, NULL,
				    &rig->gate.audit) == 0 &&
			   gate_throttle_new(&rig->gate) == 0,
		   "the gate's line to the ledger");
}

static void take_name_server(struct rig *rig)
{
	struct endpoint at = { .ip = rig_ip(RIG_ORIGIN), .port = 53 };

	rig->names = sock_bind_udp(&at.ip, at.port, false);
	cost_check(rig->names >= 0 && resolver_new(rig->gate.base,
						   &rig->gate.resolver) == 0,
		   "resolver");
	resolver_set_servers(rig->gate.resolver, &at, 1);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

struct rig *rig_new(const char *yaml)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	int sock[2];

	cost_check(rig && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				     sock) == 0,
		   "socketpair");
	rig->gate.control = sock[0];
	rig->warden = sock[1];
	gate_services_init(&rig->gate);
	rig->gate.base = event_base_new();
	cost_check(rig->gate.base, "event loop");
	rig->tick = evtimer_new(rig->gate.base, on_tick, NULL);
	cost_check(rig->tick, "event loop");
	take_name_server(rig);
	take_ledger(rig);
	take_policy(rig, yaml);
	take_sandbox(rig);
	return rig;
}

void rig_serve_dns(struct rig *rig, const char *ip)
{
	const struct ip at = rig_ip(ip);
	int udp = sock_bind_udp(&at, 53, false);
	int tcp = sock_listen_tcp(&at, 53, false);

	cost_check(udp >= 0 && tcp >= 0 &&
			   dns_server_new(rig->gate.base, udp, tcp,
					  &rig->gate.services,
					  &rig->gate.dns[0].server) == 0,
		   "the DNS door");
}

void rig_serve_tcp(struct rig *rig, enum listener_kind kind, const char *ip,
		   uint16_t port)
{
	const struct ip at = rig_ip(ip);
	int fd = sock_listen_tcp(&at, port, false);

	cost_check(
		fd >= 0 &&
			listener_new(
				rig->gate.base, kind, fd, &rig->gate.services,
				&rig->gate.listener[rig->gate.listeners]) == 0,
		"a door for TCP");
	rig->gate.listeners++;
}

void rig_free(struct rig *rig)
{
	struct gate *gate = &rig->gate;

	while (gate->listeners)
		listener_free(gate->listener[--gate->listeners]);
	dns_server_free(gate->dns[0].server);
	gate_throttle_free(gate);
	resolver_free(gate->resolver);
	audit_client_free(gate->audit);
	lease_table_free(gate->sandbox[0]->names);
	counters_free(gate->sandbox[0]->counters);
	policy_unref(gate->sandbox[0]->pub.policy);
	free(gate->sandbox[0]);
	policy_unref(gate->policy);
	event_free(rig->tick);
	event_base_free(gate->base);
	rig_ledger_free(rig->ledger);
	close_fd(&gate->control);
	close_fd(&rig->warden);
	close_fd(&rig->names);
	free(rig);
}

/* --- turns --------------------------------------------------------------- */

/* What the gate asks its warden: to let leases in. */
static void obey(struct rig *rig)
{
	struct msg msg;

	while (msg_recv(rig->warden, &msg, MSG_DONTWAIT) > 0) {
		struct msg_published done = { .id = msg.publish.id };

		if (msg.type == MSG_GATE_PUBLISH)
			gate_published(&rig->gate, &done);
	}
}

static void turn(struct rig *rig)
{
	const struct timeval soon = { .tv_usec = TICK_US };

	event_add(rig->tick, &soon);
	cost_on();
	event_base_loop(rig->gate.base, EVLOOP_ONCE);
	cost_off();
	event_del(rig->tick);
	obey(rig);
	cost_check(ledger_turn(rig->ledger, NULL) >= 0, "the log is lost");
	while (rig_readable(rig->names))
		name_server_answer(rig->names);
}

void rig_until(struct rig *rig, bool (*done)(void *arg), void *arg)
{
	while (!done(arg))
		turn(rig);
}

static bool is_settled(void *arg)
{
	const struct rig *rig = arg;

	return !rig->gate.sandbox[0]->pub.connections &&
	       !audit_client_pending(rig->gate.audit);
}

void rig_settle(struct rig *rig)
{
	rig_until(rig, is_settled, rig);
}

/* --- questions ----------------------------------------------------------- */

static bool is_there(void *arg)
{
	return rig_readable(*(int *)arg);
}

unsigned rig_ask(struct rig *rig, int fd, const char *name, struct ip *ret_ip)
{
	uint8_t data[NAME_SERVER_MAX];
	size_t len = name_server_question(name, data);
	ssize_t n;

	cost_check(send(fd, data, len, 0) == (ssize_t)len, "a question");
	rig_until(rig, is_there, &fd);
	n = recv(fd, data, sizeof(data), 0);
	cost_check(n >= 12, "an answer");
	return name_server_read(data, (size_t)n, ret_ip);
}
