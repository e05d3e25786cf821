/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_dns_answer.c - what a name server may send back to "a.ok.com".
 */
#include <stdlib.h>

#include "dns/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_addresses(const uint8_t *data, size_t size, uint16_t type)
{
	struct dns_answer answer;

	if (dns_answer_parse(data, size, "a.ok.com", type, &answer, NULL))
		return;
	must(answer.count <= LOOKUP_MAX && answer.rcode < 16);
	must(!answer.count || answer.rcode == DNS_NOERROR);
	must(!(answer.ttl >> 31));
	for (size_t j = 0; j < answer.count; j++)
		must(answer.ip[j].len == (type == DNS_A ? 4 : 16));
}

/* What is passed on reads the same once more, and without the message it came
 * in: nothing in it is compressed or left over. */
static void check_record(uint16_t type, const struct rdata *rdata)
{
	const struct wire alone = wire_of(rdata->data, rdata->len);
	static const struct wire nothing;
	struct rdata again;

	must(rdata->len && rdata->len <= LOOKUP_RDATA_MAX);
	must(rdata_parse(type, alone, &nothing, &again) == RDATA_OK);
	must(again.len == rdata->len &&
	     memcmp(again.data, rdata->data, rdata->len) == 0);
}

static void check_reply(uint16_t type, const struct dns_records *records)
{
	struct dns_query query = { .type = type, .class = DNS_IN };
	const struct dns_reply reply = { .kind = DNS_REPLY_RECORDS,
					 .record = records->at,
					 .records = records->count };
	uint8_t buf[DNS_REPLY_TCP_MAX];

	name_from_host("a.ok.com", &query.name);
	/* All of it fits by TCP; by UDP nothing does, or all. */
	for (size_t i = 0; i < 2; i++) {
		size_t cap = i ? 512 : sizeof(buf);
		size_t len = dns_reply_build(&query, &reply, buf, cap);
		struct wire w = wire_of(buf, len);

		wire_u16(&w);
		bool cut = wire_u16(&w) & 0x200;
		wire_u16(&w);
		must(wire_u16(&w) == (cut ? 0 : records->count));
		must(len && len <= cap && (i || !cut));
	}
}

static void check_records(const uint8_t *data, size_t size, uint16_t type)
{
	static struct dns_records records;
	struct dns_answer answer;

	if (dns_answer_parse(data, size, "a.ok.com", type, &answer, &records))
		return;
	must(!answer.count && records.count <= LOOKUP_RECORDS_MAX);
	must(!records.count || answer.rcode == DNS_NOERROR);
	must(!(answer.ttl >> 31));
	for (size_t i = 0; i < records.count; i++)
		check_record(type, &records.at[i]);
	if (records.count)
		check_reply(type, &records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_addresses(data, size, DNS_A);
	check_addresses(data, size, DNS_AAAA);
	check_records(data, size, DNS_TXT);
	check_records(data, size, DNS_MX);
	check_records(data, size, DNS_SRV);
	return 0;
}
