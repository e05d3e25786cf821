/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_metrics.c - sums over all keepers, those that are gone included.
 *
 * A counter that goes backwards is taken for one that began anew, and all it
 * had would count twice. So what a sandbox has counted stays when it goes.
 *
 * The formats differ in three things: OpenMetrics names a counter's family
 * without _total and an info's without _info, knows units, and ends with a
 * line that says so (openmetrics.io, specification 1.0; Prometheus, "Exposition
 * formats", 0.0.4).
 */
#include "cmd/daemon_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "cmd/daemon.h"
#include "policy/reason.h"

/* As struct msg_keep_counts, but no sum of many runs over. */
struct totals {
	uint64_t records, checkpoint_ms;
	uint64_t allowed, refused, by_reason[REASON_COUNT];
	uint64_t up, down, packets[4];
	uint64_t foreign_changes, gate_restarts;
};

/* One daemon a process, and these outlive its sandboxes. */
static struct totals departed;

enum type { COUNTER, GAUGE, INFO };

struct page {
	FILE *out;
	bool openmetrics;
};

/* --- sums ---------------------------------------------------------------- */

static void add(struct totals *t, const struct msg_keep_counts *c)
{
	t->records += c->records;
	if (c->checkpoint_ms > t->checkpoint_ms)
		t->checkpoint_ms = c->checkpoint_ms;
	t->allowed += c->allowed;
	t->refused += c->refused;
	for (size_t i = 0; i < REASON_COUNT; i++)
		t->by_reason[i] += c->by_reason[i];
	t->up += c->up;
	t->down += c->down;
	for (size_t i = 0; i < ARRAY_SIZE(t->packets); i++)
		t->packets[i] += c->packets[i];
	t->foreign_changes += c->foreign_changes;
	t->gate_restarts += c->gate_restarts;
}

void daemon_metrics_departed(const struct msg_keep_counts *counts)
{
	add(&departed, counts);
}

/* --- lines --------------------------------------------------------------- */

/* @name is without _total or _info; @unit is how it ends, or NULL. */
static void family(const struct page *page, const char *name, enum type type,
		   const char *unit, const char *help)
{
	static const char *const words[] = { "counter", "gauge", "info" };
	static const char *const suffix[] = { "_total", "", "_info" };
	bool om = page->openmetrics;
	const char *end = om ? "" : suffix[type];
	const char *word = !om && type == INFO ? "gauge" : words[type];

	fprintf(page->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help,
		name, end, word);
	if (om && unit)
		fprintf(page->out, "# UNIT %s %s\n", name, unit);
}

static void single(const struct page *page, const char *name, uint64_t value)
{
	fprintf(page->out, "%s %" PRIu64 "\n", name, value);
}

/* @value is one of our own words: nothing in it needs to be escaped. */
static void labelled(const struct page *page, const char *name,
		     const char *label, const char *value, uint64_t count)
{
	fprintf(page->out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, value,
		count);
}

static void put_sandboxes(const struct page *page, struct daemon *daemon)
{
	static const char *const states[] = {
		[SANDBOX_STARTING] = "starting",
		[SANDBOX_READY] = "ready",
		[SANDBOX_ENDING] = "ending",
		[SANDBOX_FAILED] = "failed",
	};
	static const char *const helds[] = {
		[BOUNDARY_UNKNOWN] = "unknown",
		[BOUNDARY_HELD] = "held",
		[BOUNDARY_RESTORED] = "restored",
		[BOUNDARY_BROKEN] = "broken",
	};
	uint64_t state[ARRAY_SIZE(states)] = { 0 };
	uint64_t held[ARRAY_SIZE(helds)] = { 0 };

	for (const struct daemon_sandbox *s = daemon_first(daemon); s;
	     s = s->next) {
		if ((size_t)s->state < ARRAY_SIZE(states))
			state[s->state]++;
		if (s->counts.held < ARRAY_SIZE(helds))
			held[s->counts.held]++;
	}
	family(page, "sallyport_sandboxes", GAUGE, NULL,
	       "Sandboxes by state; a failed one reaches nothing.");
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		labelled(page, "sallyport_sandboxes", "state", states[i],
			 state[i]);
	family(page, "sallyport_spare_sandboxes", GAUGE, NULL,
	       "Sandboxes that are ready, and nobody has asked for yet.");
	single(page, "sallyport_spare_sandboxes", daemon_spares_ready(daemon));
	family(page, "sallyport_boundary_held", GAUGE, NULL,
	       "Sandboxes by whether the kernel held their rules so far.");
	for (size_t i = 0; i < ARRAY_SIZE(helds); i++)
		labelled(page, "sallyport_boundary_held", "held", helds[i],
			 held[i]);
}

static void put_verdicts(const struct page *page, const struct totals *t)
{
	family(page, "sallyport_verdicts", COUNTER, NULL,
	       "Attempts that were decided.");
	labelled(page, "sallyport_verdicts_total", "verdict", "allowed",
		 t->allowed);
	labelled(page, "sallyport_verdicts_total", "verdict", "refused",
		 t->refused);
	family(page, "sallyport_refused", COUNTER, NULL,
	       "Attempts that were refused, by reason.");
	for (enum reason i = 0; i < REASON_COUNT; i++) {
		if (!reason_info(i)->allow)
			labelled(page, "sallyport_refused_total", "reason",
				 reason_word(i), t->by_reason[i]);
	}
}

static void put_traffic(const struct page *page, const struct totals *t)
{
	/* In the order of struct ruleset_counters. */
	static const char *const kinds[] = { "spoofed", "refused", "ipv6",
					     "forwarded" };

	family(page, "sallyport_bytes", COUNTER, "bytes",
	       "Payload that passed the gates, out of (up) and into (down) "
	       "sandboxes.");
	labelled(page, "sallyport_bytes_total", "direction", "up", t->up);
	labelled(page, "sallyport_bytes_total", "direction", "down", t->down);
	family(page, "sallyport_packets", COUNTER, NULL,
	       "Packets that the kernel dropped at the boundary, by kind.");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		labelled(page, "sallyport_packets_total", "kind", kinds[i],
			 t->packets[i]);
}

static void put_evidence(const struct page *page, const struct totals *t)
{
	static const char stamp[] =
		"sallyport_audit_last_checkpoint_timestamp_seconds";

	family(page, "sallyport_audit_records", COUNTER, NULL,
	       "Records in the logs.");
	single(page, "sallyport_audit_records_total", t->records);
	family(page, stamp, GAUGE, "seconds",
	       "When a log was last signed; 0: never.");
	fprintf(page->out, "%s %" PRIu64 ".%03u\n", stamp,
		t->checkpoint_ms / 1000, (unsigned)(t->checkpoint_ms % 1000));
	family(page, "sallyport_ruleset_foreign_changes", COUNTER, NULL,
	       "Changes to our rules that were not ours.");
	single(page, "sallyport_ruleset_foreign_changes_total",
	       t->foreign_changes);
	family(page, "sallyport_gate_restarts", COUNTER, NULL,
	       "Gates that died and were replaced.");
	single(page, "sallyport_gate_restarts_total", t->gate_restarts);
}

static void put_all(const struct page *page, struct daemon *daemon)
{
	struct totals totals = departed;

	for (const struct daemon_sandbox *s = daemon_first(daemon); s;
	     s = s->next)
		add(&totals, &s->counts);
	family(page, "sallyport_build", INFO, NULL, "The version that runs.");
	labelled(page, "sallyport_build_info", "version", SALLYPORT_VERSION, 1);
	put_sandboxes(page, daemon);
	put_verdicts(page, &totals);
	put_traffic(page, &totals);
	put_evidence(page, &totals);
	if (page->openmetrics)
		fputs("# EOF\n", page->out);
}

char *daemon_metrics(struct daemon *daemon, bool openmetrics)
{
	char *text = NULL;
	size_t len = 0;
	struct page page = { .openmetrics = openmetrics };

	page.out = open_memstream(&text, &len);
	if (!page.out)
		return NULL;
	put_all(&page, daemon);
	if (ferror(page.out) | fclose(page.out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- which of the two ---------------------------------------------------- */

struct words {
	const char *at;
	size_t len;
};

/* Takes what is before the next @by, or all, off @list, without space around
 * it. False at the end. */
static bool next_word(struct words *list, char by, struct words *ret)
{
	const char *end;

	if (!list->at)
		return false;
	end = memchr(list->at, by, list->len);
	*ret = (struct words){ list->at,
			       end ? (size_t)(end - list->at) : list->len };
	list->len -= end ? ret->len + 1 : ret->len;
	list->at = end ? end + 1 : NULL;
	while (ret->len && strchr(" \t", *ret->at)) {
		ret->at++;
		ret->len--;
	}
	while (ret->len && strchr(" \t", ret->at[ret->len - 1]))
		ret->len--;
	return true;
}

static bool is(struct words words, const char *text)
{
	return words.len == strlen(text) &&
	       strncasecmp(words.at, text, words.len) == 0;
}

/* "0", "1", "0.5", in thousandths; what is no weight is none. */
static unsigned weight(struct words words)
{
	unsigned value = 0, unit = 1000;

	for (size_t i = 0; i < words.len && i < 5; i++) {
		char c = words.at[i];

		if (i == 1 ? c != '.' : c < '0' || c > '9')
			return 0;
		if (i == 1)
			continue;
		value += (unsigned)(c - '0') * unit;
		unit /= 10;
	}
	return words.len && words.len <= 5 && value <= 1000 ? value : 0;
}

/* How much is asked for one of @type in a version of ours? */
static unsigned wanted(struct words range, const char *type,
		       const char *const *versions)
{
	struct words part;
	unsigned q = 1000;

	if (!next_word(&range, ';', &part) || !is(part, type))
		return 0;
	while (next_word(&range, ';', &part)) {
		bool known = false;

		if (part.len >= 2 && strncasecmp(part.at, "q=", 2) == 0)
			q = weight((struct words){ part.at + 2, part.len - 2 });
		if (part.len < 8 || strncasecmp(part.at, "version=", 8) != 0)
			continue;
		for (const char *const *v = versions; *v; v++)
			known |= is((struct words){ part.at + 8, part.len - 8 },
				    *v);
		if (!known)
			return 0;
	}
	return q;
}

bool daemon_metrics_accepts(const char *accept)
{
	static const char *const om[] = { "1.0.0", NULL };
	static const char *const plain[] = { "0.0.4", NULL };
	struct words list = { accept, accept ? strlen(accept) : 0 }, range;
	unsigned q_om = 0, q_plain = 0, q;

	while (next_word(&list, ',', &range)) {
		q = wanted(range, "application/openmetrics-text", om);
		q_om = q > q_om ? q : q_om;
		q = wanted(range, "text/plain", plain);
		q_plain = q > q_plain ? q : q_plain;
	}
	return q_om && q_om >= q_plain;
}

const char *daemon_metrics_type(bool openmetrics)
{
	return openmetrics ? "application/openmetrics-text; version=1.0.0; "
			     "charset=utf-8"
			   : "text/plain; version=0.0.4; charset=utf-8";
}
