/* SPDX-License-Identifier: Apache-2.0
 *
 * test_door.c - the door for names, from the socket to a real name server.
 */
#include "tests/dns/door_case.h"

/* Sends @len bytes as a question and reads the answer, which is @cap bytes at
 * most. */
static size_t exchange(bool tcp, const uint8_t *data, size_t len, uint8_t *buf,
		       size_t cap)
{
	AUTO_FD int fd = client(tcp ? SOCK_STREAM : SOCK_DGRAM, "8.8.8.8");
	uint8_t prefix[2] = { (uint8_t)(len >> 8), (uint8_t)len };
	ssize_t n;

	if (tcp)
		assert_int_equal(send(fd, prefix, 2, MSG_MORE), 2);
	assert_int_equal(send(fd, data, len, 0), len);
	if (!tcp) {
		n = recv(fd, buf, cap, 0);
		assert_true(n >= 12);
		return (size_t)n;
	}
	assert_int_equal(recv(fd, prefix, 2, MSG_WAITALL), 2);
	size_t expect = (size_t)(prefix[0] << 8 | prefix[1]);
	assert_true(expect <= cap);
	n = recv(fd, buf, expect, MSG_WAITALL);
	assert_int_equal(n, expect);
	return expect;
}

static size_t raw_question(const void *name, size_t len, uint16_t type,
			   uint8_t *buf, size_t cap)
{
	struct wirebuf b = wirebuf_of(buf, cap);

	wirebuf_put(&b, "\x12\x34\1\0\0\1\0\0\0\0\0\0", 12);
	wirebuf_put(&b, name, len);
	wirebuf_u16(&b, type);
	wirebuf_u16(&b, 1);
	assert_false(b.full);
	return b.len;
}

/* --- names that are not what they seem -------------------------------------
 */

#define L63 "\77aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define L64 \
	"\100aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define WILD "\4wild\3com\0"

/* Rows of the same name are one class of attack. */
static const struct {
	const char *what, *name;
	size_t len;
	unsigned rcode;
	bool asked; /* upstream */
	const char *log;
} names[] = {
	{ "NUL", BYTES("\5evil\0\2ok\3com\0"), 1, false, "deny malformed" },
	{ "NUL", BYTES("\11evil.com\0\2ok\3com\0"), 1, false,
	  "deny malformed" },
	{ "NUL", BYTES("\2a\0" WILD), 1, false, "deny malformed" },
	{ "NUL", BYTES("\2ok\4com\0\0"), 1, false, "deny malformed" },
	{ "boundary", BYTES("\6evilok\3com\0"), 3, false,
	  "query evilok.com deny not_in_policy" },
	{ "boundary", BYTES("\6okxcom\0"), 3, false,
	  "query okxcom deny not_in_policy" },
	{ "boundary", BYTES("\6awild\4\3com\0"), 1, false, "deny malformed" },
	{ "boundary", BYTES("\5xwild\3com\0"), 3, false,
	  "query xwild.com deny not_in_policy" },
	{ "boundary", BYTES("\1a\2ok\3com\0"), 3, false,
	  "query a.ok.com deny not_in_policy" },
	{ "boundary", BYTES("\2ok\3com\4evil\3net\0"), 3, false,
	  "query ok.com.evil.net deny not_in_policy" },
	{ "wildcard", BYTES(WILD), 0, false,
	  "query wild.com deny not_in_policy" },
	{ "wildcard", BYTES("\1a" WILD), 0, true, "query a.wild.com allow" },
	{ "wildcard", BYTES("\1a\1b\1c" WILD), 0, true,
	  "query a.b.c.wild.com allow" },
	{ "wildcard", BYTES("\2no" WILD), 3, false,
	  "query no.wild.com deny deny_rule" },
	{ "wildcard", BYTES("\2NO" WILD), 3, false,
	  "query no.wild.com deny deny_rule" },
	{ "wildcard", BYTES("\1*" WILD), 1, false, "deny malformed" },
	{ "dots", BYTES("\2ok\3com\0"), 0, true, "query ok.com allow" },
	{ "dots", BYTES("\6ok.com\0"), 1, false, "deny malformed" },
	{ "dots", BYTES("\2ok\4com.\0"), 1, false, "deny malformed" },
	{ "dots", BYTES("\2ok\3com\1.\0"), 1, false, "deny malformed" },
	{ "dots",
	  BYTES("\10a.wild\\\0"
		""
		"\3com\0"),
	  1, false, "deny malformed" },
	{ "case", BYTES("\2oK\3CoM\0"), 0, true, "query ok.com allow" },
	{ "case", BYTES("\1A\4wIlD\3COM\0"), 0, true,
	  "query a.wild.com allow" },
	{ "case", BYTES("\4EvIl\3CoM\0"), 3, false,
	  "query evil.com deny not_in_policy" },
	{ "U-label", BYTES("\3\303\266k" WILD), 1, false, "deny malformed" },
	{ "U-label", BYTES("\6\357\275\217\357\275\213\3com\0"), 1, false,
	  "deny malformed" },
	{ "U-label", BYTES("\10ok\343\200\202com\0"), 1, false,
	  "deny malformed" },
	{ "U-label", BYTES("\4o\302\255k\3com\0"), 1, false, "deny malformed" },
	{ "U-label", BYTES("\11xn--k-fga" WILD), 0, true,
	  "query xn--k-fga.wild.com allow" },
	{ "address",
	  BYTES("\12"
		"2130706433\0"),
	  1, false, "query 2130706433 deny malformed" },
	{ "address",
	  BYTES("\4"
		"0x7f\1"
		"1\0"),
	  1, false, "deny malformed" },
	{ "address",
	  BYTES("\4"
		"0177\1"
		"0\1"
		"0\1"
		"1\0"),
	  1, false, "deny malformed" },
	{ "address",
	  BYTES("\3"
		"012\1"
		"0\1"
		"0\1"
		"1\0"),
	  1, false, "deny malformed" },
	{ "address",
	  BYTES("\3"
		"127\1"
		"0\1"
		"0\1"
		"1\0"),
	  1, false, "deny malformed" },
	{ "address", BYTES("\3::1\0"), 1, false, "deny malformed" },
	{ "length", BYTES(L63 WILD), 0, true, "wild.com allow" },
	{ "length",
	  BYTES(L63 L63 L63
		"\64aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" WILD),
	  0, true, "wild.com allow" },
	{ "length",
	  BYTES(L63 L63 L63
		"\65aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" WILD),
	  1, false, "deny malformed" },
	{ "length", BYTES(L64 WILD), 1, false, "deny malformed" },
	{ "length", BYTES(L63 L63 L63 L63 WILD), 1, false, "deny malformed" },
	{ "length", BYTES("\2ok\0\3com\0"), 1, false, "deny malformed" },
	{ "length", BYTES("\0\2ok\3com\0"), 1, false, "deny malformed" },
	{ "pointer", BYTES("\1a\300\14"), 1, false, "deny malformed" },
	{ "pointer", BYTES("\300\14"), 1, false, "deny malformed" },
	{ "hyphen", BYTES("\2-a" WILD), 1, false, "deny malformed" },
	{ "space", BYTES("\3a b" WILD), 1, false, "deny malformed" },
};

static void check_name(size_t i, bool tcp)
{
	uint8_t data[1024], buf[2048];
	size_t before = server_count(upstream);
	size_t len = raw_question(names[i].name, names[i].len, 1, data,
				  sizeof(data));

	stop();
	dns_server_forget(server, &fake.sandbox); /* none is a repeat */
	assert_int_equal(go_on(), 0);
	fake.log[0] = '\0';
	size_t got = exchange(tcp, data, len, buf, sizeof(buf));
	if (rcode_of(buf, (ssize_t)got) != names[i].rcode ||
	    !strstr(fake.log, names[i].log))
		fail_msg("row %zu, %s: rcode %u\n%s", i, names[i].what,
			 buf[3] & 0xf, fake.log);
	if (!names[i].asked && server_count(upstream) > before)
		fail_msg("row %zu, %s: asked upstream", i, names[i].what);
	assert_memory_equal(buf, "\x12\x34", 2);
	if (names[i].rcode != 1)
		assert_memory_equal(buf + 12, names[i].name, names[i].len);
}

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		check_name(i, false);
		check_name(i, true);
	}
	/* What was asked was asked in lower case, under allowed names. */
	for (size_t i = 0; i < server_count(upstream); i++) {
		const char *name = upstream->seen[i].name;

		for (const char *c = name; *c; c++)
			assert_false(*c >= 'A' && *c <= 'Z');
		assert_true(strcmp(name, "ok.com") == 0 ||
			    strstr(name, ".wild.com"));
	}
	/* ok.com, a., a.b.c., xn--k-fga. and two long ones: A and AAAA, once */
	assert_int_equal(server_count(upstream), 2 * 6);
}

/* --- records ---------------------------------------------------------------
 */

static ldns_pkt *ask_type(bool tcp, const char *name, uint16_t type)
{
	uint8_t data[600], buf[16384];
	AUTO_FREE uint8_t *wire = NULL;
	ldns_pkt *pkt = ldns_pkt_query_new(ldns_dname_new_frm_str(name),
					   (ldns_rr_type)type, LDNS_RR_CLASS_IN,
					   LDNS_RD);
	size_t len;

	ldns_pkt_set_edns_udp_size(pkt, 1232);
	assert_int_equal(ldns_pkt2wire(&wire, pkt, &len), LDNS_STATUS_OK);
	ldns_pkt_free(pkt);
	assert_true(len < sizeof(data));
	memcpy(data, wire, len);
	len = exchange(tcp, data, len, buf, sizeof(buf));
	assert_int_equal(ldns_wire2pkt(&pkt, buf, len), LDNS_STATUS_OK);
	return pkt;
}

static const struct {
	const char *name;
	uint16_t type;
	unsigned rcode;
	size_t count, by_tcp;
	const char *last;
} records[] = {
	{ "good.txt.com", 16, 0, 2, 2, "good.txt.com.\t60\tIN\tTXT\t\"s2\"\n" },
	{ "good.mail.com", 15, 0, 2, 2,
	  "good.mail.com.\t60\tIN\tMX\t1 s2.good.mail.com.\n" },
	{ "good.mail.com", 33, 0, 2, 2,
	  "good.mail.com.\t60\tIN\tSRV\t1 2 443 s2.good.mail.com.\n" },
	{ "alias.mail.com", 15, 0, 1, 1,
	  "alias.mail.com.\t33\tIN\tMX\t1 s1.net.\n" },
	{ "root.mail.com", 33, 0, 1, 1,
	  "root.mail.com.\t60\tIN\tSRV\t1 2 443 .\n" },
	{ "root.mail.com", 15, 0, 1, 1, "root.mail.com.\t60\tIN\tMX\t1 .\n" },
	{ "owner.mail.com", 15, 0, 1, 1,
	  "owner.mail.com.\t60\tIN\tMX\t1 s1.net.\n" },
	{ "names.mail.com", 33, 0, 1, 1,
	  "names.mail.com.\t60\tIN\tSRV\t1 2 443 ok.net.\n" },
	{ "many.mail.com", 15, 0, 24, 24,
	  "many.mail.com.\t60\tIN\tMX\t1 n1.net.\n" },
	{ "large.txt.com", 16, 0, 1, 1,
	  "large.txt.com.\t60\tIN\tTXT\t\"ok\" \"\"\n" },
	{ "nx.txt.com", 16, 3, 0, 0, NULL },
	{ "nodata.txt.com", 16, 0, 0, 0, NULL },
	{ "circle.mail.com", 15, 2, 0, 0, NULL },
	{ "forward.mail.com", 33, 2, 0, 0, NULL },
	{ "tail.mail.com", 33, 2, 0, 0, NULL },
	{ "short.txt.com", 16, 2, 0, 0, NULL },
};

static void test_records(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(records) * 2; i++) {
		size_t r = i / 2;
		bool tcp = i % 2;
		ldns_pkt *pkt = ask_type(tcp, records[r].name, records[r].type);
		size_t count = ldns_pkt_ancount(pkt);

		if (ldns_pkt_get_rcode(pkt) != records[r].rcode ||
		    count != (tcp ? records[r].by_tcp : records[r].count))
			fail_msg("%s %u: rcode %u, %zu", records[r].name,
				 records[r].type, ldns_pkt_get_rcode(pkt),
				 count);
		if (count) {
			ldns_rr *rr = ldns_rr_list_rr(ldns_pkt_answer(pkt),
						      count - 1);
			AUTO_FREE char *text = ldns_rr2str(rr);

			assert_string_equal(text, records[r].last);
		}
		ldns_pkt_free(pkt);
	}
}

/* Types that a rule does not name, and names that no rule does, are no way to
 * any name server, in whatever record the data would travel. */
static void test_tunnels(void **state)
{
	static const struct {
		const char *name;
		unsigned type, rcode;
	} rows[] = {
		{ "good.ok.com", 16, 3 },      { "ok.com", 16, 0 },
		{ "good.wild.com", 16, 0 },    { "good.wild.com", 15, 0 },
		{ "good.wild.com", 33, 0 },    { "good.txt.com", 15, 0 },
		{ "good.txt.com", 33, 0 },     { "good.mail.com", 16, 0 },
		{ "txt.com", 16, 0 },	       { "c2.evil.com", 16, 3 },
		{ "good.txt.com", 10, 0 },     { "good.txt.com", 5, 0 },
		{ "good.txt.com", 257, 0 },    { "good.txt.com", 65, 0 },
		{ "good.txt.com", 99, 0 },     { "good.txt.com", 65280, 0 },
		{ "llm.com", 16, 0 },	       { "llm.com", 1, 0 },
		{ "good.txt.com", 255, 0 },    { "good.txt.com", 252, 5 },
		{ "x.llm.com", 1, 3 },	       { "s1.net", 1, 3 },
		{ "s2.good.mail.com", 16, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows) * 2; i++) {
		ldns_pkt *pkt = ask_type(i % 2, rows[i / 2].name,
					 (uint16_t)rows[i / 2].type);

		if (ldns_pkt_get_rcode(pkt) != rows[i / 2].rcode)
			fail_msg("%s %u: rcode %u", rows[i / 2].name,
				 rows[i / 2].type, ldns_pkt_get_rcode(pkt));
		ldns_pkt_free(pkt);
	}
	assert_int_equal(server_count(upstream), 0);
}

static void test_real(void **state)
{
	static const struct {
		const char *name;
		unsigned rcode;
		size_t count;
	} rows[] = {
		{ "ten.wild.com", 0, 8 },  { "mixed.wild.com", 0, 1 },
		{ "priv.wild.com", 3, 0 }, { "meta.wild.com", 3, 0 },
		{ "both.wild.com", 0, 1 }, { "alias.wild.com", 0, 1 },
	};
	const char *name[LEASE_PAIRS_MAX];
	struct ip ip;

	(void)state;
	replace_policy("version: 1\ndns: {answers: real}\n"
		       "allow: ['*.wild.com']\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ldns_pkt *pkt = ask_type(i % 2, rows[i].name, 1);

		assert_int_equal(ldns_pkt_get_rcode(pkt), rows[i].rcode);
		assert_int_equal(ldns_pkt_ancount(pkt), rows[i].count);
		for (size_t j = 0; j < rows[i].count; j++)
			assert_true(ldns_rr_ttl(ldns_rr_list_rr(
					    ldns_pkt_answer(pkt), j)) <= 60);
		ldns_pkt_free(pkt);
	}
	assert_true(ip_parse("93.184.216.34", &ip));
	assert_int_equal(
		lease_names_at(fake.sandbox.leases, &ip, name, LEASE_PAIRS_MAX),
		3);
	assert_string_equal(name[0], "mixed.wild.com");
	assert_true(ip_parse("10.0.0.1", &ip));
	assert_int_equal(
		lease_names_at(fake.sandbox.leases, &ip, name, LEASE_PAIRS_MAX),
		0);
	/* Only what was published was answered. */
	assert_non_null(strstr(fake.log, "publish ten.wild.com 93.184.216.7"));
	assert_null(strstr(fake.log, "publish ten.wild.com 93.184.216.8"));
	assert_null(strstr(fake.log, "publish mixed.wild.com 10.0.0.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_records),
		TEST(test_tunnels),
		TEST(test_real),
	};

	return cmocka_run_group_tests(tests, own_namespace, NULL);
}
