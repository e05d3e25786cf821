/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset_impl.h - between the parts of a set of names: the lines' parser
 * writes records, the table is made from them.
 *
 * A record is a number (kind, and lines since the record before: one byte
 * mostly), the name and a NUL. Only nameset_next() reads them later.
 */
#ifndef POLICY_NAMESET_IMPL_H
#define POLICY_NAMESET_IMPL_H

#include "policy/nameset.h"

struct names {
	char *data;
	size_t len, cap;
	uint32_t line; /* of the last record */
};

/* Adds a record; @line never decreases. 0 or -ENOMEM. */
int names_add(struct names *names, const char *host, uint8_t kind,
	      uint32_t line);
/* The next record; false at the end. */
bool names_next(const struct names *names, struct nameset_cursor *cursor,
		struct nameset_item *ret_item);
/* Writes a record that names_next() has just passed, maybe with other kinds, to
 * the front part that is kept: that never takes more room than what was. */
void names_keep(struct names *kept, const struct nameset_item *item);
/* Gives back what is not used. */
void names_trim(struct names *names);

/* Counts all names as ret_report->names, duplicates too. 0 or -errno. */
int nameset_parse(const char *text, size_t len, struct names *names,
		  struct nameset_report *ret_report);

#endif
