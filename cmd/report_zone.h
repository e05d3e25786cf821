/* SPDX-License-Identifier: Apache-2.0
 *
 * report_zone.h - how many names there were below each registrable domain, and
 * do they look like data? That is the shape of a DNS tunnel.
 */
#ifndef CMD_REPORT_ZONE_H
#define CMD_REPORT_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/hostname.h"

#define ZONES_MAX	4096
#define ZONE_NAMES	64   /* told apart for certain; tables fold from here */
#define ZONE_BITS	4096 /* beyond: about so many are still counted */
#define ZONE_DATA_NAMES 8    /* that look like data make a tunnel */

struct report_zone {
	char name[HOST_MAX + 1];
	uint64_t names;		     /* different ones: at least */
	uint64_t data;		     /* of them look like data */
	uint64_t questions, refused; /* DNS */
	uint64_t first_ms, last_ms;
	char example[HOST_MAX + 1]; /* the longest that looks like data */
	uint64_t hash[ZONE_NAMES];
	uint8_t bit[ZONE_BITS / 8];
};

struct report_zones {
	struct report_zone **at;
	size_t count;
	uint16_t *index;
	void *psl;
	uint64_t key[2];
};

int report_zones_init(struct report_zones *zones);
void report_zones_free(struct report_zones *zones);

/* Counts @host, which is canonical. Returns its zone; NULL: it has none, there
 * is no room, or no memory. */
struct report_zone *report_zone_add(struct report_zones *zones,
				    const char *host, uint64_t time_ms);
/* The zone @host belongs to, if one is counted. */
const struct report_zone *report_zone_find(const struct report_zones *zones,
					   const char *host);
bool report_zone_is_tunnel(const struct report_zone *zone);
/* Is @host, which is in @zone, one of the names that look like data? */
bool report_zone_is_data(const struct report_zone *zone, const char *host);

#endif
