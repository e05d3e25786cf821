/* SPDX-License-Identifier: Apache-2.0
 *
 * world.h - a listener with real sessions, flows, tunnels and exchanges between
 * a real client socket and a real server, all in one process and in a network
 * namespace of its own. Only the services are made (world_services.h); what the
 * two ends say and hear is in world_client.h and world_origin.h.
 */
#ifndef TESTS_PROXY_WORLD_H
#define TESTS_PROXY_WORLD_H

#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "base/wheel.h"
#include "policy/bundle.h"
#include "proxy/tunnel.h"
#include "tests/proxy/world_services.h"

/* Lets everything run that can run now. */
static inline void turn(struct world *w)
{
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	usleep(300);
}

/* At the least so many turns as a quiet machine has in half of that time: one
 * that stood still has run nothing meanwhile. */
static inline void turn_for(struct world *w, int ms)
{
	const int64_t end = now_ms() + ms;
	const int least = ms < 100 ? ms : 100;

	for (int turns = 0; turns < least || now_ms() < end; turns++)
		turn(w);
}

static inline int listen_at(const char *ip, uint16_t port)
{
	struct ip parsed;
	int fd;

	assert_true(ip_parse(ip, &parsed));
	fd = sock_listen_tcp(&parsed, port, false);
	assert_true(fd >= 0);
	return fd;
}

static inline void world_listen(struct world *w, enum listener_kind kind,
				const char *ip, uint16_t port)
{
	assert_int_equal(listener_new(w->base, kind, listen_at(ip, port),
				      &w->services, &w->listener[w->listeners]),
			 0);
	w->listeners++;
}

/* In place of what the sandbox had. */
static inline void world_policy(struct world *w, const char *yaml)
{
	struct bundle bundle = { .data = NULL };
	struct policy_error error = { .text = "" };
	struct policy *policy = NULL;

	assert_int_equal(bundle_add(&bundle, BUNDLE_FILE, "test.yaml", yaml,
				    strlen(yaml)),
			 0);
	assert_int_equal(bundle_add(&bundle, BUNDLE_PERMIT, "--permit",
				    "127.0.0.0/8", 11),
			 0);
	if (policy_build(bundle.data, bundle.len, &policy, &error))
		fail_msg("%s", error.text);
	bundle_free(&bundle);
	policy_unref(w->sandbox.policy);
	w->sandbox.policy = policy;
}

#define WORLD_POLICY                       \
	"version: 1\n"                     \
	"allow:\n"                         \
	"  - host: ok.test\n"              \
	"    ports: [22, 80, 443, 8443]\n" \
	"  - host: other.test\n"           \
	"    ports: [8443]\n"              \
	"  - address: " LITERAL "/32\n"    \
	"    ports: [443, 8443]\n"

static inline struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->origin = -1;
	w->base = event_base_new();
	assert_non_null(w->base);
	w->wheel = wheel_new(w->base);
	assert_non_null(w->wheel);
	w->services = (struct services){
		.ctx = w,
		.record = world_record,
		.record_cancel = world_record_cancel,
		.resolve = world_resolve,
		.resolve_cancel = world_resolve_cancel,
		.admit = world_admit,
		.lease_of = world_lease_of,
		.sandbox_of = world_sandbox_of,
		.flow_id = world_flow_id,
		.uplink = world_uplink,
		.self = world_self,
		.rate = world_rate,
		.meters = world_meters,
		.names_at = world_names_at,
	};
	w->rate = -1;
	w->sandbox.id = 7;
	/* Opaque to proxy/: it only asks whether there is one. */
	w->sandbox.leases = (struct lease_table *)w;
	world_policy(w, WORLD_POLICY);
	return w;
}

/* Every session must have given its place back. */
static inline void world_free(struct world *w)
{
	for (size_t i = 0; i < w->listeners; i++)
		listener_free(w->listener[i]);
	assert_int_equal(w->sandbox.connections, 0);
	close_fd(&w->origin);
	policy_unref(w->sandbox.policy);
	tunnel_pool_free();
	wheel_free(w->wheel);
	event_base_free(w->base);
	free(w);
}

/* A namespace with nothing but a loopback interface. */
static inline int own_network(void **state)
{
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	(void)state;
	if (unshare(CLONE_NEWNET))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up))
		return -1;
	close(fd);
	return 0;
}

#endif
