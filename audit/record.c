/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c - an event as one message, and back; and messages in packs.
 *
 * The sender may be a gate that a sandbox took over, so the ledger believes
 * nothing: every field has one spelling, and what is left over is an error.
 * Numbers are kept below 2^53 (I-JSON), so that each reader of the log sees
 * the number that was written.
 *
 *	magic seq kind allow reason observed door sandbox flow time
 *	src dst status qtype rcode answers up down duration count pid ech
 *	rule rule_text host protocol sni method target detail process
 *
 * A string is its length (16 bits) and its bytes; NO_STRING is NULL.
 */
#include "audit/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define MAGIC	   0x53505234u /* "SPR4" */
#define NO_STRING  0xffffu
#define NUMBER_MAX ((UINT64_C(1) << 53) - 1)

/* The strings of an event in the order of the message, and their limits. */
static const struct string_field {
	size_t offset;
	uint16_t max;
} strings[] = {
	{ offsetof(struct audit_event, rule), 512 },
	{ offsetof(struct audit_event, rule_text), 512 },
	{ offsetof(struct audit_event, host), 512 },
	{ offsetof(struct audit_event, protocol), 32 },
	{ offsetof(struct audit_event, sni), 512 },
	{ offsetof(struct audit_event, method), 64 },
	{ offsetof(struct audit_event, target), 4096 },
	{ offsetof(struct audit_event, detail), 1024 },
	{ offsetof(struct audit_event, process), 32 },
};
/* Their sum is 7296: 896 bytes of a message are left for the numbers. */

static const char *get_string(const struct audit_event *event, size_t i)
{
	const char *s;

	memcpy(&s, (const char *)event + strings[i].offset, sizeof(s));
	return s;
}

static void set_string(struct audit_event *event, size_t i, const char *s)
{
	memcpy((char *)event + strings[i].offset, &s, sizeof(s));
}

static uint64_t clamp(uint64_t v)
{
	return v < NUMBER_MAX ? v : NUMBER_MAX;
}

uint64_t record_sum(uint64_t a, uint64_t b)
{
	return clamp(clamp(a) + clamp(b));
}

static void put_ip(struct wirebuf *b, const struct ip *ip)
{
	static const uint8_t none[sizeof(ip->byte)];
	uint8_t len = ip->len == 4 || ip->len == 16 ? ip->len : 0;

	wirebuf_u8(b, len);
	wirebuf_put(b, ip->byte, len);
	wirebuf_put(b, none, sizeof(none) - len);
}

/* What is too long ends in a mark that says how long it was. */
static void put_string(struct wirebuf *b, const char *s, size_t max)
{
	char mark[32];
	size_t len;
	int n;

	if (!s) {
		wirebuf_u16(b, NO_STRING);
		return;
	}
	len = strlen(s);
	if (len <= max) {
		wirebuf_u16(b, (uint16_t)len);
		wirebuf_put(b, s, len);
		return;
	}
	n = snprintf(mark, sizeof(mark), "...[of %zu]", len);
	if (n < 0 || (size_t)n > max)
		n = 0;
	wirebuf_u16(b, (uint16_t)max);
	wirebuf_put(b, s, max - (size_t)n);
	wirebuf_put(b, mark, (size_t)n);
}

static void put_numbers(struct wirebuf *b, const struct audit_event *event,
			uint64_t seq)
{
	uint8_t answers = event->answers;

	if (answers > EVENT_ANSWERS_MAX)
		answers = EVENT_ANSWERS_MAX;
	wirebuf_u32(b, MAGIC);
	wirebuf_u64(b, seq);
	wirebuf_u8(b, (uint8_t)event->kind);
	wirebuf_u8(b, event->verdict.allow);
	wirebuf_u16(b, (uint16_t)event->verdict.reason);
	wirebuf_u16(b, (uint16_t)event->verdict.observed);
	wirebuf_u8(b, (uint8_t)event->door);
	wirebuf_u32(b, event->sandbox);
	wirebuf_u64(b, event->flow);
	wirebuf_u64(b, clamp(event->time_ms));
	put_ip(b, &event->src_ip);
	put_ip(b, &event->dst_ip);
	wirebuf_u16(b, event->src_port);
	wirebuf_u16(b, event->dst_port);
	wirebuf_u16(b, event->status);
	wirebuf_u16(b, event->qtype);
	wirebuf_u8(b, event->rcode);
	wirebuf_u8(b, answers);
	for (uint8_t i = 0; i < answers; i++)
		put_ip(b, &event->answer[i]);
	wirebuf_u64(b, clamp(event->bytes_up));
	wirebuf_u64(b, clamp(event->bytes_down));
	wirebuf_u64(b, clamp(event->duration_ms));
	wirebuf_u32(b, event->count);
	wirebuf_u32(b, event->pid);
	wirebuf_u8(b, event->ech);
}

size_t record_encode(const struct audit_event *event, uint64_t seq,
		     uint8_t buf[RECORD_MESSAGE_MAX])
{
	struct wirebuf b = wirebuf_of(buf, RECORD_MESSAGE_MAX);
	struct audit_event named = *event;

	if (named.verdict.rule && !named.rule)
		named.rule = rule_origin(named.verdict.rule);
	if (named.verdict.rule && !named.rule_text)
		named.rule_text = rule_text(named.verdict.rule);
	put_numbers(&b, &named, seq);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		put_string(&b, get_string(&named, i), strings[i].max);
	return b.len;
}

size_t record_pack(const struct audit_event *event, uint64_t seq,
		   uint8_t buf[RECORD_PACKED_MAX])
{
	struct wirebuf b = wirebuf_of(buf, RECORD_PACKED_MAX);
	size_t len = record_encode(event, seq, buf + 2);

	wirebuf_u16(&b, (uint16_t)len);
	return b.len + len;
}

int record_unpack(struct wire *pack, struct wire *ret_message)
{
	if (wire_ok(pack) && !pack->left)
		return 0;
	*ret_message = wire_sub(pack, wire_u16(pack));
	return wire_ok(pack) ? 1 : -EBADMSG;
}

static struct ip take_ip(struct wire *w)
{
	static const uint8_t none[16];
	struct ip ip = { .len = wire_u8(w) };
	const uint8_t *byte = wire_take(w, sizeof(ip.byte));

	if (!byte || (ip.len != 0 && ip.len != 4 && ip.len != 16)) {
		w->bad = true;
		return (struct ip){ .len = 0 };
	}
	memcpy(ip.byte, byte, sizeof(ip.byte));
	if (memcmp(byte + ip.len, none, sizeof(none) - ip.len) != 0)
		w->bad = true;
	return ip;
}

/* A value that must be below @limit. */
static uint64_t below(struct wire *w, uint64_t v, uint64_t limit)
{
	if (v < limit)
		return v;
	w->bad = true;
	return 0;
}

bool record_relaxable(enum reason reason)
{
	switch (reason) {
	case REASON_NOT_IN_POLICY:
	case REASON_DENY_RULE:
	case REASON_PORT:
	case REASON_METHOD:
	case REASON_PATH:
		return true;
	default:
		return false;
	}
}

bool record_cuts(enum reason reason)
{
	return reason == REASON_POLICY_REVOKED ||
	       reason == REASON_LIMIT_BYTES || reason == REASON_EXPIRED;
}

/* Nothing is let through for a reason to refuse it: who counts by the one and
 * who counts by the other would count differently. Only observe mode has let
 * pass what it would have refused, and it says why: a policy that is learned
 * from the log rests on it. */
static bool verdict_ok(const struct verdict *verdict)
{
	if (verdict->allow && !reason_info(verdict->reason)->allow)
		return false;
	if (verdict->reason != REASON_OBSERVE)
		return verdict->observed == REASON_RULE;
	return verdict->allow && record_relaxable(verdict->observed);
}

static void take_verdict(struct wire *w, struct verdict *verdict)
{
	verdict->allow = below(w, wire_u8(w), 2) != 0;
	verdict->reason = (enum reason)below(w, wire_u16(w), REASON_COUNT);
	verdict->observed = (enum reason)below(w, wire_u16(w), REASON_COUNT);
	if (!verdict_ok(verdict))
		w->bad = true;
}

static void take_numbers(struct wire *w, struct audit_event *event,
			 uint64_t *ret_seq)
{
	below(w, wire_u32(w) ^ MAGIC, 1);
	*ret_seq = wire_u64(w);
	event->kind = (enum event_kind)below(w, wire_u8(w), EVENT_KIND_COUNT);
	take_verdict(w, &event->verdict);
	event->door = (enum door)below(w, wire_u8(w), DOOR_COUNT);
	event->sandbox = wire_u32(w);
	event->flow = wire_u64(w);
	event->time_ms = below(w, wire_u64(w), NUMBER_MAX + 1);
	event->src_ip = take_ip(w);
	event->dst_ip = take_ip(w);
	event->src_port = wire_u16(w);
	event->dst_port = wire_u16(w);
	event->status = wire_u16(w);
	event->qtype = wire_u16(w);
	event->rcode = wire_u8(w);
	event->answers = (uint8_t)below(w, wire_u8(w), EVENT_ANSWERS_MAX + 1);
	for (uint8_t i = 0; i < event->answers; i++)
		event->answer[i] = take_ip(w);
	event->bytes_up = below(w, wire_u64(w), NUMBER_MAX + 1);
	event->bytes_down = below(w, wire_u64(w), NUMBER_MAX + 1);
	event->duration_ms = below(w, wire_u64(w), NUMBER_MAX + 1);
	event->count = wire_u32(w);
	event->pid = wire_u32(w);
	event->ech = below(w, wire_u8(w), 2) != 0;
	if (event->kind == 0 || *ret_seq == 0)
		w->bad = true;
}

/* Copies the next string to *@text and moves it on. With each string comes a
 * length of two bytes, which pays for the NUL here. */
static const char *take_string(struct wire *w, size_t max, char **text)
{
	uint16_t len = wire_u16(w);
	const uint8_t *from;
	char *to = *text;

	if (len == NO_STRING)
		return NULL;
	if (len > max)
		w->bad = true;
	from = wire_take(w, len);
	if (!from || memchr(from, '\0', len)) {
		w->bad = true;
		return NULL;
	}
	memcpy(to, from, len);
	to[len] = '\0';
	*text += len + 1;
	return to;
}

int record_decode(const uint8_t *data, size_t len,
		  struct audit_event *ret_event, uint64_t *ret_seq,
		  char text[RECORD_MESSAGE_MAX])
{
	struct wire w = wire_of(data, len);

	if (len > RECORD_MESSAGE_MAX)
		return -EBADMSG;
	memset(ret_event, 0, sizeof(*ret_event));
	take_numbers(&w, ret_event, ret_seq);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		set_string(ret_event, i,
			   take_string(&w, strings[i].max, &text));
	return wire_ok(&w) && !w.left ? 0 : -EBADMSG;
}

void record_ack_encode(uint64_t seq, uint8_t buf[RECORD_ACK_LEN])
{
	struct wirebuf b = wirebuf_of(buf, RECORD_ACK_LEN);

	wirebuf_u64(&b, seq);
}

int record_ack_decode(const uint8_t *data, size_t len, uint64_t *ret_seq)
{
	struct wire w = wire_of(data, len);
	uint64_t seq = wire_u64(&w);

	if (!wire_ok(&w) || w.left)
		return -EBADMSG;
	*ret_seq = seq;
	return 0;
}

#define DIGEST_TEXT   "sha256:"
#define DIGEST_DIGITS 64

char *record_policy_detail(const char *old_digest, const char *new_digest,
			   char buf[RECORD_POLICY_DETAIL_MAX])
{
	snprintf(buf, RECORD_POLICY_DETAIL_MAX,
		 "policy " DIGEST_TEXT "%.64s -> " DIGEST_TEXT "%.64s",
		 old_digest, new_digest);
	return buf;
}

const char *record_policy_digest(const char *detail)
{
	static const char arrow[] = " -> " DIGEST_TEXT;
	const char *at = detail ? strstr(detail, arrow) : NULL;

	if (!at)
		return NULL;
	at += sizeof(arrow) - 1;
	if (strlen(at) != DIGEST_DIGITS ||
	    strspn(at, "0123456789abcdef") != DIGEST_DIGITS)
		return NULL;
	return at;
}
