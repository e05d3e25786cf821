/* SPDX-License-Identifier: Apache-2.0
 *
 * name_table.h - where the rules of a name are: one look at a table, however
 * many names there are. It holds numbers only; whoever asks compares the names
 * that it proposes, nearly always the right ones.
 */
#ifndef POLICY_NAME_TABLE_H
#define POLICY_NAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_table;

/* Up to so many a few comparisons cost less than a hash. */
#define NAME_TABLE_LEAST 64

/* What is still to be looked at. */
struct name_probe {
	size_t slot;
	uint32_t tag;
};

/* An empty one for @count numbers at most, which the caller owns. 0, -ENOMEM
 * or -EIO. */
int name_table_new(size_t count, struct name_table **ret_table);
/* NULL is fine. */
void name_table_free(struct name_table *table);

/* Adds one of at most as many as it was made for; the same name may have
 * several. */
void name_table_add(struct name_table *table, const char *name,
		    uint32_t number);

/* @table may be NULL: there is nothing in it. */
struct name_probe name_table_find(const struct name_table *table,
				  const char *name);
/* The next that may be of that name; false: there is no other. */
bool name_table_next(const struct name_table *table, struct name_probe *probe,
		     uint32_t *ret_number);

#endif
