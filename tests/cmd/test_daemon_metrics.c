/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of /metrics, read by a parser that takes nothing but what both
 * formats prescribe: families in one piece, each with HELP and TYPE, samples
 * named as their type demands, no sample twice.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon.h"
#include "cmd/daemon_metrics.h"

#define SAMPLES_MAX  256
#define FAMILIES_MAX 64

static struct daemon_sandbox *first;
static size_t spares;

size_t daemon_spares_ready(const struct daemon *daemon)
{
	(void)daemon;
	return spares;
}

struct daemon_sandbox *daemon_first(struct daemon *daemon)
{
	(void)daemon;
	return first;
}

/* --- the parser ---------------------------------------------------------- */

struct parsed {
	char family[FAMILIES_MAX][128];
	size_t families;
	char sample[SAMPLES_MAX][192]; /* with its labels */
	double value[SAMPLES_MAX];
	size_t samples;
	bool ended; /* # EOF */
};

static size_t name_len(const char *s)
{
	size_t n = 0;

	assert_true(isalpha((unsigned char)*s) || *s == '_');
	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == ':')
		n++;
	return n;
}

static bool ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len >= n && memcmp(s + len - n, suffix, n) == 0;
}

/* "name text" after a "# HELP " or the like; returns the text. */
static const char *about(const char *line, const char *word, const char *name)
{
	size_t n = strlen(word);

	assert_memory_equal(line, word, n);
	assert_int_equal(name_len(line + n), strlen(name));
	assert_memory_equal(line + n, name, strlen(name));
	assert_int_equal(line[n + strlen(name)], ' ');
	return line + n + strlen(name) + 1;
}

/* {a="b",c="d"} and returns what follows. */
static const char *labels(const char *s)
{
	if (*s != '{')
		return s;
	do {
		s++;
		s += name_len(s);
		assert_memory_equal(s, "=\"", 2);
		s += 2;
		while (*s != '"') {
			assert_true(*s && *s != '\n' && *s != '\\');
			s++;
		}
		s++;
	} while (*s == ',');
	assert_int_equal(*s, '}');
	return s + 1;
}

static void take_sample(struct parsed *p, const char *line, const char *family,
			const char *type, bool om)
{
	size_t n = name_len(line), len = strlen(family);
	const char *want = strcmp(type, "counter") == 0 ? "_total"
			   : strcmp(type, "info") == 0	? "_info"
							: "";
	const char *after = labels(line + n);
	char *end;

	assert_memory_equal(line, family, len);
	assert_int_equal(n, len + (om ? strlen(want) : 0));
	assert_true(!om || memcmp(line + len, want, strlen(want)) == 0);
	assert_true(p->samples < SAMPLES_MAX);
	snprintf(p->sample[p->samples], sizeof(p->sample[0]), "%.*s",
		 (int)(after - line), line);
	for (size_t i = 0; i < p->samples; i++)
		assert_string_not_equal(p->sample[i], p->sample[p->samples]);
	assert_int_equal(*after, ' ');
	assert_true(isdigit((unsigned char)after[1]));
	p->value[p->samples++] = strtod(after + 1, &end);
	assert_int_equal(*end, '\0');
}

static void take_family(struct parsed *p, const char *name, size_t len)
{
	assert_true(p->families < FAMILIES_MAX);
	snprintf(p->family[p->families], sizeof(p->family[0]), "%.*s", (int)len,
		 name);
	for (size_t i = 0; i < p->families; i++)
		assert_string_not_equal(p->family[i], p->family[p->families]);
	p->families++;
}

static void take_type(const char *type, const char *family, bool om)
{
	size_t len = strlen(family);
	bool counter = strcmp(type, "counter") == 0;

	assert_true(counter || strcmp(type, "gauge") == 0 ||
		    (om && strcmp(type, "info") == 0));
	if (om) { /* the suffix is the sample's */
		assert_false(ends_with(family, len, "_total"));
		assert_false(ends_with(family, len, "_info"));
	} else {
		assert_int_equal(counter, ends_with(family, len, "_total"));
	}
}

static void take_unit(const char *unit, const char *family)
{
	char suffix[64];

	assert_true(*unit);
	snprintf(suffix, sizeof(suffix), "_%s", unit);
	assert_true(ends_with(family, strlen(family), suffix));
}

static void parse(const char *text, bool om, struct parsed *p)
{
	AUTO_FREE char *copy = strdup(text);
	char *save = NULL, type[16] = "", *family = NULL;
	bool helped = false;

	*p = (struct parsed){ 0 };
	assert_non_null(copy);
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_null(strstr(text, "\n\n"));
	for (char *line = strtok_r(copy, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		assert_false(p->ended);
		if (strcmp(line, "# EOF") == 0) {
			p->ended = true;
		} else if (strncmp(line, "# HELP ", 7) == 0) {
			take_family(p, line + 7, name_len(line + 7));
			family = p->family[p->families - 1];
			assert_true(*about(line, "# HELP ", family));
			assert_null(strchr(line, '\\'));
			*type = '\0';
			helped = true;
		} else if (strncmp(line, "# TYPE ", 7) == 0) {
			assert_true(helped && !*type);
			snprintf(type, sizeof(type), "%s",
				 about(line, "# TYPE ", family));
			take_type(type, family, om);
		} else if (strncmp(line, "# ", 2) == 0) {
			assert_true(om && *type);
			take_unit(about(line, "# UNIT ", family), family);
		} else {
			assert_true(*type);
			take_sample(p, line, family, type, om);
		}
	}
	assert_int_equal(p->ended, om);
}

static double value(const struct parsed *p, const char *sample)
{
	for (size_t i = 0; i < p->samples; i++)
		if (strcmp(p->sample[i], sample) == 0)
			return p->value[i];
	fail_msg("no sample %s", sample);
	return -1;
}

static void read_both(struct parsed *om, struct parsed *plain)
{
	AUTO_FREE char *a = daemon_metrics(NULL, true);
	AUTO_FREE char *b = daemon_metrics(NULL, false);

	assert_non_null(a);
	assert_non_null(b);
	parse(a, true, om);
	parse(b, false, plain);
	/* They differ in how families are called, not in what is counted. */
	assert_int_equal(om->samples, plain->samples);
	for (size_t i = 0; i < om->samples; i++) {
		assert_string_equal(om->sample[i], plain->sample[i]);
		assert_true(om->value[i] <= plain->value[i] &&
			    om->value[i] >= plain->value[i]);
	}
}

/* --- tests --------------------------------------------------------------- */

static struct daemon_sandbox one = {
	.spec = { .name = "secret-name" },
	.state = SANDBOX_READY,
	.counts = { .records = 10,
		    .checkpoint_ms = 1732250000123,
		    .allowed = 3,
		    .refused = 4,
		    .by_reason = { [REASON_NOT_IN_POLICY] = 3,
				   [REASON_PORT] = 1,
				   [REASON_RULE] = 3 },
		    .up = 1000,
		    .down = 5000000000,
		    .packets = { 1, 2, 3, 4 },
		    .foreign_changes = 4294967295,
		    .gate_restarts = 1,
		    .held = BOUNDARY_HELD },
};

static struct daemon_sandbox two = {
	.state = SANDBOX_FAILED,
	.counts = { .records = 5,
		    .checkpoint_ms = 1732240000000,
		    .allowed = 1,
		    .refused = 1,
		    .by_reason = { [REASON_BYPASS] = 1 },
		    .up = 1,
		    .down = 2,
		    .packets = { 10, 20, 30, 40 },
		    .foreign_changes = 1,
		    .held = BOUNDARY_RESTORED },
};

static void nothing_yet(void **state)
{
	struct parsed *om = *state, plain[1];

	first = NULL;
	read_both(om, plain);
	for (size_t i = 0; i < om->samples; i++)
		assert_true(strncmp(om->sample[i], "sallyport_build_info{",
				    21) == 0 ||
			    om->value[i] < 0.5);
	assert_true(value(om,
			  "sallyport_build_info{version=\"" SALLYPORT_VERSION
			  "\"}") > 0.5);
}

#define assert_sample(p, name, want)                                \
	do {                                                        \
		double got_ = value(p, name);                       \
		if (got_ < (want)-0.0001 || got_ > (want) + 0.0001) \
			fail_msg("%s is %f", name, got_);           \
	} while (0)

static void assert_sums(const struct parsed *p)
{
	assert_sample(p, "sallyport_verdicts_total{verdict=\"allowed\"}", 4);
	assert_sample(p, "sallyport_verdicts_total{verdict=\"refused\"}", 5);
	assert_sample(p, "sallyport_refused_total{reason=\"not_in_policy\"}",
		      3);
	assert_sample(p, "sallyport_refused_total{reason=\"port\"}", 1);
	assert_sample(p, "sallyport_refused_total{reason=\"bypass\"}", 1);
	assert_sample(p, "sallyport_bytes_total{direction=\"up\"}", 1001);
	assert_sample(p, "sallyport_bytes_total{direction=\"down\"}",
		      5000000002.0);
	assert_sample(p, "sallyport_packets_total{kind=\"spoofed\"}", 11);
	assert_sample(p, "sallyport_packets_total{kind=\"refused\"}", 22);
	assert_sample(p, "sallyport_packets_total{kind=\"ipv6\"}", 33);
	assert_sample(p, "sallyport_packets_total{kind=\"forwarded\"}", 44);
	assert_sample(p, "sallyport_audit_records_total", 15);
	assert_sample(p, "sallyport_audit_last_checkpoint_timestamp_seconds",
		      1732250000.123);
	/* More than 32 bits. */
	assert_sample(p, "sallyport_ruleset_foreign_changes_total",
		      4294967296.0);
	assert_sample(p, "sallyport_gate_restarts_total", 1);
}

static void sums(void **state)
{
	struct parsed *om = *state, plain[1];
	AUTO_FREE char *text = NULL;

	first = &one;
	one.next = &two;
	spares = 3;
	read_both(om, plain);
	assert_sums(om);
	assert_sample(om, "sallyport_sandboxes{state=\"starting\"}", 0);
	assert_sample(om, "sallyport_sandboxes{state=\"ready\"}", 1);
	assert_sample(om, "sallyport_sandboxes{state=\"failed\"}", 1);
	assert_sample(om, "sallyport_spare_sandboxes", 3);
	assert_sample(om, "sallyport_boundary_held{held=\"held\"}", 1);
	assert_sample(om, "sallyport_boundary_held{held=\"restored\"}", 1);
	assert_sample(om, "sallyport_boundary_held{held=\"broken\"}", 0);
	/* What was allowed is no refusal, whatever counted it. */
	text = daemon_metrics(NULL, true);
	assert_non_null(text);
	assert_null(strstr(text, "reason=\"rule\""));
	assert_null(strstr(text, one.spec.name));
}

/* The last test: what has departed stays. */
static void never_backwards(void **state)
{
	struct parsed *om = *state, plain[1];

	first = &one;
	one.next = NULL;
	daemon_metrics_departed(&two.counts);
	read_both(om, plain);
	assert_sums(om);
	assert_sample(om, "sallyport_sandboxes{state=\"failed\"}", 0);
	first = NULL;
	daemon_metrics_departed(&one.counts);
	read_both(om, plain);
	assert_sums(om);
	/* A keeper in its place begins anew. */
	first = &one;
	one.counts = (struct msg_keep_counts){ .records = 1 };
	read_both(om, plain);
	assert_sample(om, "sallyport_audit_records_total", 16);
}

static void negotiation(void **state)
{
	static const struct {
		const char *accept;
		bool openmetrics;
	} rows[] = {
		{ NULL, false },
		{ "", false },
		{ "*/*", false },
		{ "text/plain", false },
		{ "application/openmetrics-text", true },
		{ "Application/OpenMetrics-Text ; Version=1.0.0", true },
		{ "application/openmetrics-text;version=2.0.0", false },
		{ "application/openmetrics-text;q=0", false },
		{ "application/openmetrics-text;q=0.0", false },
		{ "application/openmetrics-text;q=2", false },
		{ "application/openmetrics-text;q=x", false },
		{ "application/openmetrics-text;q=", false },
		{ "application/openmetrics-text;q=0.0001", false },
		{ "application/openmetrics-text;q=0.001", true },
		{ "application/openmetrics-text2", false },
		{ "text/plain,application/openmetrics-text;q=0.5", false },
		{ "text/plain;q=0.5 , application/openmetrics-text;q=0.7",
		  true },
		/* Prometheus' own. */
		{ "application/openmetrics-text;version=1.0.0;q=0.5,"
		  "application/openmetrics-text;version=0.0.1;q=0.4,"
		  "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		  true },
		{ ",,;;,=", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (daemon_metrics_accepts(rows[i].accept) !=
		    rows[i].openmetrics)
			fail_msg("Accept: %s", rows[i].accept);
	assert_non_null(strstr(daemon_metrics_type(true), "version=1.0.0"));
	assert_non_null(strstr(daemon_metrics_type(false), "version=0.0.4"));
}

static int setup(void **state)
{
	static struct parsed parsed;

	*state = &parsed;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_yet, setup),
		cmocka_unit_test_setup(sums, setup),
		cmocka_unit_test(negotiation),
		cmocka_unit_test_setup(never_backwards, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
