/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.c - rows of the tally, folded, sorted and told.
 *
 * The hosts are what a sandbox wrote, and the reader is a terminal: only plain
 * ASCII passes. The table shows the first SHOWN_MAX rows of each reason; the
 * rest is in the JSON form and in the log.
 */
#include "cmd/summary.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "audit/log_dir.h"
#include "audit/tally.h"
#include "base/cleanup.h"
#include "base/json.h"

#define SHOWN_MAX  10
#define HOST_SHOWN 48
/* One row as JSON: each byte of its texts may become six. */
#define ROW_JSON_MAX (8 * sizeof(struct tally_row))

enum section { REACHED, OBSERVED, REFUSED, FINDINGS, POLICY };

static enum section section_of(const struct tally_row *row)
{
	if (strcmp(row->protocol, TALLY_FINDING) == 0 ||
	    strcmp(row->protocol, TALLY_RULESET) == 0)
		return FINDINGS;
	if (strcmp(row->protocol, TALLY_POLICY) == 0)
		return POLICY;
	if (row->allow && row->reason == REASON_OBSERVE)
		return OBSERVED;
	return row->allow ? REACHED : REFUSED;
}

/* Why it was refused, or would have been. */
static enum reason reason_of(const struct tally_row *row)
{
	return (enum reason)(section_of(row) == OBSERVED ? row->observed
							 : row->reason);
}

static int by_key(const void *a, const void *b)
{
	const struct tally_row *x = a, *y = b;
	int order = (int)section_of(x) - (int)section_of(y);

	if (!order)
		order = (int)reason_of(x) - (int)reason_of(y);
	return order ? order : strcmp(x->host, y->host);
}

/* Sections, reasons, then who did most. */
static int by_weight(const void *a, const void *b)
{
	const struct tally_row *x = a, *y = b;
	int order = (int)section_of(x) - (int)section_of(y);
	uint64_t more = (uint64_t)y->count + y->dns;
	uint64_t less = (uint64_t)x->count + x->dns;

	if (!order)
		order = (int)reason_of(x) - (int)reason_of(y);
	if (!order)
		order = (more > less) - (more < less);
	return order ? order : strcmp(x->host, y->host);
}

/* Rows that differ in their rule only become one; empty ones go. */
static size_t fold(const struct tally *tally, struct tally_row *rows)
{
	size_t n = 0, count = tally->rows < TALLY_MAX ? tally->rows : TALLY_MAX;

	memcpy(rows, tally->row, count * sizeof(*rows));
	qsort(rows, count, sizeof(*rows), by_key);
	for (size_t i = 0; i < count; i++) {
		if (!rows[i].count && !rows[i].dns && !rows[i].up &&
		    !rows[i].down)
			continue;
		if (n && by_key(&rows[n - 1], &rows[i]) == 0) {
			rows[n - 1].count += rows[i].count;
			rows[n - 1].dns += rows[i].dns;
			rows[n - 1].cut += rows[i].cut;
			rows[n - 1].mixed |=
				rows[i].mixed ||
				(rows[i].port && rows[n - 1].port &&
				 rows[i].port != rows[n - 1].port);
			rows[n - 1].up += rows[i].up;
			rows[n - 1].down += rows[i].down;
		} else {
			rows[n++] = rows[i];
		}
	}
	qsort(rows, n, sizeof(*rows), by_weight);
	return n;
}

/* @text as a terminal may have it, in @cap bytes, with "..." if cut. */
static const char *clean(const char *text, char *buf, size_t cap)
{
	size_t i;

	for (i = 0; text[i] && i < cap - 1; i++)
		buf[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	buf[i] = '\0';
	if (text[i] && cap > 4)
		memcpy(buf + cap - 4, "...", 4);
	return buf;
}

/* "999 B", "1.2 kB", "34.0 MB": as policies write sizes. */
static const char *human(uint64_t bytes, char buf[16])
{
	static const char *const units[] = {
		"B", "kB", "MB", "GB", "TB", "PB"
	};
	double value = (double)bytes;
	size_t unit = 0;

	/* 999.95 would print as 1000.0. */
	for (; value >= 999.95 && unit + 1 < ARRAY_SIZE(units); unit++)
		value /= 1000;
	snprintf(buf, 16, "%.*f %s", unit ? 1 : 0, value, units[unit]);
	return buf;
}

static void plural(char *buf, size_t cap, uint64_t n, const char *what)
{
	snprintf(buf, cap, "%llu %s%s", (unsigned long long)n, what,
		 n == 1 ? "" : "s");
}

static void print_reached(FILE *out, const struct tally_row *row)
{
	char host[HOST_SHOWN + 1], up[16], down[16], times[40];

	clean(row->host, host, sizeof(host));
	if (!row->count && !row->up && !row->down) {
		fprintf(out, "    %-32s only looked up\n", host);
		return;
	}
	plural(times, sizeof(times), row->count, "connection");
	fprintf(out, "    %-32s %-16s %9s up %9s down\n", host, times,
		human(row->up, up), human(row->down, down));
}

static void print_refused(FILE *out, const struct tally_row *row)
{
	char host[HOST_SHOWN + 1], where[HOST_SHOWN + 24], what[48] = "";
	char up[16], down[16];
	bool v6 = strchr(row->host, ':') != NULL;

	clean(row->host, host, sizeof(host));
	if (row->count && row->mixed)
		snprintf(where, sizeof(where), "%s, several ports", host);
	else if (row->count && row->port)
		snprintf(where, sizeof(where), v6 ? "[%s]:%u%s%s" : "%s:%u%s%s",
			 host, row->port,
			 row->reason == REASON_BYPASS ? " " : "",
			 row->reason == REASON_BYPASS ? row->protocol : "");
	else
		snprintf(where, sizeof(where), "%s", *host ? host : "-");
	if (row->count)
		plural(what, sizeof(what), row->count,
		       row->reason == REASON_BYPASS ? "packet" : "connection");
	fprintf(out, "    %-32s %s", where, what);
	if (row->dns) {
		plural(what, sizeof(what), row->dns, "DNS question");
		fprintf(out, "%s%s", row->count ? ", " : "", what);
	}
	if (row->cut)
		fprintf(out, ", %u cut while going on", row->cut);
	if (section_of(row) == OBSERVED && (row->up || row->down))
		fprintf(out, ", %s up, %s down", human(row->up, up),
			human(row->down, down));
	fputc('\n', out);
}

static const char *hint_of(const struct tally_row *row, char *buf, size_t cap)
{
	bool named = strcmp(row->host, TALLY_OTHERS) != 0 && *row->host;

	return reason_hint(reason_of(row), named ? row->host : NULL,
			   row->count ? row->port : 0, buf, cap);
}

/* @n rows of one reason; a hint is told once for all rows that share it. */
static void print_reason(FILE *out, const struct tally_row *rows, size_t n)
{
	size_t shown = n < SHOWN_MAX ? n : SHOWN_MAX;
	char hint[400], next[400];

	fprintf(out, "  %s: %s\n", reason_word(reason_of(rows)),
		reason_info(reason_of(rows))->text);
	for (size_t i = 0; i < shown; i++) {
		print_refused(out, &rows[i]);
		hint_of(&rows[i], hint, sizeof(hint));
		if (i + 1 < shown && strcmp(hint, hint_of(&rows[i + 1], next,
							  sizeof(next))) == 0)
			continue;
		fprintf(out, "      -> %s\n", hint);
	}
	if (n > shown)
		fprintf(out, "    and %zu more, see the log\n", n - shown);
}

static size_t same_reason(const struct tally_row *rows, size_t left)
{
	size_t n = 1;

	while (n < left && reason_of(&rows[n]) == reason_of(rows) &&
	       section_of(&rows[n]) == section_of(rows))
		n++;
	return n;
}

static void print_sections(FILE *out, const struct tally_row *rows, size_t n)
{
	static const char *const titles[] = {
		[REACHED] = "reached",	     [OBSERVED] = "would be refused",
		[REFUSED] = "refused",	     [FINDINGS] = "findings",
		[POLICY] = "policy changes",
	};
	char text[160];
	size_t step;

	for (size_t i = 0; i < n; i += step) {
		enum section section = section_of(&rows[i]);

		step = same_reason(&rows[i], n - i);
		if (i == 0 || section_of(&rows[i - 1]) != section)
			fprintf(out, "%s\n", titles[section]);
		if (section == REFUSED || section == OBSERVED) {
			print_reason(out, &rows[i], step);
			continue;
		}
		for (size_t k = i; k < i + step; k++) {
			if (section == REACHED)
				print_reached(out, &rows[k]);
			else
				fprintf(out, "    %s\n",
					clean(rows[k].host, text,
					      sizeof(text)));
		}
	}
}

/* A path that may be pasted after a command. */
static void print_quoted(FILE *out, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-+,:@%=";

	if (path[strspn(path, plain)] == '\0') {
		fputs(path, out);
		return;
	}
	fputc('\'', out);
	for (; *path; path++) {
		if (*path == '\'')
			fputs("'\\''", out);
		else
			fputc(*path, out);
	}
	fputc('\'', out);
}

static void print_evidence(FILE *out, const struct tally *tally,
			   const struct summary *summary)
{
	static const char *const held[] = {
		[BOUNDARY_UNKNOWN] = "nobody can say whether it held",
		[BOUNDARY_HELD] = "held, from the first to the last moment",
		[BOUNDARY_RESTORED] =
			"was touched, and put back while nothing could leave",
		[BOUNDARY_BROKEN] = "did not hold: see the findings",
	};

	if (summary->boundary)
		fprintf(out, "boundary: %s%s%s%s\n", held[summary->held],
			summary->nest ? "; with namespaces inside" : "",
			summary->daemon ? "; it was the daemon's, sandbox "
					: "",
			summary->daemon ? summary->daemon : "");
	if (summary->log && tally)
		fprintf(out, "log: %s (%llu records)\n", summary->log,
			(unsigned long long)tally->records);
	else if (summary->log)
		fprintf(out, "log: %s (what was recorded is there)\n",
			summary->log);
	if (!summary->dir)
		return;
	if (!summary->receipt) {
		fputs("receipt: none: the log was not closed in order\n", out);
		return;
	}
	fprintf(out,
		"receipt: %s/" LOG_DIR_RECEIPT "; to check it: sallyport "
		"verify ",
		summary->dir);
	print_quoted(out, summary->dir);
	fputc('\n', out);
}

static void print_table(FILE *out, const struct tally *tally,
			const struct tally_row *rows, size_t n,
			const struct summary *summary)
{
	char text[512];

	fprintf(out, "sallyport: %s\n",
		!tally ? "what was reached and refused is not known, as the "
			 "ledger did not come to its end"
		: n    ? "what left, and what did not"
		       : "nothing was reached, nothing was refused");
	print_sections(out, rows, n);
	if (summary->policy)
		fprintf(out, "policy: %s\n",
			clean(summary->policy, text, sizeof(text)));
	print_evidence(out, tally, summary);
}

static void json_row(struct json *j, const struct tally_row *row)
{
	enum section section = section_of(row);
	bool about_us = section == FINDINGS || section == POLICY;
	char hint[400];

	json_open(j, NULL, '{');
	json_bytes(j,
		   section == FINDINGS ? "finding"
		   : section == POLICY ? "change"
				       : "host",
		   row->host, strlen(row->host));
	if (section != POLICY)
		json_text(j, "reason", reason_word((enum reason)row->reason));
	json_uint(j, "count", row->count);
	if (about_us) {
		json_close(j, '}');
		return;
	}
	json_uint(j, "dns", row->dns);
	json_text(j, "door", door_word((enum door)row->door));
	json_text(j, "protocol", row->protocol);
	if (row->port)
		json_uint(j, "port", row->port);
	json_text(j, "rule", row->rule);
	if (section == OBSERVED)
		json_text(j, "observed", reason_word(reason_of(row)));
	if (section == REACHED || section == OBSERVED) {
		json_uint(j, "bytes_up", row->up);
		json_uint(j, "bytes_down", row->down);
	}
	if (row->cut)
		json_uint(j, "cut", row->cut);
	if (section != REACHED)
		json_text(j, "hint", hint_of(row, hint, sizeof(hint)));
	json_close(j, '}');
}

static void json_section(struct json *j, const char *name, enum section section,
			 const struct tally_row *rows, size_t n)
{
	json_open(j, name, '[');
	for (size_t i = 0; i < n; i++)
		if (section_of(&rows[i]) == section)
			json_row(j, &rows[i]);
	json_close(j, ']');
}

static void json_evidence(struct json *j, const struct summary *summary)
{
	static const char *const held[] = {
		[BOUNDARY_UNKNOWN] = "unknown",
		[BOUNDARY_HELD] = "held",
		[BOUNDARY_RESTORED] = "restored",
		[BOUNDARY_BROKEN] = "broken",
	};
	char path[PATH_MAX + 32];

	json_text(j, "boundary", held[summary->held]);
	json_bool(j, "nest", summary->nest);
	json_text(j, "daemon", summary->daemon);
	if (!summary->receipt || !summary->dir)
		return;
	snprintf(path, sizeof(path), "%s/" LOG_DIR_RECEIPT, summary->dir);
	json_text(j, "receipt", path);
}

static void json_sections(struct json *j, const struct tally *tally,
			  const struct tally_row *rows, size_t n)
{
	if (!tally) {
		/* An empty list would say that there was nothing. */
		json_members(j, "\"records\":null,\"reached\":null,"
				"\"would_be_refused\":null,\"refused\":null,"
				"\"findings\":null,\"policy_changes\":null");
		return;
	}
	json_uint(j, "records", tally->records);
	json_section(j, "reached", REACHED, rows, n);
	json_section(j, "would_be_refused", OBSERVED, rows, n);
	json_section(j, "refused", REFUSED, rows, n);
	json_section(j, "findings", FINDINGS, rows, n);
	json_section(j, "policy_changes", POLICY, rows, n);
}

static void print_json(FILE *out, const struct tally *tally,
		       const struct tally_row *rows, size_t n,
		       const struct summary *summary)
{
	const char *const texts[] = { summary->policy, summary->log,
				      summary->dir };
	size_t cap = (n + 1) * ROW_JSON_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		cap += texts[i] ? 6 * strlen(texts[i]) : 0;
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);

	json_open(&j, NULL, '{');
	json_text(&j, "policy", summary->policy);
	json_text(&j, "log", summary->log);
	json_evidence(&j, summary);
	json_sections(&j, tally, rows, n);
	json_close(&j, '}');
	/* Half a text would be no JSON. */
	if (j.full)
		fputs("{}\n", out);
	else
		fprintf(out, "%.*s\n", (int)j.len, buf);
}

void summary_print(FILE *out, const struct tally *tally,
		   const struct summary *summary, bool json)
{
	AUTO_FREE struct tally_row *rows = calloc(TALLY_MAX, sizeof(*rows));
	size_t n = rows && tally ? fold(tally, rows) : 0;

	if (!rows)
		fprintf(out, json ? "{}\n" : "no memory for the summary\n");
	else if (json)
		print_json(out, tally, rows, n, summary);
	else
		print_table(out, tally, rows, n, summary);
	fflush(out);
}
