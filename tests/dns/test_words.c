/* SPDX-License-Identifier: Apache-2.0
 *
 * test_words.c - what the words of a policy mean for names: each row is all
 * that was done, as in test_filter.c.
 */
#include "filter_case.h"

struct row {
	const char *policy, *name;
	uint16_t type;
	const char *reply, *log;
};

static void check(const struct row *row)
{
	char got[2000];

	assert_int_equal(case_setup(row->policy), 0);
	ask(row->name, row->type, NULL);
	describe_reply(got, sizeof(got));
	if (strcmp(got, row->reply) != 0 || strcmp(fake.log, row->log) != 0)
		fail_msg("%s type %u:\n%s\n%s", row->name, row->type, got,
			 fake.log);
	assert_int_equal(replies, 1);
	teardown(NULL);
}

#define CHECK_ALL(rows)                                       \
	do {                                                  \
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) \
			check(&(rows)[i]);                    \
	} while (0)

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

/* --- dns.types ------------------------------------------------------------ */

#define TYPES                                                             \
	"version: 1\nlimits: {names: 4, names_per_wildcard: 2}\nallow:\n" \
	"  - {host: txt.example, dns: {types: [TXT]}}\n"                  \
	"  - {host: all.example, dns: {types: [TXT, MX, SRV]}}\n"         \
	"  - {host: '*.wild.example', dns: {types: [SRV]}}\n"             \
	"  - ok.example\n"

static const struct row refused_types[] = {
	{ TYPES, "txt.example", 15, "NOERROR",
	  QUERY("txt.example deny record_type type 15 rcode 0") },
	{ TYPES, "txt.example", 33, "NOERROR",
	  QUERY("txt.example deny record_type type 33 rcode 0") },
	{ TYPES, "ok.example", 16, "NOERROR",
	  QUERY("ok.example deny record_type type 16 rcode 0") },
	{ TYPES, "a.wild.example", 16, "NOERROR",
	  QUERY("a.wild.example deny record_type type 16 rcode 0") },
	/* below an allowed name, and above one */
	{ TYPES, "data.txt.example", 16, "NXDOMAIN ede 15 not_in_policy",
	  QUERY("data.txt.example deny not_in_policy type 16 rcode 3") },
	{ TYPES, "wild.example", 33, "NOERROR ede 15 not_in_policy",
	  QUERY("wild.example deny not_in_policy type 33 rcode 0") },
	/* types that no rule can name */
	{ TYPES, "all.example", 10, "NOERROR",
	  QUERY("all.example deny record_type type 10 rcode 0") },
	{ TYPES, "all.example", 65, "NOERROR",
	  QUERY("all.example deny record_type type 65 rcode 0") },
	{ TYPES, "all.example", 5, "NOERROR",
	  QUERY("all.example deny record_type type 5 rcode 0") },
	{ TYPES, "all.example", 257, "NOERROR",
	  QUERY("all.example deny record_type type 257 rcode 0") },
	{ TYPES, "all.example", 255, "NOERROR \"ANY obsoleted\"",
	  QUERY("all.example allow rule type 255 rcode 0") },
};

static void put_rdata(const char *data, size_t len)
{
	struct rdata *rdata = &fake.rdata[fake.rdatas++];

	rdata->len = (uint16_t)len;
	memcpy(rdata->data, data, len);
}

static void test_types(void **state)
{
	char got[2000];

	(void)state;
	CHECK_ALL(refused_types);
	case_setup(TYPES);
	put_rdata("\3abc\2de", 7);
	put_rdata("\0", 1);
	ask("TXT.example", 16, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR \"abc\" \"de\" \"\"");
	assert_string_equal(fake.log,
			    "query txt.example allow rule type 16 rcode 0\n"
			    "resolve txt.example type 16\n"
			    "answer txt.example allow rule type 16 rcode 0\n"
			    "reply\n");
	assert_string_equal(fake.detail, "upstream: 2 TXT records");
	fake.rdatas = 0;
	put_rdata("\0\12\2mx\3net\0", 10);
	ask("all.example", 15, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 10 mx.net.");
	/* The target is not granted by that. */
	ask("mx.net", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NXDOMAIN ede 15 not_in_policy");
	fake.rdatas = 0;
	put_rdata("\0\1\0\2\1\273\2s1\3net\0", 14);
	ask("_x._tcp.wild.example", 33, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 1 2 443 s1.net.");
	assert_string_equal(fake.detail, "upstream: 1 SRV record");
	/* They are counted as names: two of the wildcard. */
	ask("_y._tcp.wild.example", 33, NULL);
	ask("_z._tcp.wild.example", 33, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NXDOMAIN ede 15 limit_names");
	assert_null(strstr(fake.log, "resolve"));
	teardown(state);
}

static void test_types_fail(void **state)
{
	static const struct {
		int status;
		const char *reply;
	} rows[] = {
		{ 0, "NOERROR" },
		{ -ENOENT, "NXDOMAIN" },
		{ -EIO, "SERVFAIL ede 22 resolve_failed" },
		{ -ETIMEDOUT, "SERVFAIL ede 22 resolve_failed" },
	};
	char got[600];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		case_setup(TYPES);
		fake.resolve_status = rows[i].status;
		ask("txt.example", 16, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, rows[i].reply);
		teardown(state);
	}
	/* Without the ledger nobody is asked. */
	case_setup(TYPES);
	fake.record_status = -EIO;
	ask("txt.example", 16, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL");
	assert_null(strstr(fake.log, "resolve"));
	teardown(state);
}

/* What comes in this way comes in as well. */
static void test_types_budget(void **state)
{
	char got[600];

	(void)state;
	case_setup(TYPES);
	fake.budget = 20;
	put_rdata("\3abc\2de", 7);
	put_rdata("\0", 1);
	for (int i = 0; i < 2; i++) {
		ask("txt.example", 16, NULL);
		describe_reply(got, sizeof(got));
		assert_string_equal(got, "NOERROR \"abc\" \"de\" \"\"");
		assert_int_equal(fake.used, 8 * (i + 1));
	}
	ask("txt.example", 16, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL ede 15 limit_bytes");
	assert_non_null(strstr(fake.log, "answer txt.example deny limit_bytes "
					 "type 16 rcode 2\n"));
	assert_int_equal(fake.used, 16);
	/* With nothing left nobody is asked. */
	fake.used = 20;
	ask("txt.example", 16, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "SERVFAIL ede 15 limit_bytes");
	assert_null(strstr(fake.log, "resolve"));
	/* Addresses carry next to nothing. */
	ask("txt.example", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 198.18.0.1");
	teardown(state);
}

/* As many and as long as there are: all by TCP, and by UDP a hint to use it. */
static void test_types_large(void **state)
{
	char got[LOOKUP_RECORDS_MAX * 600], text[LOOKUP_RDATA_MAX];
	int conn;

	(void)state;
	case_setup(TYPES);
	memset(text, 'x', sizeof(text));
	text[0] = text[256] = (char)255;
	for (int i = 0; i < LOOKUP_RECORDS_MAX; i++)
		put_rdata(text, sizeof(text));
	ask("txt.example", 16, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR TC");
	ask("txt.example", 16, &conn);
	describe_reply(got, sizeof(got));
	assert_null(strstr(got, "TC"));
	unsigned count = 0;
	for (const char *at = got; (at = strstr(at, " \"xxx")); at++)
		count++;
	assert_int_equal(count, 2 * LOOKUP_RECORDS_MAX);
	teardown(state);
}

/* --- dns.answers: real ------------------------------------------------------
 */

#define REAL                                         \
	"version: 1\ndns: {answers: real}\nallow:\n" \
	"  - ok.example\n  - ok2.example\n"          \
	"  - {host: lab.example, addresses: [10.0.0.0/8, 198.18.0.0/15]}\n"

static void test_real(void **state)
{
	char got[600];

	(void)state;
	case_setup(REAL);
	fake.address[1] = "10.0.0.1";
	fake.address[2] = "2606:2800::1";
	fake.address[3] = "93.184.216.35";
	ask("ok.example", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 93.184.216.34 93.184.216.35");
	assert_string_equal(fake.log,
			    "query ok.example allow rule type 1 rcode 0\n"
			    "resolve ok.example\n"
			    "bind ok.example 93.184.216.34\n"
			    "bind ok.example 93.184.216.35\n"
			    "publish ok.example 93.184.216.34\n"
			    "publish ok.example 93.184.216.35\n"
			    "answer ok.example allow rule type 1 rcode 0 "
			    "93.184.216.34 93.184.216.35\nreply\n");
	ask("ok.example", 28, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR");
	/* Two names of one address: its name is that of the first. */
	ask("ok2.example", 1, NULL);
	ask("34.216.184.93.in-addr.arpa", 12, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR ok.example.");
	ask("36.216.184.93.in-addr.arpa", 12, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NXDOMAIN");
	teardown(state);
}

static const struct {
	const char *host, *address[4];
	int bind, publish;
	const char *reply;
} real[] = {
	{ "ok.example",
	  { "10.0.0.1" },
	  0,
	  0,
	  "NXDOMAIN ede 15 forbidden_address" },
	{ "ok.example",
	  { "127.0.0.1", "::ffff:93.184.216.34" },
	  0,
	  0,
	  "NXDOMAIN ede 15 forbidden_address" },
	{ "lab.example", { "10.0.0.1" }, 0, 0, "NOERROR 10.0.0.1" },
	/* a lease is one name's alone */
	{ "lab.example",
	  { "198.18.0.1" },
	  0,
	  0,
	  "NXDOMAIN ede 15 forbidden_address" },
	{ "lab.example",
	  { "198.18.0.1", "10.0.0.1" },
	  0,
	  0,
	  "NOERROR 10.0.0.1" },
	{ "ok.example", { "2606:2800::1" }, 0, 0, "NOERROR 198.18.0.1" },
	{ "ok.example",
	  { "93.184.216.34", "93.184.216.34" },
	  0,
	  0,
	  "NOERROR 93.184.216.34" },
	{ "ok.example",
	  { "93.184.216.34" },
	  -ENOSPC,
	  0,
	  "NXDOMAIN ede 15 limit_names" },
	{ "ok.example",
	  { "93.184.216.34" },
	  0,
	  -EPERM,
	  "SERVFAIL ede 22 resolve_failed" },
};

static void test_real_table(void **state)
{
	char got[600];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(real); i++) {
		case_setup(REAL);
		memcpy(fake.address, real[i].address, sizeof(fake.address));
		fake.bind_status = real[i].bind;
		fake.publish_status = real[i].publish;
		ask(real[i].host, 1, NULL);
		describe_reply(got, sizeof(got));
		if (strcmp(got, real[i].reply) != 0)
			fail_msg("row %zu: %s\n%s", i, got, fake.log);
		teardown(state);
	}
	/* Under `serve` there is one address for all names. */
	case_setup(REAL);
	assert_true(ip_parse("10.9.8.7", &fake.services.answer));
	ask("ok.example", 1, NULL);
	describe_reply(got, sizeof(got));
	assert_string_equal(got, "NOERROR 10.9.8.7");
	assert_null(strstr(fake.log, "bind"));
	teardown(state);
}

/* Nothing is answered before the kernel took the last of the addresses. */
static void test_real_waits(void **state)
{
	static const char *const steps[] = {
		"query",  "resolve", "bind", "publish ok.example 93.184.216.35",
		"answer", "reply"
	};

	(void)state;
	case_setup(REAL);
	fake.address[1] = "93.184.216.35";
	fake.manual = true;
	ask("ok.example", 1, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct wait *wait = STEAL(fake.held);

		assert_memory_equal(fake.log, steps[i], strlen(steps[i]));
		assert_int_equal(replies, i == ARRAY_SIZE(steps) - 1);
		fake.log[0] = '\0';
		if (i < ARRAY_SIZE(steps) - 1)
			wait->done(wait, 0);
	}
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
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_types_fail),
		cmocka_unit_test(test_types_budget),
		cmocka_unit_test(test_types_large),
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_real_table),
		cmocka_unit_test(test_real_waits),
	};

	base = event_base_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
