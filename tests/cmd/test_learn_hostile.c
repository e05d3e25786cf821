/* SPDX-License-Identifier: Apache-2.0
 *
 * test_learn_hostile.c - logs that somebody wrote to be learned from: names,
 * lines and events that no session has.
 */
#include "tests/cmd/learn_never_case.h"

/* Whatever a sandbox writes into names: no rule, no line, no escape. */
static void test_hostile_names(void **state)
{
	static const char *const evil[] = {
		"x.example\n  - evil.example",
		"x.example\\n- evil.example",
		"*.example",
		"*",
		"evil.example # ",
		"\x1b]0;owned\x07.example",
		"evil.example, ports: [1]",
		"\"evil.example\"",
		"\xe2\x80\xae.example",
		"evil..example",
		"0x7f.1",
		"",
	};
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_RULE);
	reach(w, "null", 443, REASON_RULE);
	reach(w, "1e5.example", 443, REASON_RULE);
	for (size_t i = 0; i < ARRAY_SIZE(evil); i++) {
		reach(w, evil[i], 443, REASON_OBSERVE);
		look_up(w, evil[i], REASON_OBSERVE, 1);
		refuse(w, evil[i], 443, REASON_NOT_IN_POLICY);
		look_up(w, evil[i], REASON_MALFORMED, 1);
	}
	AUTO_LEARNED struct learned l = LEARN(w, "LOG", "--include-denied");
	assert_int_equal(l.status, 0);
	for (const char *c = l.yaml; *c; c++)
		assert_true((*c >= 0x20 && *c < 0x7f) || *c == '\n');
	assert_has_not(l.yaml, "evil");
	assert_has_not(l.yaml, "*");
	assert_true(allows(&l, "null", 443));
	assert_true(allows(&l, "1e5.example", 443));
	assert_has(l.yaml, "\"null\"");
	assert_has(l.yaml, " refusals of what is no host name.\n");
}

/* Lines that the ledger did not write. */
static void test_forged_lines(void **state)
{
	static const char *const lines[] = {
		"\n",
		"x\n",
		"[]\n",
		"{\"unmapped\":{\"event\":\"flow_dial\"}}\n",
		"{\"metadata\":{\"product\":{\"name\":\"other\"}}}\n",
	};
	struct world *w = *state;
	AUTO_FREE char *big = malloc(200001);

	memset(big, 'x', 200000);
	big[200000] = '\n';
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		raw(w, lines[i], strlen(lines[i]));
	reach(w, "good.example", 443, REASON_RULE);
	raw(w, big, 200001);
	/* A good record behind a NUL, or in a line that is too long. */
	raw(w, "\0", 1);
	record(w, event_of(w, EVENT_FLOW_DIAL, "a.example", 443, REASON_RULE));
	raw(w, big, 200000);
	record(w, event_of(w, EVENT_FLOW_DIAL, "b.example", 443, REASON_RULE));
	reach(w, "after.example", 443, REASON_RULE);
	raw(w, "{\"time\":1", 9); /* the last one is cut */
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_true(allows(&l, "good.example", 443));
	assert_true(allows(&l, "after.example", 443));
	assert_false(allows(&l, "a.example", 443));
	assert_false(allows(&l, "b.example", 443));
	assert_has(l.err, "8 lines are no records");
	assert_has(l.yaml, "# 8 lines of the logs were no records.\n");
}

static void learn_names(struct learn_table *table, enum event_kind kind,
			unsigned from, unsigned to)
{
	struct observation o = { .kind = kind,
				 .verdict = { .allow = true },
				 .address = ip_v4(0x65020304),
				 .type = "A",
				 .port = 443,
				 .protocol = "tls",
				 .time_ms = 1 };

	if (kind == EVENT_DNS_QUERY)
		o.verdict = (struct verdict){ .reason = REASON_NOT_IN_POLICY };
	for (unsigned i = from; i < to; i++) {
		snprintf(o.host, sizeof(o.host), "n%u.z%u.example", i, i);
		o.flow = i + 1;
		assert_int_equal(learn_table_add(table, &o), 0);
	}
}

/* More names than there is room for: no wildcard hides behind the rest. */
static void test_too_many_names(void **state)
{
	struct learn_options options = { .name = "x", .wildcard_min = 2 };
	struct learn_table *table;
	struct learn_plan *plan;

	(void)state;
	assert_int_equal(learn_table_new(&table), 0);
	learn_names(table, EVENT_FLOW_DIAL, 0, 10);
	for (int i = 0; i < 10; i++) {
		struct observation o = { .kind = EVENT_FLOW_DIAL,
					 .verdict = { .allow = true },
					 .address = ip_v4(0x65020304),
					 .port = 443,
					 .flow = 1000 + (uint64_t)i };

		snprintf(o.host, sizeof(o.host), "w%d.wild.example", i);
		assert_int_equal(learn_table_add(table, &o), 0);
	}
	learn_names(table, EVENT_DNS_QUERY, 10, LEARN_NAMES_MAX + 500);
	assert_int_equal(table->hosts, LEARN_NAMES_MAX);
	assert_int_equal(table->dropped, 510);
	assert_int_equal(table->dropped_allowed, 0);
	assert_int_equal(learn_judge(table, &options), 0);
	assert_int_equal(learn_plan(table, &options, &plan), 0);
	assert_int_equal(plan->wildcards, 0);
	assert_int_equal(plan->rules, 20);
	learn_plan_free(plan);
	learn_table_free(table);
}

/* The check at the end is not the planner's own idea of itself. */
static void test_replay(void **state)
{
	static const struct {
		const char *yaml, *error;
	} cases[] = {
		{ "version: 1\nallow: [good.example]\n", NULL },
		{ "version: 1\nallow: []\n",
		  "good.example port 443 would be refused" },
		{ "version: 1\nallow: [good.example, bad.example]\n",
		  "bad.example port 443 would be allowed" },
		{ "version: 1\nallow: ['*.example', good.example]\n",
		  "would be allowed" },
		{ "version: 1\nallow: [good.example, dns.example]\n",
		  "dns.example port 443 would be allowed" },
		{ "version: 1\nallow:\n  - { host: good.example, ports: [80] }\n",
		  "good.example port 443 would be refused" },
		{ "version: 1\nalow: []\n", "learned.yaml:2:1" },
	};
	struct learn_options options = { .name = "x" };
	struct learn_table *table;
	struct observation o = { .kind = EVENT_FLOW_DIAL,
				 .verdict = { .allow = true },
				 .address = ip_v4(0x65020304),
				 .port = 443,
				 .flow = 1,
				 .host = "good.example" };
	char error[600];

	(void)state;
	assert_int_equal(learn_table_new(&table), 0);
	assert_int_equal(learn_table_add(table, &o), 0);
	o = (struct observation){ .kind = EVENT_FLOW_OPEN,
				  .verdict = { .reason = REASON_NAME_MISMATCH },
				  .port = 443,
				  .flow = 2,
				  .host = "bad.example" };
	assert_int_equal(learn_table_add(table, &o), 0);
	o = (struct observation){ .kind = EVENT_DNS_QUERY,
				  .verdict = { .reason = REASON_NOT_IN_POLICY },
				  .type = "A",
				  .host = "dns.example" };
	assert_int_equal(learn_table_add(table, &o), 0);
	assert_int_equal(learn_judge(table, &options), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = learn_replay(table, cases[i].yaml,
				     strlen(cases[i].yaml), error,
				     sizeof(error));

		assert_int_equal(r, cases[i].error ? -EINVAL : 0);
		if (cases[i].error)
			assert_has(error, cases[i].error);
	}
	learn_table_free(table);
}

/* Made-up logs about a few names of one domain and of a preset: a policy is
 * always found, and it never has what nobody may learn. */
static void random_event(struct observation *o, unsigned *seed, bool *never)
{
	static const char *const hosts[] = {
		"github.com",
		"api.github.com",
		"codeload.github.com",
		"uploads.github.com",
		"pypi.org",
		"files.pythonhosted.org",
		"a.w.example",
		"b.w.example",
		"c.w.example",
		"d.w.example",
		"e.w.example",
		"f.e.w.example",
		"g.e.w.example",
		"h.e.w.example",
		"w.example",
	};
	static const enum reason refusals[] = {
		REASON_NOT_IN_POLICY,
		REASON_PORT,
		REASON_PATH,
		REASON_DENY_RULE,
		REASON_NAME_MISMATCH,
		REASON_CONNECT_FAILED,
		REASON_FORBIDDEN_ADDRESS,
	};
	static const uint16_t ports[] = { 443, 80, 22, 8443 };
	unsigned host = (unsigned)rand_r(seed) % ARRAY_SIZE(hosts);
	unsigned r = (unsigned)rand_r(seed) % 40;

	*o = (struct observation){ .kind = EVENT_FLOW_DIAL,
				   .address = ip_v4(0x65020304),
				   .flow = (uint64_t)rand_r(seed) + 1,
				   .port = ports[r % 7 < 4 ? 0 : r % 7 - 3] };
	snprintf(o->host, sizeof(o->host), "%s", hosts[host]);
	o->verdict = verdict_of(r % 2 ? REASON_RULE : REASON_OBSERVE);
	if (r < ARRAY_SIZE(refusals)) {
		o->kind = EVENT_FLOW_OPEN;
		o->verdict = verdict_of(refusals[r]);
		if (rand_r(seed) % 3 == 0) {
			o->kind = EVENT_DNS_QUERY;
			o->port = 0;
			snprintf(o->type, sizeof(o->type), "A");
		}
	}
	*never = o->verdict.reason == REASON_DENY_RULE;
}

static void check_random(unsigned seed)
{
	struct learn_options options = { .name = "x",
					 .wildcard_min = 2 + seed % 3,
					 .include_denied = seed % 2 };
	char denied[64][HOST_MAX + 1], error[600];
	unsigned events = 1 + (unsigned)rand_r(&seed) % 60, n = 0;
	struct learn_table *table;
	struct learn_plan *plan;
	AUTO_FREE char *yaml = NULL;
	struct observation o;
	size_t len;
	bool never;

	assert_int_equal(learn_table_new(&table), 0);
	for (unsigned i = 0; i < events; i++) {
		random_event(&o, &seed, &never);
		assert_int_equal(learn_table_add(table, &o), 0);
		if (never)
			memcpy(denied[n++], o.host, sizeof(o.host));
	}
	assert_int_equal(learn_judge(table, &options), 0);
	assert_int_equal(learn_plan(table, &options, &plan), 0);
	FILE *out = open_memstream(&yaml, &len);
	learn_write(out, table, plan, &options);
	fclose(out);
	if (learn_replay(table, yaml, len, error, sizeof(error)) < 0)
		fail_msg("%s in:\n%s", error, yaml);
	struct policy *policy = policy_of(yaml);
	for (unsigned i = 0; i < n; i++) {
		struct question question = { .host = denied[i], .port = 443 };

		if (policy_decide(policy, &question).allow)
			fail_msg("%s is allowed by:\n%s", denied[i], yaml);
	}
	policy_unref(policy);
	learn_plan_free(plan);
	learn_table_free(table);
}

/* Sanitized, each takes ten times as long; the seeds are as good as others. */
#ifdef SALLYPORT_SANITIZED
#define SEEDS 300
#else
#define SEEDS 2000
#endif

static void test_random(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= SEEDS; seed++)
		check_random(seed);
}

/* What `check` would warn of: a resolver that no rule had allowed is none, of
 * the rest a person hears, and no wildcard opens it along with others. */
static void test_known_places(void **state)
{
	static const char *const padding[] = { "a", "b", "c", "d", "e" };
	struct world *w = *state;
	char host[64];

	reach(w, "good.example", 443, REASON_RULE);
	reach(w, "dns.google", 443, REASON_OBSERVE);
	reach(w, "ix.io", 443, REASON_OBSERVE);
	refuse(w, "justpaste.it", 443, REASON_NOT_IN_POLICY);
	for (size_t i = 0; i < ARRAY_SIZE(padding); i++) {
		/* script.google.com is below it, and below the other one
		 * everything is somebody's. */
		snprintf(host, sizeof(host), "%s.google.com", padding[i]);
		reach(w, host, 443, REASON_OBSERVE);
		snprintf(host, sizeof(host), "%s.slack.com", padding[i]);
		reach(w, host, 443, REASON_OBSERVE);
	}
	assert_never(w, "dns.google", 443, "a resolver");

	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_true(allows(&l, "ix.io", 443));
	assert_has(l.yaml, "\n  # careful: anybody can paste text here, and "
			   "read it elsewhere\n  - { host: ix.io,");
	assert_has(l.yaml, "  #- { host: justpaste.it, ports: [443] } # "
			   "not_in_policy, 1 time; careful: anybody can");
	assert_true(allows(&l, "a.google.com", 443));
	assert_false(allows(&l, "script.google.com", 443));
	assert_true(allows(&l, "a.slack.com", 443));
	assert_false(allows(&l, "hooks.slack.com", 443));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_known_places), TEST(test_hostile_names),
		TEST(test_forged_lines), TEST(test_too_many_names),
		TEST(test_replay),	 TEST(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
