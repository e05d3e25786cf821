/* SPDX-License-Identifier: Apache-2.0
 *
 * door.h - the DNS door with real sockets, a resolver and a name server, in a
 * network namespace in which every address is local; and a client of it.
 */
#ifndef TESTS_DNS_DOOR_H
#define TESTS_DNS_DOOR_H

#include <event2/event.h>
#include <ldns/ldns.h>
#include <sched.h>
#include <sys/wait.h>

#include "dns/resolver.h"
#include "dns/server.h"
#include "fake_services.h"
#include "name_server.h"
#include "tests/clock.h"

#define LOOPBACK_IFINDEX 1

static struct fake fake;
static struct event_base *base;
static struct dns_server *server;
static struct resolver *resolver;
static struct name_server *upstream;
static pthread_t thread;
static int stop_pipe[2];
static struct event *stop_event;

static inline void on_stop(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

static inline void *serve(void *arg)
{
	event_base_dispatch(arg);
	return NULL;
}

static inline void real_resolve(void *ctx, const char *host,
				struct lookup *lookup)
{
	(void)ctx;
	resolver_lookup(resolver, host, lookup);
}

static inline void real_resolve_cancel(void *ctx, struct lookup *lookup)
{
	(void)ctx;
	resolver_cancel(resolver, lookup);
}

static inline void real_records(void *ctx, const char *host, uint16_t type,
				struct record_lookup *lookup)
{
	(void)ctx;
	resolver_lookup_records(resolver, host, type, lookup);
}

static inline void real_records_cancel(void *ctx, struct record_lookup *lookup)
{
	(void)ctx;
	resolver_cancel_records(resolver, lookup);
}

static inline int door_setup(const char *yaml)
{
	const struct ip any = ip_v4(0);
	struct limits limits;

	fake_init(&fake, yaml);
	fake.sandbox.ifindex = LOOPBACK_IFINDEX;
	limits = *policy_limits(fake.sandbox.policy);
	limits.dns_per_second = 100000;
	policy_text_limits(fake.sandbox.policy, limits);
	fake.services.resolve = real_resolve;
	fake.services.resolve_cancel = real_resolve_cancel;
	fake.services.resolve_records = real_records;
	fake.services.resolve_records_cancel = real_records_cancel;
	upstream = server_start();
	base = event_base_new();
	assert_int_equal(resolver_new(base, &resolver), 0);
	resolver_set_servers(resolver, &upstream->at, 1);
	int udp = sock_bind_udp(&any, 53, true);
	int tcp = sock_listen_tcp(&any, 53, true);
	assert_true(udp >= 0 && tcp >= 0);
	assert_int_equal(
		dns_server_new(base, udp, tcp, &fake.services, &server), 0);
	assert_int_equal(pipe(stop_pipe), 0);
	stop_event = event_new(base, stop_pipe[0], EV_READ, on_stop, base);
	event_add(stop_event, NULL);
	return pthread_create(&thread, NULL, serve, base);
}

static inline void stop(void)
{
	assert_int_equal(write(stop_pipe[1], "x", 1), 1);
	pthread_join(thread, NULL);
}

/* After stop() the test may touch what the server has; then it goes on. */
static inline int go_on(void)
{
	char byte;

	assert_int_equal(read(stop_pipe[0], &byte, 1), 1);
	event_add(stop_event, NULL);
	return pthread_create(&thread, NULL, serve, base);
}

static inline int teardown(void **state)
{
	(void)state;
	stop();
	event_free(stop_event);
	close(stop_pipe[0]);
	close(stop_pipe[1]);
	dns_server_free(server);
	resolver_free(resolver);
	event_base_free(base);
	server_stop(upstream);
	fake_free(&fake);
	return 0;
}

/* --- a client ------------------------------------------------------------- */

static inline int client(int type, const char *to)
{
	union sockaddr_any sa;
	struct ip ip, own = ip_v4(0x7f000001);
	const struct timeval limit = { .tv_sec = 20 };
	int fd = socket(AF_INET, type, 0);

	assert_true(fd >= 0 && ip_parse(to, &ip));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	socklen_t len = ip_to_sockaddr(&own, 0, &sa);
	assert_int_equal(bind(fd, &sa.sa, len), 0);
	len = ip_to_sockaddr(&ip, 53, &sa);
	assert_int_equal(connect(fd, &sa.sa, len), 0);
	return fd;
}

/* A question with its length before it; returns the length of all. */
static inline size_t question(const char *name, uint16_t id, uint8_t *buf)
{
	ldns_pkt *pkt =
		ldns_pkt_query_new(ldns_dname_new_frm_str(name), LDNS_RR_TYPE_A,
				   LDNS_RR_CLASS_IN, LDNS_RD);
	AUTO_FREE uint8_t *wire = NULL;
	size_t len;

	ldns_pkt_set_id(pkt, id);
	assert_int_equal(ldns_pkt2wire(&wire, pkt, &len), LDNS_STATUS_OK);
	ldns_pkt_free(pkt);
	buf[0] = (uint8_t)(len >> 8);
	buf[1] = (uint8_t)len;
	memcpy(buf + 2, wire, len);
	return len + 2;
}

static inline unsigned rcode_of(const uint8_t *buf, ssize_t len)
{
	assert_true(len >= 12);
	return buf[3] & 0xf;
}

static inline unsigned ask_udp(int fd, const char *name)
{
	uint8_t buf[2048];
	size_t len = question(name, 7, buf);

	assert_int_equal(send(fd, buf + 2, len - 2, 0), len - 2);
	ssize_t got = recv(fd, buf, sizeof(buf), 0);
	return rcode_of(buf, got);
}

/* Returns the length of one answer by TCP, 0 at the end. */
static inline size_t read_tcp(int fd, uint8_t *buf)
{
	uint8_t prefix[2];

	if (recv(fd, prefix, 2, MSG_WAITALL) != 2)
		return 0;
	size_t len = (size_t)(prefix[0] << 8 | prefix[1]);
	assert_true(len <= 2048);
	assert_int_equal(recv(fd, buf, len, MSG_WAITALL), len);
	return len;
}

static inline unsigned ask_tcp(int fd, const char *name)
{
	uint8_t buf[2048];
	size_t len = question(name, 7, buf);

	assert_int_equal(send(fd, buf, len, 0), len);
	return rcode_of(buf, (ssize_t)read_tcp(fd, buf));
}

/* Has the other side closed? */
static inline bool is_closed(int fd)
{
	uint8_t byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

static inline void run(char *const argv[])
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Every IPv4 address is ours. */
static inline int own_namespace(void **state)
{
	char *up[] = { "ip", "link", "set", "lo", "up", NULL };
	char *all[] = { "ip",	     "route", "add", "local",
			"0.0.0.0/0", "dev",   "lo",  NULL };

	(void)state;
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	run(up);
	run(all);
	return 0;
}

#endif
