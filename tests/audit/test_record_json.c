/* SPDX-License-Identifier: Apache-2.0
 *
 * The line: valid JSON that a SIEM can read, whatever a sandbox wrote into it.
 */
#include "audit/record.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/cleanup.h"

static const struct record_context context = {
	.session = "0123456789abcdef",
	.sandbox_name = "run",
	.policy_digest = "0123456789abcdef0123456789abcdef"
			 "0123456789abcdef0123456789abcdef",
	.policy_name = "coding-agent",
	.boundary = "netns",
};

/* Formats and parses; checks what must hold for each line. */
static json_t *line_of(const struct audit_event *event, char *buf)
{
	size_t len = record_format(event, 41, &context, buf, RECORD_LINE_MAX);
	json_error_t error;
	json_t *line;

	assert_in_range(len, 1, RECORD_LINE_MAX - 1);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)buf[i];

		assert_true(c >= 0x20 && c != 0x7f);
	}
	line = json_loadb(buf, len, JSON_REJECT_DUPLICATES, &error);
	if (!line)
		fail_msg("%s at %d: %.*s", error.text, error.position, (int)len,
			 buf);
	return line;
}

static json_t *at(json_t *line, const char *path)
{
	AUTO_FREE char *copy = strdup(path);
	char *save = NULL;

	for (char *key = strtok_r(copy, ".", &save); key && line;
	     key = strtok_r(NULL, ".", &save))
		line = json_is_array(line)
			       ? json_array_get(line, (size_t)(*key - '0'))
			       : json_object_get(line, key);
	return line;
}

static void assert_int(json_t *line, const char *path, json_int_t want)
{
	json_t *value = at(line, path);

	if (!json_is_integer(value) || json_integer_value(value) != want)
		fail_msg("%s is %lld, not %lld", path,
			 (long long)json_integer_value(value), (long long)want);
}

static void assert_str(json_t *line, const char *path, const char *want)
{
	const char *value = json_string_value(at(line, path));

	if (!value || strcmp(value, want) != 0)
		fail_msg("%s is %s, not %s", path, value ? value : "(none)",
			 want);
}

static struct audit_event sample(enum event_kind kind, bool allow,
				 enum reason reason)
{
	return (struct audit_event){
		.kind = kind,
		.sandbox = 3,
		.flow = 77,
		.time_ms = 1775014138811,
		.verdict = { .allow = allow,
			     .reason = reason,
			     .observed = reason == REASON_OBSERVE
						 ? REASON_NOT_IN_POLICY
						 : REASON_RULE },
		.door = DOOR_CONNECT,
		.rule = "policy.yaml:12",
		.rule_text = "*.example.com",
		.host = "api.example.com",
		.src_ip = ip_v4(0x0a000002),
		.src_port = 40000,
		.dst_ip = ip_v4(0xcb007105),
		.dst_port = 443,
		.protocol = "tls",
		.sni = "api.example.com",
		.detail = "the detail",
	};
}

struct expected {
	enum event_kind kind;
	bool allow;
	enum reason reason;
	int class, activity, action, disposition, status;
};

/* action 0: the class has none. */
static const struct expected table[] = {
	{ EVENT_SESSION_OPEN, false, REASON_RULE, 6002, 3, 0, 0, 1 },
	{ EVENT_SESSION_CLOSE, false, REASON_RULE, 6002, 4, 0, 0, 1 },
	{ EVENT_DNS_QUERY, true, REASON_RULE, 4003, 1, 1, 1, 1 },
	{ EVENT_DNS_QUERY, false, REASON_NOT_IN_POLICY, 4003, 1, 2, 2, 2 },
	{ EVENT_DNS_ANSWER, true, REASON_RULE, 4003, 2, 1, 1, 1 },
	{ EVENT_DNS_ANSWER, false, REASON_FORBIDDEN_ADDRESS, 4003, 2, 2, 2, 2 },
	{ EVENT_FLOW_OPEN, true, REASON_PUBLIC, 4001, 1, 1, 1, 1 },
	{ EVENT_FLOW_OPEN, true, REASON_OBSERVE, 4001, 1, 3, 17, 1 },
	{ EVENT_FLOW_OPEN, false, REASON_NAME_MISMATCH, 4001, 5, 2, 2, 2 },
	{ EVENT_FLOW_DIAL, true, REASON_RULE, 4001, 1, 1, 1, 1 },
	{ EVENT_FLOW_DIAL, false, REASON_CONNECT_FAILED, 4001, 4, 1, 27, 2 },
	{ EVENT_FLOW_DIAL, false, REASON_FORBIDDEN_ADDRESS, 4001, 5, 2, 2, 2 },
	{ EVENT_FLOW_PROGRESS, true, REASON_RULE, 4001, 6, 1, 1, 1 },
	{ EVENT_FLOW_CLOSE, true, REASON_RULE, 4001, 2, 1, 1, 1 },
	{ EVENT_FLOW_CLOSE, true, REASON_OBSERVE, 4001, 2, 3, 17, 1 },
	{ EVENT_FLOW_CLOSE, false, REASON_NAME_MISMATCH, 4001, 2, 1, 1, 2 },
	{ EVENT_FLOW_CLOSE, false, REASON_TIMEOUT, 4001, 2, 1, 27, 2 },
	/* We cut it. */
	{ EVENT_FLOW_CLOSE, false, REASON_LIMIT_BYTES, 4001, 2, 2, 2, 2 },
	{ EVENT_FLOW_CLOSE, false, REASON_EXPIRED, 4001, 2, 2, 2, 2 },
	{ EVENT_FLOW_CLOSE, false, REASON_POLICY_REVOKED, 4001, 2, 2, 24, 2 },
	{ EVENT_FLOW_OPEN, false, REASON_POLICY_REVOKED, 4001, 5, 2, 24, 2 },
	{ EVENT_DNS_QUERY, true, REASON_OBSERVE, 4003, 1, 3, 17, 1 },
	{ EVENT_HTTP_REQUEST, true, REASON_OBSERVE, 4002, 3, 3, 17, 1 },
	{ EVENT_HTTP_REQUEST, true, REASON_RULE, 4002, 3, 1, 1, 1 },
	{ EVENT_HTTP_REQUEST, false, REASON_PORT, 4002, 3, 2, 2, 2 },
	{ EVENT_PACKET, false, REASON_BYPASS, 4001, 5, 2, 6, 2 },
	{ EVENT_FINDING, false, REASON_MALFORMED, 2004, 1, 0, 0, 1 },
	{ EVENT_POLICY, false, REASON_RULE, 6002, 8, 0, 0, 1 },
};

static void check_common(json_t *line, const struct expected *want)
{
	assert_int(line, "time", 1775014138811);
	assert_int(line, "class_uid", want->class);
	assert_int(line, "category_uid", want->class / 1000);
	assert_int(line, "activity_id", want->activity);
	assert_int(line, "type_uid", want->class * 100 + want->activity);
	assert_true(json_is_integer(at(line, "severity_id")));
	assert_int(line, "status_id", want->status);
	assert_str(line, "metadata.version", "1.8.0");
	assert_str(line, "metadata.product.name", "sallyport");
	assert_str(line, "metadata.product.vendor_name", "sallyport");
	assert_str(line, "metadata.product.version", SALLYPORT_VERSION);
	assert_int(line, "metadata.sequence", 41);
	assert_str(line, "metadata.uid", "0123456789abcdef/41");
	assert_str(line, "metadata.correlation_uid", "0123456789abcdef");
	assert_str(line, "metadata.profiles.0", "security_control");
	assert_str(line, "policy.name", "coding-agent");
	assert_int(line, "unmapped.sandbox_id", 3);
	assert_str(line, "unmapped.sandbox", "run");
	assert_str(line, "unmapped.boundary", "netns");
	assert_str(line, "unmapped.event", event_word(want->kind));
	assert_non_null(at(line, "message"));
	if (want->action) {
		assert_int(line, "action_id", want->action);
		assert_int(line, "disposition_id", want->disposition);
		assert_str(line, "status_code", reason_word(want->reason));
		assert_str(line, "src_endpoint.ip", "10.0.0.2");
		if (want->reason == REASON_OBSERVE) {
			assert_str(line, "unmapped.observed", "not_in_policy");
			assert_str(line, "status_detail",
				   "would be refused: not_in_policy");
		} else {
			assert_null(at(line, "unmapped.observed"));
			assert_null(at(line, "status_detail"));
		}
	} else {
		assert_null(at(line, "action_id"));
	}
}

static void test_every_kind(void **state)
{
	static char buf[RECORD_LINE_MAX];
	unsigned seen = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct audit_event event =
			sample(table[i].kind, table[i].allow, table[i].reason);

		event.method = "GET";
		json_t *line = line_of(&event, buf);
		check_common(line, &table[i]);
		seen |= 1u << table[i].kind;
		json_decref(line);
	}
	assert_int_equal(seen, (1u << EVENT_KIND_COUNT) - 2);
}

static void test_flow(void **state)
{
	static char buf[RECORD_LINE_MAX];
	struct audit_event event = sample(EVENT_FLOW_CLOSE, true, REASON_RULE);

	(void)state;
	event.bytes_up = 1234;
	event.bytes_down = 56789;
	event.duration_ms = 321;
	event.status = 200;
	json_t *line = line_of(&event, buf);
	assert_int(line, "traffic.bytes_out", 1234);
	assert_int(line, "traffic.bytes_in", 56789);
	assert_int(line, "duration", 321);
	assert_str(line, "connection_info.uid", "77");
	assert_str(line, "connection_info.protocol_name", "tcp");
	assert_int(line, "connection_info.direction_id", 2);
	assert_str(line, "unmapped.protocol", "tls");
	assert_str(line, "unmapped.door", door_word(DOOR_CONNECT));
	assert_str(line, "unmapped.detail", "the detail");
	assert_int(line, "unmapped.http_status", 200);
	assert_str(line, "tls.sni", "api.example.com");
	assert_str(line, "dst_endpoint.hostname", "api.example.com");
	assert_str(line, "dst_endpoint.ip", "203.0.113.5");
	assert_int(line, "dst_endpoint.port", 443);
	assert_int(line, "src_endpoint.port", 40000);
	assert_str(line, "firewall_rule.uid", "policy.yaml:12");
	assert_str(line, "firewall_rule.name", "*.example.com");
	assert_str(line, "policy.uid",
		   "sha256:0123456789abcdef0123456789abcdef"
		   "0123456789abcdef0123456789abcdef");
	json_decref(line);
}

static void test_observed_and_cut(void **state)
{
	static char buf[RECORD_LINE_MAX];
	struct audit_event event =
		sample(EVENT_FLOW_OPEN, true, REASON_OBSERVE);
	json_t *line;

	(void)state;
	event.verdict.observed = REASON_PORT;
	line = line_of(&event, buf);
	assert_str(line, "message",
		   "Connection to api.example.com port 443 allowed, would be "
		   "refused: port.");
	assert_str(line, "unmapped.observed", "port");
	json_decref(line);

	event = sample(EVENT_FLOW_CLOSE, false, REASON_POLICY_REVOKED);
	event.bytes_up = 5;
	line = line_of(&event, buf);
	assert_str(line, "message",
		   "Connection to api.example.com port 443 was cut, the policy "
		   "no longer allows it: 5 bytes sent, 0 received.");
	assert_int(line, "traffic.bytes_out", 5);
	json_decref(line);

	event = sample(EVENT_POLICY, true, REASON_RULE);
	line = line_of(&event, buf);
	assert_str(line, "message", "Another policy is in force.");
	assert_str(line, "app.name", "sallyport");
	assert_str(line, "unmapped.detail", "the detail");
	json_decref(line);
}

static void test_dns(void **state)
{
	static char buf[RECORD_LINE_MAX];
	struct audit_event event = sample(EVENT_DNS_ANSWER, true, REASON_RULE);
	json_t *line;

	(void)state;
	event.qtype = 28;
	event.answers = 2;
	event.answer[0] = ip_v4(0xc6120007);
	assert_true(ip_parse("2001:db8::2", &event.answer[1]));
	line = line_of(&event, buf);
	assert_str(line, "query.hostname", "api.example.com");
	assert_str(line, "query.type", "AAAA");
	assert_str(line, "query.class", "IN");
	assert_str(line, "answers.0.rdata", "198.18.0.7");
	assert_str(line, "answers.1.rdata", "2001:db8::2");
	assert_str(line, "answers.1.type", "AAAA");
	assert_int(line, "rcode_id", 0);
	assert_str(line, "rcode", "NoError");
	json_decref(line);

	event = sample(EVENT_DNS_QUERY, false, REASON_NOT_IN_POLICY);
	event.qtype = 4711;
	event.rcode = 3;
	line = line_of(&event, buf);
	assert_str(line, "query.type", "TYPE4711");
	assert_int(line, "rcode_id", 3);
	assert_str(line, "rcode", "NXDomain");
	assert_null(at(line, "answers"));
	json_decref(line);

	/* Before an allowed question is sent, there is no answer to tell. */
	event = sample(EVENT_DNS_QUERY, true, REASON_RULE);
	line = line_of(&event, buf);
	assert_null(at(line, "rcode"));
	json_decref(line);
}

static void test_http(void **state)
{
	static const struct {
		const char *method;
		int activity;
	} methods[] = { { "CONNECT", 1 }, { "DELETE", 2 },   { "GET", 3 },
			{ "HEAD", 4 },	  { "OPTIONS", 5 },  { "POST", 6 },
			{ "PUT", 7 },	  { "TRACE", 8 },    { "PATCH", 9 },
			{ "get", 99 },	  { "PROPFIND", 99 } };
	static char buf[RECORD_LINE_MAX];
	struct audit_event event =
		sample(EVENT_HTTP_REQUEST, true, REASON_RULE);
	json_t *line;

	(void)state;
	event.dst_port = 8080;
	event.target = "/a/b?c=d\"e";
	event.status = 301;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		event.method = methods[i].method;
		line = line_of(&event, buf);
		assert_int(line, "activity_id", methods[i].activity);
		assert_str(line, "http_request.http_method", event.method);
		assert_str(line, "http_request.url.path", "/a/b");
		assert_str(line, "http_request.url.query_string", "c=d\"e");
		assert_str(line, "http_request.url.hostname",
			   "api.example.com");
		assert_int(line, "http_request.url.port", 8080);
		assert_str(line, "http_request.url.url_string",
			   "http://api.example.com:8080/a/b?c=d\"e");
		assert_int(line, "http_response.code", 301);
		json_decref(line);
	}
	event.host = NULL;
	assert_true(ip_parse("2001:db8::1", &event.dst_ip));
	line = line_of(&event, buf);
	assert_str(line, "http_request.url.url_string",
		   "http://[2001:db8::1]:8080/a/b?c=d\"e");
	json_decref(line);
}

static void test_packet_and_finding(void **state)
{
	static char buf[RECORD_LINE_MAX];
	struct audit_event event = sample(EVENT_PACKET, false, REASON_BYPASS);
	json_t *line;

	(void)state;
	event.host = event.sni = event.rule = NULL;
	event.protocol = "udp";
	event.count = 500;
	line = line_of(&event, buf);
	assert_int(line, "count", 500);
	assert_str(line, "connection_info.protocol_name", "udp");
	assert_str(line, "message",
		   "500 udp packets to 203.0.113.5 port 443 dropped.");
	assert_null(at(line, "firewall_rule"));
	json_decref(line);
	event.count = 0;
	line = line_of(&event, buf);
	assert_int(line, "count", 1);
	json_decref(line);

	event = sample(EVENT_FINDING, false, REASON_LEDGER_UNAVAILABLE);
	line = line_of(&event, buf);
	assert_str(line, "finding_info.title", "the detail");
	assert_str(line, "finding_info.uid", "0123456789abcdef/41");
	assert_str(line, "status_code", "ledger_unavailable");
	assert_true(json_is_true(at(line, "is_alert")));
	json_decref(line);
}

/* What a sandbox can put into each string, in each kind. */
static void test_hostile_text(void **state)
{
	static const char *const evil[] = {
		"a\nb\r\"}{\"class_uid\":1,\"x\":\"",
		"\x1b]0;owned\x07\x1b[2J",
		"\\\"\\u0000\\",
		"\xff\xfe\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xe2",
		"\xc2\x9b"
		"31m",
		"\xe2\x80\xae"
		"moc.live",
		"%s%n%d",
		"",
		"\x7f\x01\x1f",
	};
	static char buf[RECORD_LINE_MAX];

	(void)state;
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		for (size_t i = 0; i < ARRAY_SIZE(evil); i++) {
			struct audit_event event = sample(
				(enum event_kind)kind, false, REASON_MALFORMED);

			event.rule = event.rule_text = event.host = evil[i];
			event.protocol = event.sni = event.method = evil[i];
			event.target = event.detail = evil[i];
			json_t *line = line_of(&event, buf);
			assert_null(at(line, "x"));
			assert_true(json_integer_value(at(line, "class_uid")) >
				    1000);
			json_decref(line);
		}
	}
}

/* The longest message, with the bytes that grow most when they are escaped. */
static void test_worst_case_fits(void **state)
{
	static char big[20000], buf[RECORD_LINE_MAX], text[RECORD_MESSAGE_MAX];
	uint8_t message[RECORD_MESSAGE_MAX];
	uint64_t seq;

	(void)state;
	memset(big, 0x01, sizeof(big) - 1);
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		struct audit_event event =
			sample((enum event_kind)kind, false, REASON_MALFORMED);
		struct audit_event decoded;

		event.rule = event.rule_text = event.host = event.sni = big;
		event.protocol = event.method = event.target = big;
		event.detail = big;
		event.answers = EVENT_ANSWERS_MAX;
		for (size_t i = 0; i < EVENT_ANSWERS_MAX; i++)
			memset(&event.answer[i], 16, sizeof(event.answer[i]));
		size_t len = record_encode(&event, 1, message);
		assert_int_equal(
			record_decode(message, len, &decoded, &seq, text), 0);
		json_t *line = line_of(&decoded, buf);
		/* Whole, not cut for want of room. */
		if (kind == EVENT_HTTP_REQUEST)
			assert_int_equal(
				json_string_length(
					at(line, "http_request.url.path")),
				4096);
		json_decref(line);

		json_decref(line_of(&event, buf));
	}
}

static void test_small_buffer(void **state)
{
	static char buf[RECORD_LINE_MAX];
	struct audit_event event = sample(EVENT_FLOW_OPEN, true, REASON_RULE);

	(void)state;
	assert_int_equal(record_format(&event, 1, &context, buf, 100), 0);
	assert_int_equal(record_format(&event, 1, &context, buf, 0), 0);
	event.kind = EVENT_KIND_COUNT;
	assert_int_equal(record_format(&event, 1, &context, buf, sizeof(buf)),
			 0);
}

/* A reader that is not jansson. */
static void test_python_reads_it(void **state)
{
	static char buf[RECORD_LINE_MAX];

	(void)state;
	char path[] = "/tmp/sallyport-json-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct audit_event event =
			sample(table[i].kind, table[i].allow, table[i].reason);

		event.host = "a\n\xff\"\x1b";
		size_t len = record_format(&event, i, &context, buf,
					   sizeof(buf) - 1);
		buf[len++] = '\n';
		assert_int_equal(write(fd, buf, len), len);
	}
	close(fd);
	char count[8];
	snprintf(count, sizeof(count), "%zu", ARRAY_SIZE(table));
	pid_t pid = fork();
	if (pid == 0) {
		execlp("python3", "python3", "-c",
		       "import json,sys\n"
		       "for n,l in enumerate(open(sys.argv[1],'rb')):\n"
		       "  assert json.loads(l)['metadata']['sequence']==n\n"
		       "assert n+1==int(sys.argv[2])",
		       path, count, (char *)NULL);
		_exit(127);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_flow),
		cmocka_unit_test(test_observed_and_cut),
		cmocka_unit_test(test_dns),
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_packet_and_finding),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_worst_case_fits),
		cmocka_unit_test(test_small_buffer),
		cmocka_unit_test(test_python_reads_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
