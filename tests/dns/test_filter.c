/* SPDX-License-Identifier: Apache-2.0
 *
 * test_filter.c - what becomes of a question, and in which order: every row is
 * the whole list of what was done, so that a query that leaves before its
 * record, or at all, shows.
 */
#include "tests/dns/filter_policy.h"

#define LEASED(name, ip)                                          \
	"query " name " allow rule type 1 rcode 0\n"              \
	"resolve " name "\npublish " name " " ip "\nanswer " name \
	" allow rule type 1 rcode 0 " ip "\nreply\n"

static const struct {
	const char *name;
	uint16_t type;
	const char *reply, *log;
} rows[] = {
	{ "ok.com", 1, "NOERROR 198.18.0.1", LEASED("ok.com", "198.18.0.1") },
	{ "OK.com.", 1, "NOERROR 198.18.0.1", LEASED("ok.com", "198.18.0.1") },
	{ "x.wild.com", 1, "NOERROR 198.18.0.1",
	  LEASED("x.wild.com", "198.18.0.1") },
	{ "secret.onion", 1, "NOERROR 198.18.0.1",
	  LEASED("secret.onion", "198.18.0.1") },
	{ "ok.com", 28, "NOERROR", QUERY("ok.com allow rule type 28 rcode 0") },
	{ "ok.com", 255, "NOERROR \"ANY obsoleted\"",
	  QUERY("ok.com allow rule type 255 rcode 0") },
	{ "ok.com", 65, "NOERROR",
	  QUERY("ok.com deny record_type type 65 rcode 0") },
	{ "ok.com", 64, "NOERROR",
	  QUERY("ok.com deny record_type type 64 rcode 0") },
	{ "ok.com", 16, "NOERROR",
	  QUERY("ok.com deny record_type type 16 rcode 0") },
	{ "ok.com", 15, "NOERROR",
	  QUERY("ok.com deny record_type type 15 rcode 0") },
	{ "ok.com", 33, "NOERROR",
	  QUERY("ok.com deny record_type type 33 rcode 0") },
	{ "ok.com", 10, "NOERROR",
	  QUERY("ok.com deny record_type type 10 rcode 0") },
	{ "ok.com", 252, "REFUSED",
	  QUERY("ok.com deny record_type type 252 rcode 5") },
	{ "ok.com", 251, "REFUSED",
	  QUERY("ok.com deny record_type type 251 rcode 5") },
	/* denied, whatever is asked */
	{ "evil.com", 1, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("evil.com deny not_in_policy type 1 rcode 3") },
	{ "evil.com", 28, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("evil.com deny not_in_policy type 28 rcode 3") },
	{ "evil.com", 16, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("evil.com deny not_in_policy type 16 rcode 3") },
	{ "evil.com", 255, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("evil.com deny not_in_policy type 255 rcode 3") },
	{ "evilok.com", 1, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("evilok.com deny not_in_policy type 1 rcode 3") },
	{ "sub.ok.com", 1, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("sub.ok.com deny not_in_policy type 1 rcode 3") },
	{ "no.wild.com", 1, "NXDOMAIN ede 15 deny_rule",
	  QUERY("no.wild.com deny deny_rule type 1 rcode 3") },
	{ "other.onion", 1, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("other.onion deny not_in_policy type 1 rcode 3") },
	{ "printer.local", 1, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("printer.local deny not_in_policy type 1 rcode 3") },
	/* above an allowed name: it exists */
	{ "wild.com", 1, "NOERROR ede 15 not_in_policy",
	  QUERY("wild.com deny not_in_policy type 1 rcode 0") },
	{ "below.org", 1, "NOERROR ede 15 not_in_policy",
	  QUERY("below.org deny not_in_policy type 1 rcode 0") },
	{ "deep.below.org", 1, "NOERROR ede 15 not_in_policy",
	  QUERY("deep.below.org deny not_in_policy type 1 rcode 0") },
	/* names with a meaning of their own */
	{ "use-application-dns.net", 1, "NXDOMAIN",
	  QUERY("use-application-dns.net allow rule type 1 rcode 3") },
	{ "use-application-dns.net", 28, "NXDOMAIN",
	  QUERY("use-application-dns.net allow rule type 28 rcode 3") },
	{ "localhost", 1, "NOERROR 127.0.0.1",
	  QUERY("localhost allow rule type 1 rcode 0") },
	{ "a.localhost", 1, "NOERROR 127.0.0.1",
	  QUERY("a.localhost allow rule type 1 rcode 0") },
	{ "localhost", 28, "NOERROR",
	  QUERY("localhost allow rule type 28 rcode 0") },
	{ "_dns.resolver.arpa", 64, "NOERROR",
	  QUERY("_dns.resolver.arpa allow rule type 64 rcode 0") },
	{ "ipv4only.arpa", 1, "NOERROR",
	  QUERY("ipv4only.arpa allow rule type 1 rcode 0") },
	{ "ipv4only.arpa", 28, "NOERROR",
	  QUERY("ipv4only.arpa allow rule type 28 rcode 0") },
	{ "8.8.8.8.in-addr.arpa", 12, "NXDOMAIN",
	  QUERY("8.8.8.8.in-addr.arpa deny record_type type 12 rcode 3") },
	{ "data.8.8.8.8.in-addr.arpa", 12, "NXDOMAIN",
	  QUERY("data.8.8.8.8.in-addr.arpa deny record_type type 12 rcode 3") },
	{ "1.0.18.198.in-addr.arpa", 12, "NXDOMAIN",
	  QUERY("1.0.18.198.in-addr.arpa deny record_type type 12 rcode 3") },
	{ "1.0.ip6.arpa", 12, "NXDOMAIN",
	  QUERY("1.0.ip6.arpa deny record_type type 12 rcode 3") },
	{ "8.8.8.8.in-addr.arpa", 1, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("8.8.8.8.in-addr.arpa deny not_in_policy type 1 rcode 3") },
	/* no host names */
	{ ".", 2, "FORMERR", QUERY(". deny malformed type 2 rcode 1") },
	{ "127.0.0.1", 1, "FORMERR",
	  QUERY("127.0.0.1 deny malformed type 1 rcode 1") },
	{ "0x7f.1", 1, "FORMERR",
	  QUERY("0x7f.1 deny malformed type 1 rcode 1") },
	{ "evil\\000.ok.com", 1, "FORMERR",
	  QUERY("evil\\000.ok.com deny malformed type 1 rcode 1") },
	{ "x\\.wild.com", 1, "FORMERR",
	  QUERY("x\\046wild.com deny malformed type 1 rcode 1") },
	{ "a\\010b\\027.ok.com", 1, "FORMERR",
	  QUERY("a\\010b\\027.ok.com deny malformed type 1 rcode 1") },
	{ "-x.wild.com", 1, "FORMERR",
	  QUERY("-x.wild.com deny malformed type 1 rcode 1") },
};

static void test_table(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char got[600];

		/* each on a fresh table of leases */
		teardown(state);
		setup(state);
		ask(rows[i].name, rows[i].type, NULL);
		describe_reply(got, sizeof(got));
		if (strcmp(got, rows[i].reply) != 0 ||
		    strcmp(fake.log, rows[i].log) != 0)
			fail_msg("%s type %u: %s\n%s", rows[i].name,
				 rows[i].type, got, fake.log);
		assert_int_equal(replies, 1);
		assert_string_equal(fake.src, "10.64.0.2");
		assert_string_equal(fake.dst, "8.8.8.8");
	}
}

static const struct {
	const char *name, *address[4];
	const char *uplink;
	int resolve, publish;
	const char *reply, *answer; /* the record of the answer */
} upstreams[] = {
	{ "ok.com",
	  { NULL },
	  NULL,
	  -ENOENT,
	  0,
	  "NXDOMAIN",
	  "answer ok.com allow rule type 1 rcode 3" },
	{ "ok.com",
	  { NULL },
	  NULL,
	  0,
	  0,
	  "NOERROR",
	  "answer ok.com allow rule type 1 rcode 0" },
	{ "ok.com",
	  { NULL },
	  NULL,
	  -EIO,
	  0,
	  "SERVFAIL ede 22 resolve_failed",
	  "answer ok.com deny resolve_failed type 1 rcode 2" },
	{ "ok.com",
	  { NULL },
	  NULL,
	  -ETIMEDOUT,
	  0,
	  "SERVFAIL ede 22 resolve_failed",
	  "answer ok.com deny resolve_failed type 1 rcode 2" },
	{ "ok.com",
	  { "10.0.0.1" },
	  NULL,
	  0,
	  0,
	  "NXDOMAIN ede 15 forbidden_address",
	  "answer ok.com deny forbidden_address type 1 rcode 3 10.0.0.1" },
	{ "ok.com",
	  { "169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::a00:1" },
	  NULL,
	  0,
	  0,
	  "NXDOMAIN ede 15 forbidden_address",
	  "answer ok.com deny forbidden_address type 1 rcode 3 169.254.169.254 "
	  "::ffff:10.0.0.1 64:ff9b::a00:1" },
	{ "ok.com",
	  { "10.0.0.1", "93.184.216.34" },
	  NULL,
	  0,
	  0,
	  "NOERROR 198.18.0.1",
	  "answer ok.com allow rule type 1 rcode 0 198.18.0.1" },
	{ "ok.com",
	  { "2606:2800::1" },
	  NULL,
	  0,
	  0,
	  "NOERROR 198.18.0.1",
	  "answer ok.com allow rule type 1 rcode 0 198.18.0.1" },
	{ "ok.com",
	  { "93.184.216.34" },
	  "93.184.216.0/24",
	  0,
	  0,
	  "NXDOMAIN ede 15 forbidden_address",
	  "answer ok.com deny forbidden_address type 1 rcode 3 93.184.216.34" },
	{ "lab.com",
	  { "10.0.0.1" },
	  NULL,
	  0,
	  0,
	  "NOERROR 198.18.0.1",
	  "answer lab.com allow rule type 1 rcode 0 198.18.0.1" },
	{ "lab.com",
	  { "192.168.0.1" },
	  NULL,
	  0,
	  0,
	  "NXDOMAIN ede 15 forbidden_address",
	  "answer lab.com deny forbidden_address type 1 rcode 3 192.168.0.1" },
	{ "ok.com",
	  { "93.184.216.34" },
	  NULL,
	  0,
	  -EPERM,
	  "SERVFAIL ede 22 resolve_failed",
	  "answer ok.com deny resolve_failed type 1 rcode 2" },
};

static void test_upstream_answers(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(upstreams); i++) {
		char got[600], expect[600];

		teardown(state);
		setup(state);
		memcpy(fake.address, upstreams[i].address,
		       sizeof(fake.address));
		fake.resolve_status = upstreams[i].resolve;
		fake.publish_status = upstreams[i].publish;
		if (upstreams[i].uplink)
			assert_true(
				cidr_parse(upstreams[i].uplink, &fake.uplink));
		ask(upstreams[i].name, 1, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, upstreams[i].reply);
		snprintf(expect, sizeof(expect), "%s\nreply\n",
			 upstreams[i].answer);
		const char *last = strstr(fake.log, "answer ");
		assert_non_null(last);
		assert_string_equal(last, expect);
	}
}

static void test_upstream_addresses_in_detail(void **state)
{
	(void)state;
	fake.address[0] = "93.184.216.34";
	fake.address[1] = "10.0.0.1";
	fake.address[2] = "2606:2800::1";
	ask("ok.com", 1, NULL);
	/* what was refused is not there */
	assert_string_equal(fake.detail,
			    "upstream: 93.184.216.34 2606:2800::1");
}

static void test_reverse_of_lease(void **state)
{
	char got[600];

	(void)state;
	ask("ok.com", 1, NULL);
	ask("1.0.18.198.in-addr.arpa", 12, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR ok.com.");
}

/* Each step is reached only once the one before it has ended. */
static void test_waits(void **state)
{
	static const char *const steps[] = {
		"query ok.com allow rule type 1 rcode 0\n",
		"resolve ok.com\n",
		"publish ok.com 198.18.0.1\n",
		"answer ok.com allow rule type 1 rcode 0 198.18.0.1\n",
		"reply\n",
	};

	(void)state;
	fake.manual = true;
	ask("ok.com", 1, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct wait *wait = STEAL(fake.held);

		assert_string_equal(fake.log, steps[i]);
		assert_int_equal(replies, i == ARRAY_SIZE(steps) - 1);
		fake.log[0] = '\0';
		if (i < ARRAY_SIZE(steps) - 1)
			wait->done(wait, 0);
	}
	/* The name has its lease; it is published again all the same, for the
	 * first publication may still be under way. */
	fake.manual = false;
	filter_forget_sandbox(filter, &fake.sandbox); /* it is no repeat */
	ask("ok.com", 1, NULL);
	assert_non_null(strstr(fake.log, steps[2]));
}

/* At each step a question can be forgotten: nothing happens after that. */
static void test_forgotten(void **state)
{
	int conn;

	for (unsigned at = 0; at < 4; at++) {
		teardown(state);
		setup(state);
		fake.manual = true;
		ask("ok.com", 1, &conn);
		for (unsigned i = 0; i < at; i++) {
			struct wait *wait = STEAL(fake.held);

			wait->done(wait, 0);
		}
		fake.log[0] = '\0';
		filter_forget(filter, &at); /* somebody else's */
		assert_string_equal(fake.log, "");
		if (at % 2)
			filter_forget(filter, &conn);
		else
			filter_forget_sandbox(filter, &fake.sandbox);
		assert_string_equal(fake.log, "cancel\n");
		assert_null(fake.held);
		assert_int_equal(replies, 0);
	}
	/* And by freeing the filter: see teardown(). */
	ask("ok.com", 1, NULL);
}

static void test_no_ledger(void **state)
{
	char got[600];

	(void)state;
	fake.record_status = -EIO;
	ask("ok.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL");
	assert_string_equal(fake.log,
			    "query ok.com allow rule type 1 rcode 0\nreply\n");
	ask("evil.com", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL");
	/* It goes away between the question and the answer. */
	fake.record_status = 0;
	fake.manual = true;
	ask("ok.com", 1, NULL);
	for (int i = 0; i < 3; i++) {
		struct wait *wait = STEAL(fake.held);

		wait->done(wait, 0);
	}
	struct wait *wait = STEAL(fake.held);
	wait->done(wait, -EIO);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_table),
		TEST(test_upstream_answers),
		TEST(test_upstream_addresses_in_detail),
		TEST(test_reverse_of_lease),
		TEST(test_waits),
		TEST(test_forgotten),
		TEST(test_no_ledger),
	};

	base = event_base_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
