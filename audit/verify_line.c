/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_line.c - one line, in one pass and without allocation.
 *
 * A log is verified at the speed of this, so it is no general parser: it checks
 * that the line is JSON of the kind that we write (base/json.h), and keeps the
 * few fields that matter. What it accepts every parser of JSON accepts, and
 * reads the same; tests/fuzz/fuzz_verify.c holds it to that.
 */
#include "audit/verify_line.h"

#include <string.h>

#include "audit/record.h"
#include "base/cleanup.h"

#define DEPTH_MAX 8
#define KEYS_MAX  64 /* of one object; a record has about 25 */

/* Objects whose members we know. */
enum place { TOP, METADATA, PRODUCT, UNMAPPED, EARLIER, POLICY, ELSEWHERE };

enum want { NUMBER, TEXT, OBJECT };

static const struct field {
	enum place in;
	enum want want;
	const char *key;
	size_t to; /* offset in struct verify_line, or enum place */
} fields[] = {
	{ TOP, NUMBER, "time", offsetof(struct verify_line, time_ms) },
	{ TOP, TEXT, "status_code", offsetof(struct verify_line, reason) },
	{ TOP, NUMBER, "disposition_id",
	  offsetof(struct verify_line, disposition) },
	{ TOP, OBJECT, "metadata", METADATA },
	{ TOP, OBJECT, "unmapped", UNMAPPED },
	{ TOP, OBJECT, "policy", POLICY },
	{ METADATA, OBJECT, "product", PRODUCT },
	{ METADATA, NUMBER, "sequence",
	  offsetof(struct verify_line, sequence) },
	{ METADATA, TEXT, "uid", offsetof(struct verify_line, uid) },
	{ METADATA, TEXT, "correlation_uid",
	  offsetof(struct verify_line, session) },
	{ PRODUCT, TEXT, "name", offsetof(struct verify_line, product) },
	{ UNMAPPED, TEXT, "event", offsetof(struct verify_line, event) },
	{ UNMAPPED, TEXT, "prev", offsetof(struct verify_line, prev) },
	{ UNMAPPED, TEXT, "ruleset", offsetof(struct verify_line, ruleset) },
	{ UNMAPPED, OBJECT, "earlier", EARLIER },
	{ EARLIER, NUMBER, "records",
	  offsetof(struct verify_line, earlier_records) },
	{ EARLIER, NUMBER, "bytes",
	  offsetof(struct verify_line, earlier_bytes) },
	{ EARLIER, TEXT, "checkpoint",
	  offsetof(struct verify_line, earlier_checkpoint) },
	{ POLICY, TEXT, "uid", offsetof(struct verify_line, policy) },
};

struct scan {
	const char *at, *end;
	struct verify_line *line;
	bool has_time, has_sequence;
	int depth;
	const char *why;
};

static bool fail(struct scan *s, const char *why)
{
	if (!s->why)
		s->why = why;
	return false;
}

static bool take(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool take_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

/* Of a JSON string: 0 plain, 1 its end, 2 a backslash, 3 a control character,
 * 4 not ASCII. */
static const uint8_t class_of[256] = {
	[0 ... 0x1f] = 3, ['"'] = 1,	       ['\\'] = 2,
	[0x7f] = 3,	  [0x80 ... 0xff] = 4,
};

/* The two that need it, and \u00XX for what is not plain. */
static bool take_escape(struct scan *s)
{
	const char *at = s->at;

	if (s->end - at >= 2 && (at[1] == '"' || at[1] == '\\')) {
		s->at += 2;
		return true;
	}
	if (s->end - at < 6 || memcmp(at, "\\u00", 4) != 0 ||
	    !memchr("0123456789abcdef", at[4], 16) ||
	    !memchr("0123456789abcdef", at[5], 16) ||
	    (at[4] == '0' && at[5] == '0'))
		return fail(s, "an escape in it is none of ours");
	s->at += 6;
	return true;
}

static bool take_utf8(struct scan *s)
{
	const char *from = s->at;

	while (s->at < s->end && (unsigned char)*s->at >= 0x80)
		s->at++;
	if (!text_is_plain((struct text){ from, (size_t)(s->at - from) }))
		return fail(s, "it is not UTF-8");
	return true;
}

static bool take_string(struct scan *s, struct text *ret)
{
	if (!take(s, '"'))
		return fail(s, "it is not JSON as we write it");
	ret->at = s->at;
	for (;;) {
		while (s->at < s->end && !class_of[(unsigned char)*s->at])
			s->at++;
		if (s->at == s->end)
			return fail(s, "it ends within a text");
		switch (class_of[(unsigned char)*s->at]) {
		case 1:
			ret->len = (size_t)(s->at++ - ret->at);
			return true;
		case 2:
			if (!take_escape(s))
				return false;
			break;
		case 3:
			return fail(s, "a control character is in it");
		default:
			if (!take_utf8(s))
				return false;
		}
	}
}

/* Below 2^53 (I-JSON), and not negative: there are no others. */
static bool take_number(struct scan *s, uint64_t *ret)
{
	struct text digits = { s->at, 0 };

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	digits.len = (size_t)(s->at - digits.at);
	if (!text_decimal(digits, ((uint64_t)1 << 53) - 1, ret))
		return fail(s, "a number in it is none of ours");
	return true;
}

static bool take_value(struct scan *s, const struct field *field);

static bool take_array(struct scan *s)
{
	if (take(s, ']'))
		return true;
	do {
		if (!take_value(s, NULL))
			return false;
	} while (take(s, ','));
	return take(s, ']') || fail(s, "it is not JSON as we write it");
}

static const struct field *find_field(enum place place, struct text key)
{
	for (size_t i = 0; place != ELSEWHERE && i < ARRAY_SIZE(fields); i++) {
		if (fields[i].in == place && text_is(key, fields[i].key))
			return &fields[i];
	}
	return NULL;
}

static bool is_new(const struct text *keys, size_t count, struct text key)
{
	for (size_t i = 0; i < count; i++) {
		if (keys[i].len == key.len && *keys[i].at == *key.at &&
		    memcmp(keys[i].at, key.at, key.len) == 0)
			return false;
	}
	return true;
}

static bool take_member(struct scan *s, enum place place, struct text *keys,
			size_t *count)
{
	struct text key;

	if (!take_string(s, &key))
		return false;
	if (!key.len || memchr(key.at, '\\', key.len))
		return fail(s, "a key in it is none of ours");
	if (!is_new(keys, *count, key))
		return fail(s, "a key is in it twice");
	if (*count == KEYS_MAX)
		return fail(s, "too many keys are in it");
	keys[(*count)++] = key;
	if (!take(s, ':'))
		return fail(s, "it is not JSON as we write it");
	return take_value(s, find_field(place, key));
}

static bool take_object(struct scan *s, enum place place)
{
	struct text keys[KEYS_MAX];
	size_t count = 0;

	if (take(s, '}'))
		return true;
	do {
		if (!take_member(s, place, keys, &count))
			return false;
	} while (take(s, ','));
	return take(s, '}') || fail(s, "it is not JSON as we write it");
}

static bool take_nested(struct scan *s, char bracket, enum place place)
{
	bool good;

	if (s->depth == DEPTH_MAX)
		return fail(s, "it is nested too deep");
	s->at++;
	s->depth++;
	good = bracket == '{' ? take_object(s, place) : take_array(s);
	s->depth--;
	return good;
}

static bool take_field(struct scan *s, const struct field *field)
{
	char *to = (char *)s->line + field->to;

	switch (field->want) {
	case NUMBER:
		s->has_time |= to == (char *)&s->line->time_ms;
		s->has_sequence |= to == (char *)&s->line->sequence;
		return take_number(s, (uint64_t *)(void *)to);
	case TEXT:
		return take_string(s, (struct text *)(void *)to);
	default:
		if (s->at == s->end || *s->at != '{')
			return fail(s, "a field in it is of another type");
		s->line->has_earlier |= field->to == EARLIER;
		return take_nested(s, '{', (enum place)field->to);
	}
}

static bool take_value(struct scan *s, const struct field *field)
{
	struct text text;
	uint64_t number;

	if (field)
		return take_field(s, field);
	if (s->at == s->end)
		return fail(s, "it ends too early");
	switch (*s->at) {
	case '{':
	case '[':
		return take_nested(s, *s->at, ELSEWHERE);
	case '"':
		return take_string(s, &text);
	case 't':
	case 'f':
		return take_word(s, "true") || take_word(s, "false") ||
		       fail(s, "it is not JSON as we write it");
	default:
		return take_number(s, &number);
	}
}

static bool find_kind(struct text word, enum event_kind *ret)
{
	for (int i = 1; i < EVENT_KIND_COUNT; i++) {
		if (!text_is(word, event_word((enum event_kind)i)))
			continue;
		*ret = (enum event_kind)i;
		return true;
	}
	return false;
}

const char *verify_line_parse(struct text text, struct verify_line *ret)
{
	struct verify_line line = { .sequence = 0 };
	struct scan s = { .at = text.at,
			  .end = text.at + text.len,
			  .line = &line };

	if (!text.len)
		return "it is empty";
	if (text.at[text.len - 1] == '\r')
		return "it ends with CR LF";
	if (*text.at != '{')
		return "it is not JSON as we write it";
	if (!take_nested(&s, '{', TOP))
		return s.why;
	if (s.at != s.end)
		return "something follows the record";
	if (!s.has_time || !s.has_sequence || !line.uid.at ||
	    !line.session.at || !line.product.at || !line.event.at)
		return "what each record says is not in it";
	if (!text_is(line.product, "sallyport"))
		return "another program wrote it";
	if (!find_kind(line.event, &line.kind))
		return "it is about an event that there is not";
	*ret = line;
	return NULL;
}

bool verify_line_uid(struct text uid, struct text *ret_session,
		     uint64_t *ret_number)
{
	const char *slash = uid.len ? memchr(uid.at, '/', uid.len) : NULL;
	struct text number;

	if (!slash)
		return false;
	ret_session->at = uid.at;
	ret_session->len = (size_t)(slash - uid.at);
	number = (struct text){ slash + 1, uid.len - ret_session->len - 1 };
	return text_decimal(number, ((uint64_t)1 << 53) - 1, ret_number);
}
