/* SPDX-License-Identifier: Apache-2.0
 *
 * name.h - domain names as they are on the wire: length-counted labels.
 */
#ifndef DNS_NAME_H
#define DNS_NAME_H

#include "base/wire.h"

#define NAME_MAX_WIRE 255
/* Every byte as \DDD, dots and the terminator. */
#define NAME_TEXT_MAX (NAME_MAX_WIRE * 4 + 1)

/* Uncompressed, its root label included; bytes past @len are unset. */
struct name {
	uint8_t len;
	uint8_t wire[NAME_MAX_WIRE];
};

/* Reads a name at @w, which is a cursor somewhere in @message, and folds its
 * case. Pointers may only lead backwards. False (and @w bad) if malformed. */
bool name_read(struct wire *w, const struct wire *message,
	       struct name *ret_name);

/* The same for a question: no pointers, case kept. */
bool name_read_plain(struct wire *w, struct name *ret_name);

/* @host is canonical (policy/hostname.h). */
void name_from_host(const char *host, struct name *ret_name);

/* The canonical host name, or false if it is none: also if a label has a dot
 * in it, which a name joined from labels would hide. */
bool name_to_host(const struct name *name, char *ret_host);

bool name_equal(const struct name *a, const struct name *b);

/* Presentation form, odd bytes as \DDD. @buf holds NAME_TEXT_MAX bytes; returns
 * @buf. */
char *name_format(const struct name *name, char *buf);

#endif
