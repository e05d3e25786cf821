/* SPDX-License-Identifier: Apache-2.0
 *
 * test_words_types.c - what `dns.types` and `dns.answers: real` mean for names.
 */
#include "tests/dns/words_case.h"

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
