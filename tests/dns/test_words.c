/* SPDX-License-Identifier: Apache-2.0
 *
 * test_words.c - what the words of a policy mean for names: each row is all
 * that was done, as in test_filter.c.
 */
#include "tests/dns/words_case.h"

#define OBSERVE                                          \
	"version: 1\nmode: observe\nallow:\n"            \
	"  - ok.example\n"                               \
	"  - {host: old.example, expires: 2020-01-01}\n" \
	"  - {host: door.example, doors: [proxy]}\n"     \
	"deny: [bad.example, '*.worse.example']\n"

static const struct row observed[] = {
	{ OBSERVE, "ok.example", 1, "NOERROR 198.18.0.1",
	  "query ok.example allow rule type 1 rcode 0\nresolve ok.example\n"
	  "publish ok.example 198.18.0.1\nanswer ok.example allow rule type 1 "
	  "rcode 0 198.18.0.1\nreply\n" },
	{ OBSERVE, "other.example", 1, "NOERROR 198.18.0.1",
	  "query other.example allow observe type 1 rcode 0 observed "
	  "not_in_policy\nresolve other.example\npublish other.example "
	  "198.18.0.1\nanswer other.example allow observe type 1 rcode 0 "
	  "198.18.0.1 observed not_in_policy\nreply\n" },
	{ OBSERVE, "bad.example", 1, "NOERROR 198.18.0.1",
	  "query bad.example allow observe type 1 rcode 0 observed "
	  "deny_rule\nresolve bad.example\npublish bad.example "
	  "198.18.0.1\nanswer bad.example allow observe type 1 rcode 0 "
	  "198.18.0.1 observed deny_rule\nreply\n" },
	{ OBSERVE, "door.example", 1, "NOERROR 198.18.0.1",
	  "query door.example allow observe type 1 rcode 0 observed "
	  "not_in_policy\nresolve door.example\npublish door.example "
	  "198.18.0.1\nanswer door.example allow observe type 1 rcode 0 "
	  "198.18.0.1 observed not_in_policy\nreply\n" },
	/* what is not relaxed */
	{ OBSERVE, "old.example", 1, "NXDOMAIN ede 15 expired",
	  QUERY("old.example deny expired type 1 rcode 3") },
	{ OBSERVE, "other.example", 16, "NOERROR",
	  QUERY("other.example deny record_type type 16 rcode 0") },
	{ OBSERVE, "127.0.0.1", 1, "FORMERR",
	  QUERY("127.0.0.1 deny malformed type 1 rcode 1") },
	{ OBSERVE, "8.8.8.8.in-addr.arpa", 12, "NXDOMAIN",
	  QUERY("8.8.8.8.in-addr.arpa deny record_type type 12 rcode 3") },
};

#define PUBLIC                                  \
	"version: 1\ndefault: public\nallow:\n" \
	"  - {host: ok.example, ports: [22]}\n" \
	"deny: [bad.example]\n"

static const struct row public[] = {
	{ PUBLIC, "any.example", 1, "NOERROR 198.18.0.1",
	  "query any.example allow public type 1 rcode 0\nresolve any.example\n"
	  "publish any.example 198.18.0.1\nanswer any.example allow public "
	  "type 1 rcode 0 198.18.0.1\nreply\n" },
	{ PUBLIC, "bad.example", 1, "NXDOMAIN ede 15 deny_rule",
	  QUERY("bad.example deny deny_rule type 1 rcode 3") },
	{ PUBLIC, "any.example", 16, "NOERROR",
	  QUERY("any.example deny record_type type 16 rcode 0") },
	{ PUBLIC, "any.example", 28, "NOERROR",
	  QUERY("any.example allow public type 28 rcode 0") },
};

static void test_observe(void **state)
{
	(void)state;
	CHECK_ALL(observed);
}

static void test_public(void **state)
{
	char got[600];

	(void)state;
	CHECK_ALL(public);
	/* Of a public name internal addresses are no more in reach. */
	case_setup(PUBLIC);
	fake.address[0] = "10.0.0.1";
	ask("any.example", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NXDOMAIN ede 15 forbidden_address");
	teardown(state);
	case_setup(OBSERVE);
	fake.address[0] = "169.254.169.254";
	ask("other.example", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NXDOMAIN ede 15 forbidden_address");
	teardown(state);
}

/* Names that no rule allows are counted like any others. */
static void test_names_are_counted(void **state)
{
	static const char *const policies[] = {
		"version: 1\nmode: observe\nlimits: {names: 3}\n",
		"version: 1\ndefault: public\nlimits: {names: 3}\n",
	};
	char got[600];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		case_setup(policies[i]);
		ask("a.example", 1, NULL);
		ask("b.example", 28, NULL);
		ask("c.example", 255, NULL);
		ask("d.example", 1, NULL);
		ask("e.example", 1, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NXDOMAIN ede 15 limit_names");
		assert_null(strstr(fake.log, "resolve"));
		ask("a.example", 1, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR 198.18.0.1");
		teardown(state);
	}
}

#define DOORS                                            \
	"version: 1\nallow:\n"                           \
	"  - {host: p.example, doors: [proxy]}\n"        \
	"  - {host: t.example, doors: [transparent]}\n"  \
	"  - {host: both.example, doors: [proxy]}\n"     \
	"  - {host: a.both.example, ports: [443]}\n"     \
	"  - {host: old.example, expires: 2020-01-01}\n" \
	"  - {host: new.example, expires: 2199-01-01}\n"

static const struct row doors[] = {
	{ DOORS, "p.example", 1, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("p.example deny not_in_policy type 1 rcode 3") },
	{ DOORS, "both.example", 1, "NOERROR ede 15 not_in_policy",
	  QUERY("both.example deny not_in_policy type 1 rcode 0") },
	{ DOORS, "t.example", 28, "NOERROR",
	  QUERY("t.example allow rule type 28 rcode 0") },
	{ DOORS, "old.example", 1, "NXDOMAIN ede 15 expired",
	  QUERY("old.example deny expired type 1 rcode 3") },
	{ DOORS, "new.example", 28, "NOERROR",
	  QUERY("new.example allow rule type 28 rcode 0") },
};

static void test_doors_and_expiry(void **state)
{
	(void)state;
	CHECK_ALL(doors);
}

/* --- connect -------------------------------------------------------------- */

#define CONNECT                                 \
	"version: 1\n%sallow:\n"                \
	"  - {host: llm.example, ports: [80], " \
	"connect: 127.0.0.1:11434, dns: {types: [TXT]}}\n"

static void test_connect(void **state)
{
	static const char *const dns[] = { "", "dns: {answers: real}\n" };
	char policy[300], got[600];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(dns); i++) {
		snprintf(policy, sizeof(policy), CONNECT, dns[i]);
		case_setup(policy);
		ask("llm.example", 1, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR 198.18.0.1");
		assert_string_equal(
			fake.log,
			"query llm.example allow rule type 1 rcode 0\n"
			"publish llm.example 198.18.0.1\n"
			"answer llm.example allow rule type 1 rcode 0 "
			"198.18.0.1\nreply\n");
		assert_string_equal(fake.detail,
				    "connect: 127.0.0.1 port 11434");
		ask("llm.example", 28, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR");
		ask("llm.example", 16, NULL);
		assert_string_equal(fake.log,
				    QUERY("llm.example deny record_type "
					  "type 16 rcode 0"));
		ask("1.0.18.198.in-addr.arpa", 12, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR llm.example.");
		teardown(state);
	}
	/* Under `serve` */
	case_setup(policy);
	assert_true(ip_parse("10.9.8.7", &fake.services.answer));
	ask("llm.example", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 10.9.8.7");
	assert_null(strstr(fake.log, "resolve"));
	teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_observe),
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_names_are_counted),
		cmocka_unit_test(test_doors_and_expiry),
		cmocka_unit_test(test_connect),
	};

	base = event_base_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
