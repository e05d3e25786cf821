/* SPDX-License-Identifier: Apache-2.0
 *
 * gate.c - the process that meets hostile bytes.
 *
 * It gives up everything before it reads one (launch/isolate.h), gets its
 * sockets, its policy and its sandboxes from the warden, and then does two
 * things for them: answers names (dns/) and relays connections (proxy/). When
 * the warden's end of the control socket closes, it ends its flows, hands the
 * last records to the ledger and exits.
 */
#include "cmd/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "audit/client.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/sandbox_file.h"
#include "dns/resolver.h"
#include "dns/server.h"
#include "firewall/nflog.h"
#include "launch/child.h"
#include "launch/isolate.h"
#include "proxy/listener.h"

/* How long the last records may take. */
#define DRAIN_S 2

static _Noreturn void fail(const char *what, int err)
{
	die(EXIT_SALLYPORT, "%s: %s", what, strerror(-err));
}

/* The kernel is told what is waited for once a turn: what is taken back within
 * one costs nothing. No socket of ours is dup(2)ed. */
static struct event_base *new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && !event_config_set_flag(
			      config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST))
		base = event_base_new_with_config(config);
	/* All but the ledger's are in the middle, by default. */
	if (base)
		event_base_priority_init(base, AUDIT_CLIENT_PRIORITY + 1);
	if (config)
		event_config_free(config);
	return base;
}

static void start(struct gate *gate, const struct msg_gate_start *msg)
{
	struct isolate_spec spec = { .role = ISOLATE_GATE,
				     .uid = msg->uid,
				     .gid = msg->gid };
	const char *what = "isolation";
	int err = isolate_self(&spec, &what);

	if (err)
		fail(what, err);
	gate->next_flow = msg->flow_base;
	gate->services.answer = msg->answer;
	/* Only now: libevent's epoll and c-ares' state belong to the confined
	 * process. */
	gate->base = new_base();
	if (!gate->base)
		fail("event loop", -ENOMEM);
	err = resolver_new(gate->base, &gate->resolver);
	if (err)
		fail("resolver", err);
}

/* What still goes on does so without a record. */
static void on_grace_over(evutil_socket_t fd, short what, void *arg)
{
	struct gate *gate = arg;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < gate->listeners; i++)
		for (size_t j = 0; j < gate->sandboxes; j++)
			listener_end_sandbox(gate->listener[i],
					     &gate->sandbox[j]->pub);
	gate_forwards_end(gate);
}

static void on_ledger_gone(void *arg)
{
	const struct timeval grace = { .tv_sec = LEDGER_GRACE_S };
	struct gate *gate = arg;

	log_err("the ledger is gone: nothing new leaves any more, and what "
		"goes on is cut in %d s",
		LEDGER_GRACE_S);
	for (size_t i = 0; i < ARRAY_SIZE(gate->dns); i++)
		if (gate->dns[i].server)
			dns_server_ledger_lost(gate->dns[i].server);
	if (event_base_once(gate->base, -1, EV_TIMEOUT, on_grace_over, gate,
			    &grace))
		on_grace_over(-1, 0, gate);
}

static void take_ledger(struct gate *gate, int fd)
{
	int err = audit_client_new(gate->base, fd, on_ledger_gone, gate,
				   &gate->audit);

	if (!err)
		err = gate_throttle_new(gate);
	if (err)
		fail("ledger", err);
}

static void take_sandbox(struct gate *gate, const struct msg_gate_sandbox *msg,
			 int fd)
{
	struct gate_sandbox *sandbox;
	int err;

	if (gate->sandboxes == GATE_SANDBOXES_MAX || !gate->policy)
		fail("sandbox", -EBADMSG);
	sandbox = calloc(1, sizeof(*sandbox));
	if (!sandbox)
		fail("sandbox", -ENOMEM);
	sandbox->pub = (struct sandbox){ .id = msg->id,
					 .ifindex = msg->ifindex,
					 .ip = msg->ip,
					 .gateway = msg->gateway,
					 .policy = policy_ref(gate->policy) };
	err = lease_table_attach(fd, &sandbox->names);
	if (err)
		fail("leases", err);
	err = counters_attach(fd, sandbox_file_counters(), &sandbox->counters);
	if (err)
		fail("counters", err);
	if (msg->leased)
		sandbox->pub.leases = sandbox->names;
	close(fd);
	gate->sandbox[gate->sandboxes++] = sandbox;
}

static void take_listener(struct gate *gate, enum listener_kind kind, int fd)
{
	int err;

	if (gate->listeners == GATE_LISTENERS_MAX)
		fail("listener", -EBADMSG);
	err = listener_new(gate->base, kind, fd, &gate->services,
			   &gate->listener[gate->listeners]);
	if (err)
		fail("listener", err);
	gate->listeners++;
}

static void take_dns(struct gate *gate, struct gate_dns *dns)
{
	int err;

	if (dns->udp < 0 || dns->tcp < 0)
		return;
	err = dns_server_new(gate->base, dns->udp, dns->tcp, &gate->services,
			     &dns->server);
	if (err)
		fail("dns", err);
	dns->udp = dns->tcp = -1;
}

static void take_socket(struct gate *gate, const struct msg_gate_socket *msg,
			int fd)
{
	struct gate_dns *dns = &gate->dns[msg->socket == GATE_DNS6_UDP ||
					  msg->socket == GATE_DNS6_TCP];
	int err;

	/* Where the sandbox has an interface of its own, our listeners are in a
	 * namespace that we can't dial. */
	if (msg->bound.port && gate->sandboxes &&
	    !gate->sandbox[0]->pub.ifindex)
		gate->self[gate->selves++] = msg->bound;
	switch ((enum gate_socket)msg->socket) {
	case GATE_DNS_UDP:
	case GATE_DNS6_UDP:
		dns->udp = fd;
		return take_dns(gate, dns);
	case GATE_DNS_TCP:
	case GATE_DNS6_TCP:
		dns->tcp = fd;
		return take_dns(gate, dns);
	case GATE_EXPLICIT:
		return take_listener(gate, LISTENER_EXPLICIT, fd);
	case GATE_TRANSPARENT:
		return take_listener(gate, LISTENER_TRANSPARENT, fd);
	case GATE_TLS:
		return take_listener(gate, LISTENER_TLS, fd);
	case GATE_HTTP:
		return take_listener(gate, LISTENER_HTTP, fd);
	case GATE_NFLOG:
		err = packets_new(gate, fd, &gate->packets);
		if (err)
			fail("nflog", err);
		return;
	case GATE_SOCKET_COUNT:
		break;
	}
	fail("socket", -EBADMSG);
}

static size_t take_prefixes(const struct msg_gate_uplink *msg,
			    struct cidr *prefix)
{
	if (msg->count > MSG_UPLINK_MAX)
		fail("prefixes", -EBADMSG);
	memcpy(prefix, msg->prefix, msg->count * sizeof(*prefix));
	return msg->count;
}

static void take_forward(struct gate *gate, const struct msg *msg)
{
	int err = gate_forward_take(gate, &msg->keep_forward, msg->fd);

	if (err)
		fail("published port", err);
}

static void handle(struct gate *gate, struct msg *msg)
{
	/* Before the start there is no loop, before the ledger no socket. */
	if ((!gate->base && msg->type != MSG_GATE_START) ||
	    (msg->type == MSG_GATE_SOCKET &&
	     (!gate->audit || !gate->sandboxes ||
	      gate->selves == ARRAY_SIZE(gate->self))))
		fail("message out of order", -EBADMSG);
	switch (msg->type) {
	case MSG_GATE_START:
		start(gate, &msg->gate_start);
		break;
	case MSG_GATE_LEDGER:
		take_ledger(gate, msg->fd);
		break;
	case MSG_GATE_POLICY:
		gate_policy_take(gate, &msg->gate_policy, msg->fd);
		break;
	case MSG_GATE_SANDBOX:
		take_sandbox(gate, &msg->gate_sandbox, msg->fd);
		break;
	case MSG_GATE_SOCKET:
		take_socket(gate, &msg->gate_socket, msg->fd);
		break;
	case MSG_GATE_SERVERS:
		if (msg->gate_servers.count > MSG_SERVERS_MAX)
			fail("servers", -EBADMSG);
		resolver_set_servers(gate->resolver, msg->gate_servers.server,
				     msg->gate_servers.count);
		break;
	case MSG_GATE_UPLINK:
		gate->uplinks = take_prefixes(&msg->gate_uplink, gate->uplink);
		break;
	case MSG_GATE_CLIENTS:
		gate->clients = take_prefixes(&msg->gate_uplink, gate->client);
		break;
	case MSG_GATE_GO:
		gate->going = true;
		break;
	case MSG_GATE_PUBLISHED:
		gate_published(gate, &msg->published);
		break;
	case MSG_GATE_FORWARD:
		take_forward(gate, msg);
		break;
	case MSG_GATE_DIAL:
		gate_dial_take(gate, msg->fd);
		break;
	case MSG_GATE_DIALS:
		gate_dials_done(gate, msg->dials.status);
		break;
	default:
		fail("message of no known type", -EBADMSG);
	}
}

static void on_control(evutil_socket_t fd, short what, void *arg)
{
	struct gate *gate = arg;
	struct msg msg;
	int got;

	(void)what;
	while ((got = msg_recv(fd, &msg, MSG_DONTWAIT)) > 0)
		handle(gate, &msg);
	if (got == -EAGAIN)
		return;
	if (got < 0)
		fail("control socket", got);
	gate->ending = true;
	event_base_loopbreak(gate->base);
}

/* Nothing is served before the warden has said everything: no loop runs. */
static bool wait_for_go(struct gate *gate)
{
	struct msg msg;
	int got;

	while (!gate->going) {
		got = msg_recv(gate->control, &msg, 0);
		if (got == 0)
			return false;
		if (got < 0)
			fail("control socket", got);
		handle(gate, &msg);
	}
	return true;
}

static void on_drain_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

/* Flows end now; their last records must still reach the ledger. */
static void drain(struct gate *gate)
{
	const struct timeval limit = { .tv_sec = DRAIN_S };
	struct event *over;

	/* Each is out of the list before it ends what it records. */
	while (gate->listeners)
		listener_free(gate->listener[--gate->listeners]);
	gate_forwards_free(gate);
	for (size_t i = 0; i < ARRAY_SIZE(gate->dns); i++)
		dns_server_free(gate->dns[i].server);
	packets_free(gate->packets);
	gate_policy_unwatch(gate);
	over = evtimer_new(gate->base, on_drain_over, gate->base);
	if (over)
		evtimer_add(over, &limit);
	while (audit_client_pending(gate->audit) && over &&
	       evtimer_pending(over, NULL) &&
	       event_base_loop(gate->base, EVLOOP_ONCE) == 0)
		;
	if (audit_client_pending(gate->audit))
		log_err("the ledger did not take the last records in time");
	if (over)
		event_free(over);
}

static void release(struct gate *gate)
{
	gate_build_free(gate);
	gate_throttle_free(gate);
	resolver_free(gate->resolver);
	audit_client_free(gate->audit);
	for (size_t i = 0; i < gate->sandboxes; i++) {
		lease_table_free(gate->sandbox[i]->names);
		counters_free(gate->sandbox[i]->counters);
		policy_unref(gate->sandbox[i]->pub.policy);
		free(gate->sandbox[i]);
	}
	policy_unref(gate->policy);
	event_free(gate->control_event);
	event_base_free(gate->base);
}

int gate_main(int argc, char **argv)
{
	static struct gate gate = { .control = CHILD_SOCKET,
				    .dns = { { NULL, -1, -1 },
					     { NULL, -1, -1 } } };
	int status;

	(void)argc;
	(void)argv;
	log_init("sallyport gate", LOG_LEVEL_WARN);
	signal(SIGPIPE, SIG_IGN); /* splice(2) has no MSG_NOSIGNAL */
	gate_services_init(&gate);
	if (!wait_for_go(&gate))
		return 0;
	gate.control_event = event_new(gate.base, gate.control,
				       EV_READ | EV_PERSIST, on_control, &gate);
	if (!gate.control_event || event_add(gate.control_event, NULL))
		fail("event loop", -ENOMEM);
	if (msg_send(gate.control, MSG_GATE_READY, NULL, -1))
		return 0;
	gate.serving = true;
	status = gate_policy_watch(&gate);
	if (!status)
		status = gate_forwards_serve(&gate);
	if (status)
		fail("event loop", status);
	while (!gate.ending && event_base_dispatch(gate.base) == 0)
		;
	drain(&gate);
#if !defined(SALLYPORT_SANITIZED)
	/* The last record is out; the kernel frees the rest faster, and the
	 * session's end waits for it. */
	_exit(0);
#endif
	release(&gate);
	return 0;
}
