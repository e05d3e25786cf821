/* SPDX-License-Identifier: Apache-2.0
 *
 * test_repeat.c - the same question again within a second: the same answer, and
 * one record for all of them.
 */
#include "dns/server.h"
#include "tests/dns/filter_policy.h"

#define SECOND "query evil.com deny not_in_policy type 1 rcode 3\n"

static void run_for(long ms)
{
	const struct timeval tv = { .tv_sec = ms / 1000,
				    .tv_usec = ms % 1000 * 1000 };

	fake.log[0] = '\0';
	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

/* What it is answered, and what that took. */
static void expect(const char *name, uint16_t type, const char *answer,
		   const char *log)
{
	char got[600];

	ask(name, type, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, answer);
	assert_string_equal(fake.log, log);
}

static void test_allowed(void **state)
{
	(void)state;
	ask("ok.com", 1, NULL);
	assert_non_null(strstr(fake.log, "publish"));
	for (int i = 0; i < 5; i++)
		expect(i % 2 ? "ok.com" : "OK.com", 1, "NOERROR 198.18.0.1",
		       "reply\n");
	run_for(1300);
	assert_string_equal(
		fake.log,
		"answer ok.com allow rule type 1 rcode 0 198.18.0.1\n");
	assert_int_equal(fake.count, 5);
	assert_string_equal(fake.detail, "more like the one before");
	assert_string_equal(fake.protocol, "udp");
	/* Its second is over. */
	ask("ok.com", 1, NULL);
	assert_non_null(strstr(fake.log, "resolve"));
	/* Nothing to tell of what did not come again. */
	run_for(1300);
	assert_string_equal(fake.log, "");
}

static void test_denied(void **state)
{
	static const char answer[] = "NXDOMAIN ede 15 not_in_policy";

	(void)state;
	expect("evil.com", 1, answer, SECOND "reply\n");
	expect("evil.com", 1, answer, "reply\n");
	expect("evil.com", 28, answer,
	       "query evil.com deny not_in_policy type 28 rcode 3\nreply\n");
	expect("evil.com", 1, answer, "reply\n");
	run_for(1300);
	assert_string_equal(fake.log, SECOND);
	assert_int_equal(fake.count, 2);
}

static void test_other_policy(void **state)
{
	(void)state;
	expect("ok.com", 28, "NOERROR",
	       "query ok.com allow rule type 28 rcode 0\nreply\n");
	expect("ok.com", 28, "NOERROR", "reply\n");
	policy_unref(fake.sandbox.policy);
	fake.sandbox.policy = policy_text("version: 1\nallow: []\n");
	/* What was counted is told first. */
	expect("ok.com", 28, "NXDOMAIN ede 15 not_in_policy",
	       "query ok.com allow rule type 28 rcode 0\n"
	       "query ok.com deny not_in_policy type 28 rcode 3\nreply\n");
	expect("ok.com", 28, "NXDOMAIN ede 15 not_in_policy", "reply\n");
}

static void test_no_repeat(void **state)
{
	int conn;

	(void)state;
	/* By TCP, which also is not answered from what came by UDP. */
	expect("evil.com", 1, "NXDOMAIN ede 15 not_in_policy",
	       SECOND "reply\n");
	for (int i = 0; i < 2; i++) {
		ask("evil.com", 1, &conn);
		assert_string_equal(fake.log, SECOND "reply\n");
	}
	/* Failures: the next one may do better. */
	fake.resolve_status = -ETIMEDOUT;
	for (int i = 0; i < 2; i++) {
		ask("ok.com", 1, NULL);
		assert_non_null(strstr(fake.log, "resolve ok.com\n"));
	}
	fake.resolve_status = 0;
	fake.address[0] = "10.0.0.1";
	for (int i = 0; i < 2; i++) {
		ask("ok.com", 1, NULL);
		assert_non_null(strstr(fake.log, "forbidden_address"));
	}
}

/* Under `serve` of all addresses the answer is the one that was asked. */
static void test_serve(void **state)
{
	char got[600];

	(void)state;
	lease_table_free(STEAL(fake.sandbox.leases));
	assert_true(ip_parse("0.0.0.0", &fake.services.answer));
	for (unsigned i = 1; i <= 4; i++) {
		asked_at = ip_v4(0x0a000000 + i / 2);
		ask("ok.com", 1, NULL);
		describe_reply(got, sizeof(got));
		assert_int_equal(got[strlen(got) - 1], '0' + i / 2);
		assert_true(!strstr(fake.log, "resolve") == (i == 3));
	}
	asked_at = (struct ip){ 0 };
}

/* There several clients are one sandbox; each has records of its own. */
static void test_other_client(void **state)
{
	static const char answer[] = "NXDOMAIN ede 15 not_in_policy";

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		asks = 0x0a400002 + i % 2;
		expect("evil.com", 1, answer,
		       i < 2 ? SECOND "reply\n" : "reply\n");
	}
	asks = 0x0a400002;
	fake.log[0] = '\0';
	filter_forget_sandbox(filter, &fake.sandbox);
	assert_string_equal(fake.log, SECOND SECOND);
	assert_int_equal(fake.count, 1);
	assert_string_equal(fake.src, "10.64.0.3");
}

/* The same name of another class is another question. */
static void test_other_class(void **state)
{
	static const char chaos[] = "\0\1\1\0\0\1\0\0\0\0\0\0"
				    "\2ok\3com\0\0\1\0\3";
	char got[600];

	(void)state;
	ask("ok.com", 1, NULL);
	for (int i = 0; i < 2; i++) {
		send_raw(chaos, sizeof(chaos) - 1, NULL);
		assert_string_equal(fake.log,
				    "query ok.com deny record_type type 1 "
				    "rcode 5\nreply\n");
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "REFUSED");
	}
}

/* What was counted of the old policy is told when it goes. */
static void test_recheck(void **state)
{
	(void)state;
	ask("evil.com", 1, NULL);
	ask("evil.com", 1, NULL);
	fake.log[0] = '\0';
	filter_recheck(filter, &fake.sandbox);
	assert_string_equal(fake.log, SECOND);
	assert_int_equal(fake.count, 1);
	expect("evil.com", 1, "NXDOMAIN ede 15 not_in_policy",
	       SECOND "reply\n");
}

/* It is lost, and no question has found out yet. */
static void test_ledger_lost(void **state)
{
	(void)state;
	ask("ok.com", 1, NULL);
	expect("ok.com", 1, "NOERROR 198.18.0.1", "reply\n");
	fake.record_status = -EPIPE;
	filter_forget_repeats(filter);
	expect("ok.com", 1, "SERVFAIL",
	       "query ok.com allow rule type 1 rcode 0\nreply\n");
}

/* Without its record there is no answer, and nothing of before counts. */
static void test_no_ledger(void **state)
{
	(void)state;
	ask("evil.com", 1, NULL);
	fake.record_status = -EPIPE;
	expect("other.com", 1, "SERVFAIL",
	       "query other.com deny not_in_policy type 1 rcode 3\nreply\n");
	expect("evil.com", 1, "SERVFAIL", SECOND "reply\n");
}

static void test_end(void **state)
{
	(void)state;
	ask("evil.com", 1, NULL);
	ask("evil.com", 1, NULL);
	fake.log[0] = '\0';
	filter_forget_sandbox(filter, &fake.sandbox);
	assert_string_equal(fake.log, SECOND);
	assert_int_equal(fake.count, 1);
	expect("evil.com", 1, "NXDOMAIN ede 15 not_in_policy",
	       SECOND "reply\n");
	ask("evil.com", 1, NULL);
	ask("evil.com", 1, NULL);
	fake.log[0] = '\0';
	filter_free(STEAL(filter));
	assert_string_equal(fake.log, SECOND);
	assert_int_equal(fake.count, 2);
}

/* More names than are remembered have records of their own. */
static void test_many_names(void **state)
{
	const unsigned more = 476, names = DNS_SERVER_REPEATS_MAX + more;
	struct limits limits = *policy_limits(fake.sandbox.policy);
	char name[32];

	(void)state;
	limits.dns_per_second = 100000;
	policy_text_limits(fake.sandbox.policy, limits);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < names; i++) {
			snprintf(name, sizeof(name), "%u.evil.com", i);
			ask(name, 1, NULL);
		}
	assert_int_equal(replies, 2 * names);
	assert_in_range(fake.records, names + more, 2 * names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_allowed),	 TEST(test_denied),
		TEST(test_other_policy), TEST(test_no_repeat),
		TEST(test_serve),	 TEST(test_no_ledger),
		TEST(test_end),		 TEST(test_many_names),
		TEST(test_other_client), TEST(test_other_class),
		TEST(test_recheck),	 TEST(test_ledger_lost),
	};
	int failed;

	base = event_base_new();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
