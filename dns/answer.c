/* SPDX-License-Identifier: Apache-2.0
 *
 * answer.c - from an answer to addresses or records.
 *
 * The whole message is read once, in order, and must be well-formed to its last
 * byte; then the chain is followed: an alias of the name, or its records. A
 * record whose owner is not on the chain is not ours and is passed over.
 */
#include "dns/answer.h"

#include <errno.h>

#define RECORDS_MAX 64
#define CHAIN_MAX   16

#define FLAG_QR	    0x8000u
#define FLAG_OPCODE 0x7800u
#define FLAG_TC	    0x0200u
#define FLAG_RD	    0x0100u

/* Whoever owns it and what it says, of one record of the answer section. */
struct record {
	struct name owner;
	uint16_t type;
	uint32_t ttl;
	struct name alias; /* CNAME */
	struct ip ip;	   /* A, AAAA */
	struct wire rdata; /* TXT, MX, SRV: checked */
};

struct records {
	const struct wire *message;
	uint16_t type; /* asked for */
	struct record at[RECORDS_MAX];
	size_t count;
};

size_t dns_question_build(const char *host, uint16_t type, uint16_t id,
			  void *buf)
{
	struct wirebuf b = wirebuf_of(buf, DNS_QUESTION_MAX);
	struct name name;

	name_from_host(host, &name);
	wirebuf_u16(&b, id);
	wirebuf_u16(&b, FLAG_RD);
	wirebuf_u16(&b, 1);
	wirebuf_u16(&b, 0);
	wirebuf_u16(&b, 0);
	wirebuf_u16(&b, 1);
	wirebuf_put(&b, name.wire, name.len);
	wirebuf_u16(&b, type);
	wirebuf_u16(&b, DNS_IN);
	wirebuf_u8(&b, 0);
	wirebuf_u16(&b, DNS_OPT);
	wirebuf_u16(&b, DNS_REPLY_MAX);
	wirebuf_u32(&b, 0);
	wirebuf_u16(&b, 0);
	return b.len;
}

/* A TTL with its highest bit set means 0 (RFC 2181 section 8). */
static uint32_t ttl_of(uint32_t sent)
{
	return sent >> 31 ? 0 : sent;
}

static bool read_rdata(struct wire *rdata, const struct records *records,
		       struct record *record)
{
	size_t len = rdata->left;
	const uint8_t *bytes;
	struct rdata scratch;

	switch (record->type) {
	case DNS_CNAME:
		return name_read(rdata, records->message, &record->alias) &&
		       !rdata->left;
	case DNS_A:
	case DNS_AAAA:
		if (len != (record->type == DNS_A ? 4 : 16))
			return false;
		bytes = wire_take(rdata, len);
		record->ip.len = (uint8_t)len;
		memcpy(record->ip.byte, bytes, len);
		return true;
	case DNS_TXT:
	case DNS_MX:
	case DNS_SRV:
		record->rdata = *rdata;
		return record->type != records->type ||
		       rdata_parse(record->type, *rdata, records->message,
				   &scratch) != RDATA_BAD;
	default:
		return true;
	}
}

/* Keeps @record, if it may be of use. */
static bool keep(struct records *records, const struct record *record)
{
	bool asked = record->type == records->type;

	if (record->type != DNS_CNAME && !record->ip.len && !asked)
		return true;
	if (records->count < RECORDS_MAX)
		records->at[records->count++] = *record;
	else if (!asked || record->ip.len)
		return false;
	/* Of other records, the first ones do. */
	return true;
}

static bool read_answers(struct wire *w, uint16_t count,
			 struct records *records)
{
	for (uint16_t i = 0; i < count; i++) {
		struct record record = { .type = 0 };

		if (!name_read(w, records->message, &record.owner))
			return false;
		record.type = wire_u16(w);
		uint16_t class = wire_u16(w);
		record.ttl = ttl_of(wire_u32(w));
		struct wire rdata = wire_sub(w, wire_u16(w));
		if (!wire_ok(w))
			return false;
		if (class != DNS_IN)
			continue;
		if (!read_rdata(&rdata, records, &record) ||
		    !keep(records, &record))
			return false;
	}
	return true;
}

/* The other sections: an SOA says how long there is nothing, an OPT that the
 * server speaks EDNS. */
static bool read_rest(struct wire *w, const struct wire *message,
		      uint32_t count, struct dns_answer *answer)
{
	struct name name;

	for (uint32_t i = 0; i < count; i++) {
		if (!name_read(w, message, &name))
			return false;
		uint16_t type = wire_u16(w);
		wire_u16(w);
		uint32_t ttl = ttl_of(wire_u32(w));
		struct wire rdata = wire_sub(w, wire_u16(w));
		if (!wire_ok(w))
			return false;
		if (type == DNS_OPT)
			answer->edns = true;
		if (type != DNS_SOA)
			continue;
		if (!name_read(&rdata, message, &name) ||
		    !name_read(&rdata, message, &name) || rdata.left != 20)
			return false;
		wire_take(&rdata, 16);
		uint32_t minimum = ttl_of(wire_u32(&rdata));
		answer->ttl = ttl < minimum ? ttl : minimum;
	}
	return true;
}

/* The alias of @name. False if there are two different ones. */
static bool find_alias(const struct records *records, const struct name *name,
		       const struct record **ret_alias)
{
	*ret_alias = NULL;
	for (size_t i = 0; i < records->count; i++) {
		const struct record *record = &records->at[i];

		if (record->type != DNS_CNAME ||
		    !name_equal(&record->owner, name))
			continue;
		if (*ret_alias &&
		    !name_equal(&(*ret_alias)->alias, &record->alias))
			return false;
		*ret_alias = record;
	}
	return true;
}

static void take_addresses(const struct records *records,
			   const struct name *name, uint16_t type, uint32_t ttl,
			   struct dns_answer *answer)
{
	for (size_t i = 0; i < records->count; i++) {
		const struct record *record = &records->at[i];

		if (record->type != type || !name_equal(&record->owner, name) ||
		    answer->count == LOOKUP_MAX)
			continue;
		if (record->ttl < ttl)
			ttl = record->ttl;
		answer->ip[answer->count++] = record->ip;
	}
	if (answer->count)
		answer->ttl = ttl;
}

static void take_records(const struct records *records, const struct name *name,
			 uint32_t ttl, struct dns_answer *answer,
			 struct dns_records *to)
{
	bool any = false;

	for (size_t i = 0; i < records->count; i++) {
		const struct record *record = &records->at[i];

		if (record->type != records->type ||
		    !name_equal(&record->owner, name) ||
		    to->count == LOOKUP_RECORDS_MAX)
			continue;
		if (record->ttl < ttl)
			ttl = record->ttl;
		any = true;
		if (rdata_parse(record->type, record->rdata, records->message,
				&to->at[to->count]) == RDATA_OK)
			to->count++;
	}
	if (any)
		answer->ttl = ttl;
}

static bool follow(const struct records *records, const struct name *host,
		   struct dns_answer *answer, struct dns_records *to)
{
	const struct name *name = host;
	uint32_t ttl = UINT32_MAX;

	for (unsigned i = 0; i < CHAIN_MAX; i++) {
		const struct record *alias;

		if (!find_alias(records, name, &alias))
			return false;
		if (!alias) {
			if (rdata_known(records->type))
				take_records(records, name, ttl, answer, to);
			else
				take_addresses(records, name, records->type,
					       ttl, answer);
			return true;
		}
		if (alias->ttl < ttl)
			ttl = alias->ttl;
		name = &alias->alias;
	}
	return false; /* it goes in a circle, or too far */
}

/* The question must be ours, byte for byte. */
static bool read_question(struct wire *w, const char *host, uint16_t type)
{
	struct name name, expected;

	name_from_host(host, &expected);
	return name_read_plain(w, &name) && name_equal(&name, &expected) &&
	       wire_u16(w) == type && wire_u16(w) == DNS_IN && wire_ok(w);
}

int dns_answer_parse(const void *data, size_t len, const char *host,
		     uint16_t type, struct dns_answer *ret_answer,
		     struct dns_records *ret_records)
{
	const struct wire message = wire_of(data, len);
	struct wire w = message;
	struct dns_answer answer = { .rcode = 0 };
	struct records records;
	struct name name;

	records.message = &message;
	records.type = type;
	records.count = 0;
	if (ret_records)
		ret_records->count = 0;
	wire_u16(&w); /* the id, which was compared */
	uint16_t flags = wire_u16(&w);
	uint16_t questions = wire_u16(&w);
	uint16_t answers = wire_u16(&w);
	uint32_t rest = wire_u16(&w);
	rest += wire_u16(&w);
	if (!wire_ok(&w) || !(flags & FLAG_QR) ||
	    (flags & (FLAG_OPCODE | FLAG_TC)) || questions != 1 ||
	    !read_question(&w, host, type) ||
	    !read_answers(&w, answers, &records) ||
	    !read_rest(&w, &message, rest, &answer) || w.left)
		return -EBADMSG;
	answer.rcode = flags & 0xf;
	name_from_host(host, &name);
	if (answer.rcode == DNS_NOERROR &&
	    !follow(&records, &name, &answer, ret_records))
		return -EBADMSG;
	*ret_answer = answer;
	return 0;
}
