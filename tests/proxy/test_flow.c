/* SPDX-License-Identifier: Apache-2.0
 *
 * test_flow.c - the order of steps, what is recorded, and above all what is not
 * dialled: listeners that must not be called are part of the tests.
 */
#include "tests/proxy/flow_case.h"

/* One record of progress is under way, never two. */
static void test_progress_waits(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);
	int again = 0;

	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_true(somebody_came(l, 1000));
	w->trace[0] = '\0';
	assert_true(flow_progress(w->flow, 1, 0, count_again, &again));
	recorded(w, 0);
	assert_int_equal(again, 0); /* nobody was told no */
	assert_true(flow_progress(w->flow, 2, 0, count_again, &again));
	assert_false(flow_progress(w->flow, 3, 0, count_again, &again));
	assert_false(flow_progress(w->flow, 3, 0, count_again, &again));
	assert_string_equal(w->trace, "progress+ progress+");
	recorded(w, 0);
	assert_int_equal(again, 1);
	assert_true(flow_progress(w->flow, 3, 0, count_again, &again));
	assert_false(flow_progress(w->flow, 4, 0, count_again, &again));
	recorded(w, -EIO); /* the end is for others to bring */
	assert_int_equal(again, 2);
	assert_true(flow_progress(w->flow, 4, 0, count_again, &again));
	end(w);
	assert_int_equal(w->cancelled, 1);
	assert_int_equal(again, 2);
}

/* Services that answer before they return; done() still comes by itself. */
static void test_at_once(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);

	w->record_mode = w->resolve_mode = AT_ONCE;
	w->close_in_done = true;
	begin(w, "api.example.com", port);
	until_done(w);
	assert_string_equal(w->trace, "admit open+ resolve dial+ done+ close+");
	assert_true(somebody_came(l, 1000));
	close_fd(&w->fd);

	w->close_in_done = false;
	w->answer[0] = NULL;
	begin(w, "api.example.com", port);
	until_done(w);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial- done-");
}

static void test_denied(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *host, *address;
		uint16_t port;
		enum reason reason;
	} row[] = {
		{ "nowhere.example.org", NULL, 443, REASON_NOT_IN_POLICY },
		{ "evil.example.com", NULL, 443, REASON_DENY_RULE },
		{ "api.example.com", NULL, 0, REASON_MALFORMED },
		{ NULL, "127.0.0.2", 443, REASON_LITERAL_ADDRESS },
		{ NULL, "127.0.5.1", 0, REASON_MALFORMED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		if (row[i].host)
			begin(w, row[i].host, row[i].port);
		else
			begin_literal(w, row[i].address, row[i].port);
		assert_string_equal(w->trace, "open-"); /* recorded first */
		assert_int_equal(w->record[0].reason, row[i].reason);
		until_done(w);
		assert_false(w->verdict.allow);
		assert_int_equal(w->verdict.reason, row[i].reason);
		assert_int_equal(w->fd, -1);
		assert_null(flow_rule(w->flow));
		end(w);
		/* Never looked up, never dialled, no close record. */
		assert_string_equal(w->trace, "open- done-");
	}
}

static void test_limit_on_names(void **state)
{
	struct world *w = *state;

	w->admit = REASON_LIMIT_NAMES;
	begin(w, "api.example.com", 443);
	until_done(w);
	end(w);
	assert_string_equal(w->trace, "admit open- done-");
	assert_int_equal(w->verdict.reason, REASON_LIMIT_NAMES);
	assert_int_equal(w->record[0].reason, REASON_LIMIT_NAMES);
	assert_string_equal(w->record[0].rule, "p.yaml:4");
}

/* What was not accepted does not happen: neither a query nor a SYN. */
static void test_ledger_refuses(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int named = listen_at("127.0.0.2", &port, 4);
	AUTO_FD int literal = listen_at("127.0.5.1", &port, 4);

	for (int at_once = 0; at_once < 2; at_once++) {
		w->record_mode = at_once ? AT_ONCE : LATER;
		w->record_status = -EIO;
		begin(w, "api.example.com", port);
		if (!at_once)
			recorded(w, -EIO);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_LEDGER_UNAVAILABLE);
		assert_false(w->verdict.allow);
		end(w);
		assert_string_equal(w->trace, "admit open+ done-");

		begin_literal(w, "127.0.5.1", port);
		if (!at_once)
			recorded(w, -EIO);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_LEDGER_UNAVAILABLE);
		end(w);
		assert_string_equal(w->trace, "open+ done-");
	}
	assert_false(somebody_came(named, 100));
	assert_false(somebody_came(literal, 0));
}

/* Whoever asked goes away: at each step nothing is left behind. */
static void test_cancel(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	struct blackhole hole = blackhole_at("127.0.0.2", &port);
	uint16_t open_port = 0;
	int l = listen_at("127.0.0.2", &open_port, 4);
	const bool never = false;

	w->fds = open_fds();
	begin(w, "api.example.com", port); /* waiting for the ledger */
	end(w);
	assert_string_equal(w->trace, "admit open+ close+");
	assert_int_equal(w->cancelled, 1);

	begin(w, "api.example.com", port); /* waiting for an answer */
	recorded(w, 0);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve close+");
	assert_int_equal(w->cancelled, 2);

	begin(w, "api.example.com", port); /* dialling */
	recorded(w, 0);
	resolved(w, 0);
	loop_until(w->base, &never, 60);
	end(w);

	begin(w, "nowhere.example.org", port); /* refused, not yet told */
	end(w);
	assert_string_equal(w->trace, "open-");

	w->answer[0] = NULL; /* failed, not yet told */
	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial-");
	loop_until(w->base, &never, 60);
	assert_false(w->called);
	assert_int_equal(w->cancelled, 2);
	assert_int_equal(open_fds(), w->fds);
	flow_close(NULL, 0, 0, "nothing");
	blackhole_close(&hole);
	close(l);
	w->fds = open_fds();
}

/* A name that disagrees is found out after the dial. */
static void test_refuse_later(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);
	struct kept *r = w->record;

	w->record_mode = w->resolve_mode = AT_ONCE;
	begin(w, "api.example.com", port);
	until_done(w);
	assert_true(somebody_came(l, 1000));
	flow_refuse(w->flow, REASON_NAME_MISMATCH, "evil.example.com", "SNI");
	assert_null(flow_rule(w->flow));
	flow_close(STEAL(w->flow), 0, 9, "refused");
	assert_string_equal(w->trace,
			    "admit open+ resolve dial+ done+ open- close-");
	assert_int_equal(r[2].flow, r[0].flow);
	assert_int_equal(r[2].reason, REASON_NAME_MISMATCH);
	assert_string_equal(r[2].sni, "evil.example.com");
	assert_string_equal(r[2].detail, "SNI");
	assert_int_equal(r[3].up, 0);
	assert_int_equal(r[3].down, 9);
}

/* Refused before the dial: done() does not come any more. */
static void test_refuse_early(void **state)
{
	struct world *w = *state;
	const bool never = false;

	begin(w, "api.example.com", 443);
	flow_refuse(w->flow, REASON_PROTOCOL, NULL, NULL);
	assert_int_equal(w->cancelled, 1);
	loop_until(w->base, &never, 40);
	assert_false(w->called);
	end(w);
	assert_string_equal(w->trace, "admit open+ open- close-");
}

static void test_refusal_without_flow(void **state)
{
	struct world *w = *state;
	const struct flow_ask ask = { .sandbox = &w->sandbox,
				      .door = DOOR_SOCKS,
				      .src_ip = ip_of("10.9.8.7"),
				      .port = 99 };
	const struct flow_ask nobody = { .method = "GET" };

	flow_record_refusal(&w->services, &ask, REASON_MALFORMED, "a\nb", "x");
	flow_record_refusal(&w->services, &nobody, REASON_MALFORMED, NULL,
			    NULL);
	assert_string_equal(w->trace, "open- request-");
	assert_int_equal(w->record[0].sandbox, 7);
	assert_int_equal(w->record[0].dst_port, 99);
	assert_int_equal(w->record[0].reason, REASON_MALFORMED);
	assert_string_equal(w->record[0].host, "a\nb");
	assert_true(w->record[0].flow != w->record[1].flow);
}

/* A reload during a flow does not take its rules away from under it. */
static void test_reload(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);

	begin(w, "api.example.com", port);
	policy_unref(w->sandbox.policy);
	w->sandbox.policy = make_policy();
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_true(somebody_came(l, 1000));
	assert_string_equal(rule_text(flow_rule(w->flow)), "api.example.com");
	end(w);
	assert_string_equal(w->record[2].rule, "p.yaml:4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_progress_waits),
		TEST(test_at_once),
		TEST(test_denied),
		TEST(test_limit_on_names),
		TEST(test_ledger_refuses),
		TEST(test_cancel),
		TEST(test_refuse_later),
		TEST(test_refuse_early),
		TEST(test_refusal_without_flow),
		TEST(test_reload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
