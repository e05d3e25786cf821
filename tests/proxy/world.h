/* SPDX-License-Identifier: Apache-2.0
 *
 * world.h - a listener with real sessions, flows, tunnels and exchanges between
 * a real client socket and a real server, all in one process and in a network
 * namespace of its own. Only the services are made here: they remember records.
 */
#ifndef TESTS_PROXY_WORLD_H
#define TESTS_PROXY_WORLD_H

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sock.h"
#include "policy/bundle.h"
#include "policy/services.h"
#include "proxy/listener.h"
#include "proxy/tunnel.h"

#define ORIGIN	   "127.0.0.9"	/* where ok.test is */
#define LEASE	   "127.0.0.2"	/* leased to ok.test */
#define UNLEASED   "127.0.0.3"	/* transparent too, but nobody's */
#define LITERAL	   "127.0.0.10" /* in the policy as an address */
#define PROXY	   "127.0.0.1"
#define PROXY_PORT 3128

#define NOTES_MAX 64

/* What is kept of an event. */
struct note {
	enum event_kind kind;
	bool allow, ech;
	enum reason reason, observed;
	enum door door;
	uint32_t count;
	char rule_text[80];
	struct ip ip;
	char host[300], sni[300], detail[300], protocol[16];
	char target[300];
	uint64_t up, down;
	uint16_t port;
};

struct world {
	struct event_base *base;
	struct services services;
	struct sandbox sandbox;
	struct listener *listener[8];
	size_t listeners;
	struct note note[NOTES_MAX];
	size_t notes;
	uint64_t flows;
	bool stranger, ledger_dead;
	bool ledger_silent; /* neither accepts nor fails */
	unsigned cancelled;
	int resolve_status; /* 0: ORIGIN */
	int origin;	    /* listens, or -1 */
	/* More connections may come this second; -1: any number. */
	int rate;
	/* Budgets of the sandbox, and by rule_index() + 1 of a rule; 0: none.
	 */
	uint64_t used[2][8], limit[2][8];
	enum reason meters_status;
	/* What the resolver said for UNLEASED. */
	const char *at[4];
	char resolved[300]; /* the last name that was looked up */
	bool resolver_silent;
	struct lookup *lookup; /* the last one it left without an answer */
	const char *answer[4]; /* addresses; none: ORIGIN */
};

static inline void copy_text(char *to, size_t cap, const char *from)
{
	snprintf(to, cap, "%s", from ? from : "");
}

static inline void world_record(void *ctx, const struct audit_event *event,
				struct wait *wait)
{
	struct world *w = ctx;

	if (w->notes < NOTES_MAX) {
		struct note *n = &w->note[w->notes++];

		n->kind = event->kind;
		n->allow = event->verdict.allow;
		n->reason = event->verdict.reason;
		n->ech = event->ech;
		n->observed = event->verdict.observed;
		n->count = event->count;
		n->ip = event->dst_ip;
		copy_text(n->rule_text, sizeof(n->rule_text), event->rule_text);
		n->door = event->door;
		n->up = event->bytes_up;
		n->down = event->bytes_down;
		n->port = event->dst_port;
		copy_text(n->host, sizeof(n->host), event->host);
		copy_text(n->sni, sizeof(n->sni), event->sni);
		copy_text(n->target, sizeof(n->target), event->target);
		copy_text(n->detail, sizeof(n->detail), event->detail);
		copy_text(n->protocol, sizeof(n->protocol), event->protocol);
	}
	if (wait && !w->ledger_silent)
		wait->done(wait, w->ledger_dead ? -EIO : 0);
}

static inline void world_record_cancel(void *ctx, struct wait *wait)
{
	struct world *w = ctx;

	(void)wait;
	w->cancelled++;
}

static inline void world_resolved(struct world *w, struct lookup *lookup)
{
	ip_parse(ORIGIN, &lookup->ip[0]);
	lookup->count = w->resolve_status ? 0 : 1;
	for (size_t i = 0; i < ARRAY_SIZE(w->answer) && w->answer[i]; i++) {
		ip_parse(w->answer[i], &lookup->ip[i]);
		lookup->count = i + 1;
	}
	lookup->ttl = 60;
	lookup->wait.done(&lookup->wait, w->resolve_status);
}

static inline void world_resolve(void *ctx, const char *host,
				 struct lookup *lookup)
{
	struct world *w = ctx;

	copy_text(w->resolved, sizeof(w->resolved), host);
	w->lookup = lookup;
	if (!w->resolver_silent)
		world_resolved(w, lookup);
}

static inline void world_resolve_cancel(void *ctx, struct lookup *lookup)
{
	struct world *w = ctx;

	(void)lookup;
	w->cancelled++;
}

static inline enum reason world_admit(void *ctx, struct sandbox *sandbox,
				      const char *host, const struct rule *rule)
{
	(void)ctx;
	(void)sandbox;
	(void)host;
	(void)rule;
	return REASON_RULE;
}

static inline const char *world_lease_of(void *ctx, struct sandbox *sandbox,
					 const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	(void)ctx;
	(void)sandbox;
	return strcmp(ip_format(ip, text), LEASE) ? NULL : "ok.test";
}

static inline bool world_rate(void *ctx, struct sandbox *sandbox,
			      enum rate rate)
{
	struct world *w = ctx;

	(void)sandbox;
	assert_int_equal(rate, RATE_CONNECTIONS);
	if (w->rate > 0)
		w->rate--;
	else if (!w->rate)
		return false;
	return true;
}

/* Counted where there is a limit, else not at all. */
static inline enum reason world_meters(void *ctx, struct sandbox *sandbox,
				       const struct rule *rule,
				       struct meters *ret_meters)
{
	struct world *w = ctx;
	size_t row = rule ? rule_index(rule) + 1 : 0;

	(void)sandbox;
	assert_in_range(row, 0, 7);
	for (int way = UP; way <= DOWN; way++) {
		if (w->limit[way][0])
			ret_meters->at[way][METER_SESSION] =
				(struct meter){ &w->used[way][0],
						w->limit[way][0] };
		if (row && w->limit[way][row])
			ret_meters->at[way][METER_RULE] =
				(struct meter){ &w->used[way][row],
						w->limit[way][row] };
	}
	return w->meters_status;
}

static inline size_t world_names_at(void *ctx, struct sandbox *sandbox,
				    const struct ip *ip, const char *ret_name[],
				    size_t max)
{
	const struct world *w = ctx;
	char text[IP_TEXT_MAX];
	size_t n = 0;

	(void)sandbox;
	if (strcmp(ip_format(ip, text), UNLEASED))
		return 0;
	while (n < ARRAY_SIZE(w->at) && w->at[n] && n < max) {
		ret_name[n] = w->at[n];
		n++;
	}
	return n;
}

static inline struct sandbox *world_sandbox_of(void *ctx, uint32_t ifindex,
					       const struct ip *ip)
{
	struct world *w = ctx;

	(void)ip;
	/* everything here comes by the loopback interface */
	return w->stranger || ifindex != if_nametoindex("lo") ? NULL
							      : &w->sandbox;
}

static inline uint64_t world_flow_id(void *ctx)
{
	struct world *w = ctx;

	return ++w->flows;
}

static inline const struct cidr *world_uplink(void *ctx, size_t *ret_count)
{
	(void)ctx;
	*ret_count = 0;
	return NULL;
}

static inline const struct endpoint *world_self(void *ctx, size_t *ret_count)
{
	(void)ctx;
	*ret_count = 0;
	return NULL;
}

/* Lets everything run that can run now. */
static inline void turn(struct world *w)
{
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	usleep(300);
}

static inline void turn_for(struct world *w, int ms)
{
	for (int64_t end = now_ms() + ms; now_ms() < end;)
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
	event_base_free(w->base);
	free(w);
}

static inline int dial_to(const char *ip, uint16_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = inet_addr(ip),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	assert_int_equal(connect(fd, (const void *)&to, sizeof(to)), 0);
	return fd;
}

static inline void say(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

/* One byte a segment, each of them seen alone; a refusal may come before the
 * last one. */
static inline void say_slowly(struct world *w, int fd, const void *data,
			      size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (send(fd, (const char *)data + i, 1, MSG_NOSIGNAL) != 1)
			break;
		turn(w);
	}
}

#define HEAR_MS 3000

/* Reads until @want bytes, the end, or the time is over. Returns the bytes;
 * *ret_end: 0 still open, 1 EOF, -errno. */
static inline size_t hear(struct world *w, int fd, void *buf, size_t want,
			  int *ret_end)
{
	int64_t until = now_ms() + HEAR_MS;
	size_t len = 0;

	*ret_end = 0;
	while (len < want && now_ms() < until) {
		ssize_t n;

		turn(w);
		n = recv(fd, (char *)buf + len, want - len, MSG_DONTWAIT);
		if (n > 0) {
			len += (size_t)n;
		} else if (!n || errno != EAGAIN) {
			*ret_end = n ? -errno : 1;
			break;
		}
	}
	return len;
}

/* Text until the other end closes: it must do so by itself, and orderly. */
static inline const char *hear_all(struct world *w, int fd)
{
	static char text[8192];
	int end;
	size_t len = hear(w, fd, text, sizeof(text) - 1, &end);

	text[len] = '\0';
	assert_int_equal(end, 1);
	return text;
}

static inline void assert_heard(struct world *w, int fd, const void *want,
				size_t len)
{
	AUTO_FREE char *buf = malloc(len + 1);
	int end;

	assert_non_null(buf);
	assert_int_equal(hear(w, fd, buf, len, &end), len);
	assert_memory_equal(buf, want, len);
}

/* Ends at once, with RST, without a word. */
static inline void assert_reset(struct world *w, int fd)
{
	char buf[16];
	int end;

	assert_int_equal(hear(w, fd, buf, sizeof(buf), &end), 0);
	assert_int_equal(end, -ECONNRESET);
}

/* The next connection that arrives at the origin; -1 if none within @ms. */
static inline int origin_accept(struct world *w, int ms)
{
	for (int64_t end = now_ms() + ms; now_ms() < end;) {
		int fd;

		turn(w);
		fd = accept4(w->origin, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			const int on = 1;

			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
				   sizeof(on));
			return fd;
		}
	}
	return -1;
}

static inline int origin_expect(struct world *w)
{
	int fd = origin_accept(w, HEAR_MS);

	assert_true(fd >= 0);
	return fd;
}

static inline void assert_origin_quiet(struct world *w)
{
	assert_int_equal(origin_accept(w, 60), -1);
}

/* The connection that was made saw no byte before it ended. */
static inline void assert_origin_silent(struct world *w, int fd)
{
	char buf[16];
	int end;

	assert_int_equal(hear(w, fd, buf, sizeof(buf), &end), 0);
	assert_int_not_equal(end, 0);
}

static inline const struct note *note_find(const struct world *w,
					   enum event_kind kind)
{
	for (size_t i = w->notes; i-- > 0;)
		if (w->note[i].kind == kind)
			return &w->note[i];
	return NULL;
}

/* The last verdict is this refusal. */
static inline void assert_refused(const struct world *w, enum reason reason,
				  const char *host)
{
	const struct note *n = note_find(w, EVENT_FLOW_OPEN);

	assert_non_null(n);
	assert_false(n->allow);
	if (n->reason != reason)
		fail_msg("reason %d (%s), not %d", (int)n->reason, n->detail,
			 (int)reason);
	assert_string_equal(n->host, host);
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
