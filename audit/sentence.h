/* SPDX-License-Identifier: Apache-2.0
 *
 * sentence.h - an event in plain English, for `message` in the log.
 */
#ifndef AUDIT_SENTENCE_H
#define AUDIT_SENTENCE_H

#include <stddef.h>

#include "policy/event.h"

/* One short sentence in @buf, always terminated. Names from outside are in it
 * as they came: escape it. Returns @buf. */
const char *event_sentence(const struct audit_event *event, char *buf,
			   size_t cap);

/* "AAAA", or "TYPE4711" in @buf. */
const char *dns_type_word(uint16_t type, char buf[16]);

#endif
