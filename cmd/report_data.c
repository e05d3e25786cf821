/* SPDX-License-Identifier: Apache-2.0
 *
 * report_data.c - tables that do not grow beyond a bound, whatever a sandbox
 * asks for. Many names of one zone fold into a row "*.ZONE", so that a flood of
 * them can't push others out; what still finds no room is in the row of all
 * others, and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "cmd/report.h"

#define INDEX 32768 /* > REPORT_ROWS_MAX */

int report_new(struct report **ret_report)
{
	struct report *report = calloc(1, sizeof(*report));
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	int r;

	if (!report)
		return -ENOMEM;
	r = report_zones_init(&report->zones);
	report->session = calloc(REPORT_SESSIONS_MAX, sizeof(void *));
	for (size_t i = 0; i < REPORT_TABLES; i++) {
		struct report_rows *rows = &report->table[i];

		rows->at = calloc(REPORT_ROWS_MAX, sizeof(rows->at[0]));
		rows->index = calloc(INDEX, sizeof(rows->index[0]));
		rows->others = (struct report_row){ .host = (char *)"",
						    .rule = (char *)"",
						    .detail = (char *)"" };
		if (!rows->at || !rows->index)
			r = -ENOMEM;
	}
	if (r < 0 || !report->session) {
		report_free(report);
		return r < 0 ? r : -ENOMEM;
	}
	/* Documents that are made twice should be the same. */
	report->made_s =
		epoch ? strtoull(epoch, NULL, 10) : (uint64_t)time(NULL);
	*ret_report = report;
	return 0;
}

static void free_session(struct report_session *session)
{
	if (!session)
		return;
	verify_free(&session->result);
	free(session->path);
	free(session->name);
	free(session->policy);
	free(session->digest);
	free(session->boundary);
	free(session);
}

void report_free(struct report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < REPORT_TABLES; i++) {
		struct report_rows *rows = &report->table[i];

		for (size_t k = 0; k < rows->count; k++) {
			free(rows->at[k].host);
			free(rows->at[k].rule);
			free(rows->at[k].detail);
		}
		free(rows->at);
		free(rows->index);
	}
	for (size_t i = 0; i < report->events; i++) {
		free(report->event[i].text);
		free(report->event[i].process);
	}
	for (size_t i = 0; i < report->sessions; i++)
		free_session(report->session[i]);
	free(report->session);
	free(report->flows);
	report_zones_free(&report->zones);
	free(report);
}

/* --- rows ---------------------------------------------------------------- */

static bool same(enum report_table table, const struct report_row *a,
		 const struct report_row *b)
{
	if (strcmp(a->host, b->host) != 0)
		return false;
	if (table == REPORT_REFUSED)
		return a->reason == b->reason;
	return table != REPORT_PACKETS ||
	       (a->port == b->port && strcmp(a->protocol, b->protocol) == 0 &&
		strcmp(a->detail, b->detail) == 0);
}

static uint64_t hash_of(const struct report *report,
			const struct report_row *key)
{
	const struct hash_key secret = { report->zones.key[0],
					 report->zones.key[1] };

	return hash_bytes(&secret, key->host, strlen(key->host)) + key->port;
}

/* Where @key is, or where it would be. */
static uint32_t *slot_of(struct report *report, enum report_table table,
			 const struct report_row *key)
{
	struct report_rows *rows = &report->table[table];
	size_t at = hash_of(report, key) % INDEX;

	while (rows->index[at] &&
	       !same(table, &rows->at[rows->index[at] - 1], key))
		at = (at + 1) % INDEX;
	return &rows->index[at];
}

static struct report_row *add(struct report *report, enum report_table table,
			      const struct report_row *key, uint32_t *slot)
{
	struct report_rows *rows = &report->table[table];
	struct report_row row = { .reason = key->reason, .port = key->port };

	if (rows->count == REPORT_ROWS_MAX)
		return &rows->others;
	row.host = strndup(key->host, REPORT_HOST_MAX);
	row.rule = strdup("");
	row.detail = strdup(key->detail ? key->detail : "");
	memcpy(row.protocol, key->protocol, sizeof(row.protocol));
	row.strange = key->strange;
	if (!row.host || !row.rule || !row.detail) {
		free(row.host);
		free(row.rule);
		free(row.detail);
		report->no_memory = true;
		return &rows->others;
	}
	rows->at[rows->count] = row;
	*slot = (uint32_t)++rows->count;
	return &rows->at[rows->count - 1];
}

struct report_row *report_row(struct report *report, enum report_table table,
			      const struct report_row *key)
{
	char host[REPORT_HOST_MAX + 1], folded[HOST_MAX + 3];
	const struct report_zone *zone = NULL;
	struct report_row cut = *key;
	uint32_t *slot;

	snprintf(host, sizeof(host), "%s", key->host);
	cut.host = host;
	if (!cut.detail)
		cut.detail = (char *)"";
	slot = slot_of(report, table, &cut);
	if (*slot)
		return &report->table[table].at[*slot - 1];
	if (!key->strange)
		zone = report_zone_find(&report->zones, host);
	if (zone && zone->names >= ZONE_NAMES &&
	    strcmp(zone->name, host) != 0) {
		snprintf(folded, sizeof(folded), "*.%s", zone->name);
		cut.host = folded;
		slot = slot_of(report, table, &cut);
		if (*slot)
			return &report->table[table].at[*slot - 1];
	}
	return add(report, table, &cut, slot);
}

/* --- order and guesses --------------------------------------------------- */

static int descending(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

/* Bytes up first: that is how data leaves. */
static int by_bytes(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;
	int order = descending(x->up, y->up);

	if (!order)
		order = descending(x->down, y->down);
	if (!order)
		order = descending(x->connections + x->requests,
				   y->connections + y->requests);
	return order ? order : strcmp(x->host, y->host);
}

static int by_count(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;
	int order = descending(x->guess.word != NULL, y->guess.word != NULL);

	if (!order)
		order = descending(x->connections + x->requests + x->questions +
					   x->packets,
				   y->connections + y->requests + y->questions +
					   y->packets);
	if (!order)
		order = strcmp(x->host, y->host);
	return order ? order : (int)x->port - (int)y->port;
}

static int by_data(const void *a, const void *b)
{
	const struct report_zone *x = *(struct report_zone *const *)a;
	const struct report_zone *y = *(struct report_zone *const *)b;
	int order = descending(x->data, y->data);

	if (!order)
		order = descending(x->names, y->names);
	return order ? order : strcmp(x->name, y->name);
}

static int by_time(const void *a, const void *b)
{
	const struct report_event *x = a, *y = b;
	int order = descending(y->time_ms, x->time_ms);

	if (!order)
		order = descending(y->session, x->session);
	return order ? order : descending(y->sequence, x->sequence);
}

/* The zone of a row if it is a tunnel, and this one of the names that make it
 * one, or all further ones of it. */
static const struct report_zone *tunnel_of(const struct report *report,
					   const struct report_row *row)
{
	bool folded = strncmp(row->host, "*.", 2) == 0;
	const char *host = row->host + (folded ? 2 : 0);
	const struct report_zone *zone =
		row->strange ? NULL : report_zone_find(&report->zones, host);

	if (!report_zone_is_tunnel(zone))
		return NULL;
	return folded || report_zone_is_data(zone, host) ? zone : NULL;
}

static void move(struct report_row *to, struct report_row *from)
{
	to->connections += from->connections;
	to->requests += from->requests;
	to->questions += from->questions;
	to->observed += from->observed;
	to->observed_for |= from->observed_for;
	to->failed += from->failed;
	to->cut += from->cut;
	to->ech += from->ech;
	to->up += from->up;
	to->down += from->down;
	to->many_rules |= from->many_rules;
	to->many_ports |= from->many_ports ||
			  (to->port && from->port && to->port != from->port);
	if (!to->port)
		to->port = from->port;
	if (!to->first_ms || from->first_ms < to->first_ms)
		to->first_ms = from->first_ms;
	if (from->last_ms > to->last_ms)
		to->last_ms = from->last_ms;
	if (from->sessions > to->sessions)
		to->sessions = from->sessions;
	if (!*to->rule) {
		char *rule = to->rule;

		to->rule = from->rule;
		from->rule = rule;
	}
}

/* The names of a tunnel are one thing that happened. The rows that are left
 * move together; the index is of no use from here on. */
static void fold_tunnels(struct report *report, enum report_table table)
{
	struct report_rows *rows = &report->table[table];
	size_t kept = 0, count = rows->count;
	char folded[HOST_MAX + 3];

	for (size_t i = 0; i < count; i++) {
		struct report_row *row = &rows->at[i], *to;
		const struct report_zone *zone = tunnel_of(report, row);
		struct report_row key = { .host = folded,
					  .reason = row->reason };

		if (!zone || row->host[0] == '*')
			continue;
		snprintf(folded, sizeof(folded), "*.%s", zone->name);
		to = report_row(report, table, &key);
		if (to == &rows->others)
			continue;
		move(to, row);
		row->first_ms = 0;
	}
	for (size_t i = 0; i < rows->count; i++) {
		struct report_row *row = &rows->at[i];

		if (row->first_ms) {
			rows->at[kept++] = *row;
			continue;
		}
		free(row->host);
		free(row->rule);
		free(row->detail);
	}
	rows->count = kept;
}

/* Where it was allowed, only what is known of the host itself is said. */
static void guess(const struct report *report, enum report_table table,
		  struct report_row *row)
{
	if (table == REPORT_PACKETS)
		row->guess = report_guess_packet(row->detail, row->host);
	else
		row->guess = report_guess_host(
			row->host,
			table == REPORT_HOSTS ? REASON_RULE : row->reason,
			tunnel_of(report, row) != NULL, row->strange);
}

int report_finish(struct report *report)
{
	fold_tunnels(report, REPORT_HOSTS);
	fold_tunnels(report, REPORT_REFUSED);
	for (size_t i = 0; i < REPORT_TABLES; i++) {
		struct report_rows *rows = &report->table[i];

		for (size_t k = 0; k < rows->count; k++)
			guess(report, (enum report_table)i, &rows->at[k]);
		qsort(rows->at, rows->count, sizeof(rows->at[0]),
		      i == REPORT_HOSTS ? by_bytes : by_count);
	}
	qsort(report->zones.at, report->zones.count, sizeof(void *), by_data);
	qsort(report->event, report->events, sizeof(report->event[0]), by_time);
	return report->no_memory ? -ENOMEM : 0;
}
