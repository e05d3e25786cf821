/* SPDX-License-Identifier: Apache-2.0
 *
 * message.c - one strict parser, one builder.
 *
 * A question is one question, without anything beside it but one OPT, and ends
 * where the message ends: whatever else it may have carried could be read
 * differently by somebody else.
 */
#include "dns/message.h"

#include <assert.h>

#include "policy/services.h"

#define FLAG_QR 0x8000u
#define FLAG_TC 0x0200u
#define FLAG_RD 0x0100u
#define FLAG_RA 0x0080u
#define FLAG_CD 0x0010u

#define UDP_SIZE_MIN 512
#define OPTION_EDE   15
#define EDE_TEXT_MAX 400

static_assert(DNS_REPLY_TCP_MAX >
		      DNS_HEADER_LEN + NAME_MAX_WIRE + 4 +
			      LOOKUP_RECORDS_MAX * (12 + LOOKUP_RDATA_MAX) +
			      11 + 6 + EDE_TEXT_MAX,
	      "all that is looked up fits");

/* A compression pointer to the question's name. */
#define POINTER_QNAME (0xc000u | DNS_HEADER_LEN)

static enum dns_parse parse_opt(struct wire *w, struct dns_query *query)
{
	uint8_t owner = wire_u8(w);
	uint16_t type = wire_u16(w);
	uint16_t size = wire_u16(w);
	uint32_t ttl = wire_u32(w); /* extended rcode, version, flags */
	struct wire options = wire_sub(w, wire_u16(w));

	if (!wire_ok(w) || owner || type != DNS_OPT)
		return DNS_PARSE_FORMERR;
	while (options.left && wire_ok(&options)) {
		wire_u16(&options);
		wire_take(&options, wire_u16(&options));
	}
	if (!wire_ok(&options))
		return DNS_PARSE_FORMERR;
	query->edns = true;
	query->udp_size = size < UDP_SIZE_MIN ? UDP_SIZE_MIN : size;
	return (ttl >> 16 & 0xff) ? DNS_PARSE_BADVERS : DNS_PARSE_OK;
}

enum dns_parse dns_query_parse(const void *data, size_t len,
			       struct dns_query *ret_query)
{
	struct wire w = wire_of(data, len);
	struct dns_query *q = ret_query;
	enum dns_parse opt = DNS_PARSE_OK;

	memset(q, 0, sizeof(*q));
	q->udp_size = UDP_SIZE_MIN;
	q->id = wire_u16(&w);
	uint16_t flags = wire_u16(&w);
	uint16_t questions = wire_u16(&w);
	uint16_t records = wire_u16(&w) | wire_u16(&w);
	uint16_t additional = wire_u16(&w);
	if (!wire_ok(&w) || (flags & FLAG_QR))
		return DNS_PARSE_IGNORE;
	q->rd = flags & FLAG_RD;
	q->cd = flags & FLAG_CD;
	q->opcode = flags >> 11 & 0xf;
	if (q->opcode)
		return DNS_PARSE_NOTIMP;
	if (questions != 1 || records || additional > 1)
		return DNS_PARSE_FORMERR;

	struct name name;
	if (!name_read_plain(&w, &name))
		return DNS_PARSE_FORMERR;
	uint16_t type = wire_u16(&w);
	uint16_t class = wire_u16(&w);
	if (!wire_ok(&w))
		return DNS_PARSE_FORMERR;
	q->name = name;
	q->type = type;
	q->class = class;
	if (additional)
		opt = parse_opt(&w, q);
	if (opt == DNS_PARSE_FORMERR || w.left || type == DNS_OPT)
		return DNS_PARSE_FORMERR;
	return opt;
}

static void put_name(struct wirebuf *b, const struct name *name)
{
	wirebuf_put(b, name->wire, name->len);
}

static void put_record(struct wirebuf *b, uint16_t type, uint32_t ttl,
		       const void *rdata, size_t len)
{
	wirebuf_u16(b, POINTER_QNAME);
	wirebuf_u16(b, type);
	wirebuf_u16(b, DNS_IN);
	wirebuf_u32(b, ttl);
	wirebuf_u16(b, (uint16_t)len);
	wirebuf_put(b, rdata, len);
}

static void put_addresses(struct wirebuf *b, const struct dns_reply *reply)
{
	for (size_t i = 0; i < reply->addresses; i++) {
		const struct ip *ip = &reply->address[i];

		put_record(b, ip->len == 4 ? DNS_A : DNS_AAAA, reply->ttl,
			   ip->byte, ip->len);
	}
}

static void put_answer(struct wirebuf *b, const struct dns_query *query,
		       const struct dns_reply *reply)
{
	static const char hinfo[] = "\x0d"
				    "ANY obsoleted\x0c"
				    "See RFC 8482";
	struct name target;

	switch (reply->kind) {
	case DNS_REPLY_ADDRESS:
		put_addresses(b, reply);
		break;
	case DNS_REPLY_RECORDS:
		for (size_t i = 0; i < reply->records; i++)
			put_record(b, query->type, reply->ttl,
				   reply->record[i].data, reply->record[i].len);
		break;
	case DNS_REPLY_HINFO:
		put_record(b, DNS_HINFO, reply->ttl, hinfo, sizeof(hinfo) - 1);
		break;
	case DNS_REPLY_PTR:
		name_from_host(reply->target, &target);
		put_record(b, DNS_PTR, reply->ttl, target.wire, target.len);
		break;
	case DNS_REPLY_EMPTY:
		break;
	}
}

/* Lets clients remember briefly that there is nothing (RFC 2308). The zone is
 * the parent of the name asked, so that it can be missing itself. */
static void put_soa(struct wirebuf *b, const struct dns_query *query,
		    uint32_t ttl)
{
	static const uint8_t names[] = "\x09sallyport\x07invalid\x00"
				       "\x06nobody\x07invalid";
	unsigned parent = DNS_HEADER_LEN;

	if (query->name.wire[0])
		parent += 1u + query->name.wire[0];
	wirebuf_u16(b, (uint16_t)(0xc000u | parent));
	wirebuf_u16(b, DNS_SOA);
	wirebuf_u16(b, DNS_IN);
	wirebuf_u32(b, ttl);
	wirebuf_u16(b, (uint16_t)(sizeof(names) + 20));
	wirebuf_put(b, names, sizeof(names));
	wirebuf_u32(b, 1);    /* serial */
	wirebuf_u32(b, 3600); /* refresh, retry, expire: nobody transfers it */
	wirebuf_u32(b, 600);
	wirebuf_u32(b, 86400);
	wirebuf_u32(b, ttl);
}

static void put_opt(struct wirebuf *b, const struct dns_reply *reply,
		    bool with_text)
{
	const char *text = with_text && reply->ede_text ? reply->ede_text : "";
	size_t len = strnlen(text, EDE_TEXT_MAX);

	wirebuf_u8(b, 0);
	wirebuf_u16(b, DNS_OPT);
	wirebuf_u16(b, DNS_REPLY_MAX);
	wirebuf_u32(b, (uint32_t)(reply->rcode >> 4) << 24);
	if (reply->ede == DNS_EDE_NONE) {
		wirebuf_u16(b, 0);
		return;
	}
	wirebuf_u16(b, (uint16_t)(4 + 2 + len));
	wirebuf_u16(b, OPTION_EDE);
	wirebuf_u16(b, (uint16_t)(2 + len));
	wirebuf_u16(b, (uint16_t)reply->ede);
	wirebuf_put(b, text, len);
}

static size_t count_answers(const struct dns_reply *reply)
{
	switch (reply->kind) {
	case DNS_REPLY_EMPTY:
		return 0;
	case DNS_REPLY_ADDRESS:
		return reply->addresses;
	case DNS_REPLY_RECORDS:
		return reply->records;
	default:
		return 1;
	}
}

/* What is left out, the least important first. */
enum cut { CUT_NOTHING, CUT_TEXT, CUT_RECORDS };

static size_t build(const struct dns_query *query,
		    const struct dns_reply *reply, void *buf, size_t cap,
		    enum cut cut)
{
	struct wirebuf b = wirebuf_of(buf, cap);
	bool question = query->name.len > 0;
	bool records = question && cut < CUT_RECORDS;
	size_t answers = records ? count_answers(reply) : 0;
	bool soa =
		records && !answers &&
		(reply->rcode == DNS_NOERROR || reply->rcode == DNS_NXDOMAIN);
	unsigned flags = FLAG_QR | FLAG_RA | (reply->rcode & 0xfu) |
			 (unsigned)query->opcode << 11;

	flags |= (query->rd ? FLAG_RD : 0) | (query->cd ? FLAG_CD : 0) |
		 (cut == CUT_RECORDS ? FLAG_TC : 0);
	wirebuf_u16(&b, query->id);
	wirebuf_u16(&b, (uint16_t)flags);
	wirebuf_u16(&b, question);
	wirebuf_u16(&b, (uint16_t)answers);
	wirebuf_u16(&b, soa);
	wirebuf_u16(&b, query->edns);
	if (question) {
		put_name(&b, &query->name);
		wirebuf_u16(&b, query->type);
		wirebuf_u16(&b, query->class);
	}
	if (answers)
		put_answer(&b, query, reply);
	if (soa)
		put_soa(&b, query, reply->ttl);
	if (query->edns)
		put_opt(&b, reply, cut == CUT_NOTHING);
	return b.full ? 0 : b.len;
}

size_t dns_reply_build(const struct dns_query *query,
		       const struct dns_reply *reply, void *buf, size_t cap)
{
	size_t len = 0;

	for (enum cut cut = CUT_NOTHING; !len && cut <= CUT_RECORDS; cut++)
		len = build(query, reply, buf, cap, cut);
	return len;
}
