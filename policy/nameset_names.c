/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset_names.c - the names of a set, one after the other.
 *
 * The number before a name is in base 128 with the low bits first, a high bit
 * for "more". The first byte has two bits of kind and five of the distance. The
 * sum of two distances never needs more bytes than both of them did, which is
 * why duplicates can be dropped in place.
 */
#include "policy/nameset_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/hostname.h"

#define NUMBER_MAX 5
#define MORE	   0x80

static char *put_number(char *to, uint32_t distance, uint8_t kind)
{
	uint8_t byte = (uint8_t)((unsigned)kind << 5 | (distance & 0x1f));

	for (distance >>= 5; distance; distance >>= 7) {
		*to++ = (char)(byte | MORE);
		byte = distance & 0x7f;
	}
	*to++ = (char)byte;
	return to;
}

static const char *get_number(const char *from, uint32_t *ret_distance,
			      uint8_t *ret_kind)
{
	uint8_t byte = (uint8_t)*from++;
	unsigned shift = 5;

	*ret_kind = byte >> 5 & 3;
	*ret_distance = byte & 0x1f;
	for (; byte & MORE; shift += 7) {
		byte = (uint8_t)*from++;
		*ret_distance |= (uint32_t)(byte & 0x7f) << shift;
	}
	return from;
}

static void put(struct names *names, const char *host, size_t size,
		uint8_t kind, uint32_t line)
{
	char *to = names->data + names->len;

	to = put_number(to, line - names->line, kind);
	memmove(to, host, size);
	names->len = (size_t)(to + size - names->data);
	names->line = line;
}

int names_add(struct names *names, const char *host, uint8_t kind,
	      uint32_t line)
{
	size_t size = strlen(host) + 1;

	if (names->cap - names->len < NUMBER_MAX + size) {
		size_t cap = names->cap + names->cap / 2 + 4096;
		char *data = realloc(names->data, cap);

		if (!data)
			return -ENOMEM;
		names->data = data;
		names->cap = cap;
	}
	put(names, host, size, kind, line);
	return 0;
}

bool names_next(const struct names *names, struct nameset_cursor *cursor,
		struct nameset_item *ret_item)
{
	struct nameset_item item;
	uint32_t distance;

	if (cursor->at >= names->len)
		return false;
	item.name = get_number(names->data + cursor->at, &distance, &item.kind);
	cursor->line += distance;
	cursor->at = (size_t)(item.name - names->data) + strlen(item.name) + 1;
	item.line = cursor->line;
	*ret_item = item;
	return true;
}

void names_keep(struct names *kept, const struct nameset_item *item)
{
	put(kept, item->name, strlen(item->name) + 1, item->kind, item->line);
}

void names_trim(struct names *names)
{
	char *data = realloc(names->data, names->len ? names->len : 1);

	if (!data)
		return;
	names->data = data;
	names->cap = names->len ? names->len : 1;
}
