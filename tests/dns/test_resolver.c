/* SPDX-License-Identifier: Apache-2.0
 *
 * test_resolver.c - the resolver against a real name server on loopback.
 */
#include "tests/dns/resolver_case.h"

static const struct {
	const char *host;
	int status;
	size_t count;
	const char *first;
	uint32_t ttl;
} rows[] = {
	{ "a4.ok.com", 0, 1, "93.184.216.34", 77 },
	{ "both.ok.com", 0, 2, "93.184.216.34", 50 },
	{ "v6.ok.com", 0, 1, "2606:2800::1", 50 },
	{ "nx.ok.com", -ENOENT, 0, NULL, 30 },
	{ "nodata.ok.com", 0, 0, NULL, 5 },
	{ "servfail.ok.com", -EIO, 0, NULL, 0 },
	{ "refused.ok.com", -EIO, 0, NULL, 0 },
	{ "big.ok.com", 0, 1, "93.184.216.34", 77 },
	{ "noedns.ok.com", 0, 1, "93.184.216.34", 77 },
	{ "alias.ok.com", 0, 1, "93.184.216.34", 33 },
	{ "zero.ok.com", 0, 1, "93.184.216.34", 5 },
	{ "forged.ok.com", 0, 1, "93.184.216.34", 77 },
	{ "lucky.ok.com", 0, 1, "93.184.216.34", 77 },
	{ "mixed.ok.com", 0, 2, "10.0.0.1", 77 },
};

static void test_table(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	char text[IP_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct asker got = ask(resolver, rows[i].host, 10);

		if (got.status != rows[i].status ||
		    got.lookup.count != rows[i].count)
			fail_msg("%s: %d, %zu", rows[i].host, got.status,
				 got.lookup.count);
		if (rows[i].first)
			assert_string_equal(ip_format(&got.lookup.ip[0], text),
					    rows[i].first);
		if (rows[i].ttl)
			assert_int_equal(got.lookup.ttl, rows[i].ttl);
	}
	resolver_free(resolver);
	server_stop(server);
}

/* --- records other than addresses ----------------------------------------- */

struct record_asker {
	struct record_lookup lookup;
	unsigned done;
	int status;
};

static void on_records(struct wait *wait, int status)
{
	struct record_asker *asker =
		CONTAINER_OF(wait, struct record_asker, lookup.wait);

	asker->done++;
	asker->status = status;
}

static void run_until_records(struct record_asker *asker, double limit)
{
	const struct timeval tick = { .tv_usec = 20000 };
	double end = exact_s() + limit;

	while (!asker->done && exact_s() < end) {
		event_base_loopexit(base, &tick);
		event_base_loop(base, EVLOOP_ONCE);
	}
	assert_int_equal(asker->done, 1);
}

static const struct {
	const char *host;
	uint16_t type;
	int status;
	size_t count;
	const char *first; /* its data */
	size_t len;
	uint32_t ttl;
} records[] = {
	{ "good.ok.com", 16, 0, 2, BYTES("\2S1"), 77 },
	{ "good.ok.com", 15, 0, 2, BYTES("\0\1\2s1\3net\0"), 77 },
	{ "good.ok.com", 33, 0, 2, BYTES("\0\1\0\2\1\273\2s1\3net\0"), 77 },
	{ "root.ok.com", 15, 0, 1, BYTES("\0\1\0"), 77 },
	{ "root.ok.com", 33, 0, 1, BYTES("\0\1\0\2\1\273\0"), 77 },
	{ "owner.ok.com", 15, 0, 1, BYTES("\0\1\2s1\3net\0"), 77 },
	{ "owner.ok.com", 16, 0, 1, BYTES("\2s1\3net\0"), 77 },
	{ "alias.ok.com", 33, 0, 1, BYTES("\0\1\0\2\1\273\2s1\3net\0"), 33 },
	{ "names.ok.com", 15, 0, 1, BYTES("\0\1\2ok\3net\0"), 77 },
	{ "names.ok.com", 33, 0, 1, BYTES("\0\1\0\2\1\273\2ok\3net\0"), 77 },
	{ "names.ok.com", 16, 0, 6, BYTES("\3a b\3net\0"), 77 },
	{ "large.ok.com", 16, 0, 1, BYTES("\2ok\0"), 77 },
	{ "many.ok.com", 15, 0, 24, BYTES("\0\1\2n1\3net\0"), 77 },
	{ "many.ok.com", 16, 0, 24, BYTES("\2n1\3net\0"), 77 },
	{ "nodata.ok.com", 16, 0, 0, NULL, 0, 5 },
	{ "nx.ok.com", 16, -ENOENT, 0, NULL, 0, 30 },
	{ "circle.ok.com", 15, -EIO, 0, NULL, 0, 0 },
	{ "circle.ok.com", 33, -EIO, 0, NULL, 0, 0 },
	{ "circle.ok.com", 16, -EIO, 0, NULL, 0, 0 },
	{ "forward.ok.com", 15, -EIO, 0, NULL, 0, 0 },
	{ "forward.ok.com", 16, -EIO, 0, NULL, 0, 0 },
	{ "tail.ok.com", 15, -EIO, 0, NULL, 0, 0 },
	{ "tail.ok.com", 16, -EIO, 0, NULL, 0, 0 },
	{ "tail.ok.com", 33, -EIO, 0, NULL, 0, 0 },
	{ "short.ok.com", 15, -EIO, 0, NULL, 0, 0 },
	{ "short.ok.com", 16, -EIO, 0, NULL, 0, 0 },
	{ "empty.ok.com", 15, -EIO, 0, NULL, 0, 0 },
	{ "empty.ok.com", 16, -EIO, 0, NULL, 0, 0 },
	{ "servfail.ok.com", 16, -EIO, 0, NULL, 0, 0 },
	{ "good.ok.com", 1, -EIO, 0, NULL, 0, 0 },
	{ "good.ok.com", 255, -EIO, 0, NULL, 0, 0 },
};

static void test_records(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		struct record_asker got = { .lookup.wait.done = on_records };

		resolver_lookup_records(resolver, records[i].host,
					records[i].type, &got.lookup);
		run_until_records(&got, 10);
		if (got.status != records[i].status ||
		    got.lookup.count != records[i].count)
			fail_msg("%s %u: %d, %zu", records[i].host,
				 records[i].type, got.status, got.lookup.count);
		if (records[i].ttl)
			assert_int_equal(got.lookup.ttl, records[i].ttl);
		if (!records[i].first)
			continue;
		assert_int_equal(got.lookup.record[0].len, records[i].len);
		assert_memory_equal(got.lookup.record[0].data, records[i].first,
				    records[i].len);
	}
	resolver_free(resolver);
	server_stop(server);
}

/* Equal questions are asked once; other types and addresses are others. Who
 * goes away is not called, and a job that nobody waits for ends. */
static void test_records_coalesced(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	struct record_asker *asker = calloc(8, sizeof(*asker));
	struct asker addresses = { .lookup.wait.done = on_done };

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		asker[i].lookup.wait.done = on_records;
		resolver_lookup_records(
			resolver, i == 7 ? "silent.ok.com" : "good.ok.com",
			i == 6 ? 15 : 16, &asker[i].lookup);
	}
	resolver_lookup(resolver, "good.ok.com", &addresses.lookup);
	resolver_cancel_records(resolver, &asker[3].lookup);
	resolver_cancel_records(resolver, &asker[3].lookup); /* harmless */
	resolver_cancel_records(resolver, &asker[7].lookup);
	for (size_t i = 0; i < 7; i++)
		if (i != 3)
			run_until_records(&asker[i], 20);
	run_until_done(&addresses, 1, 20);
	assert_int_equal(asker[3].done + asker[7].done, 0);
	assert_int_equal(asker[5].lookup.count, 2);
	assert_int_equal(asker[5].lookup.record[0].len, 3);
	assert_int_equal(asker[6].lookup.record[0].len, 2 + 8);
	/* TXT, MX, A, AAAA; perhaps the one that was cancelled. */
	assert_in_range(server_count(server), 4, 5);
	/* Those that wait when it ends get an error. */
	asker[0].done = asker[7].done = 0;
	resolver_lookup_records(resolver, "silent.ok.com", 16,
				&asker[0].lookup);
	resolver_lookup_records(resolver, "silent.ok.com", 33,
				&asker[7].lookup);
	resolver_cancel_records(resolver, &asker[7].lookup);
	resolver_free(resolver);
	assert_int_equal(asker[0].done, 1);
	assert_int_equal(asker[0].status, -EIO);
	assert_int_equal(asker[7].done, 0);
	free(asker);
	server_stop(server);
}

static void test_cached(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	struct asker asker = { .lookup.wait.done = on_done };
	static const char *const hosts[] = { "a4.ok.com", "nx.ok.com",
					     "nodata.ok.com" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct asker first = ask(resolver, hosts[i], 5);
		size_t before = server_count(server);

		asker.done = 0;
		resolver_lookup(resolver, hosts[i], &asker.lookup);
		assert_int_equal(asker.done, 1); /* at once */
		assert_int_equal(asker.status, first.status);
		assert_int_equal(asker.lookup.count, first.lookup.count);
		assert_true(asker.lookup.ttl <= first.lookup.ttl);
		assert_int_equal(server_count(server), before);
		resolver_flush(resolver);
		ask(resolver, hosts[i], 5);
		assert_int_equal(server_count(server), before + 2);
	}
	/* Failures are not remembered. */
	ask(resolver, "servfail.ok.com", 20);
	size_t before = server_count(server);
	ask(resolver, "servfail.ok.com", 20);
	assert_true(server_count(server) > before);
	resolver_free(resolver);
	server_stop(server);
}

static void test_coalesced(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	struct asker asker[20] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(asker); i++) {
		asker[i].lookup.wait.done = on_done;
		resolver_lookup(resolver, "a4.ok.com", &asker[i].lookup);
	}
	/* One of them goes away. */
	resolver_cancel(resolver, &asker[7].lookup);
	assert_int_equal(asker[7].done, 0);
	asker[7] = asker[0];
	run_until_done(asker, 7, 20);
	run_until_done(asker + 8, ARRAY_SIZE(asker) - 8, 20);
	assert_int_equal(server_count(server), 2);
	resolver_free(resolver);
	server_stop(server);
}

static void test_failover(void **state)
{
	struct name_server *server = server_start();
	const struct endpoint two[] = { { ip_v4(0x7f000001), 1 }, server->at };
	struct resolver *resolver = resolver_at(two, 2);
	double begin = exact_s();

	(void)state;
	/* Nobody listens on port 1: ICMP says so, the next one is asked. */
	assert_int_equal(ask(resolver, "a4.ok.com", 20).lookup.count, 1);
	assert_true(exact_s() - begin < 1.5);
	resolver_free(resolver);
	server_stop(server);
}

static void test_silent(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	double begin = exact_s();

	(void)state;
	/* Two seconds, twice, each with an id of its own. */
	struct asker got = ask(resolver, "silent.ok.com", 20);
	assert_int_equal(got.status, -ETIMEDOUT);
	assert_true(exact_s() - begin > 3 && exact_s() - begin < 6);
	assert_int_equal(server_count(server), 4);
	begin = exact_s();
	got = ask(resolver, "slow6.ok.com", 20);
	assert_int_equal(got.lookup.count, 1);
	assert_int_equal(got.lookup.ttl, 5);
	assert_true(exact_s() - begin < 1.5);
	resolver_free(resolver);
	server_stop(server);
}

static void test_no_server(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(NULL, 0);

	(void)state;
	assert_int_equal(ask(resolver, "a4.ok.com", 1).status, -EIO);
	resolver_set_servers(resolver, &server->at, 1);
	assert_int_equal(ask(resolver, "a4.ok.com", 20).status, 0);
	/* None again: what was cached is forgotten too. */
	resolver_set_servers(resolver, NULL, 0);
	assert_int_equal(ask(resolver, "a4.ok.com", 1).status, -EIO);
	assert_int_equal(server_count(server), 2);
	resolver_free(resolver);
	server_stop(server);
}

static void test_cancel_and_free(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	struct asker asker[3] = { 0 };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		asker[i].lookup.wait.done = on_done;
	resolver_lookup(resolver, "silent.ok.com", &asker[0].lookup);
	resolver_lookup(resolver, "silent.ok.com", &asker[1].lookup);
	resolver_lookup(resolver, "silent2.ok.com", &asker[2].lookup);
	resolver_cancel(resolver, &asker[0].lookup);
	resolver_cancel(resolver, &asker[0].lookup); /* harmless */
	resolver_cancel(resolver, &asker[2].lookup);
	event_base_loop(base, EVLOOP_NONBLOCK);
	resolver_free(resolver);
	assert_int_equal(asker[0].done, 0);
	assert_int_equal(asker[1].done, 1);
	assert_int_equal(asker[1].status, -EIO);
	assert_int_equal(asker[2].done, 0);
	resolver_free(NULL);
	server_stop(server);
}

static void test_too_many(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	enum { COUNT = 1100 };
	struct asker *asker = calloc(COUNT, sizeof(*asker));
	unsigned refused = 0;
	char host[64];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		asker[i].lookup.wait.done = on_done;
		snprintf(host, sizeof(host), "silent.n%zu.com", i);
		resolver_lookup(resolver, host, &asker[i].lookup);
		refused += asker[i].done && asker[i].status == -EIO;
	}
	assert_in_range(refused, COUNT - 1024, COUNT);
	resolver_free(resolver);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(asker[i].done, 1);
	free(asker);
	server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_records_coalesced),
		cmocka_unit_test(test_cached),
		cmocka_unit_test(test_coalesced),
		cmocka_unit_test(test_failover),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_no_server),
		cmocka_unit_test(test_cancel_and_free),
		cmocka_unit_test(test_too_many),
	};

	base = event_base_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
