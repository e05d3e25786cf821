/* SPDX-License-Identifier: Apache-2.0
 *
 * A record from a gate that was taken over: refused, or an event whose line is
 * good JSON and whose message is again the same event.
 */
#include "audit/record.h"

#include <stdlib.h>
#include <string.h>

#include "audit/tally.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct record_context context = {
	.session = "s",
	.sandbox_name = "run",
	.policy_digest = "00",
	.policy_name = "p",
	.boundary = "netns",
};

/* Outside of strings only what our lines are made of; inside no control
 * character, and each escape is one that JSON has. */
static void check_line(const char *line, size_t len)
{
	bool string = false;
	int depth = 0;

	for (size_t i = 0; i < len; i++) {
		char c = line[i];

		if ((unsigned char)c < 0x20 || c == 0x7f)
			abort();
		if (c == '"')
			string = !string;
		else if (string && c == '\\' &&
			 (++i == len || !strchr("\"\\u", line[i])))
			abort();
		else if (!string && (c == '{' || c == '['))
			depth++;
		else if (!string && (c == '}' || c == ']'))
			depth--;
		else if (!string && !strchr("0123456789:,truefalse", c))
			abort();
		if (depth <= 0 && i + 1 < len)
			abort();
	}
	if (string || depth)
		abort();
}

static void check_message(const uint8_t *data, size_t size)
{
	static char text[RECORD_MESSAGE_MAX], line[RECORD_LINE_MAX];
	static uint8_t again[RECORD_MESSAGE_MAX];
	static struct tally tally;
	struct audit_event event;
	uint64_t seq;
	size_t len;

	if (record_decode(data, size, &event, &seq, text) < 0)
		return;
	if (event.verdict.observed != REASON_RULE &&
	    (event.verdict.reason != REASON_OBSERVE || !event.verdict.allow ||
	     !record_relaxable(event.verdict.observed)))
		abort();
	len = record_encode(&event, seq, again);
	if (len != size || memcmp(again, data, size) != 0)
		abort(); /* two spellings of one event */
	len = record_format(&event, seq, &context, line, sizeof(line));
	if (len == 0 || len >= RECORD_LINE_MAX)
		abort();
	check_line(line, len);
	tally_add(&tally, &event);
	if (tally.rows > TALLY_MAX)
		abort();
}

/* Nothing of a pack is read twice, or left out. */
static void check_pack(const uint8_t *data, size_t size)
{
	struct wire pack = wire_of(data, size), message;
	size_t seen = 0;
	int r;

	while ((r = record_unpack(&pack, &message)) > 0) {
		if (message.at != data + seen + 2)
			abort();
		seen += 2 + message.left;
		check_message(message.at, message.left);
	}
	if (seen > size || (r == 0) != (seen == size))
		abort();
}

/* The input is an acknowledgement, one message, and a pack of them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t seq;

	if (record_ack_decode(data, size, &seq) == 0 && size != RECORD_ACK_LEN)
		abort();
	check_message(data, size);
	check_pack(data, size);
	return 0;
}
