/* SPDX-License-Identifier: Apache-2.0
 *
 * The line: valid JSON that a SIEM can read.
 */
#include "tests/audit/lines.h"

#include <sys/wait.h>
#include <unistd.h>

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
	/* What never got whole was not let in. */
	{ EVENT_FLOW_OPEN, false, REASON_TIMEOUT, 4001, 5, 2, 2, 2 },
	{ EVENT_HTTP_REQUEST, false, REASON_TIMEOUT, 4002, 3, 2, 2, 2 },
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
	{ EVENT_RULESET, false, REASON_RULE, 5019, 1, 0, 0, 1 },
	{ EVENT_EXEC, true, REASON_RULE, 6002, 3, 0, 0, 1 },
	{ EVENT_ATTACKS, true, REASON_RULE, 6002, 99, 0, 0, 1 },
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
	assert_null(at(line, "count"));
	json_decref(line);
	/* Of one that stands for one, which is not that. */
	event.count = 1;
	line = line_of(&event, buf);
	assert_int(line, "count", 1);
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
		size_t len = record_format(&event, i, &lines_context, buf,
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
		cmocka_unit_test(test_python_reads_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
