/* SPDX-License-Identifier: Apache-2.0
 *
 * record.h - events in their two other forms: the fixed binary message between
 * gate and ledger, of which many go together, and the line of JSON in the log
 * (OCSF 1.8).
 */
#ifndef AUDIT_RECORD_H
#define AUDIT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wire.h"
#include "policy/event.h"

#define RECORD_MESSAGE_MAX 8192	 /* long strings are cut, and marked so */
#define RECORD_LINE_MAX	   65000 /* C2SP tlog-tiles: below 65,535 */

/* @event as a message. Returns its length, always <= RECORD_MESSAGE_MAX. The
 * rule's origin and text are taken from event->rule and rule_text, or from
 * verdict.rule when those are NULL. On one link @seq starts above 0 and grows:
 * the ledger refuses a message whose number is not above the last one's. */
size_t record_encode(const struct audit_event *event, uint64_t seq,
		     uint8_t buf[RECORD_MESSAGE_MAX]);

/* A message back to an event, whose strings are copied into @text (the
 * caller's, RECORD_MESSAGE_MAX bytes). Every field is checked. 0, or -EBADMSG:
 * then what is in @ret_event and @ret_seq is of no use. */
int record_decode(const uint8_t *data, size_t len,
		  struct audit_event *ret_event, uint64_t *ret_seq,
		  char text[RECORD_MESSAGE_MAX]);

/* What goes over a link is a pack: one or more messages, each after its length
 * (16 bits). Longer than RECORD_PACK_MAX is none: a socket takes several. */
#define RECORD_PACK_MAX	  57344
#define RECORD_PACKED_MAX (2 + RECORD_MESSAGE_MAX)

/* @event as the next of a pack: record_encode() after its length. Returns how
 * many bytes of @buf that are. */
size_t record_pack(const struct audit_event *event, uint64_t seq,
		   uint8_t buf[RECORD_PACKED_MAX]);

/* Takes the next message off @pack, for record_decode(). 1; 0 at the end;
 * -EBADMSG: what is left is no message. */
int record_unpack(struct wire *pack, struct wire *ret_message);

/* The way back: "everything up to this number is in the log". */
#define RECORD_ACK_LEN 8
void record_ack_encode(uint64_t seq, uint8_t buf[RECORD_ACK_LEN]);
/* 0, or -EBADMSG. */
int record_ack_decode(const uint8_t *data, size_t len, uint64_t *ret_seq);

/* May observe mode let pass what is refused for @reason? A verdict of such a
 * mode has REASON_OBSERVE and one of these as `observed`; no other has any. */
bool record_relaxable(enum reason reason);

/* Was a flow that was going on cut off for @reason: a denial at its close that
 * no record said before? */
bool record_cuts(enum reason reason);

/* Did the policy let it pass, and only then the network, a server or a name
 * server failed? What ends before or in its verdict (a hello that never got
 * whole) was refused. */
bool record_failed(enum event_kind kind, enum reason reason);

/* Both together, but no more than a record or a receipt may say (2^53 - 1). */
uint64_t record_sum(uint64_t a, uint64_t b);

/* The detail of an EVENT_POLICY: "policy sha256:OLD -> sha256:NEW", 64 hex
 * digits each. Returns @buf. */
#define RECORD_POLICY_DETAIL_MAX 160
char *record_policy_detail(const char *old_digest, const char *new_digest,
			   char buf[RECORD_POLICY_DETAIL_MAX]);
/* The new digest in such a detail, or NULL if @detail is none. */
const char *record_policy_digest(const char *detail);

/* "flow_open", "dns_query", ...: unmapped.event of a line. */
const char *event_word(enum event_kind kind);

/* What an earlier session left in the place of this one's log. */
struct record_earlier {
	const char *checkpoint; /* its last one, whole; "" if there was none */
	uint64_t lines, bytes;	/* of its log, all parts */
	bool receipt;		/* it ended in order */
};

#define RECORD_HASH 32

struct record_frame;

/* What is the same in each line of a log; and its place in the chain. */
struct record_context {
	const char *session; /* its uid */
	const char *sandbox_name;
	const char *policy_digest; /* hex */
	const char *policy_name;
	const char *boundary; /* "netns", "external", "in-container" */
	/* All that, as record_frame_make() has it; made again where something
	 * of it changes. NULL: it is made for each line. */
	const struct record_frame *frame;
	/* The leaf hash (RFC 6962) of the line before; NULL for the first. */
	const uint8_t *prev;
	/* Only in the record that opens the session. */
	const char *ruleset_digest; /* hex, or NULL */
	const struct record_earlier *earlier;
};

/* One line, without LF: valid JSON, below RECORD_LINE_MAX. Returns its length;
 * 0 if @cap is too small (RECORD_LINE_MAX never is). */
size_t record_format(const struct audit_event *event, uint64_t sequence,
		     const struct record_context *context, char *buf,
		     size_t cap);

#endif
