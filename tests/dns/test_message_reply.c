/* SPDX-License-Identifier: Apache-2.0
 *
 * test_message_reply.c - what we write ldns must read.
 */
#include "tests/dns/message_case.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reply_address),
		cmocka_unit_test(test_reply_other_kinds),
		cmocka_unit_test(test_reply_denied),
		cmocka_unit_test(test_reply_fits),
		cmocka_unit_test(test_reply_to_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
