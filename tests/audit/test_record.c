/* SPDX-License-Identifier: Apache-2.0
 *
 * The binary form: what goes in comes out, and nothing else comes in.
 */
#include "audit/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

static struct audit_event full_event(void)
{
	struct audit_event event = {
		.kind = EVENT_DNS_ANSWER,
		.sandbox = 0xdeadbeef,
		.flow = UINT64_MAX,
		.time_ms = 1775014138811,
		.verdict = { .allow = true,
			     .reason = REASON_OBSERVE,
			     .observed = REASON_PORT },
		.door = DOOR_SOCKS,
		.rule = "policy.yaml:12",
		.rule_text = "*.example.com",
		.host = "api.example.com",
		.src_ip = ip_v4(0x0a000002),
		.src_port = 40000,
		.dst_port = 443,
		.protocol = "tls",
		.sni = "",
		.method = "GET",
		.target = "/a?b=c",
		.status = 404,
		.qtype = 65,
		.rcode = 3,
		.answers = 2,
		.bytes_up = 1,
		.bytes_down = (UINT64_C(1) << 53) - 1,
		.duration_ms = 7,
		.count = UINT32_MAX,
		.detail = NULL,
		.pid = UINT32_MAX,
		.process = "nft",
	};

	assert_true(ip_parse("2001:db8::1", &event.dst_ip));
	event.answer[0] = ip_v4(0xc6120007);
	assert_true(ip_parse("2001:db8::2", &event.answer[1]));
	return event;
}

static void assert_text(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

static void assert_same(const struct audit_event *a,
			const struct audit_event *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->sandbox, b->sandbox);
	assert_true(a->flow == b->flow && a->time_ms == b->time_ms);
	assert_int_equal(a->verdict.allow, b->verdict.allow);
	assert_int_equal(a->verdict.reason, b->verdict.reason);
	assert_int_equal(a->verdict.observed, b->verdict.observed);
	assert_int_equal(a->door, b->door);
	assert_text(a->rule, b->rule);
	assert_text(a->rule_text, b->rule_text);
	assert_text(a->host, b->host);
	assert_memory_equal(&a->src_ip, &b->src_ip, sizeof(a->src_ip));
	assert_memory_equal(&a->dst_ip, &b->dst_ip, sizeof(a->dst_ip));
	assert_int_equal(a->src_port, b->src_port);
	assert_int_equal(a->dst_port, b->dst_port);
	assert_text(a->protocol, b->protocol);
	assert_text(a->sni, b->sni);
	assert_text(a->method, b->method);
	assert_text(a->target, b->target);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->qtype, b->qtype);
	assert_int_equal(a->rcode, b->rcode);
	assert_int_equal(a->answers, b->answers);
	assert_memory_equal(a->answer, b->answer, sizeof(a->answer));
	assert_true(a->bytes_up == b->bytes_up);
	assert_true(a->bytes_down == b->bytes_down);
	assert_true(a->duration_ms == b->duration_ms);
	assert_int_equal(a->count, b->count);
	assert_text(a->detail, b->detail);
	assert_int_equal(a->pid, b->pid);
	assert_text(a->process, b->process);
}

static void test_round_trip(void **state)
{
	struct audit_event in = full_event(), out;
	uint8_t buf[RECORD_MESSAGE_MAX];
	char text[RECORD_MESSAGE_MAX];
	uint64_t seq = 0;

	(void)state;
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		in.kind = (enum event_kind)kind;
		size_t len = record_encode(&in, UINT64_MAX, buf);

		assert_int_equal(record_decode(buf, len, &out, &seq, text), 0);
		assert_true(seq == UINT64_MAX);
		assert_same(&in, &out);
	}
}

/* Nothing but the whole message is a message, and every bit of a number is
 * either data or refused: never a crash, never out of range. */
static void test_mutations(void **state)
{
	struct audit_event in = full_event(), out;
	uint8_t buf[RECORD_MESSAGE_MAX];
	char text[RECORD_MESSAGE_MAX];
	size_t len = record_encode(&in, 5, buf);
	unsigned refused = 0;
	uint64_t seq;

	(void)state;
	for (size_t cut = 0; cut < len; cut++) {
		AUTO_FREE uint8_t *copy = malloc(cut + 1);

		memcpy(copy, buf, cut);
		assert_int_equal(record_decode(copy, cut, &out, &seq, text),
				 -EBADMSG);
	}
	buf[len] = 0;
	assert_int_equal(record_decode(buf, len + 1, &out, &seq, text),
			 -EBADMSG);
	for (size_t bit = 0; bit < len * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (record_decode(buf, len, &out, &seq, text) == 0) {
			assert_in_range(out.kind, 1, EVENT_KIND_COUNT - 1);
			assert_in_range(out.verdict.reason, 0,
					REASON_COUNT - 1);
			assert_in_range(out.door, 0, DOOR_COUNT - 1);
			assert_in_range(out.answers, 0, EVENT_ANSWERS_MAX);
			assert_true(seq != 0);
			assert_true(out.bytes_up < UINT64_C(1) << 53);
		} else {
			refused++;
		}
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(refused > 300);
}

static void test_refused_fields(void **state)
{
	/* Offsets in the message, see record.c. */
	static const struct {
		const char *what;
		size_t at;
		uint8_t value;
	} cases[] = {
		{ "magic", 0, 0 },
		{ "kind 0", 12, 0 },
		{ "kind", 12, EVENT_KIND_COUNT },
		{ "allow", 13, 2 },
		{ "reason", 15, REASON_COUNT },
		{ "reason high", 14, 1 },
		{ "observed", 17, REASON_COUNT },
		{ "observed high", 16, 1 },
		{ "door", 18, DOOR_COUNT },
		{ "time", 31, 0x20 },
		{ "src len", 39, 5 },
		{ "src tail", 44, 1 },
		{ "answers", 82, 9 },
	};
	struct audit_event in = full_event(), out;
	uint8_t buf[RECORD_MESSAGE_MAX];
	char text[RECORD_MESSAGE_MAX];
	uint64_t seq;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t len = record_encode(&in, 5, buf);

		assert_int_equal(record_decode(buf, len, &out, &seq, text), 0);
		buf[cases[i].at] = cases[i].value;
		if (record_decode(buf, len, &out, &seq, text) != -EBADMSG)
			fail_msg("accepted: %s", cases[i].what);
	}
	/* A number 0, and a NUL inside of a string. */
	size_t len = record_encode(&in, 0, buf);
	assert_int_equal(record_decode(buf, len, &out, &seq, text), -EBADMSG);
	len = record_encode(&in, 5, buf);
	uint8_t *host = memmem(buf, len, "api.example", 11);
	assert_non_null(host);
	host[3] = '\0';
	assert_int_equal(record_decode(buf, len, &out, &seq, text), -EBADMSG);
}

/* What observe mode let pass and why is what a policy is learned from: no gate
 * may say it of a name that was never judged so; nor that something was let
 * through for a reason to refuse it. */
static void test_observed(void **state)
{
	struct audit_event in = full_event(), out;
	uint8_t buf[RECORD_MESSAGE_MAX];
	char text[RECORD_MESSAGE_MAX];
	uint64_t seq;

	(void)state;
	for (int i = 0; i < 2 * REASON_COUNT * REASON_COUNT; i++) {
		enum reason reason = (enum reason)(i / 2 % REASON_COUNT);
		enum reason why = (enum reason)(i / 2 / REASON_COUNT);
		bool relaxed = why == REASON_NOT_IN_POLICY ||
			       why == REASON_PORT || why == REASON_DENY_RULE ||
			       why == REASON_METHOD || why == REASON_PATH;
		bool lets = reason == REASON_RULE || reason == REASON_PUBLIC;
		bool good = reason == REASON_OBSERVE
				    ? i % 2 && relaxed
				    : why == REASON_RULE && (!(i % 2) || lets);

		in.verdict = (struct verdict){ .allow = i % 2,
					       .reason = reason,
					       .observed = why };
		size_t len = record_encode(&in, 5, buf);
		int r = record_decode(buf, len, &out, &seq, text);
		if ((r == 0) != good)
			fail_msg("allow %d, %s, observed %s: %d", i % 2,
				 reason_word(reason), reason_word(why), r);
		if (good)
			assert_same(&in, &out);
	}
}

static void test_policy_detail(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"policy sha256:00 -> sha256:00",
		"policy -> sha256:"
		"0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789ABCDEF",
		"policy -> sha256:"
		"0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0",
	};
	char old[65], new[65], buf[RECORD_POLICY_DETAIL_MAX];

	(void)state;
	memset(old, 'a', sizeof(old));
	memset(new, '7', sizeof(new));
	old[64] = new[64] = '\0';
	record_policy_detail(old, new, buf);
	assert_string_equal(record_policy_digest(buf), new);
	assert_non_null(strstr(buf, old));
	assert_null(record_policy_digest(NULL));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(record_policy_digest(bad[i]));
}

static char *filled(size_t len)
{
	char *s = malloc(len + 1);

	memset(s, 'x', len);
	s[len] = '\0';
	return s;
}

static void test_cut(void **state)
{
	AUTO_FREE char *big = filled(100000);
	struct audit_event in = full_event(), out;
	uint8_t buf[RECORD_MESSAGE_MAX];
	char text[RECORD_MESSAGE_MAX];
	uint64_t seq;

	(void)state;
	in.rule = in.rule_text = in.host = in.protocol = in.sni = big;
	in.method = in.target = in.detail = big;
	in.answers = EVENT_ANSWERS_MAX;
	in.bytes_up = UINT64_MAX; /* a difference that went below zero */
	size_t len = record_encode(&in, 1, buf);
	assert_in_range(len, 7000, RECORD_MESSAGE_MAX);
	assert_int_equal(record_decode(buf, len, &out, &seq, text), 0);
	assert_int_equal(strlen(out.host), 512);
	assert_int_equal(strlen(out.target), 4096);
	assert_string_equal(out.target + 4096 - 14, "...[of 100000]");
	assert_string_equal(out.protocol + 32 - 14, "...[of 100000]");
	assert_true(out.bytes_up == (UINT64_C(1) << 53) - 1);
	assert_int_equal(out.answers, EVENT_ANSWERS_MAX);
}

static void test_exact_limit_is_not_cut(void **state)
{
	AUTO_FREE char *fits = filled(512);
	struct audit_event in = full_event(), out;
	uint8_t buf[RECORD_MESSAGE_MAX];
	char text[RECORD_MESSAGE_MAX];
	uint64_t seq;

	(void)state;
	in.host = fits;
	size_t len = record_encode(&in, 1, buf);
	assert_int_equal(record_decode(buf, len, &out, &seq, text), 0);
	assert_string_equal(out.host, fits);
}

static void test_ack(void **state)
{
	uint8_t buf[RECORD_ACK_LEN + 1] = { 0 };
	uint64_t seq = 7;

	(void)state;
	record_ack_encode(UINT64_C(0x0102030405060708), buf);
	assert_int_equal(record_ack_decode(buf, RECORD_ACK_LEN, &seq), 0);
	assert_true(seq == UINT64_C(0x0102030405060708));
	assert_int_equal(record_ack_decode(buf, RECORD_ACK_LEN - 1, &seq),
			 -EBADMSG);
	assert_int_equal(record_ack_decode(buf, RECORD_ACK_LEN + 1, &seq),
			 -EBADMSG);
}

#define PACKED 3

/* Cut anywhere, a pack is what was whole of it, and an error. */
static void check_cut_pack(const uint8_t *data, size_t len, const size_t *end)
{
	struct wire pack = wire_of(data, len), message;
	int n = 0, r;

	while ((r = record_unpack(&pack, &message)) > 0)
		n++;
	for (int i = 0; i <= PACKED; i++) {
		if (len == end[i]) {
			assert_int_equal(n, i);
			assert_int_equal(r, 0);
			return;
		}
		if (len > end[i])
			continue;
		assert_int_equal(n, i - 1);
		assert_int_equal(r, -EBADMSG);
		/* And it stays one. */
		assert_int_equal(record_unpack(&pack, &message), -EBADMSG);
		return;
	}
	fail();
}

static void test_pack(void **state)
{
	static uint8_t buf[PACKED * RECORD_PACKED_MAX];
	struct audit_event in = full_event(), out;
	char text[RECORD_MESSAGE_MAX];
	struct wire pack, message;
	size_t end[PACKED + 1] = { 0 };
	uint64_t seq;

	(void)state;
	for (size_t i = 0; i < PACKED; i++) {
		in.flow = i;
		end[i + 1] = end[i] + record_pack(&in, i + 1, buf + end[i]);
	}
	pack = wire_of(buf, end[PACKED]);
	for (size_t i = 0; i < PACKED; i++) {
		assert_int_equal(record_unpack(&pack, &message), 1);
		assert_int_equal(message.left + 2, end[i + 1] - end[i]);
		assert_int_equal(record_decode(message.at, message.left, &out,
					       &seq, text),
				 0);
		assert_int_equal(seq, i + 1);
		in.flow = i;
		assert_same(&in, &out);
	}
	assert_int_equal(record_unpack(&pack, &message), 0);
	for (size_t len = 0; len <= end[PACKED]; len++)
		check_cut_pack(buf, len, end);
}

/* The longest message fits into what is asked for it. */
static void test_longest_is_packed(void **state)
{
	static char big[20000];
	static uint8_t buf[RECORD_PACKED_MAX];
	struct audit_event in = full_event(), out;
	char text[RECORD_MESSAGE_MAX];
	struct wire pack, message;
	uint64_t seq;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	in.rule = in.rule_text = in.host = in.sni = in.process = big;
	in.protocol = in.method = in.target = in.detail = big;
	in.answers = EVENT_ANSWERS_MAX;
	pack = wire_of(buf, record_pack(&in, 1, buf));
	assert_int_equal(record_unpack(&pack, &message), 1);
	assert_int_equal(
		record_decode(message.at, message.left, &out, &seq, text), 0);
	assert_int_equal(record_unpack(&pack, &message), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_refused_fields),
		cmocka_unit_test(test_observed),
		cmocka_unit_test(test_policy_detail),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_exact_limit_is_not_cut),
		cmocka_unit_test(test_ack),
		cmocka_unit_test(test_pack),
		cmocka_unit_test(test_longest_is_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
