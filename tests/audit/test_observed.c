/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of the log and back: what record_format() says is what is observed,
 * and nothing else is a record.
 */
#include "audit/observed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"

static const struct record_context context = {
	.session = "5e551071",
	.sandbox_name = "run",
	.policy_digest = "00",
	.policy_name = "p",
	.boundary = "netns",
};

static char line[RECORD_LINE_MAX];

static struct audit_event sample(enum event_kind kind, enum reason reason)
{
	return (struct audit_event){
		.kind = kind,
		.sandbox = 3,
		.flow = UINT64_MAX,
		.time_ms = 1775014138811,
		.verdict = { .allow = reason_info(reason)->allow,
			     .reason = reason,
			     .observed = reason == REASON_OBSERVE
						 ? REASON_PATH
						 : REASON_RULE },
		.door = DOOR_SOCKS,
		.rule = "policy.yaml:12",
		.host = "api.example.com",
		.src_ip = ip_v4(0x0a000002),
		.dst_ip = ip_v4(0xcb007105),
		.dst_port = 8443,
		.protocol = "tls",
		.method = "GET",
		.target = "/a?b",
		.qtype = 16,
	};
}

static enum observed parse(const struct audit_event *event,
			   struct observation *ret)
{
	size_t len = record_format(event, 1, &context, line, sizeof(line));
	AUTO_FREE char *copy = malloc(len); /* not one byte more */

	assert_true(len > 0);
	memcpy(copy, line, len);
	return observed_parse(copy, len, ret);
}

/* Each kind with each reason. */
static void test_round_trip(void **state)
{
	struct observation o;

	(void)state;
	for (int kind = EVENT_DNS_QUERY; kind <= EVENT_HTTP_REQUEST; kind++) {
		for (int reason = 0; reason < REASON_COUNT; reason++) {
			struct audit_event event = sample((enum event_kind)kind,
							  (enum reason)reason);
			bool dns = kind == EVENT_DNS_QUERY ||
				   kind == EVENT_DNS_ANSWER;

			if (kind == EVENT_FLOW_PROGRESS)
				continue;
			assert_int_equal(parse(&event, &o), OBSERVED_OK);
			assert_int_equal(o.kind, kind);
			assert_int_equal(o.verdict.reason, reason);
			assert_int_equal(o.verdict.allow, event.verdict.allow);
			assert_int_equal(o.verdict.observed,
					 event.verdict.observed);
			assert_int_equal(o.door, DOOR_SOCKS);
			assert_string_equal(o.host, "api.example.com");
			assert_int_equal(o.time_ms, 1775014138811);
			assert_int_equal(o.sandbox, 3);
			assert_string_equal(o.type, dns ? "TXT" : "");
			assert_int_equal(o.port, dns ? 0 : 8443);
			assert_true(o.flow == (dns ? 0 : UINT64_MAX));
			assert_string_equal(
				o.path, kind == EVENT_HTTP_REQUEST ? "/a" : "");
			if (!dns)
				assert_true(
					ip_equal(&o.address, &event.dst_ip));
		}
	}
}

static void test_others(void **state)
{
	static const enum event_kind kinds[] = {
		EVENT_SESSION_OPEN, EVENT_SESSION_CLOSE, EVENT_FLOW_PROGRESS,
		EVENT_FINDING,	    EVENT_POLICY,
	};
	struct observation o;
	struct audit_event event;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		event = sample(kinds[i], REASON_RULE);
		assert_int_equal(parse(&event, &o), OBSERVED_OTHER);
		assert_int_equal(o.kind, kinds[i]);
		assert_int_equal(o.time_ms, event.time_ms);
		assert_int_equal(o.sandbox, event.sandbox);
	}
	event = sample(EVENT_PACKET, REASON_PORT);
	assert_int_equal(parse(&event, &o), OBSERVED_OK);
	assert_int_equal(o.port, 8443);
	event.host = NULL;
	assert_int_equal(parse(&event, &o), OBSERVED_OTHER);
}

static void test_no_host(void **state)
{
	struct audit_event event = sample(EVENT_FLOW_OPEN, REASON_RULE);
	struct observation o;

	(void)state;
	event.host = NULL;
	assert_int_equal(parse(&event, &o), OBSERVED_OK);
	assert_string_equal(o.host, "");
	assert_false(o.strange);
	/* What is no name is refused, and is not repeated. */
	event.verdict = (struct verdict){ .reason = REASON_MALFORMED };
	event.host = "a\n- b.example";
	assert_int_equal(parse(&event, &o), OBSERVED_OK);
	assert_string_equal(o.host, "");
	assert_true(o.strange);
	event.verdict = (struct verdict){ .allow = true };
	assert_int_equal(parse(&event, &o), OBSERVED_BAD);
	/* A refusal may know no port. */
	event = sample(EVENT_FLOW_OPEN, REASON_MALFORMED);
	event.dst_port = 0;
	assert_int_equal(parse(&event, &o), OBSERVED_OK);
	event.verdict = (struct verdict){ .allow = true };
	assert_int_equal(parse(&event, &o), OBSERVED_BAD);
	event = sample(EVENT_FLOW_OPEN, REASON_RULE);
	event.flow = 0;
	assert_int_equal(parse(&event, &o), OBSERVED_BAD);
}

static enum observed parse_with(const char *from, const char *to)
{
	struct audit_event event = sample(EVENT_FLOW_OPEN, REASON_OBSERVE);
	size_t len = record_format(&event, 1, &context, line, sizeof(line) - 1);
	struct observation o;
	AUTO_FREE char *other = NULL;
	char *at;

	line[len] = '\0';
	at = strstr(line, from);
	if (!at)
		fail_msg("no %s in %s", from, line);
	*at = '\0';
	assert_true(asprintf(&other, "%s%s%s", line, to, at + strlen(from)) >
		    0);
	return observed_parse(other, strlen(other), &o);
}

/* One field that is not as it must be. */
static void test_odd_fields(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "\"name\":\"sallyport\"", "\"name\":\"other\"" },
		{ "\"status_code\":\"observe\"", "\"status_code\":\"rule\"" },
		{ "\"status_code\":\"observe\"", "\"status_code\":\"x\"" },
		{ "\"status_code\":\"observe\"", "\"status_code\":2" },
		{ "\"status_code\":\"observe\"",
		  "\"status_code\":\"not_in_policy\"" },
		{ "\"status_id\":1", "\"status_id\":2" },
		{ "\"status_id\":1", "\"status_id\":-1" },
		{ "\"observed\":\"path\"", "\"observed\":\"malformed\"" },
		{ "\"observed\":\"path\"", "\"observed\":\"rule\"" },
		{ "\"observed\":\"path\"", "\"seen\":\"path\"" },
		{ "\"observed\":\"path\"",
		  "\"observed\":\"path\",\"observed\":\"port\"" },
		{ "\"door\":\"socks\"", "\"door\":\"window\"" },
		{ "\"event\":\"flow_open\"", "\"event\":\"flow\"" },
		{ "\"port\":8443", "\"port\":65536" },
		{ "\"port\":8443", "\"port\":0" },
		{ "\"port\":8443", "\"port\":\"8443\"" },
		{ "\"ip\":\"203.0.113.5\"", "\"ip\":\"203.0.113\"" },
		{ "\"uid\":\"18446744073709551615\"", "\"uid\":\"-1\"" },
		{ "\"uid\":\"18446744073709551615\"",
		  "\"uid\":\"18446744073709551616\"" },
		{ "\"uid\":\"18446744073709551615\"", "\"uid\":\"1x\"" },
		{ "\"sandbox_id\":3", "\"sandbox_id\":4294967296" },
		{ "\"time\":1775014138811", "\"time\":-1" },
		{ "\"correlation_uid\":\"5e551071\"", "\"x\":1" },
		{ "\"hostname\":\"api.example.com\"",
		  "\"hostname\":\"*.example.com\"" },
		{ "\"hostname\":\"api.example.com\"",
		  "\"hostname\":\"a\\u0000.example.com\"" },
	};

	(void)state;
	assert_int_equal(parse_with("\"hostname\":\"api.example.com\"",
				    "\"hostname\":\"API.example.com.\""),
			 OBSERVED_OK);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (parse_with(cases[i].from, cases[i].to) != OBSERVED_BAD)
			fail_msg("accepted: %s", cases[i].to);
}

/* Every prefix, each changed byte, and what is too long. */
static void test_mutations(void **state)
{
	struct audit_event event = sample(EVENT_HTTP_REQUEST, REASON_OBSERVE);
	size_t len = record_format(&event, 1, &context, line, sizeof(line));
	char *copy = malloc(OBSERVED_LINE_MAX + 1);
	struct observation o;

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(observed_parse(line, cut, &o), OBSERVED_BAD);
	for (size_t i = 0; i < len; i++) {
		char was = line[i];

		line[i] = '\0';
		assert_int_equal(observed_parse(line, len, &o), OBSERVED_BAD);
		line[i] = was;
	}
	memset(copy, ' ', OBSERVED_LINE_MAX + 1);
	memcpy(copy, line, len);
	assert_int_equal(observed_parse(copy, OBSERVED_LINE_MAX, &o),
			 OBSERVED_OK);
	assert_int_equal(observed_parse(copy, OBSERVED_LINE_MAX + 1, &o),
			 OBSERVED_BAD);
	memset(copy, '[', OBSERVED_LINE_MAX);
	assert_int_equal(observed_parse(copy, OBSERVED_LINE_MAX, &o),
			 OBSERVED_BAD);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_no_host),
		cmocka_unit_test(test_odd_fields),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
