/* SPDX-License-Identifier: Apache-2.0
 *
 * test_dial.c - happy eyeballs against listeners, refusals and blackholes.
 */
#include "proxy/dial.h"

#include <fcntl.h>
#include <netinet/tcp.h>

#include "base/wheel.h"
#include "proxy/watch.h"
#include "tests/proxy/net.h"

struct outcome {
	bool called;
	int fd, error;
	struct ip ip;
};

static void on_done(void *arg, struct watch *server, int error,
		    const struct ip *ip)
{
	struct outcome *o = arg;

	assert_false(o->called);
	o->called = true;
	o->fd = server ? watch_end(server) : -1;
	o->error = error;
	if (ip)
		o->ip = *ip;
}

struct fixture {
	struct event_base *base;
	struct wheel *wheel;
	int fds;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->base = event_base_new();
	f->wheel = wheel_new(f->base);
	assert_non_null(f->wheel);
	f->fds = open_fds();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(open_fds(), f->fds); /* nothing leaks, in any test */
	wheel_free(f->wheel);
	event_base_free(f->base);
	free(f);
	return 0;
}

/* Dials the NULL-terminated list; returns how long it took. */
static int64_t dial_all(struct fixture *f, const char *const *text,
			uint16_t port, unsigned timeout, struct outcome *o)
{
	struct ip ip[16];
	size_t n = 0;
	int64_t start = now_ms();
	struct dial *dial;

	for (; text[n]; n++)
		ip[n] = ip_of(text[n]);
	*o = (struct outcome){ .fd = -1 };
	dial = dial_start(f->wheel, ip, n, port, timeout, on_done, o);
	assert_non_null(dial);
	assert_false(o->called); /* never from within */
	memset(ip, 0xee, sizeof(ip));
	loop_until(f->base, &o->called, 20000);
	assert_true(o->called);
	return now_ms() - start;
}

static void assert_ip(const struct ip *ip, const char *text)
{
	char buf[IP_TEXT_MAX];

	assert_string_equal(ip_format(ip, buf), text);
}

static void test_connects(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 8);
	const char *list[] = { "127.0.0.2", NULL };
	struct outcome o;
	socklen_t len = sizeof(int);
	int nodelay = 0;

	dial_all(f, list, port, 20000, &o);
	assert_int_equal(o.error, 0);
	assert_true(o.fd >= 0);
	assert_ip(&o.ip, "127.0.0.2");
	assert_true(fcntl(o.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(o.fd, F_GETFD) & FD_CLOEXEC);
	getsockopt(o.fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &len);
	assert_int_equal(nodelay, 1);
	assert_true(somebody_came(l, 10000));
	close(o.fd);
}

static void test_ipv6_first(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	AUTO_FD int l4 = listen_at("127.0.0.2", &port, 8);
	AUTO_FD int l6 = listen_at("::1", &port, 8);
	const char *list[] = { "127.0.0.2", "::1", NULL };
	struct outcome o;

	dial_all(f, list, port, 20000, &o);
	assert_true(o.fd >= 0);
	assert_ip(&o.ip, "::1");
	assert_true(somebody_came(l6, 10000));
	assert_false(somebody_came(l4, 0));
	close(o.fd);
}

/* A refusal is an answer: the next one is tried at once. */
static void test_refused_first(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	int l = listen_at("127.0.0.2", &port, 8);
	const char *list[] = { "127.0.0.3", "127.0.0.4", "::1", "127.0.0.2",
			       NULL };
	struct outcome o;

	assert_true(dial_all(f, list, port, 20000, &o) < 200);
	assert_true(o.fd >= 0);
	assert_ip(&o.ip, "127.0.0.2");
	close(o.fd);
	close(l);
}

/* Silence is none: the next one is tried after 250 ms, the first goes on. */
static void test_blackhole_first(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	int l = listen_at("127.0.0.2", &port, 8);
	struct blackhole hole = blackhole_at("127.0.0.3", &port);
	const char *list[] = { "127.0.0.3", "127.0.0.2", NULL };
	struct outcome o;
	int64_t ms = dial_all(f, list, port, 20000, &o);

	assert_true(o.fd >= 0);
	assert_ip(&o.ip, "127.0.0.2");
	assert_in_range(ms, 200, 1500);
	close(o.fd);
	close(l);
	blackhole_close(&hole);
}

static void test_all_refuse(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	const char *list[] = { "127.0.0.3", "127.0.0.4", NULL };
	struct outcome o;
	int l = listen_at("127.0.0.2", &port, 8);

	close(l);
	dial_all(f, list, port, 20000, &o);
	assert_int_equal(o.fd, -1);
	assert_int_equal(o.error, ECONNREFUSED);
	assert_ip(&o.ip, "127.0.0.4");
}

static void test_timeout(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	struct blackhole a = blackhole_at("127.0.0.3", &port);
	struct blackhole b = blackhole_at("127.0.0.4", &port);
	const char *list[] = { "127.0.0.3", "127.0.0.4", NULL };
	struct outcome o;
	int64_t ms = dial_all(f, list, port, 400, &o);

	assert_int_equal(o.fd, -1);
	assert_int_equal(o.error, ETIMEDOUT);
	assert_in_range(ms, 390, 1500);
	blackhole_close(&a);
	blackhole_close(&b);
}

/* What fails within connect(2) is told from the loop too. */
static void test_fails_at_once(void **state)
{
	struct fixture *f = *state;
	const char *broadcast[] = { "255.255.255.255", NULL };
	const char *none[] = { NULL };
	struct outcome o;

	assert_true(dial_all(f, broadcast, 9, 3000, &o) < 1000);
	assert_int_equal(o.fd, -1);
	assert_int_not_equal(o.error, 0);
	assert_int_not_equal(o.error, ETIMEDOUT);
	assert_true(dial_all(f, none, 9, 3000, &o) < 1000);
	assert_int_equal(o.fd, -1);
	assert_int_not_equal(o.error, 0);
}

static void test_at_most_eight(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 8);
	const char *ninth[] = { "127.0.1.1", "127.0.1.2", "127.0.1.3",
				"127.0.1.4", "127.0.1.5", "127.0.1.6",
				"127.0.1.7", "127.0.1.8", "127.0.0.2",
				NULL };
	const char *repeated[] = { "127.0.1.1", "127.0.1.1", "127.0.1.1",
				   "127.0.1.1", "127.0.1.1", "127.0.1.1",
				   "127.0.1.1", "127.0.1.1", "127.0.0.2",
				   NULL };
	struct outcome o;

	dial_all(f, ninth, port, 1000, &o);
	assert_int_equal(o.fd, -1);
	assert_int_equal(o.error, ECONNREFUSED);
	assert_false(somebody_came(l, 50));
	dial_all(f, repeated, port, 1000, &o);
	assert_true(o.fd >= 0);
	close(o.fd);
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	uint16_t port = 0;
	struct blackhole hole = blackhole_at("127.0.0.3", &port);
	const struct ip ip[] = { ip_of("127.0.0.3"), ip_of("127.0.0.4") };
	struct outcome o = { .fd = -1 };
	struct dial *dial;
	const bool never = false;

	dial_cancel(NULL);
	dial_cancel(dial_start(f->wheel, ip, 2, port, 1000, on_done, &o));
	dial = dial_start(f->wheel, ip, 1, port, 1000, on_done, &o);
	loop_until(f->base, &never, 60);
	dial_cancel(dial);
	loop_until(f->base, &never, 60);
	assert_false(o.called);
	blackhole_close(&hole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ipv6_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_refused_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_blackhole_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_all_refuse, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fails_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_at_most_eight, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
