/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.c - one row for each host, verdict, reason and rule.
 *
 *	DNS_QUERY	dns + its own count, or 1
 *	DNS_ANSWER	dns + its count, if it stands for repeated questions
 *	FLOW_OPEN	count + 1
 *	HTTP_REQUEST	count + 1
 *	FLOW_DIAL	only if it failed: the connection that was counted when
 *			it was let through never came about, so it moves from
 *			its row to one that says why
 *	FLOW_CLOSE	bytes, on the row that let it through; if we cut it,
 *count and cut + 1 on a row that says why PACKET, FINDING	count + their
 *own POLICY		count + 1
 *
 * A sandbox chooses the hosts, so the table is bounded: the last two rows take
 * what finds no row. The index is a hash table with linear probing; even if
 * somebody makes all keys collide, a look-up passes over TALLY_MAX entries.
 */
#include "audit/tally.h"

#include <stdio.h>
#include <string.h>

#include "audit/record.h"
#include "base/addr.h"
#include "base/text.h"

#define OTHERS 2 /* rows kept for the others, allowed and refused */

/* What fits of @from. */
static void copy(char *to, const char *from, size_t cap)
{
	size_t len = strnlen(from, cap - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

/* What tells rows apart, as an event has it. */
struct key {
	const char *host, *rule;
	size_t host_len, rule_len; /* of them: what fits into a row */
	uint32_t host_hash;
	uint16_t reason, observed;
	bool allow;
	char text[HOST_MAX + 1]; /* a host that the event does not have so */
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t hash_bytes(uint64_t hash, const char *s, size_t len)
{
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), s += sizeof(word)) {
		memcpy(&word, s, sizeof(word));
		hash = mix(hash, word);
	}
	word = len;
	while (len--)
		word = word << 8 | (unsigned char)*s++;
	return mix(hash, word);
}

static uint32_t hash_host(const char *host, size_t len)
{
	return (uint32_t)hash_bytes(1, host, len);
}

static uint32_t hash_key(const struct key *key)
{
	uint64_t hash = hash_bytes(key->host_hash, key->rule, key->rule_len);

	return (uint32_t)mix(hash, (uint64_t)key->reason << 32 |
					   (uint64_t)key->observed << 8 |
					   key->allow);
}

/* @text has no NUL in its @len bytes. */
static bool is_text(const char *row, const char *text, size_t len)
{
	return memcmp(row, text, len) == 0 && !row[len];
}

static bool same_host(const struct tally_row *row, const struct key *key)
{
	return is_text(row->host, key->host, key->host_len);
}

static bool same(const struct tally_row *row, const struct key *key)
{
	return row->reason == key->reason && row->allow == key->allow &&
	       row->observed == key->observed && same_host(row, key) &&
	       is_text(row->rule, key->rule, key->rule_len);
}

static struct tally_row *others(struct tally *tally, bool allow)
{
	static const char name[] = TALLY_OTHERS;

	for (size_t i = TALLY_MAX - OTHERS; i < tally->rows; i++)
		if (tally->row[i].allow == allow)
			return &tally->row[i];
	struct tally_row *row = &tally->row[tally->rows++];

	memset(row, 0, sizeof(*row));
	memcpy(row->host, name, sizeof(name));
	tally->host[tally->rows - 1] = hash_host(name, sizeof(name) - 1);
	row->allow = allow;
	row->reason = allow ? REASON_RULE : REASON_NOT_IN_POLICY;
	return row;
}

/* The row with @key, made if there is none. */
static struct tally_row *find(struct tally *tally, const struct key *key)
{
	uint32_t at = hash_key(key) % TALLY_INDEX;
	struct tally_row *row;

	while (tally->index[at]) {
		row = &tally->row[tally->index[at] - 1];
		if (same(row, key))
			return row;
		at = (at + 1) % TALLY_INDEX;
	}
	if (tally->rows >= TALLY_MAX - OTHERS)
		return others(tally, key->allow);
	row = &tally->row[tally->rows];
	memset(row, 0, sizeof(*row)); /* it goes over a socket: no padding */
	memcpy(row->host, key->host, key->host_len);
	memcpy(row->rule, key->rule, key->rule_len);
	row->allow = key->allow;
	row->reason = key->reason;
	row->observed = key->observed;
	tally->host[tally->rows] = key->host_hash;
	tally->index[at] = (uint16_t)++tally->rows;
	return row;
}

/* Not about a host: the detail is what tells them apart. */
static bool is_about_us(const struct audit_event *event)
{
	return event->kind == EVENT_FINDING || event->kind == EVENT_POLICY ||
	       event->kind == EVENT_RULESET;
}

static const char *host_of(const struct audit_event *event,
			   char text[HOST_MAX + 1])
{
	const char *host = event->host;

	if (event->door == DOOR_PUBLISHED && event->rule_text) {
		snprintf(text, HOST_MAX + 1, "published %.200s",
			 event->rule_text);
		return text;
	}
	if (is_about_us(event) && event->detail)
		host = event->detail;
	return host && *host ? host : ip_format(&event->dst_ip, text);
}

static void key_of(const struct audit_event *event, struct key *ret_key)
{
	struct key *key = ret_key;

	key->host = host_of(event, key->text);
	key->host_len = strnlen(key->host, HOST_MAX);
	key->host_hash = hash_host(key->host, key->host_len);
	key->rule = event->rule ? event->rule : "";
	key->rule_len = strnlen(key->rule, TALLY_RULE_MAX);
	key->allow = event->verdict.allow;
	key->reason = (uint16_t)event->verdict.reason;
	key->observed = (uint16_t)event->verdict.observed;
}

static struct tally_row *row_of(struct tally *tally,
				const struct audit_event *event)
{
	struct tally_row *row;
	struct key key;

	key_of(event, &key);
	row = find(tally, &key);
	row->door = (uint8_t)event->door;
	/* The port of a DNS question is the resolver's, not the host's. */
	if (event->dst_port && event->kind != EVENT_DNS_QUERY &&
	    event->kind != EVENT_DNS_ANSWER) {
		if (row->port && row->port != event->dst_port)
			row->mixed = 1;
		row->port = event->dst_port;
	}
	if (event->kind == EVENT_FINDING)
		snprintf(row->protocol, sizeof(row->protocol), TALLY_FINDING);
	else if (event->kind == EVENT_POLICY)
		snprintf(row->protocol, sizeof(row->protocol), TALLY_POLICY);
	else if (event->kind == EVENT_RULESET)
		snprintf(row->protocol, sizeof(row->protocol), TALLY_RULESET);
	else if (event->protocol)
		copy(row->protocol, event->protocol, sizeof(row->protocol));
	return row;
}

/* The row that let the flow of @event through: the close says how the flow
 * ended, which need not be why it was let through; where it is, several rows of
 * one host and port (requests, of which some are only observed) are told apart.
 * NULL if there is none. */
static struct tally_row *origin_of(struct tally *tally,
				   const struct audit_event *event)
{
	struct tally_row *best = NULL;
	struct key key;

	key_of(event, &key);
	for (size_t i = 0; i < tally->rows; i++) {
		struct tally_row *row = &tally->row[i];

		if (tally->host[i] != key.host_hash || !row->allow ||
		    !(row->count || row->dns) || !same_host(row, &key))
			continue;
		if (same(row, &key))
			return row;
		if (!best || row->port == event->dst_port)
			best = row;
	}
	if (!best && tally->rows > TALLY_MAX - OTHERS)
		best = others(tally, true);
	return best;
}

static void add_bytes(struct tally *tally, const struct audit_event *event)
{
	struct tally_row *row = origin_of(tally, event);

	if (!row) {
		struct audit_event allowed = *event;

		allowed.verdict = (struct verdict){ .allow = true };
		row = row_of(tally, &allowed);
	}
	row->up = record_sum(row->up, event->bytes_up);
	row->down = record_sum(row->down, event->bytes_down);
}

static void add_count(uint32_t *count, uint32_t n)
{
	*count = n < UINT32_MAX - *count ? *count + n : UINT32_MAX;
}

/* We ended it: that is a refusal too, and its own row. */
static void add_cut(struct tally *tally, const struct audit_event *event)
{
	struct tally_row *row;

	if (event->verdict.allow || !record_cuts(event->verdict.reason))
		return;
	row = row_of(tally, event);
	add_count(&row->count, 1);
	add_count(&row->cut, 1);
}

static void move_failed(struct tally *tally, const struct audit_event *event)
{
	struct tally_row *row = origin_of(tally, event);

	if (row && row->count)
		row->count--;
	row_of(tally, event)->count++;
}

/* The name was allowed, its answer was not: no address that may be dialled. */
static void move_unanswered(struct tally *tally,
			    const struct audit_event *event)
{
	struct tally_row *row = origin_of(tally, event);

	if (row && row->dns)
		row->dns--;
	row_of(tally, event)->dns++;
}

/* --- for the receipt ------------------------------------------------------ */

static void add_note(struct tally_notes *notes, uint64_t sequence,
		     const struct audit_event *event, const char *text)
{
	struct tally_note *note;

	notes->total++;
	if (notes->kept == TALLY_NOTES ||
	    (event->by_gate && notes->by_gate == TALLY_GATE_NOTES))
		return;
	note = &notes->note[notes->kept++];
	notes->by_gate += event->by_gate;
	note->by_gate = event->by_gate;
	note->sequence = sequence;
	note->time_ms = event->time_ms;
	note->pid = event->pid;
	snprintf(note->process, sizeof(note->process), "%s",
		 event->process ? event->process : "");
	snprintf(note->text, sizeof(note->text), "%s", text ? text : "");
	text_clean(note->process);
	text_clean(note->text);
}

static void note(struct tally_sums *sums, uint64_t sequence,
		 const struct audit_event *event)
{
	bool foreign = event->pid || (event->process && *event->process);

	if (event->kind == EVENT_FINDING)
		add_note(&sums->finding, sequence, event, event->detail);
	if (event->kind == EVENT_POLICY)
		add_note(&sums->policy, sequence, event,
			 record_policy_digest(event->detail));
	if (event->kind == EVENT_RULESET ||
	    (event->kind == EVENT_FINDING && foreign))
		add_note(&sums->ruleset, sequence, event, event->detail);
}

static void add_verdict(struct tally_sums *sums, const struct verdict *verdict)
{
	if (verdict->allow) {
		sums->allowed++;
		return;
	}
	sums->refused++;
	sums->by_reason[verdict->reason]++;
}

static void add_sums(struct tally_sums *sums, const struct audit_event *event)
{
	const struct verdict *verdict = &event->verdict;

	switch (event->kind) {
	case EVENT_DNS_QUERY:
	case EVENT_FLOW_OPEN:
	case EVENT_HTTP_REQUEST:
		add_verdict(sums, verdict);
		break;
	case EVENT_DNS_ANSWER:
	case EVENT_FLOW_DIAL:
		if (!verdict->allow)
			add_verdict(sums, verdict);
		break;
	case EVENT_FLOW_CLOSE:
		sums->up = record_sum(sums->up, event->bytes_up);
		sums->down = record_sum(sums->down, event->bytes_down);
		if (!verdict->allow && record_cuts(verdict->reason))
			add_verdict(sums, verdict);
		break;
	case EVENT_PACKET:
		sums->packets = record_sum(sums->packets,
					   event->count ? event->count : 1);
		break;
	default:
		break;
	}
}

void tally_add(struct tally *tally, const struct audit_event *event)
{
	uint32_t n = event->count ? event->count : 1;

	add_sums(&tally->sums, event);
	note(&tally->sums, tally->records, event);
	tally->records++;
	switch (event->kind) {
	case EVENT_DNS_QUERY:
		add_count(&row_of(tally, event)->dns, n);
		break;
	case EVENT_DNS_ANSWER:
		if (!event->verdict.allow)
			move_unanswered(tally, event);
		else if (event->count)
			add_count(&row_of(tally, event)->dns, n);
		break;
	case EVENT_FLOW_OPEN:
	case EVENT_HTTP_REQUEST:
		add_count(&row_of(tally, event)->count, 1);
		break;
	case EVENT_FLOW_DIAL:
		if (!event->verdict.allow)
			move_failed(tally, event);
		break;
	case EVENT_FLOW_CLOSE:
		add_bytes(tally, event);
		add_cut(tally, event);
		break;
	case EVENT_PACKET:
	case EVENT_FINDING:
	case EVENT_POLICY:
	case EVENT_RULESET:
		add_count(&row_of(tally, event)->count, n);
		break;
	default:
		break;
	}
}
