/* SPDX-License-Identifier: Apache-2.0
 *
 * From logs to a policy: what becomes a rule, and in how many words.
 */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "tests/cmd/learn_world.h"

/* The whole text, so that it is the same each time. */
static void test_whole(void **state)
{
	static const char want[] =
		"# Learned by `sallyport learn` from 19 records,\n"
		"# 2026-04-01T03:28:58Z to 2026-04-01T03:29:16Z.\n"
		"# It allows what was allowed and reached. A log says what "
		"programs did, not what\n"
		"# they should do: read this before you use it.\n"
		"version: 1\n"
		"name: \"learned\"\n"
		"allow:\n"
		"  # 443: 1 connection, TLS, observed: not_in_policy; first "
		"2026-04-01T03:29:04Z\n"
		"  - { host: b.example, ports: [443] }\n"
		"  # 8022: 1 connection, neither TLS nor HTTP; first "
		"2026-04-01T03:29:07Z\n"
		"  - { host: \"1.z.example\", ports: [8022] }\n"
		"  # 80: 1 connection, HTTP; 443: 2 connections, TLS; first "
		"2026-04-01T03:28:58Z\n"
		"  - { host: a.z.example, ports: [80, 443] }\n"
		"  # Refused. To allow one, take out its '#':\n"
		"  #- { host: no.example, ports: [443] } # not_in_policy, 2 "
		"times\n"
		"# Allowed, but no connection came about, so no rule:\n"
		"#   down.example port 443 connect_failed\n"
		"# Only looked up, so no rule:\n"
		"#   seen.example\n";
	struct world *w = *state;

	reach(w, "a.z.example", 443, REASON_RULE);
	reach(w, "a.z.example", 80, REASON_RULE);
	reach(w, "b.example", 443, REASON_OBSERVE);
	w->flow = 1000; /* and again: lines of one flow are joined by it */
	reach(w, "1.z.example", 8022, REASON_RULE);
	reach(w, "a.z.example", 443, REASON_RULE);
	look_up(w, "seen.example", REASON_OBSERVE, 1);
	look_up(w, "no.example", REASON_NOT_IN_POLICY, 28);
	refuse(w, "no.example", 443, REASON_NOT_IN_POLICY);
	refuse(w, "down.example", 443, REASON_CONNECT_FAILED);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_string_equal(l.yaml, want);
	assert_string_equal(l.err, "");
	AUTO_LEARNED struct learned again = LEARN(w, w->dir, "--name", "a\"#b");
	assert_has(again.yaml, "name: \"a\\\"#b\"\n");
	assert_true(allows(&again, "a.z.example", 80));
}

static void test_include_denied(void **state)
{
	struct world *w = *state;

	reach(w, "a.example", 443, REASON_RULE);
	refuse(w, "b.example", 8443, REASON_NOT_IN_POLICY);
	refuse(w, "a.example", 22, REASON_PORT);
	refuse(w, "old.example", 443, REASON_EXPIRED);
	look_up(w, "c.example", REASON_NOT_IN_POLICY, 1);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_true(allows(&l, "a.example", 443));
	assert_false(allows(&l, "a.example", 22));
	assert_false(allows(&l, "b.example", 8443));
	assert_false(allows(&l, "c.example", 443));
	assert_has(l.yaml,
		   "  #- { host: a.example, ports: [22] } # port, 1 time");
	/* Taking out the '#' is all it takes. */
	char *line = strstr(l.yaml, "#- { host: b.example");
	assert_non_null(line);
	memmove(line, line + 1, strlen(line));
	assert_true(allows(&l, "b.example", 8443));

	AUTO_LEARNED struct learned all = LEARN(w, "--include-denied", "LOG");
	assert_int_equal(all.status, 0);
	assert_true(allows(&all, "a.example", 22));
	assert_true(allows(&all, "b.example", 8443));
	assert_false(allows(&all, "b.example", 443));
	assert_true(allows(&all, "c.example", 443));
	assert_false(allows(&all, "c.example", 80));
	assert_true(allows(&all, "old.example", 443));
	assert_has(all.yaml, "assumed, only the name was asked for");
}

/* A refusal of the past does not count once a rule allowed it. */
static void test_superseded(void **state)
{
	struct world *w = *state;

	look_up(w, "a.example", REASON_NOT_IN_POLICY, 1);
	refuse(w, "a.example", 443, REASON_NOT_IN_POLICY);
	w->session = "5e551072";
	reach(w, "a.example", 443, REASON_RULE);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_true(allows(&l, "a.example", 443));
	assert_has(l.yaml, "also refused: not_in_policy");
}

static void reach_names(struct world *w, int n, const char *parent,
			uint16_t port)
{
	char host[128];

	for (int i = 0; i < n; i++) {
		snprintf(host, sizeof(host), "w%c.%s", 'a' + i, parent);
		reach(w, host, port, REASON_OBSERVE);
	}
}

static void test_wildcard(void **state)
{
	struct world *w = *state;

	reach_names(w, 5, "many.example", 443);
	reach_names(w, 4, "few.example", 443);
	reach_names(w, 3, "mixed.example", 443);
	reach(w, "x.mixed.example", 8443, REASON_RULE);
	reach(w, "y.mixed.example", 8443, REASON_RULE);
	/* By name, within the ports of the others. */
	reach(w, "other.many.example", 8443, REASON_RULE);
	reach_names(w, 6, "a.b.deep.example", 443);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_has(l.yaml, "  # 5 names: wa.many.example, wb.many.example, "
			   "wc.many.example, wd.many.example and 1 more\n"
			   "  - { host: \"*.many.example\", ports: [443] }\n");
	assert_has(l.yaml, "\"*.a.b.deep.example\"");
	assert_has(l.yaml, "host: other.many.example, ports: [8443]");
	assert_false(allows(&l, "other.many.example", 443));
	assert_true(allows(&l, "new.many.example", 443));
	assert_false(allows(&l, "many.example", 443));
	assert_has_not(l.yaml, "*.few.example");
	assert_has_not(l.yaml, "*.mixed.example");
	AUTO_LEARNED struct learned four =
		LEARN(w, "LOG", "--wildcard-threshold", "4");
	assert_has(four.yaml, "*.few.example");
	AUTO_LEARNED struct learned none =
		LEARN(w, "--wildcard-threshold", "0", "LOG");
	assert_has_not(none.yaml, "*.");
	assert_true(allows(&none, "wa.many.example", 443));
}

/* The longer one decides alone for what is below it. */
static void test_wildcard_in_a_wildcard(void **state)
{
	struct world *w = *state;

	reach_names(w, 6, "outer.example", 443);
	reach_names(w, 6, "in.outer.example", 22);
	reach(w, "x.in.outer.example", 443, REASON_RULE);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_has(l.yaml, "\"*.outer.example\"");
	assert_has(l.yaml, "\"*.in.outer.example\"");
	assert_true(allows(&l, "x.in.outer.example", 443));
	assert_false(allows(&l, "wa.in.outer.example", 443));
}

/* Below these everybody can have a name. (Names of the real lists.) */
static void test_no_wildcard_on_shared_domains(void **state)
{
	struct world *w = *state;

	reach_names(w, 9, "github.io", 443);
	reach_names(w, 9, "co.uk", 443);
	reach_names(w, 9, "example", 443);
	/* gist.github.com is below it. */
	reach_names(w, 9, "github.com", 8443);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_has_not(l.yaml, "*.");
	assert_true(allows(&l, "wa.github.io", 443));
	assert_false(allows(&l, "evil.github.io", 443));
}

/* Nothing is opened that was refused, however broad the evidence. */
static void test_no_wildcard_over_a_refusal(void **state)
{
	static const enum reason reasons[] = {
		REASON_NOT_IN_POLICY,	  REASON_PORT,
		REASON_DENY_RULE,	  REASON_NAME_MISMATCH,
		REASON_FORBIDDEN_ADDRESS, REASON_METHOD,
	};
	struct world *w = *state;
	char parent[32], host[64];

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		snprintf(parent, sizeof(parent), "p%zu.example", i);
		snprintf(host, sizeof(host), "no.deep.%s", parent);
		reach_names(w, 7, parent, 443);
		refuse(w, host, 443, reasons[i]);
	}
	reach_names(w, 7, "dns.example", 443);
	look_up(w, "no.dns.example", REASON_NOT_IN_POLICY, 1);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_has_not(l.yaml, "*.");
	assert_true(allows(&l, "wa.p0.example", 443));
	assert_false(allows(&l, "no.deep.p0.example", 443));
}

static void test_preset(void **state)
{
	struct world *w = *state;

	reach(w, "github.com", 443, REASON_RULE);
	reach(w, "api.github.com", 443, REASON_OBSERVE);
	reach(w, "codeload.github.com", 443, REASON_OBSERVE);
	reach(w, "a.example", 443, REASON_RULE);
	/* One name, or names below one pattern, are named themselves. */
	reach(w, "ftp.debian.org", 443, REASON_RULE);
	reach(w, "security.debian.org", 80, REASON_RULE);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_has(l.yaml, "extends:\n"
			   "  # `sallyport presets github` shows it; used for "
			   "github.com, api.github.com, codeload.github.com\n"
			   "  - github\nallow:\n");
	assert_has_not(l.yaml, "host: github.com");
	assert_has(l.yaml, "host: ftp.debian.org");
	assert_has_not(l.yaml, "- debian");
	assert_true(allows(&l, "codeload.github.com", 443));
	/* Rather than opening what was refused, no preset. */
	refuse(w, "lfs.github.com", 443, REASON_NOT_IN_POLICY);
	AUTO_LEARNED struct learned without = LEARN(w, "LOG");
	assert_int_equal(without.status, 0);
	assert_has_not(without.yaml, "extends");
	assert_true(allows(&without, "codeload.github.com", 443));
	assert_false(allows(&without, "lfs.github.com", 443));
}

static void test_preset_and_more_ports(void **state)
{
	struct world *w = *state;

	reach(w, "github.com", 443, REASON_RULE);
	reach(w, "api.github.com", 443, REASON_RULE);
	reach(w, "codeload.github.com", 443, REASON_RULE);
	reach(w, "uploads.github.com", 443, REASON_RULE);
	reach(w, "uploads.github.com", 8443, REASON_RULE);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_has(l.yaml, "- github\n");
	assert_has(l.yaml, "{ host: uploads.github.com, ports: [443, 8443] }");
	assert_true(allows(&l, "uploads.github.com", 8443));
}

static void test_requests(void **state)
{
	struct world *w = *state;
	struct audit_event request;

	for (int i = 0; i < 2; i++) {
		w->flow++;
		request = event_of(w, EVENT_HTTP_REQUEST, "a.example", 80,
				   REASON_RULE);
		request.method = i ? "POST" : "GET";
		request.target = i ? "/x\n- evil.example\x1b[2J" : "/a?b";
		record(w, request);
		record(w, event_of(w, EVENT_FLOW_DIAL, "a.example", 80,
				   REASON_RULE));
		record(w, event_of(w, EVENT_FLOW_CLOSE, "a.example", 80,
				   REASON_RULE));
	}
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_has(l.yaml, "80: 2 connections, HTTP (GET POST /a and others)");
	/* Some paths were refused, and a rule of ours would allow them. */
	request.verdict = verdict_of(REASON_PATH);
	record(w, request);
	AUTO_LEARNED struct learned path = LEARN(w, "LOG");
	assert_int_equal(path.status, 0);
	assert_false(allows(&path, "a.example", 80));
	assert_has(path.yaml, "#- { host: a.example, ports: [80] } # path");
	AUTO_LEARNED struct learned all = LEARN(w, "LOG", "--include-denied");
	assert_true(allows(&all, "a.example", 80));
}

/* A rule had permitted the address: the one that is learned does, too. */
static void test_private_address(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		const char *host = i ? "loop.example" : "inside.example";
		struct audit_event dial;

		w->flow++;
		dial = event_of(w, EVENT_FLOW_DIAL, host, 443, REASON_RULE);
		dial.dst_ip = ip_v4(i ? 0x7f000001 : 0x0a010203);
		record(w, dial);
	}
	reach(w, "203.0.113.9", 5432, REASON_RULE);
	reach(w, "169.254.169.254", 80, REASON_RULE);
	reach(w, "2001:db8::9", 443, REASON_OBSERVE);
	refuse(w, "203.0.113.77", 443, REASON_LITERAL_ADDRESS);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG", "--include-denied");
	assert_int_equal(l.status, 0);
	assert_has(l.yaml, "{ host: inside.example, ports: [443], addresses: "
			   "[10.1.2.3/32] }");
	assert_false(allows(&l, "loop.example", 443));
	assert_has(l.yaml, "#   loop.example port 443: it was dialled at a "
			   "special-purpose address");
	assert_true(allows(&l, "203.0.113.9", 5432));
	assert_false(allows(&l, "203.0.113.9", 443));
	assert_false(allows(&l, "169.254.169.254", 80));
	assert_false(allows(&l, "2001:db8::9", 443));
	assert_false(allows(&l, "203.0.113.77", 443));
}

static void test_options(void **state)
{
	struct world *w = *state;
	char path[96];

	snprintf(path, sizeof(path), "%s/policy.yaml", w->dir);
	AUTO_LEARNED struct learned empty = LEARN(w, "LOG");
	assert_int_equal(empty.status, 1);
	assert_has(empty.err, "no records");
	reach(w, "a.example", 443, REASON_RULE);
	AUTO_LEARNED struct learned first = LEARN(w, "LOG", "-o", path);
	assert_int_equal(first.status, 0);
	assert_string_equal(first.yaml, "");
	AUTO_FREE char *text = slurp(path);
	assert_has(text, "host: a.example");
	reach(w, "b.example", 443, REASON_RULE);
	AUTO_LEARNED struct learned refused = LEARN(w, "LOG", "-o", path);
	assert_int_equal(refused.status, EXIT_SALLYPORT);
	assert_has(refused.err, "--force");
	AUTO_FREE char *same = slurp(path);
	assert_string_equal(same, text);
	AUTO_LEARNED struct learned forced =
		LEARN(w, "--force", "-o", path, "LOG");
	assert_int_equal(forced.status, 0);
	AUTO_FREE char *other = slurp(path);
	assert_has(other, "host: b.example");
	AUTO_LEARNED struct learned help = LEARN(w, "--help");
	assert_int_equal(help.status, 0);
	assert_has(help.yaml, "usage: sallyport learn");
}

static void test_bad_options(void **state)
{
	static const char *const bad[][4] = {
		{ NULL },
		{ "--nonsense", "LOG" },
		{ "LOG", "--name" },
		{ "LOG", "--name", "" },
		{ "LOG", "--name", "a\nb" },
		{ "LOG", "--wildcard-threshold", "1" },
		{ "LOG", "--wildcard-threshold", "-5" },
		{ "LOG", "--wildcard-threshold", "five" },
		{ "/no/such/log" },
		{ "LOG", "-o", "/no/such/dir/x" },
	};
	struct world *w = *state;

	reach(w, "a.example", 443, REASON_RULE);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO_LEARNED struct learned l = learn_with(w, bad[i]);

		if (l.status != EXIT_SALLYPORT || !*l.err || *l.yaml)
			fail_msg("case %zu: %d %s", i, l.status, l.err);
	}
}

static void test_json(void **state)
{
	struct world *w = *state;

	reach_names(w, 5, "many.example", 443);
	refuse(w, "no.example", 443, REASON_NAME_MISMATCH);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG", "--json");
	assert_int_equal(l.status, 0);
	json_t *json = json_loads(l.yaml, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	assert_int_equal(json_integer_value(json_object_get(json, "records")),
			 16);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(json, "wildcards"), 0)),
			    "*.many.example");
	assert_has(json_string_value(json_object_get(json, "policy")),
		   "version: 1\n");
	json_t *hosts = json_object_get(json, "hosts");
	assert_int_equal(json_array_size(hosts), 6);
	json_t *port = json_array_get(
		json_object_get(json_array_get(hosts, 5), "ports"), 0);
	assert_string_equal(json_string_value(json_object_get(port, "fate")),
			    "never");
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(port, "reasons"), 0)),
			    "name_mismatch");
	json_decref(json);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_whole),
		TEST(test_include_denied),
		TEST(test_superseded),
		TEST(test_wildcard),
		TEST(test_wildcard_in_a_wildcard),
		TEST(test_no_wildcard_on_shared_domains),
		TEST(test_no_wildcard_over_a_refusal),
		TEST(test_preset),
		TEST(test_preset_and_more_ports),
		TEST(test_requests),
		TEST(test_private_address),
		TEST(test_options),
		TEST(test_bad_options),
		TEST(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
