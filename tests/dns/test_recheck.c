/* SPDX-License-Identifier: Apache-2.0
 *
 * test_recheck.c - the policy changes, or a rule expires, while a question is
 * under way: nothing is done any more by the verdict it had.
 */
#include <time.h>

#include "dns/judge.h"
#include "filter_case.h"

#define ALLOWS                                          \
	"version: 1\nallow:\n"                          \
	"  - {host: ok.example, dns: {types: [TXT]}}\n" \
	"  - {host: up.ok.example, connect: 127.0.0.1:80, ports: [80]}\n"

static void replace_policy(const char *yaml)
{
	policy_unref(fake.sandbox.policy);
	fake.sandbox.policy = policy_text(yaml);
}

/* What it waits for comes. */
static void come(void)
{
	struct wait *wait = STEAL(fake.held);

	assert_non_null(wait);
	wait->done(wait, 0);
}

/* Asks, and leaves the question at its step @at. */
static void ask_until(const char *name, uint16_t type, unsigned at)
{
	assert_int_equal(case_setup(ALLOWS), 0);
	fake.rdata[0] = (struct rdata){ 4, "\3abc" };
	fake.rdatas = 1;
	fake.manual = true;
	ask(name, type, NULL);
	for (unsigned i = 0; i < at; i++)
		come();
	assert_int_equal(replies, 0);
	fake.log[0] = '\0';
}

/* The change is noticed when what it waits for comes, or at once. */
static void notice(bool at_once)
{
	fake.manual = false;
	if (!at_once) {
		come();
		return;
	}
	filter_recheck(filter, &fake.sandbox);
	assert_null(fake.held);
	assert_memory_equal(fake.log, "cancel\n", 7);
	memmove(fake.log, fake.log + 7, strlen(fake.log + 7) + 1);
}

static const struct {
	const char *name;
	uint16_t type;
	unsigned steps;
} questions[] = {
	{ "ok.example", 1, 4 },	   /* verdict, resolve, publish, answer */
	{ "ok.example", 16, 3 },   /* verdict, records, answer */
	{ "ok.example", 28, 1 },   /* verdict */
	{ "up.ok.example", 1, 3 }, /* verdict, publish, answer */
};

static void test_revoked(void **state)
{
	static const struct {
		const char *policy, *reply;
	} after[] = {
		{ "version: 1\n", "NXDOMAIN ede 15 policy_revoked" },
		{ "version: 1\nallow: ['*.example']\n"
		  "deny: [ok.example, up.ok.example]\n",
		  "NXDOMAIN ede 15 policy_revoked" },
		{ "version: 1\nallow:\n"
		  "  - {host: ok.example, doors: [proxy]}\n"
		  "  - {host: up.ok.example, doors: [proxy]}\n"
		  "  - x.ok.example\n  - x.up.ok.example\n",
		  "NOERROR ede 15 policy_revoked" },
	};
	char got[600], expect[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(questions) * 3 * 8; i++) {
		size_t q = i / 24, p = i / 8 % 3;
		unsigned at = i / 2 % 4;
		bool nodata = after[p].reply[1] == 'O';

		if (at >= questions[q].steps)
			continue;
		ask_until(questions[q].name, questions[q].type, at);
		replace_policy(after[p].policy);
		notice(i % 2);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, after[p].reply);
		snprintf(expect, sizeof(expect),
			 "answer %s deny policy_revoked type %u rcode "
			 "%u\nreply\n",
			 questions[q].name, questions[q].type, nodata ? 0 : 3);
		assert_string_equal(fake.log, expect);
		assert_int_equal(replies, 1);
		teardown(state);
	}
}

/* Another policy that allows it too: that one's verdict is recorded before
 * anything else is done. */
static void test_allowed_again(void **state)
{
	char got[600];

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		ask_until("ok.example", 1, i / 2);
		replace_policy("version: 1\nallow: ['*.example']\n");
		notice(i % 2);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR 198.18.0.1");
		assert_string_equal(
			fake.log,
			"query ok.example allow rule type 1 rcode 0\n"
			"resolve ok.example\npublish ok.example 198.18.0.1\n"
			"answer ok.example allow rule type 1 rcode 0 "
			"198.18.0.1\nreply\n");
		assert_int_equal(replies, 1);
		teardown(state);
	}
}

/* What it is allowed for has changed. */
static void test_changed(void **state)
{
	char got[600];

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		ask_until("ok.example", 16, i / 2);
		replace_policy("version: 1\nallow: [ok.example]\n");
		notice(i % 2);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR ede 15 policy_revoked");
		teardown(state);
		/* a service of the machine's own now */
		ask_until("ok.example", 1, i / 2);
		replace_policy("version: 1\nallow: [{host: ok.example, ports: "
			       "[80], connect: 127.0.0.1:81}]\n");
		notice(i % 2);
		assert_null(strstr(fake.log, "resolve"));
		assert_string_equal(fake.detail, "connect: 127.0.0.1 port 81");
		teardown(state);
		/* addresses that were good are not */
		ask_until("ok.example", 1, i / 2);
		replace_policy("version: 1\nallow: [ok.example]\n");
		fake.address[0] = "10.0.0.1";
		notice(i % 2);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NXDOMAIN ede 15 forbidden_address");
		teardown(state);
		/* real answers */
		ask_until("ok.example", 1, i / 2);
		replace_policy("version: 1\ndns: {answers: real}\n"
			       "allow: [ok.example]\n");
		notice(i % 2);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR 93.184.216.34");
		teardown(state);
	}
}

/* A refusal, and what is no business of the policy, stand. */
static void test_nothing_to_do(void **state)
{
	char got[600];

	(void)state;
	ask_until("evil.example", 1, 0);
	replace_policy("version: 1\nallow: [evil.example]\n");
	filter_recheck(filter, &fake.sandbox);
	assert_string_equal(fake.log, "");
	come();
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NXDOMAIN ede 15 not_in_policy");
	teardown(state);

	ask_until("localhost", 1, 0);
	replace_policy("version: 1\n");
	filter_recheck(filter, &fake.sandbox);
	come();
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 127.0.0.1");
	teardown(state);

	/* The same policy; another sandbox. */
	struct sandbox other = { .id = 8, .policy = NULL };
	ask_until("ok.example", 1, 1);
	filter_recheck(filter, &fake.sandbox);
	filter_recheck(filter, &other);
	assert_string_equal(fake.log, "");
	teardown(state);
}

/* The ledger is gone: that comes first, and nothing is asked. */
static void test_no_ledger(void **state)
{
	char got[600];

	(void)state;
	ask_until("ok.example", 1, 1);
	replace_policy("version: 1\n");
	fake.record_status = -EIO;
	notice(true);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL");
	teardown(state);
}

/* Many at once, and each reply forgets the connection that others came by. */
static struct wait *parked[300];
static unsigned parked_count;

static void park(void *ctx, const struct audit_event *event, struct wait *wait)
{
	(void)ctx;
	(void)event;
	parked[parked_count++] = wait;
}

static void forget_all(void *ctx, const struct dns_peer *peer, const void *data,
		       size_t len)
{
	on_reply(ctx, peer, data, len);
	filter_forget(filter, peer->conn);
}

static void test_many(void **state)
{
	int conn;

	(void)state;
	fake_init(&fake, ALLOWS);
	replies = 0;
	assert_int_equal(
		filter_new(base, &fake.services, forget_all, NULL, &filter), 0);
	fake.services.record = park;
	parked_count = 0;
	for (int i = 0; i < 100; i++)
		ask("ok.example", 1, i % 2 ? &conn : NULL);
	assert_int_equal(parked_count, 100);
	replace_policy("version: 1\n");
	fake.services.record = fake_record;
	filter_recheck(filter, &fake.sandbox);
	/* One of the connection's was answered, the others went with it. */
	assert_int_equal(replies, 51);
	teardown(state);
}

/* --- a rule expires --------------------------------------------------------
 */

static void test_expires(void **state)
{
	char yaml[200], until[40], got[600];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		time_t at = time(NULL) + 4; /* later than it is asked */

		strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ",
			 gmtime(&at));
		snprintf(yaml, sizeof(yaml),
			 "version: 1\nallow: [{host: ok.example, expires: "
			 "%s}]\n",
			 until);
		case_setup(yaml);
		fake.manual = true;
		ask("ok.example", 1, NULL);
		come(); /* the record; it is asked upstream */
		assert_non_null(strstr(fake.log, "resolve"));
		while (time(NULL) < at)
			usleep(20000);
		fake.log[0] = '\0';
		notice(i % 2);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NXDOMAIN ede 15 expired");
		assert_string_equal(fake.log, "answer ok.example deny expired "
					      "type 1 rcode 3\nreply\n");
		teardown(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_revoked),
		cmocka_unit_test(test_allowed_again),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_no_ledger),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_expires),
	};

	base = event_base_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
