/* SPDX-License-Identifier: Apache-2.0
 *
 * test_message_answer.c - what a server says: what ldns writes we must read,
 * and what nobody should write does no harm.
 */
#include "tests/dns/message_case.h"

/* --- upstream ------------------------------------------------------------- */

static void test_question(void **state)
{
	uint8_t buf[DNS_QUESTION_MAX];
	size_t len = dns_question_build("ok.com", DNS_AAAA, 77, buf);
	ldns_pkt *pkt = by_ldns(buf, len);

	(void)state;
	assert_int_equal(ldns_pkt_id(pkt), 77);
	assert_true(ldns_pkt_rd(pkt));
	assert_rr(ldns_pkt_question(pkt), "ok.com.\tIN\tAAAA\n");
	assert_int_equal(ldns_pkt_edns_udp_size(pkt), DNS_REPLY_MAX);
	/* the bare OPT that c-ares may cut off */
	assert_memory_equal(buf + len - 11, "\0\0\x29", 3);
	ldns_pkt_free(pkt);
}

/* What a server might say to "a.ok.com A", records by line. */
static const struct {
	const char *what;
	const char *answer[6];
	const char *authority;
	int rcode;
	int expect; /* count, or -EBADMSG */
	uint32_t ttl;
	const char *first;
} answers[] = {
	{ "one", { "a.ok.com. 77 IN A 1.2.3.4" }, NULL, 0, 1, 77, "1.2.3.4" },
	{ "case of the owner",
	  { "A.oK.com. 77 IN A 1.2.3.4" },
	  NULL,
	  0,
	  1,
	  77,
	  "1.2.3.4" },
	{ "chain",
	  { "a.ok.com. 300 IN CNAME b.cdn.net.", "b.cdn.net. 20 IN CNAME c.x.",
	    "c.x. 60 IN A 9.9.9.9", "c.x. 50 IN A 9.9.9.8" },
	  NULL,
	  0,
	  2,
	  20,
	  "9.9.9.9" },
	{ "chain out of order",
	  { "c.x. 60 IN A 9.9.9.9", "b.cdn.net. 20 IN CNAME c.x.",
	    "a.ok.com. 300 IN CNAME b.cdn.net." },
	  NULL,
	  0,
	  1,
	  20,
	  "9.9.9.9" },
	{ "somebody else's record",
	  { "b.ok.com. 5 IN A 6.6.6.6" },
	  NULL,
	  0,
	  0,
	  0,
	  NULL },
	{ "somebody else's beside ours",
	  { "evil.com. 5 IN A 6.6.6.6", "a.ok.com. 9 IN A 1.2.3.4" },
	  NULL,
	  0,
	  1,
	  9,
	  "1.2.3.4" },
	{ "address of an alias's owner is not used",
	  { "a.ok.com. 9 IN CNAME b.x.", "a.ok.com. 9 IN A 6.6.6.6" },
	  NULL,
	  0,
	  0,
	  0,
	  NULL },
	{ "two aliases",
	  { "a.ok.com. 9 IN CNAME b.x.", "a.ok.com. 9 IN CNAME c.x." },
	  NULL,
	  0,
	  -EBADMSG,
	  0,
	  NULL },
	{ "circle",
	  { "a.ok.com. 9 IN CNAME b.x.", "b.x. 9 IN CNAME a.ok.com." },
	  NULL,
	  0,
	  -EBADMSG,
	  0,
	  NULL },
	{ "alias to nowhere",
	  { "a.ok.com. 9 IN CNAME b.x." },
	  NULL,
	  0,
	  0,
	  0,
	  NULL },
	{ "other class", { "a.ok.com. 9 CH A 1.2.3.4" }, NULL, 0, 0, 0, NULL },
	{ "other type", { "a.ok.com. 9 IN AAAA ::1" }, NULL, 0, 0, 0, NULL },
	{ "NODATA",
	  { NULL },
	  "ok.com. 30 IN SOA a. b. 1 2 3 4 20",
	  0,
	  0,
	  20,
	  NULL },
	{ "NXDOMAIN",
	  { NULL },
	  "ok.com. 10 IN SOA a. b. 1 2 3 4 20",
	  3,
	  0,
	  10,
	  NULL },
	{ "SERVFAIL", { NULL }, NULL, 2, 0, 0, NULL },
	{ "highest bit of the TTL",
	  { "a.ok.com. 2147483648 IN A 1.2.3.4" },
	  NULL,
	  0,
	  1,
	  0,
	  "1.2.3.4" },
};

static void push(ldns_pkt *pkt, ldns_pkt_section section, const char *text)
{
	ldns_rr *rr = NULL;

	assert_int_equal(ldns_rr_new_frm_str(&rr, text, 0, NULL, NULL),
			 LDNS_STATUS_OK);
	assert_true(ldns_pkt_push_rr(pkt, section, rr));
}

static ldns_pkt *server_says(size_t row)
{
	ldns_pkt *pkt =
		ldns_pkt_query_new(ldns_dname_new_frm_str("a.ok.com."),
				   LDNS_RR_TYPE_A, LDNS_RR_CLASS_IN, LDNS_RD);

	ldns_pkt_set_qr(pkt, true);
	ldns_pkt_set_rcode(pkt, (uint8_t)answers[row].rcode);
	for (size_t i = 0; i < 6 && answers[row].answer[i]; i++)
		push(pkt, LDNS_SECTION_ANSWER, answers[row].answer[i]);
	if (answers[row].authority)
		push(pkt, LDNS_SECTION_AUTHORITY, answers[row].authority);
	return pkt;
}

static void test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		ldns_pkt *pkt = server_says(i);
		struct dns_answer answer = { .count = 99 };
		AUTO_FREE uint8_t *wire = NULL;
		char text[IP_TEXT_MAX];
		size_t len;
		int got;

		assert_int_equal(ldns_pkt2wire(&wire, pkt, &len), 0);
		got = dns_answer_parse(wire, len, "a.ok.com", DNS_A, &answer,
				       NULL);
		if (!got)
			got = (int)answer.count;
		if (got != answers[i].expect)
			fail_msg("%s: %d", answers[i].what, got);
		if (got >= 0) {
			assert_int_equal(answer.rcode, answers[i].rcode);
			assert_int_equal(answer.ttl, answers[i].ttl);
		}
		if (answers[i].first)
			assert_string_equal(ip_format(&answer.ip[0], text),
					    answers[i].first);
		/* Every shorter message is malformed, and none is read past
		 * its end (ASan watches). */
		for (size_t cut = 0; cut < len; cut++) {
			AUTO_FREE uint8_t *part = malloc(cut + 1);

			memcpy(part, wire, cut);
			assert_int_equal(dns_answer_parse(part, cut, "a.ok.com",
							  DNS_A, &answer, NULL),
					 -EBADMSG);
		}
		ldns_pkt_free(pkt);
	}
}

#define ANSWER_HEAD "\0\0\x81\x80\0\1\0\1\0\0\0\0"
#define Q_OK	    NAME_OK A_IN
#define RR_A	    "\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4"

static const struct {
	const char *what, *data;
	size_t len;
	int expect;
} raw[] = {
	{ "by pointer", BYTES(ANSWER_HEAD Q_OK "\xc0\x0c" RR_A), 0 },
	{ "not an answer",
	  BYTES("\0\0\x01\x80\0\1\0\1\0\0\0\0" Q_OK "\xc0\x0c" RR_A),
	  -EBADMSG },
	{ "truncated",
	  BYTES("\0\0\x83\x80\0\1\0\1\0\0\0\0" Q_OK "\xc0\x0c" RR_A),
	  -EBADMSG },
	{ "no question", BYTES("\0\0\x81\x80\0\0\0\0\0\0\0\0"), -EBADMSG },
	{ "other name", BYTES(ANSWER_HEAD "\2ok\3net\0" A_IN "\xc0\x0c" RR_A),
	  -EBADMSG },
	{ "other case", BYTES(ANSWER_HEAD "\2oK\3com\0" A_IN "\xc0\x0c" RR_A),
	  -EBADMSG },
	{ "other type",
	  BYTES(ANSWER_HEAD NAME_OK "\0\x1c\0\1"
				    "\xc0\x0c" RR_A),
	  -EBADMSG },
	{ "other class",
	  BYTES(ANSWER_HEAD NAME_OK "\0\1\0\3"
				    "\xc0\x0c" RR_A),
	  -EBADMSG },
	{ "pointer to itself", BYTES(ANSWER_HEAD Q_OK "\xc0\x18" RR_A),
	  -EBADMSG },
	{ "pointer forward", BYTES(ANSWER_HEAD Q_OK "\xc0\x20" RR_A),
	  -EBADMSG },
	{ "pointer into the header", BYTES(ANSWER_HEAD Q_OK "\xc0\x02" RR_A),
	  -EBADMSG },
	{ "pointer past the end", BYTES(ANSWER_HEAD Q_OK "\xff\xff" RR_A),
	  -EBADMSG },
	{ "label, then pointer to it",
	  BYTES(ANSWER_HEAD Q_OK "\1a\xc0\x18" RR_A), -EBADMSG },
	{ "A of 3 bytes",
	  BYTES(ANSWER_HEAD Q_OK "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\3\1\2\3"),
	  -EBADMSG },
	{ "CNAME with bytes after it",
	  BYTES(ANSWER_HEAD Q_OK "\xc0\x0c\0\5\0\1\0\0\0\x3c\0\3\xc0\x0c\0"),
	  -EBADMSG },
	{ "bytes past the end", BYTES(ANSWER_HEAD Q_OK "\xc0\x0c" RR_A "x"),
	  -EBADMSG },
	{ "rdata past the end",
	  BYTES(ANSWER_HEAD Q_OK "\xc0\x0c\0\x10\0\1\0\0\0\x3c\xff\xff\1"),
	  -EBADMSG },
};

static void test_raw_answers(void **state)
{
	struct dns_answer answer;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(raw); i++)
		if (dns_answer_parse(raw[i].data, raw[i].len, "ok.com", DNS_A,
				     &answer, NULL) != raw[i].expect)
			fail_msg("%s", raw[i].what);
}

/* A long ladder of pointers, each to the one before it. */
static void test_pointer_ladder(void **state)
{
	uint8_t buf[2048];
	struct wirebuf b = wirebuf_of(buf, sizeof(buf));
	struct name name;

	(void)state;
	wirebuf_put(&b, "header......\0", 13);
	for (unsigned at = 12; at < 400; at += at == 12 ? 1 : 2)
		wirebuf_u16(&b, (uint16_t)(0xc000 | at));
	struct wire message = wire_of(buf, b.len);
	struct wire w = wire_of(buf + b.len - 2, 2);
	assert_false(name_read(&w, &message, &name));
	w = wire_of(buf + 13 + 2 * 20, 2); /* twenty steps are fine */
	assert_true(name_read(&w, &message, &name));
	assert_int_equal(name.len, 1);
	assert_int_equal(w.left, 0);
}

static void test_many_records(void **state)
{
	uint8_t buf[8192];
	struct wirebuf b = wirebuf_of(buf, sizeof(buf));
	struct dns_answer answer;

	(void)state;
	for (unsigned n = 1; n <= 300; n += n < 64 ? 21 : 236) {
		b = wirebuf_of(buf, sizeof(buf));
		wirebuf_put(&b, "\0\0\x81\x80\0\1", 6);
		wirebuf_u16(&b, (uint16_t)n);
		wirebuf_u32(&b, 0);
		wirebuf_put(&b, BYTES(Q_OK));
		for (unsigned i = 0; i < n; i++)
			wirebuf_put(&b, BYTES("\xc0\x0c" RR_A));
		int got = dns_answer_parse(buf, b.len, "ok.com", DNS_A, &answer,
					   NULL);
		assert_int_equal(got, n <= 64 ? 0 : -EBADMSG);
		if (!got)
			assert_true(answer.count <= LOOKUP_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_raw_answers),
		cmocka_unit_test(test_pointer_ladder),
		cmocka_unit_test(test_many_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
