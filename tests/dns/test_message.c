/* SPDX-License-Identifier: Apache-2.0
 *
 * test_message.c - the wire formats, with libldns as the second opinion: what
 * ldns writes we must read, what we write ldns must read.
 */
#include <errno.h>
#include <ldns/ldns.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "dns/answer.h"

#define HEADER(flags, qd, an, ns, ar) \
	"\x12\x34" flags "\x00" qd "\x00" an "\x00" ns "\x00" ar
#define PLAIN	 HEADER("\x01\x00", "\x01", "\x00", "\x00", "\x00")
#define WITH_OPT HEADER("\x01\x00", "\x01", "\x00", "\x00", "\x01")
#define NAME_OK  \
	"\x02"   \
	"ok\x03" \
	"com\x00"
#define A_IN	 "\x00\x01\x00\x01"
#define BYTES(s) s, sizeof(s) - 1
#define L63    \
	"\x3f" \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *what;
	const char *data;
	size_t len;
	enum dns_parse expect;
} queries[] = {
	{ "plain", BYTES(PLAIN NAME_OK A_IN), DNS_PARSE_OK },
	{ "with OPT",
	  BYTES(WITH_OPT NAME_OK A_IN "\0\x00\x29\x10\x00\0\0\0\0\0\0"),
	  DNS_PARSE_OK },
	{ "with a cookie",
	  BYTES(WITH_OPT NAME_OK A_IN
		"\0\x00\x29\x10\x00\0\0\0\0\0\x0c\0\x0a\0\x08"
		"abcdefgh"),
	  DNS_PARSE_OK },
	{ "option longer than OPT",
	  BYTES(WITH_OPT NAME_OK A_IN
		"\0\x00\x29\x10\x00\0\0\0\0\0\x0c\0\x0a\0\x09"
		"abcdefgh"),
	  DNS_PARSE_FORMERR },
	{ "OPT that is cut off",
	  BYTES(WITH_OPT NAME_OK A_IN "\0\x00\x29\x10\x00\0\0\0\0\0"),
	  DNS_PARSE_FORMERR },
	{ "OPT with an owner",
	  BYTES(WITH_OPT NAME_OK A_IN "\1a\0\x00\x29\x10\x00\0\0\0\0\0\0"),
	  DNS_PARSE_FORMERR },
	{ "EDNS version 1",
	  BYTES(WITH_OPT NAME_OK A_IN "\0\x00\x29\x10\x00\0\1\0\0\0\0"),
	  DNS_PARSE_BADVERS },
	{ "no header", BYTES("\x12\x34\x01\x00\0\1\0\0\0\0\0"),
	  DNS_PARSE_IGNORE },
	{ "nothing", BYTES(""), DNS_PARSE_IGNORE },
	{ "an answer",
	  BYTES(HEADER("\x81\x00", "\x01", "\0", "\0", "\0") NAME_OK A_IN),
	  DNS_PARSE_IGNORE },
	{ "NOTIFY",
	  BYTES(HEADER("\x21\x00", "\x01", "\0", "\0", "\0") NAME_OK A_IN),
	  DNS_PARSE_NOTIMP },
	{ "no question", BYTES(HEADER("\x01\x00", "\0", "\0", "\0", "\0")),
	  DNS_PARSE_FORMERR },
	{ "two questions",
	  BYTES(HEADER("\x01\x00", "\x02", "\0", "\0", "\0")
			NAME_OK A_IN NAME_OK A_IN),
	  DNS_PARSE_FORMERR },
	{ "an answer record",
	  BYTES(HEADER("\x01\x00", "\x01", "\x01", "\0", "\0") NAME_OK A_IN),
	  DNS_PARSE_FORMERR },
	{ "an authority record",
	  BYTES(HEADER("\x01\x00", "\x01", "\0", "\x01", "\0") NAME_OK A_IN),
	  DNS_PARSE_FORMERR },
	{ "bytes past the end", BYTES(PLAIN NAME_OK A_IN "x"),
	  DNS_PARSE_FORMERR },
	{ "name that ends nowhere", BYTES(PLAIN "\x02ok"), DNS_PARSE_FORMERR },
	{ "label that ends nowhere", BYTES(PLAIN "\x09ok"), DNS_PARSE_FORMERR },
	{ "pointer in the question", BYTES(PLAIN "\xc0\x0c" A_IN),
	  DNS_PARSE_FORMERR },
	{ "label type 0x40", BYTES(PLAIN "\x41x\x00" A_IN), DNS_PARSE_FORMERR },
	{ "label type 0x80", BYTES(PLAIN "\x81x\x00" A_IN), DNS_PARSE_FORMERR },
	{ "name of 255 bytes",
	  BYTES(PLAIN L63 L63 L63
		"\x3d"
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		"\0" A_IN),
	  DNS_PARSE_OK },
	{ "name of 256 bytes",
	  BYTES(PLAIN L63 L63 L63
		"\x3e"
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		"\0" A_IN),
	  DNS_PARSE_FORMERR },
	{ "OPT as a question type", BYTES(PLAIN NAME_OK "\x00\x29\x00\x01"),
	  DNS_PARSE_FORMERR },
};

static void test_query_parse(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		struct dns_query query;
		enum dns_parse got = dns_query_parse(queries[i].data,
						     queries[i].len, &query);

		if (got != queries[i].expect)
			fail_msg("%s: %d", queries[i].what, got);
	}
}

static const struct {
	const char *wire;
	size_t len;
	const char *host; /* NULL: none */
	const char *text;
} names[] = {
	{ BYTES("\2ok\3com\0"), "ok.com", "ok.com" },
	{ BYTES("\2oK\3COM\0"), "ok.com", "oK.COM" },
	{ BYTES("\0"), NULL, "." },
	{ BYTES("\7evil\0ok\3com\0"), NULL, "evil\\000ok.com" },
	{ BYTES("\7evil.ok\3com\0"), NULL, "evil\\046ok.com" },
	{ BYTES("\6ok.com\0"), NULL, "ok\\046com" },
	{ BYTES("\3o k\3com\0"), NULL, "o\\032k.com" },
	{ BYTES("\3\x1b[m\3com\0"), NULL, "\\027[m.com" },
	{ BYTES("\2\xc3\xa9\3com\0"), NULL, "\\195\\169.com" },
	{ BYTES("\1*\3com\0"), NULL, "*.com" },
	{ BYTES("\3a\\b\1\"\0"), NULL, "a\\092b.\\034" },
	{ BYTES("\1\n\1\r\0"), NULL, "\\010.\\013" },
	{ BYTES("\3"
		"127\1"
		"0\1"
		"0\1"
		"1\0"),
	  NULL, NULL },
	{ BYTES("\5_http\4_tcp\2ok\3com\0"), "_http._tcp.ok.com",
	  "_http._tcp.ok.com" },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct wire w = wire_of(names[i].wire, names[i].len);
		struct name name, back;
		char host[HOST_MAX + 1] = "untouched", text[NAME_TEXT_MAX];
		bool ok;

		assert_true(name_read_plain(&w, &name));
		assert_int_equal(w.left, 0);
		ok = name_to_host(&name, host);
		if (ok != (names[i].host != NULL))
			fail_msg("row %zu: %s", i, host);
		assert_string_equal(host, ok ? names[i].host : "untouched");
		if (names[i].text)
			assert_string_equal(name_format(&name, text),
					    names[i].text);
		if (!ok)
			continue;
		name_from_host(host, &back);
		assert_int_equal(back.len, name.len);
	}
}

static void test_longest_text_fits(void **state)
{
	char text[NAME_TEXT_MAX];
	struct name name = { .len = NAME_MAX_WIRE };

	(void)state;
	/* Every label of one odd byte makes the most of it. */
	for (size_t i = 0; i < NAME_MAX_WIRE - 1; i += 2) {
		name.wire[i] = 1;
		name.wire[i + 1] = 0xff;
	}
	name.wire[NAME_MAX_WIRE - 1] = 0;
	assert_true(strlen(name_format(&name, text)) < sizeof(text));
}

/* --- replies, read by ldns ------------------------------------------------ */

static struct dns_query ask(const char *name, uint16_t type, bool edns)
{
	struct dns_query query = { .id = 0x4242,
				   .rd = true,
				   .edns = edns,
				   .udp_size = edns ? DNS_REPLY_MAX : 512,
				   .type = type,
				   .class = DNS_IN };
	const char *label = name;
	uint8_t *to = query.name.wire;

	while (*label) {
		size_t len = strcspn(label, ".");

		*to++ = (uint8_t)len;
		memcpy(to, label, len);
		to += len;
		label += len + (label[len] == '.');
	}
	*to++ = 0;
	query.name.len = (uint8_t)(to - query.name.wire);
	return query;
}

static ldns_pkt *by_ldns(const void *data, size_t len)
{
	ldns_pkt *pkt = NULL;

	assert_int_equal(ldns_wire2pkt(&pkt, data, len), LDNS_STATUS_OK);
	return pkt;
}

static void assert_rr(ldns_rr_list *list, const char *expect)
{
	assert_int_equal(ldns_rr_list_rr_count(list), 1);
	AUTO_FREE char *text = ldns_rr2str(ldns_rr_list_rr(list, 0));
	assert_string_equal(text, expect);
}

static void test_reply_address(void **state)
{
	struct dns_query query = ask("eXaMple.com", DNS_A, false);
	const struct dns_reply reply = { .kind = DNS_REPLY_ADDRESS,
					 .address = { ip_v4(0xc6120001) },
					 .addresses = 1,
					 .ttl = 60 };
	uint8_t buf[DNS_REPLY_MAX];
	size_t len = dns_reply_build(&query, &reply, buf, 512);
	ldns_pkt *pkt = by_ldns(buf, len);

	(void)state;
	assert_int_equal(ldns_pkt_id(pkt), 0x4242);
	assert_true(ldns_pkt_qr(pkt) && ldns_pkt_ra(pkt) && ldns_pkt_rd(pkt));
	assert_false(ldns_pkt_tc(pkt) || ldns_pkt_aa(pkt) || ldns_pkt_ad(pkt));
	assert_int_equal(ldns_pkt_get_rcode(pkt), 0);
	assert_false(ldns_pkt_edns(pkt));
	/* 0x20: the owner is the question's bytes, by a pointer */
	assert_rr(ldns_pkt_answer(pkt),
		  "eXaMple.com.\t60\tIN\tA\t198.18.0.1\n");
	assert_memory_equal(buf + DNS_HEADER_LEN, query.name.wire,
			    query.name.len);
	ldns_pkt_free(pkt);
}

static void test_reply_other_kinds(void **state)
{
	struct dns_query any = ask("ok.com", DNS_ANY, true);
	struct dns_query ptr = ask("1.0.18.198.in-addr.arpa", DNS_PTR, false);
	const struct dns_reply hinfo = { .kind = DNS_REPLY_HINFO, .ttl = 9 };
	const struct dns_reply name = { .kind = DNS_REPLY_PTR,
					.target = "ok.com",
					.ttl = 60 };
	struct dns_query aaaa = ask("ok.com", DNS_AAAA, false);
	struct dns_reply six = { .kind = DNS_REPLY_ADDRESS,
				 .addresses = 1,
				 .ttl = 5 };
	uint8_t buf[DNS_REPLY_MAX];
	ldns_pkt *pkt;

	(void)state;
	pkt = by_ldns(buf, dns_reply_build(&any, &hinfo, buf, 512));
	assert_rr(
		ldns_pkt_answer(pkt),
		"ok.com.\t9\tIN\tHINFO\t\"ANY obsoleted\" \"See RFC 8482\"\n");
	assert_true(ldns_pkt_edns(pkt));
	ldns_pkt_free(pkt);
	pkt = by_ldns(buf, dns_reply_build(&ptr, &name, buf, 512));
	assert_rr(ldns_pkt_answer(pkt),
		  "1.0.18.198.in-addr.arpa.\t60\tIN\tPTR\tok.com.\n");
	ldns_pkt_free(pkt);
	assert_true(ip_parse("2001:db8::1", &six.address[0]));
	pkt = by_ldns(buf, dns_reply_build(&aaaa, &six, buf, 512));
	assert_rr(ldns_pkt_answer(pkt), "ok.com.\t5\tIN\tAAAA\t2001:db8::1\n");
	ldns_pkt_free(pkt);
}

static void test_reply_denied(void **state)
{
	struct dns_query query = ask("evil.com", DNS_A, true);
	const char *why = "not_in_policy: add --allow evil.com";
	const struct dns_reply reply = { .rcode = DNS_NXDOMAIN,
					 .ttl = 10,
					 .ede = DNS_EDE_BLOCKED,
					 .ede_text = why };
	uint8_t buf[DNS_REPLY_MAX];
	ldns_pkt *pkt;

	(void)state;
	pkt = by_ldns(buf, dns_reply_build(&query, &reply, buf, sizeof(buf)));
	assert_int_equal(ldns_pkt_get_rcode(pkt), LDNS_RCODE_NXDOMAIN);
	assert_int_equal(ldns_pkt_ancount(pkt), 0);
	assert_rr(ldns_pkt_authority(pkt),
		  "com.\t10\tIN\tSOA\tsallyport.invalid. nobody.invalid. "
		  "1 3600 600 86400 10\n");
	ldns_rdf *opt = ldns_pkt_edns_data(pkt);
	assert_non_null(opt);
	const uint8_t *data = ldns_rdf_data(opt);
	assert_int_equal(ldns_rdf_size(opt), 6 + strlen(why));
	assert_int_equal(data[1], 15);
	assert_int_equal(data[5], 15);
	assert_memory_equal(data + 6, why, strlen(why));
	ldns_pkt_free(pkt);

	query.edns = false; /* RFC 6891: no OPT to one that sent none */
	pkt = by_ldns(buf, dns_reply_build(&query, &reply, buf, 512));
	assert_false(ldns_pkt_edns(pkt));
	assert_int_equal(ldns_pkt_nscount(pkt), 1);
	ldns_pkt_free(pkt);
}

static void test_reply_fits(void **state)
{
	char name[254], text[301];
	struct dns_query query;
	struct dns_reply reply = { .rcode = DNS_NXDOMAIN,
				   .ede = DNS_EDE_BLOCKED,
				   .ede_text = text };
	uint8_t buf[DNS_REPLY_MAX];

	(void)state;
	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = i % 64 == 63 ? '.' : 'a';
	name[sizeof(name) - 1] = '\0';
	query = ask(name, DNS_A, true);
	/* The text goes first, the rest stays and is whole. */
	size_t len = dns_reply_build(&query, &reply, buf, 512);
	ldns_pkt *pkt = by_ldns(buf, len);
	assert_true(len <= 512);
	assert_false(ldns_pkt_tc(pkt));
	assert_int_equal(ldns_pkt_nscount(pkt), 1);
	ldns_pkt_free(pkt);
	/* A record too big for the client is TC without it. */
	query.type = DNS_PTR;
	reply = (struct dns_reply){ .kind = DNS_REPLY_PTR, .target = name };
	len = dns_reply_build(&query, &reply, buf, 512);
	pkt = by_ldns(buf, len);
	assert_true(len <= 512);
	assert_true(ldns_pkt_tc(pkt));
	assert_int_equal(ldns_pkt_ancount(pkt), 0);
	ldns_pkt_free(pkt);
	len = dns_reply_build(&query, &reply, buf, sizeof(buf));
	pkt = by_ldns(buf, len);
	assert_false(ldns_pkt_tc(pkt));
	assert_int_equal(ldns_pkt_ancount(pkt), 1);
	ldns_pkt_free(pkt);
}

static void test_reply_to_garbage(void **state)
{
	struct dns_query query;
	struct dns_reply reply = { .rcode = DNS_FORMERR };
	uint8_t buf[DNS_REPLY_MAX];

	(void)state;
	assert_int_equal(dns_query_parse(BYTES(PLAIN "\xc0\x0c"), &query),
			 DNS_PARSE_FORMERR);
	assert_int_equal(dns_reply_build(&query, &reply, buf, 512), 12);
	assert_memory_equal(buf, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", 12);
	query = ask("ok.com", DNS_A, true);
	reply.rcode = DNS_BADVERS;
	ldns_pkt *pkt = by_ldns(buf, dns_reply_build(&query, &reply, buf, 512));
	assert_int_equal(ldns_pkt_get_rcode(pkt), 0);
	assert_int_equal(ldns_pkt_edns_extended_rcode(pkt), 1);
	ldns_pkt_free(pkt);
}

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
		cmocka_unit_test(test_query_parse),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_longest_text_fits),
		cmocka_unit_test(test_reply_address),
		cmocka_unit_test(test_reply_other_kinds),
		cmocka_unit_test(test_reply_denied),
		cmocka_unit_test(test_reply_fits),
		cmocka_unit_test(test_reply_to_garbage),
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_raw_answers),
		cmocka_unit_test(test_pointer_ladder),
		cmocka_unit_test(test_many_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
