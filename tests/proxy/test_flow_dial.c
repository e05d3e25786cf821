/* SPDX-License-Identifier: Apache-2.0
 *
 * test_flow_dial.c - which addresses are dialled: those of the answer that are
 * permitted, and no others.
 */
#include "tests/proxy/flow_case.h"

static void assert_ip(const struct ip *ip, const char *text)
{
	char buf[IP_TEXT_MAX];

	assert_string_equal(ip_format(ip, buf), text);
}

static void test_the_way_out(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);
	const struct kept *r = w->record;
	int again = 0;

	begin(w, "api.example.com", port);
	/* Until the ledger has it nothing happens. */
	assert_string_equal(w->trace, "admit open+");
	assert_false(somebody_came(l, 30));
	recorded(w, 0);
	assert_string_equal(w->trace, "admit open+ resolve");
	assert_false(somebody_came(l, 30));
	resolved(w, 0);
	until_done(w);
	assert_string_equal(w->trace, "admit open+ resolve dial+ done+");
	assert_true(w->verdict.allow);
	assert_true(w->fd >= 0);
	assert_true(fcntl(w->fd, F_GETFL) & O_NONBLOCK);
	assert_true(somebody_came(l, 1000));
	assert_string_equal(flow_host(w->flow), "api.example.com");
	assert_ptr_equal(flow_rule(w->flow), w->verdict.rule);
	assert_int_equal(flow_id(w->flow), r[0].flow);
	flow_classified(w->flow, "http", "other.example.com");
	assert_true(flow_progress(w->flow, 5, 6, count_again, &again));
	flow_status(w->flow, 206);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial+ done+ "
				      "progress+ close+");
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(r[i].flow, r[0].flow);
		assert_int_equal(r[i].sandbox, 7);
		assert_int_equal(r[i].door, DOOR_CONNECT);
		assert_int_equal(r[i].reason, REASON_RULE);
		assert_string_equal(r[i].host, "api.example.com");
		assert_string_equal(r[i].rule, "p.yaml:4");
		assert_string_equal(r[i].rule_text, "api.example.com");
		assert_ip(&r[i].src_ip, "10.9.8.7");
		assert_int_equal(r[i].src_port, 4321);
		assert_int_equal(r[i].dst_port, port);
	}
	assert_int_equal(r[0].dst_ip.len, 0);
	assert_ip(&r[1].dst_ip, "127.0.0.2");
	assert_string_equal(r[0].protocol, "tls");
	assert_string_equal(r[0].sni, "api.example.com");
	assert_int_equal(r[2].up, 5);
	assert_int_equal(r[2].down, 6);
	assert_string_equal(r[3].protocol, "http");
	assert_string_equal(r[3].sni, "other.example.com");
	assert_string_equal(r[3].detail, "eof");
	assert_int_equal(r[3].status, 206);
	assert_int_equal(r[3].up, 12);
	assert_int_equal(r[3].down, 34);
}

static void test_literal(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.5.1", &port, 4);

	begin_literal(w, "127.0.5.1", port);
	assert_string_equal(w->trace, "open+");
	assert_ip(&w->record[0].dst_ip, "127.0.5.1");
	assert_false(somebody_came(l, 30));
	recorded(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_true(somebody_came(l, 1000));
	assert_null(flow_host(w->flow));
	end(w);
	assert_string_equal(w->trace, "open+ dial+ done+ close+");
}

static void test_resolve_fails(void **state)
{
	struct world *w = *state;
	static const struct {
		int status;
		const char *detail;
	} row[] = {
		{ -ENOENT, "no such name" },
		{ -ETIMEDOUT, "no answer from the name servers" },
		{ -EIO, "no answer from the name servers" },
		{ 0, "no addresses" },
	};

	w->answer[0] = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		begin(w, "api.example.com", 443);
		recorded(w, 0);
		resolved(w, row[i].status);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_RESOLVE_FAILED);
		assert_string_equal(w->detail, row[i].detail);
		assert_int_equal(w->record[1].reason, REASON_RESOLVE_FAILED);
		assert_string_equal(w->record[1].detail, row[i].detail);
		end(w);
		assert_string_equal(w->trace,
				    "admit open+ resolve dial- done-");
	}
}

/* Addresses that come with an error are not used. */
static void test_failed_with_answers(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);

	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, -EIO);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_RESOLVE_FAILED);
	assert_false(somebody_came(l, 100));
	end(w);
}

static void test_forbidden_addresses(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int good = listen_at("127.0.0.2", &port, 4);
	AUTO_FD int v6 = listen_at("::1", &port, 4);
	static const char *const bad[] = { "169.254.169.254", "10.1.2.3",
					   "::ffff:10.1.2.3",
					   "64:ff9b::a9fe:a9fe", "0.0.0.0" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		w->answer[0] = bad[i];
		w->answer[1] = "192.168.3.4";
		w->answer[2] = NULL;
		begin(w, "api.example.com", port);
		recorded(w, 0);
		resolved(w, 0);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_FORBIDDEN_ADDRESS);
		assert_string_equal(w->detail, bad[i]);
		assert_ip(&w->record[1].dst_ip, bad[i]);
		end(w);
		assert_string_equal(w->trace,
				    "admit open+ resolve dial- done-");

		/* Among others it is left out, and the others are used. */
		w->answer[1] = "127.0.0.2";
		begin(w, "api.example.com", port);
		recorded(w, 0);
		resolved(w, 0);
		until_done(w);
		assert_true(w->verdict.allow);
		assert_ip(&w->record[1].dst_ip, "127.0.0.2");
		end(w);
	}
	assert_false(somebody_came(v6, 50));
	assert_true(somebody_came(good, 0));
}

/* A name whose rule permits nothing special, answered with our loopback. */
static void test_never_dials_unpermitted(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l4 = listen_at("127.0.0.2", &port, 4);
	AUTO_FD int l6 = listen_at("::1", &port, 4);
	static const char strict[] = "version: 1\nallow:\n"
				     "  - host: api.example.com\n"
				     "    ports: [\"1-65535\"]\n";
	struct bundle bundle = { 0 };
	struct policy_error err;

	policy_unref(w->sandbox.policy);
	bundle_add(&bundle, BUNDLE_FILE, "s.yaml", strict, strlen(strict));
	assert_int_equal(
		policy_build(bundle.data, bundle.len, &w->sandbox.policy, &err),
		0);
	bundle_free(&bundle);
	w->answer[0] = "127.0.0.2";
	w->answer[1] = "::1";
	w->answer[2] = "::ffff:127.0.0.2";
	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_FORBIDDEN_ADDRESS);
	assert_string_equal(w->detail, "127.0.0.2");
	assert_false(somebody_came(l4, 100));
	assert_false(somebody_came(l6, 0));
	end(w);
}

static void test_ourselves(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("0.0.0.0", &port, 4);
	static const char *const bound[] = { "127.0.0.2", "0.0.0.0", "::" };

	for (size_t i = 0; i < ARRAY_SIZE(bound); i++) {
		w->self[0] = (struct endpoint){ ip_of(bound[i]), 1 };
		w->self[1] = (struct endpoint){ ip_of(bound[i]), port };
		w->selves = 2;
		begin(w, "api.example.com", port);
		recorded(w, 0);
		resolved(w, 0);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_SELF);
		assert_int_equal(w->record[1].reason, REASON_SELF);
		end(w);
	}
	w->self[1].ip = ip_of("127.0.5.1");
	begin_literal(w, "127.0.5.1", port);
	recorded(w, 0);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_SELF);
	end(w);
	assert_string_equal(w->trace, "open+ dial- done-");
	assert_false(somebody_came(l, 100));

	/* Another port of the same address is somebody else. */
	w->self[1].port = (uint16_t)(port ^ 1);
	begin_literal(w, "127.0.5.1", port);
	recorded(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_true(somebody_came(l, 1000));
	end(w);
}

static void test_dial_fails(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	int l = listen_at("127.0.0.9", &port, 4);

	close(l);
	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_CONNECT_FAILED);
	assert_string_equal(w->detail, "connection refused");
	assert_string_equal(w->record[1].detail, "connection refused");
	assert_ip(&w->record[1].dst_ip, "127.0.0.2");
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial- done-");
}

static void test_judge(void **state)
{
	struct world *w = *state;
	const struct flow_ask ask = { .door = DOOR_CONNECT,
				      .host = "api.example.com",
				      .port = 80 };

	begin_as(w, ask);
	assert_string_equal(w->trace, "admit open+");
	recorded(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_int_equal(w->fd, -1);
	end(w);
	assert_string_equal(w->trace, "admit open+ done+ close+");

	begin_as(w, ask);
	recorded(w, -EIO);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_LEDGER_UNAVAILABLE);
	end(w);
}

static void test_http_request(void **state)
{
	struct world *w = *state;

	begin_as(w, (struct flow_ask){ .door = DOOR_HTTP,
				       .host = "api.example.com",
				       .port = 80,
				       .protocol = "http",
				       .method = "GET",
				       .target = "/a?b" });
	assert_string_equal(w->trace, "admit request+");
	assert_string_equal(w->record[0].method, "GET");
	assert_string_equal(w->record[0].target, "/a?b");
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_way_out),
		TEST(test_literal),
		TEST(test_resolve_fails),
		TEST(test_failed_with_answers),
		TEST(test_forbidden_addresses),
		TEST(test_never_dials_unpermitted),
		TEST(test_ourselves),
		TEST(test_dial_fails),
		TEST(test_judge),
		TEST(test_http_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
