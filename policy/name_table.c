/* SPDX-License-Identifier: Apache-2.0
 *
 * name_table.c - open addressing, at most half full, eight bytes a slot: what
 * is looked at is nearly always one cache line.
 *
 * The key is this process's secret. Neither who wrote the rules nor a sandbox
 * that asks for names can make them meet.
 */
#include "policy/name_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

struct slot {
	uint32_t tag;
	uint32_t after; /* the number + 1; 0: free */
};

struct name_table {
	struct hash_key key;
	size_t slots;
	struct slot slot[];
};

int name_table_new(size_t count, struct name_table **ret_table)
{
	size_t slots = 2 * count + 1;
	AUTO_FREE struct name_table *table =
		calloc(1, sizeof(*table) + slots * sizeof(table->slot[0]));

	if (!table)
		return -ENOMEM;
	table->slots = slots;
	if (hash_key_init(&table->key) < 0)
		return -EIO;
	*ret_table = STEAL(table);
	return 0;
}

void name_table_free(struct name_table *table)
{
	free(table);
}

static size_t behind(const struct name_table *table, size_t slot)
{
	return slot + 1 < table->slots ? slot + 1 : 0;
}

struct name_probe name_table_find(const struct name_table *table,
				  const char *name)
{
	uint64_t hash;

	if (!table)
		return (struct name_probe){ 0 };
	hash = hash_bytes(&table->key, name, strlen(name));
	return (struct name_probe){
		.slot = (size_t)((hash >> 32) * table->slots >> 32),
		.tag = (uint32_t)hash,
	};
}

void name_table_add(struct name_table *table, const char *name, uint32_t number)
{
	struct name_probe at = name_table_find(table, name);

	while (table->slot[at.slot].after)
		at.slot = behind(table, at.slot);
	table->slot[at.slot] = (struct slot){ at.tag, number + 1 };
}

bool name_table_next(const struct name_table *table, struct name_probe *probe,
		     uint32_t *ret_number)
{
	const struct slot *slot;

	if (!table)
		return false;
	while ((slot = &table->slot[probe->slot])->after) {
		probe->slot = behind(table, probe->slot);
		if (slot->tag != probe->tag)
			continue;
		*ret_number = slot->after - 1;
		return true;
	}
	return false;
}
