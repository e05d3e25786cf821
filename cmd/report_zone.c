/* SPDX-License-Identifier: Apache-2.0
 *
 * report_zone.c - the first ZONE_NAMES names of a zone are told apart by a
 * keyed hash; beyond that a bit for each hash gives a number that is never too
 * high.
 */
#include "cmd/report_zone.h"

#include <errno.h>
#include <libpsl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cmd/learn_table.h"

#define INDEX (4 * ZONES_MAX)

int report_zones_init(struct report_zones *zones)
{
	struct hash_key key;

	*zones = (struct report_zones){ .psl = psl_latest(NULL) };
	zones->at = calloc(ZONES_MAX, sizeof(zones->at[0]));
	zones->index = calloc(INDEX, sizeof(zones->index[0]));
	if (!zones->at || !zones->index || !zones->psl ||
	    hash_key_init(&key) < 0)
		return zones->psl ? -ENOMEM : -ENODATA;
	zones->key[0] = key.k0;
	zones->key[1] = key.k1;
	return 0;
}

void report_zones_free(struct report_zones *zones)
{
	for (size_t i = 0; i < zones->count; i++)
		free(zones->at[i]);
	free(zones->at);
	free(zones->index);
	psl_free(zones->psl);
}

static uint64_t hash(const struct report_zones *zones, const char *text)
{
	const struct hash_key key = { zones->key[0], zones->key[1] };

	return hash_bytes(&key, text, strlen(text));
}

static size_t slot_of(const struct report_zones *zones, const char *name)
{
	size_t at = hash(zones, name) % INDEX;

	while (zones->index[at] &&
	       strcmp(zones->at[zones->index[at] - 1]->name, name) != 0)
		at = (at + 1) % INDEX;
	return at;
}

static struct report_zone *get(struct report_zones *zones, const char *name)
{
	size_t at = slot_of(zones, name);
	struct report_zone *zone;

	if (zones->index[at])
		return zones->at[zones->index[at] - 1];
	if (zones->count == ZONES_MAX)
		return NULL;
	zone = calloc(1, sizeof(*zone));
	if (!zone)
		return NULL;
	snprintf(zone->name, sizeof(zone->name), "%s", name);
	zones->at[zones->count] = zone;
	zones->index[at] = (uint16_t)++zones->count;
	return zone;
}

/* Could what is in front of the zone be data? */
static bool looks_like_data(const char *host, const char *zone)
{
	size_t len;

	for (const char *label = host; label < zone; label += len + 1) {
		len = strcspn(label, ".");
		if (learn_is_data_label(label, len))
			return true;
	}
	return (size_t)(zone - host) > LEARN_DATA_NAME;
}

/* True if @h was not counted before. */
static bool is_new(struct report_zone *zone, uint64_t h)
{
	size_t exact = zone->names < ZONE_NAMES ? zone->names : ZONE_NAMES;
	uint8_t mask = (uint8_t)(1u << (h & 7));
	uint8_t *byte = &zone->bit[(h >> 3) % sizeof(zone->bit)];
	bool seen = *byte & mask;

	for (size_t i = 0; i < exact; i++)
		if (zone->hash[i] == h)
			return false;
	*byte |= mask;
	if (zone->names < ZONE_NAMES) {
		zone->hash[zone->names] = h;
		return true;
	}
	return !seen;
}

struct report_zone *report_zone_add(struct report_zones *zones,
				    const char *host, uint64_t time_ms)
{
	const char *name = psl_registrable_domain(zones->psl, host);
	struct report_zone *zone = name ? get(zones, name) : NULL;

	if (!zone)
		return NULL;
	if (!zone->first_ms || time_ms < zone->first_ms)
		zone->first_ms = time_ms;
	if (time_ms > zone->last_ms)
		zone->last_ms = time_ms;
	if (name == host || !is_new(zone, hash(zones, host)))
		return zone;
	zone->names++;
	if (looks_like_data(host, name)) {
		zone->data++;
		if (strlen(host) > strlen(zone->example))
			snprintf(zone->example, sizeof(zone->example), "%s",
				 host);
	}
	return zone;
}

const struct report_zone *report_zone_find(const struct report_zones *zones,
					   const char *host)
{
	const char *name = psl_registrable_domain(zones->psl, host);
	size_t at = name ? slot_of(zones, name) : 0;

	return name && zones->index[at] ? zones->at[zones->index[at] - 1]
					: NULL;
}

bool report_zone_is_tunnel(const struct report_zone *zone)
{
	return zone && zone->data >= ZONE_DATA_NAMES;
}

bool report_zone_is_data(const struct report_zone *zone, const char *host)
{
	size_t len = strlen(host), tail = strlen(zone->name);

	return len > tail + 1 && looks_like_data(host, host + len - tail);
}
