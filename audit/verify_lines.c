/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_lines.c - are the records a chain?
 *
 * Each record has a number and the hash of the line before. Whoever changed a
 * log and not all that follows left a place where they don't fit; most of this
 * is about giving that place the right name. Whoever did change all that
 * follows is found by the checkpoints.
 */
#include <inttypes.h>
#include <string.h>

#include "audit/verify_state.h"
#include "base/cleanup.h"
#include "base/hex.h"

/* Digits of a hash that are the same by chance: 4 of 64. With so many it is the
 * same hash, edited. */
#define ALIKE 24

#define HASH_DIGITS (2 * (size_t)MERKLE_HASH)

static void say_line(struct verify *v, enum verify_fault fault,
		     const struct verify_place *at, const char *text)
{
	verify_say(v, fault, at->file, at->line, "%s", text);
	v->tree_bad = true;
}

static struct verify_place here(const struct verify *v)
{
	struct verify_place at = { .line = v->reader.line };

	memcpy(at.file, v->reader.file, sizeof(at.file));
	return at;
}

static void say_odd(struct verify *v, enum verify_fault fault,
		    const char *format)
{
	const struct verify_odd *odd = &v->odd;
	char text[256];

	/* All formats are ours, with two numbers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), format, odd->expected, odd->number);
#pragma GCC diagnostic pop
	say_line(v, fault, &odd->at, text);
}

#define SAY_MISSING                                             \
	"records are missing before this line: number %" PRIu64 \
	" should be here, and it is %" PRIu64
#define SAY_REPEATED                           \
	"not the next record: number %" PRIu64 \
	" should be here, and it is %" PRIu64 ", which there was before"
#define SAY_ORDER                                       \
	"a record is not in its place: number %" PRIu64 \
	" should be here, and it is %" PRIu64
#define SAY_NUMBER                                     \
	"its number was edited: it is record %" PRIu64 \
	", and says that it is %" PRIu64

/* Which part begins with record @number? "" if none does. */
static void find_part(const struct verify *v, uint64_t number,
		      char ret[LOG_DIR_NAME_MAX])
{
	AUTO_FREE char *buf = malloc(RECORD_LINE_MAX);

	for (unsigned part = 1; buf && part <= v->reader.parts; part++) {
		struct verify_line line;
		struct text text;

		if (verify_read_first(&v->reader, part, buf, RECORD_LINE_MAX,
				      ret, &text) &&
		    !verify_line_parse(text, &line) && line.sequence == number)
			return;
	}
	*ret = '\0';
}

static void say_missing(struct verify *v)
{
	char part[LOG_DIR_NAME_MAX] = "", said[128];

	if (v->odd.at.line == 1)
		find_part(v, v->odd.expected, part);
	if (!*part) {
		say_odd(v, VERIFY_MISSING, SAY_MISSING);
		return;
	}
	snprintf(said, sizeof(said),
		 "this part is not in its place: record %" PRIu64
		 ", which should be here, begins %s",
		 v->odd.expected, part);
	say_line(v, VERIFY_ORDER, &v->odd.at, said);
}

/* The number after an odd one is @next. */
static void settle_odd(struct verify *v, uint64_t next)
{
	struct verify_odd *odd = &v->odd;
	bool ahead = odd->number > odd->expected;

	odd->set = false;
	v->unsettled = 2;
	if (!odd->known) {
		v->expected = odd->expected + (next != odd->expected);
	} else if (next == odd->expected && ahead &&
		   odd->number == odd->expected + 1) {
		say_odd(v, VERIFY_ORDER, SAY_ORDER); /* two changed places */
		v->expected = next;
	} else if (next == odd->expected) {
		if (ahead)
			say_odd(v, VERIFY_ORDER, SAY_ORDER);
		else
			say_odd(v, VERIFY_REPEATED, SAY_REPEATED);
		v->expected = next;
	} else if (next == odd->expected + 1) {
		if (odd->follows)
			say_odd(v, VERIFY_EDITED, SAY_NUMBER);
		else if (ahead)
			say_odd(v, VERIFY_ORDER, SAY_ORDER);
		else
			say_odd(v, VERIFY_REPEATED, SAY_REPEATED);
		v->expected = next;
	} else {
		if (ahead)
			say_missing(v);
		else
			say_odd(v, VERIFY_REPEATED, SAY_REPEATED);
		v->expected = odd->number + 1;
	}
}

static void take_number(struct verify *v, uint64_t number, bool follows)
{
	if (v->odd.set)
		settle_odd(v, number);
	if (number == v->expected) {
		v->expected++;
		return;
	}
	v->odd = (struct verify_odd){ .set = true,
				      .known = true,
				      .at = here(v),
				      .number = number,
				      .expected = v->expected,
				      .follows = follows };
}

static size_t alike(struct text prev, const char *hash)
{
	size_t same = 0;

	for (size_t i = 0; i < prev.len && i < HASH_DIGITS; i++)
		same += prev.at[i] == hash[i];
	return same;
}

/* The root that did not fit is explained by a line in its range. */
static void explain_root(struct verify *v, uint64_t index)
{
	if (!v->root.set || v->result->problems != v->root.problem + 1 ||
	    index < v->root.from || index >= v->root.to)
		return;
	v->result->problems--;
	v->root.set = false;
}

/* The line before is not what @line says it was. Which of them is it? */
static void say_broken_chain(struct verify *v, const struct verify_line *line,
			     const char *hash)
{
	struct verify_place at = here(v);

	if (alike(line->prev, hash) >= ALIKE ||
	    v->result->covered >= v->tree.size) {
		say_line(v, VERIFY_EDITED, &at,
			 "its `prev` is not the hash of the line before, of "
			 "which nothing else is wrong");
		return;
	}
	explain_root(v, v->tree.size - 1);
	say_line(v, VERIFY_EDITED, &v->before_at,
		 "it is not the line of which the next one has the hash");
}

/* Whether `prev` is the hash of the line before; if the record is in its place
 * otherwise, it has to be. */
static bool check_chain(struct verify *v, const struct verify_line *line)
{
	char hash[HASH_DIGITS + 1];
	bool in_place = !v->odd.set && line->sequence == v->expected;

	if (!v->has_before)
		return true;
	hex_format(v->before.byte, MERKLE_HASH, hash);
	if (line->prev.at && text_is(line->prev, hash))
		return true;
	if (in_place && !v->unsettled) {
		struct verify_place at = here(v);

		if (line->prev.at && line->prev.len == HASH_DIGITS)
			say_broken_chain(v, line, hash);
		else
			say_line(v, VERIFY_EDITED, &at,
				 "it does not say which line comes before it "
				 "(`prev`)");
	}
	return false;
}

/* A record of this session? Its number is in it twice; @line has the one that
 * fits, if one does. */
static void check_names(struct verify *v, struct verify_line *line)
{
	struct verify_place at = here(v);
	struct text session = { 0 };
	uint64_t number = 0;
	bool uid = verify_line_uid(line->uid, &session, &number);
	bool ours = text_is(line->session, v->session);
	bool foreign = uid && !ours && session.len == line->session.len &&
		       memcmp(session.at, line->session.at, session.len) == 0;

	if (foreign && !v->foreign) {
		char text[160];

		snprintf(text, sizeof(text),
			 "a record of another session, %.*s; this is %s",
			 session.len < 60 ? (int)session.len : 60, session.at,
			 v->session);
		say_line(v, VERIFY_OTHER_SESSION, &at, text);
	}
	v->foreign = foreign;
	if (foreign)
		return;
	if (!uid || !ours || !text_is(session, v->session))
		say_line(v, VERIFY_EDITED, &at,
			 "its `uid` and `correlation_uid` do not name this "
			 "session");
	else if (number != line->sequence)
		say_line(v, VERIFY_EDITED, &at,
			 "its `uid` and its `sequence` are different numbers");
	if (uid && number == v->expected)
		line->sequence = number;
}

static void copy(char *to, size_t cap, struct text text)
{
	snprintf(to, cap, "%.*s", (int)text.len, text.at ? text.at : "");
}

static void take_first(struct verify_result *result,
		       const struct verify_line *line)
{
	result->opened = true;
	copy(result->policy, sizeof(result->policy), line->policy);
	copy(result->ruleset, sizeof(result->ruleset), line->ruleset);
	result->quotes_earlier = line->has_earlier;
	result->earlier_records = line->earlier_records;
	result->earlier_bytes = line->earlier_bytes;
	copy(result->earlier_checkpoint, sizeof(result->earlier_checkpoint),
	     line->earlier_checkpoint);
}

static void check_event(struct verify *v, const struct verify_line *line)
{
	struct verify_result *result = v->result;
	struct verify_place at = here(v);

	if (result->closed && !v->after_the_end) {
		v->after_the_end = true;
		say_line(v, VERIFY_AFTER_THE_END, &at,
			 "the session was closed before this line: nothing may "
			 "follow");
	}
	if (line->kind == EVENT_SESSION_OPEN && result->opened &&
	    line->sequence == v->expected)
		say_line(v, VERIFY_REPEATED, &at,
			 "it opens the session, which is open");
	if (!v->tree.size && line->kind != EVENT_SESSION_OPEN &&
	    !line->sequence)
		say_line(v, VERIFY_EDITED, &at,
			 "the first record has to open the session");
	if (!v->tree.size && line->kind == EVENT_SESSION_OPEN) {
		take_first(result, line);
		if (line->prev.at)
			say_line(v, VERIFY_EDITED, &at,
				 "nothing can come before the first record "
				 "(`prev`)");
	}
	result->closed |= line->kind == EVENT_SESSION_CLOSE;
}

static void check_time(struct verify_result *result, uint64_t ms)
{
	if (!result->records)
		result->first_ms = ms;
	else if (ms < result->last_ms)
		result->backwards++;
	result->last_ms = ms;
}

enum { DISPOSITION_ALLOWED = 1, DISPOSITION_BLOCKED = 2 };
enum { DISPOSITION_LOGGED = 17, DISPOSITION_REVOKED = 24 };

static void count_refused(struct verify *v, const struct verify_line *line)
{
	v->result->refused++;
	for (size_t i = 0; i < REASON_COUNT; i++) {
		if (!line->reason.at ||
		    !text_is(line->reason, reason_word((enum reason)i)))
			continue;
		v->by_reason[i]++;
		return;
	}
}

/* As the ledger does: a question, a connection or a request is a verdict; what
 * comes later is one only if it takes that back. */
static void count_verdict(struct verify *v, const struct verify_line *line)
{
	uint64_t how = line->disposition;
	bool allowed = how == DISPOSITION_ALLOWED || how == DISPOSITION_LOGGED;

	switch (line->kind) {
	case EVENT_DNS_QUERY:
	case EVENT_FLOW_OPEN:
	case EVENT_HTTP_REQUEST:
		if (allowed)
			v->result->allowed++;
		else
			count_refused(v, line);
		break;
	case EVENT_DNS_ANSWER:
	case EVENT_FLOW_DIAL:
		if (!allowed)
			count_refused(v, line);
		break;
	case EVENT_FLOW_CLOSE:
		if (how == DISPOSITION_BLOCKED || how == DISPOSITION_REVOKED)
			count_refused(v, line);
		break;
	default:
		break;
	}
}

static void take_record(struct verify *v, struct verify_line *line)
{
	bool follows;

	check_names(v, line);
	follows = check_chain(v, line);
	check_event(v, line);
	take_number(v, line->sequence, follows);
	check_time(v->result, line->time_ms);
	count_verdict(v, line);
}

static void take_bad(struct verify *v, enum verify_fault fault,
		     const char *text)
{
	struct verify_place at = here(v);

	say_line(v, fault, &at, text);
	if (v->odd.set)
		settle_odd(v, v->odd.number + 1);
	v->odd = (struct verify_odd){ .set = true,
				      .at = at,
				      .expected = v->expected };
	if (v->result->closed && !v->after_the_end)
		v->after_the_end = true;
}

/* Everything that depends on how many there were is done by now. */
static void count(struct verify *v)
{
	if (v->wants_uncovered) {
		v->wants_uncovered = false;
		v->uncovered = here(v);
	}
	if (v->unsettled)
		v->unsettled--;
	v->before_at = here(v);
	v->result->records++;
}

void verify_take_line(struct verify *v, struct text text)
{
	struct verify_line line;
	struct merkle_hash leaf;
	const char *why = verify_line_parse(text, &line);
	char said[128];

	merkle_leaf(text.at, text.len, &leaf);
	if (why) {
		snprintf(said, sizeof(said), "%s", why);
		take_bad(v, VERIFY_NOT_A_RECORD, said);
	} else {
		take_record(v, &line);
	}
	if (v->options->line)
		v->options->line(v->options->arg, text.at, text.len,
				 v->result->records);
	count(v);
	merkle_append_hash(&v->tree, &leaf);
	v->before = leaf;
	v->has_before = true;
	verify_meet_notes(v);
}

void verify_take_long(struct verify *v)
{
	static const struct merkle_hash none;

	take_bad(v, VERIFY_TOO_LONG, "it is too long for a record");
	count(v);
	merkle_append_hash(&v->tree, &none);
	v->has_before = false;
	verify_meet_notes(v);
}

void verify_end_lines(struct verify *v)
{
	if (!v->odd.set)
		return;
	v->odd.set = false;
	v->expected = v->odd.expected + 1;
	if (!v->odd.known)
		return;
	if (v->odd.follows)
		say_odd(v, VERIFY_EDITED, SAY_NUMBER);
	else if (v->odd.number > v->odd.expected)
		say_missing(v);
	else
		say_odd(v, VERIFY_REPEATED, SAY_REPEATED);
	if (!v->odd.follows && v->odd.number > v->odd.expected)
		v->expected = v->odd.number + 1;
}
