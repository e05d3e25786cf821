/* SPDX-License-Identifier: Apache-2.0
 *
 * test_filter_limits.c - questions that are too many, or nobody's.
 */
#include "tests/dns/filter_policy.h"

static void test_limit_names(void **state)
{
	struct limits limits = *policy_limits(fake.sandbox.policy);
	char got[600];

	(void)state;
	limits.names_per_wildcard = 2;
	policy_text_limits(fake.sandbox.policy, limits);
	ask("a.wild.com", 1, NULL);
	ask("b.wild.com", 28, NULL);
	ask("c.wild.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NXDOMAIN ede 15 limit_names");
	assert_string_equal(
		fake.log, QUERY("c.wild.com deny limit_names type 1 rcode 3"));
	/* Known names are free. */
	ask("b.wild.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 198.18.0.2");
}

static void run_for(long ms)
{
	const struct timeval tv = { .tv_sec = ms / 1000,
				    .tv_usec = ms % 1000 * 1000 };

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

/* Different ones: the same one again would be a repeat (test_repeat.c). */
static void ask_many(unsigned n)
{
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u.evil.com", i);
		ask(name, 1, NULL);
	}
}

static void test_limit_rate(void **state)
{
	struct limits limits = *policy_limits(fake.sandbox.policy);
	char got[600];

	(void)state;
	limits.dns_per_second = 10;
	policy_text_limits(fake.sandbox.policy, limits);
	ask_many(200);
	assert_int_equal(replies, 200);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL ede 15 limit_rate");
	/* A bucket of ten, one record of the first refusal; loose by what time
	 * may have passed. */
	assert_in_range(fake.records, 11, 14);
	unsigned before = fake.records;
	run_for(1200);
	assert_int_equal(fake.records, before + 1);
	assert_string_equal(
		fake.log + strlen(fake.log) -
			strlen("- deny limit_rate type 0 rcode 2\n"),
		"- deny limit_rate type 0 rcode 2\n");
	assert_in_range(fake.count, 180, 189);
	/* A second later there is room again. */
	ask("ok.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 198.18.0.1");
}

/* Every wait is kept until the end: 256 of one sandbox at a time. */
static struct wait *parked[300];

static unsigned parked_count;

static void park(void *ctx, const struct audit_event *event, struct wait *wait)
{
	(void)ctx;
	if (event->verdict.reason != REASON_LIMIT_RATE)
		parked[parked_count++] = wait;
}

static void test_limit_in_flight(void **state)
{
	struct limits limits = *policy_limits(fake.sandbox.policy);
	char got[600];

	(void)state;
	limits.dns_per_second = 100000;
	policy_text_limits(fake.sandbox.policy, limits);
	fake.services.record = park;
	parked_count = 0;
	ask_many(300);
	assert_int_equal(parked_count, 256);
	assert_int_equal(replies, 300 - 256);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL ede 15 limit_rate");
	for (unsigned i = 0; i < 256; i++)
		parked[i]->done(parked[i], 0);
	assert_int_equal(replies, 300);
	parked_count = 0;
	ask("evil.com", 1, NULL);
	assert_int_equal(parked_count, 1);
}

static void test_stranger(void **state)
{
	char got[600];

	(void)state;
	fake.stranger = true;
	for (int i = 0; i < 200; i++) {
		ask("ok.com", 1, NULL);
		if (i == 0)
			describe_reply(got, sizeof(got));
	}
	assert_string_equal(got, "REFUSED ede 18 this client is in no sandbox");
	assert_int_equal(fake.records, 1); /* they fold */
	assert_int_equal(replies, 200);
	assert_int_equal(reply_len, 0); /* too many: silence */
}

static void test_not_a_question(void **state)
{
	static const uint8_t answer[] = "\x12\x34\x81\x80\0\1\0\0\0\0\0\0\0";
	static const uint8_t notify[] = "\x12\x34\x20\0\0\1\0\0\0\0\0\0"
					"\2ok\3com\0\0\6\0\1";
	static const uint8_t chaos[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0"
				       "\7version\4bind\0\0\x10\0\3";
	char got[600];

	(void)state;
	send_raw(answer, sizeof(answer) - 1, NULL);
	assert_int_equal(reply_len, 0);
	assert_string_equal(fake.log,
			    "query - deny malformed type 0 rcode 1\nreply\n");
	send_raw("x", 1, NULL);
	assert_int_equal(reply_len, 0);
	send_raw(notify, sizeof(notify) - 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOTIMPL");
	send_raw(chaos, sizeof(chaos) - 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "REFUSED");
	assert_int_equal(replies, 4);
}

/* Another gate, as it were, to which nothing is a repeat. */
static void restart_with(const char *ip)
{
	filter_forget_sandbox(filter, &fake.sandbox);
	fake.services.answer.len = 0;
	if (ip)
		assert_true(ip_parse(ip, &fake.services.answer));
}

/* Under `serve`: one address for all names, no leases. */
static void test_serve(void **state)
{
	char got[600];

	(void)state;
	lease_table_free(STEAL(fake.sandbox.leases));
	restart_with("10.9.8.7");
	ask("ok.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 10.9.8.7");
	assert_null(strstr(fake.log, "publish"));
	restart_with("fd00::7");
	ask("ok.com", 28, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR fd00::7");
	ask("ok.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR");
	restart_with(NULL);
	ask("ok.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL ede 22 resolve_failed");
}

/* The policy may be replaced while a question waits. */
static void test_policy_goes(void **state)
{
	(void)state;
	fake.manual = true;
	ask("ok.com", 1, NULL);
	policy_unref(fake.sandbox.policy);
	fake.sandbox.policy = policy_text("version: 1\n");
	fake.manual = false;
	struct wait *wait = STEAL(fake.held);
	wait->done(wait, 0);
	assert_int_equal(replies, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_limit_names),	    TEST(test_limit_rate),
		TEST(test_limit_in_flight), TEST(test_stranger),
		TEST(test_not_a_question),  TEST(test_serve),
		TEST(test_policy_goes),
	};

	base = event_base_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
