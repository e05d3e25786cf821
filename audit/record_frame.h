/* SPDX-License-Identifier: Apache-2.0
 *
 * record_frame.h - what is the same in each line of a log, as it stands there.
 * It is half of a line, and made once.
 */
#ifndef AUDIT_RECORD_FRAME_H
#define AUDIT_RECORD_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "audit/record.h"

#define RECORD_PRODUCT                                           \
	"{\"name\":\"sallyport\",\"vendor_name\":\"sallyport\"," \
	"\"version\":\"" SALLYPORT_VERSION "\"}"

#define RECORD_SESSION_MAX 80 /* bytes of a session's uid */
/* The longest strings of a context, with each byte escaped, leave 500. */
#define RECORD_FRAME_MAX 3840

struct json;

/* JSON, each from the end of the one before to its own. */
struct record_frame {
	size_t sequence; /* "metadata":{... "sequence": */
	size_t uid;	 /* ,"uid":"SESSION/ */
	size_t session;	 /* ","correlation_uid":... } */
	size_t policy;	 /* "policy":{...} */
	size_t place;	 /* "boundary":...,"sandbox":..., or nothing */
	char text[RECORD_FRAME_MAX];
};

/* What is too long of @context is cut. Nothing of it is kept. */
void record_frame_make(const struct record_context *context,
		       struct record_frame *ret_frame);

/* Members of @j's object: "metadata" of the record with that number, and "uid",
 * which is in there, alone; "policy"; and of "unmapped" what says where. */
void record_frame_put_metadata(const struct record_frame *frame,
			       uint64_t sequence, struct json *j);
void record_frame_put_uid(const struct record_frame *frame, uint64_t sequence,
			  struct json *j);
void record_frame_put_policy(const struct record_frame *frame, struct json *j);
void record_frame_put_place(const struct record_frame *frame, struct json *j);

/* "sha256:" and @digest, hex; nothing if there is none. */
void record_put_digest(struct json *j, const char *key, const char *digest);

#endif
