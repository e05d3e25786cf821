/* SPDX-License-Identifier: Apache-2.0
 *
 * test_oracle.c - the fuzzers' seeds, damaged at random, read by us and by
 * ldns. What both can read they must read alike: the question that is judged,
 * and the addresses that are dialled. And what we write, ldns reads.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <ldns/ldns.h>

#include "base/cleanup.h"
#include "dns/answer.h"
#include "dns/message.h"

#define HOST   "a.ok.com"
#define ROUNDS 40000
#define SEEDS  64
#define CAP    4096
#define CHAIN  16

static uint64_t state_of_chance = 88172645463325252u;

static uint32_t chance(uint32_t below)
{
	state_of_chance ^= state_of_chance << 13;
	state_of_chance ^= state_of_chance >> 7;
	state_of_chance ^= state_of_chance << 17;
	return (uint32_t)(state_of_chance >> 32) % below;
}

/* --- seeds and damage ----------------------------------------------------- */

struct seeds {
	uint8_t data[SEEDS][CAP];
	size_t len[SEEDS], count;
};

static struct seeds seeds;

static void read_seeds(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	seeds.count = 0;
	assert_non_null(dir);
	while ((entry = readdir(dir)) && seeds.count < SEEDS) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		AUTO_FILE FILE *file = fopen(path, "rb");
		assert_non_null(file);
		seeds.len[seeds.count] =
			fread(seeds.data[seeds.count], 1, CAP / 2, file);
		seeds.count += seeds.len[seeds.count] > 12;
	}
	closedir(dir);
	assert_true(seeds.count > 10);
}

static size_t damage(uint8_t *m, size_t len)
{
	static const uint8_t odd[] = { 0, 1, 0x3f, 0x40, 0xc0, 0x0c, 0xff, 28 };
	size_t at = chance((uint32_t)len), n = 1 + chance(6);

	switch (chance(6)) {
	case 0:
		m[at] = (uint8_t)chance(256);
		break;
	case 1:
		m[at] ^= (uint8_t)(1u << chance(8));
		break;
	case 2:
		m[at] = odd[chance(sizeof(odd))];
		break;
	case 3:
		m[at] ^= 0x20;
		break;
	case 4:
		if (len < at + n + 13)
			break;
		memmove(m + at, m + at + n, len - at - n);
		return len - n;
	default:
		/* What is there, once more: records, labels. */
		n = 1 + chance(24);
		if (at + n > len || len + n > CAP)
			break;
		memmove(m + at + n, m + at, len - at);
		return len + n;
	}
	return len;
}

static size_t next_message(unsigned round, uint8_t *m)
{
	size_t which = round % seeds.count, len = seeds.len[which];

	memcpy(m, seeds.data[which], len);
	for (unsigned n = round < seeds.count ? 0 : chance(4); n; n--)
		len = damage(m, len);
	return len;
}

struct count {
	unsigned both, ours, theirs, none;
};

static void print_count(const char *what, const struct count *n)
{
	print_message("%s: both read %u, only we %u, only ldns %u, nobody %u\n",
		      what, n->both, n->ours, n->theirs, n->none);
}

/* --- questions ------------------------------------------------------------ */

static void same_question(const struct dns_query *q, const ldns_pkt *pkt)
{
	const ldns_rr_list *list = ldns_pkt_question(pkt);
	const ldns_rr *rr;
	const ldns_rdf *name;

	assert_int_equal(ldns_rr_list_rr_count(list), 1);
	rr = ldns_rr_list_rr(list, 0);
	name = ldns_rr_owner(rr);
	assert_int_equal(q->id, ldns_pkt_id(pkt));
	assert_int_equal(q->rd, ldns_pkt_rd(pkt));
	assert_int_equal(q->cd, ldns_pkt_cd(pkt));
	assert_int_equal(ldns_pkt_get_opcode(pkt), LDNS_PACKET_QUERY);
	assert_int_equal(q->type, ldns_rr_get_type(rr));
	assert_int_equal(q->class, ldns_rr_get_class(rr));
	assert_int_equal(q->name.len, ldns_rdf_size(name));
	assert_memory_equal(q->name.wire, ldns_rdf_data(name), q->name.len);
	assert_int_equal(ldns_pkt_ancount(pkt), 0);
	assert_int_equal(ldns_pkt_nscount(pkt), 0);
}

/* Our answer to @q, with two addresses, as ldns reads it. */
static void check_reply(const struct dns_query *q)
{
	struct dns_reply reply = { .kind = DNS_REPLY_ADDRESS,
				   .addresses = 2,
				   .ttl = 60 };
	uint8_t buf[DNS_REPLY_MAX];
	ldns_pkt *pkt = NULL;
	size_t len;

	reply.address[0] = ip_v4(0xc6120007);
	assert_true(ip_parse("2001:db8::1", &reply.address[1]));
	len = dns_reply_build(q, &reply, buf, sizeof(buf));
	assert_int_equal(ldns_wire2pkt(&pkt, buf, len), LDNS_STATUS_OK);
	assert_int_equal(ldns_pkt_id(pkt), q->id);
	assert_true(ldns_pkt_qr(pkt));
	assert_int_equal(ldns_pkt_ancount(pkt), 2);
	for (size_t i = 0; i < 2; i++) {
		const ldns_rr *rr = ldns_rr_list_rr(ldns_pkt_answer(pkt), i);
		const ldns_rdf *rdf = ldns_rr_rdf(rr, 0);

		assert_int_equal(ldns_rdf_size(rdf), reply.address[i].len);
		assert_memory_equal(ldns_rdf_data(rdf), reply.address[i].byte,
				    reply.address[i].len);
		assert_int_equal(
			ldns_dname_compare(ldns_rr_owner(rr),
					   ldns_rr_owner(ldns_rr_list_rr(
						   ldns_pkt_question(pkt), 0))),
			0);
	}
	ldns_pkt_free(pkt);
}

static void test_questions(void **state)
{
	struct count count = { 0 };

	(void)state;
	read_seeds(FUZZ_FOLDER "/dns_query");
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t m[CAP];
		size_t len = next_message(i, m);
		struct dns_query q;
		enum dns_parse ours = dns_query_parse(m, len, &q);
		ldns_pkt *pkt = NULL;
		bool theirs = ldns_wire2pkt(&pkt, m, len) == LDNS_STATUS_OK;

		if (ours == DNS_PARSE_OK && theirs) {
			same_question(&q, pkt);
			check_reply(&q);
		}
		count.both += ours == DNS_PARSE_OK && theirs;
		count.ours += ours == DNS_PARSE_OK && !theirs;
		count.theirs += ours != DNS_PARSE_OK && theirs;
		count.none += ours != DNS_PARSE_OK && !theirs;
		ldns_pkt_free(pkt);
	}
	print_count("questions", &count);
	assert_int_equal(count.ours, 0);
	assert_true(count.both > ROUNDS / 10 && count.none > ROUNDS / 50);
}

/* --- answers -------------------------------------------------------------- */

/* Where @name's alias leads to in @list; NULL: it has none. */
static const ldns_rdf *alias_of(const ldns_rr_list *list, const ldns_rdf *name)
{
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
		const ldns_rr *rr = ldns_rr_list_rr(list, i);

		if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_CNAME &&
		    ldns_rr_get_class(rr) == LDNS_RR_CLASS_IN &&
		    ldns_dname_compare(ldns_rr_owner(rr), name) == 0)
			return ldns_rr_rdf(rr, 0);
	}
	return NULL;
}

/* The addresses of HOST as ldns reads them, in their order. */
static size_t theirs_of(const ldns_pkt *pkt, uint16_t type, struct ip *ret_ip,
			size_t max)
{
	const ldns_rr_list *list = ldns_pkt_answer(pkt);
	ldns_rdf *host = ldns_dname_new_frm_str(HOST);
	const ldns_rdf *name = host, *next;
	size_t n = 0;

	for (unsigned i = 0; (next = alias_of(list, name)); i++) {
		assert_true(i < CHAIN);
		name = next;
	}
	for (size_t i = 0; i < ldns_rr_list_rr_count(list) && n < max; i++) {
		const ldns_rr *rr = ldns_rr_list_rr(list, i);

		if ((uint16_t)ldns_rr_get_type(rr) != type ||
		    ldns_rr_get_class(rr) != LDNS_RR_CLASS_IN ||
		    ldns_dname_compare(ldns_rr_owner(rr), name) != 0)
			continue;
		ret_ip[n].len = (uint8_t)ldns_rdf_size(ldns_rr_rdf(rr, 0));
		memcpy(ret_ip[n].byte, ldns_rdf_data(ldns_rr_rdf(rr, 0)),
		       ret_ip[n].len);
		n++;
	}
	ldns_rdf_deep_free(host);
	return n;
}

static void same_addresses(const struct dns_answer *ours, const ldns_pkt *pkt,
			   uint16_t type)
{
	struct ip ip[LOOKUP_MAX];
	size_t n;

	assert_int_equal(ours->rcode, ldns_pkt_get_rcode(pkt));
	if (ours->rcode)
		return;
	n = theirs_of(pkt, type, ip, LOOKUP_MAX);
	assert_int_equal(ours->count, n);
	for (size_t i = 0; i < n; i++)
		assert_true(ip_equal(&ours->ip[i], &ip[i]));
}

static void test_answers(void **state)
{
	static const uint16_t types[] = { DNS_A, DNS_AAAA };
	struct count count = { 0 };
	unsigned addresses = 0;

	(void)state;
	read_seeds(FUZZ_FOLDER "/dns_answer");
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t m[CAP];
		size_t len = next_message(i, m);
		ldns_pkt *pkt = NULL;
		bool theirs = ldns_wire2pkt(&pkt, m, len) == LDNS_STATUS_OK;

		for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
			struct dns_answer answer;
			bool ours = !dns_answer_parse(m, len, HOST, types[t],
						      &answer, NULL);

			if (ours && theirs)
				same_addresses(&answer, pkt, types[t]);
			addresses += ours && theirs ? answer.count > 0 : 0;
			count.both += ours && theirs;
			count.ours += ours && !theirs;
			count.theirs += !ours && theirs;
			count.none += !ours && !theirs;
		}
		ldns_pkt_free(pkt);
	}
	print_count("answers", &count);
	print_message("with addresses: %u\n", addresses);
	assert_true(addresses > ROUNDS / 50 && count.none > ROUNDS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
