/* SPDX-License-Identifier: Apache-2.0
 *
 * values.h - numbers with units, and times, as people write them.
 * Sizes and times return NULL, or what is wrong with @text.
 */
#ifndef POLICY_VALUES_H
#define POLICY_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* "1048576", "10 MB" (1000), "10MiB" (1024); 1 byte to 1000 TB. */
const char *value_size(const char *text, uint64_t *ret_bytes);

/* The same, but @least bytes; @small says what is wrong with less. */
const char *value_size_from(const char *text, uint64_t least, const char *small,
			    uint64_t *ret_bytes);

/* "90", "90s", "15m", "24h", "7d"; 1 second to a year. */
const char *value_duration(const char *text, uint32_t *ret_s);

/* "2027-01-01T00:00:00Z", or "2027-01-01": its first second, in UTC. Seconds
 * since the epoch. RFC 3339, but UTC only. */
const char *value_time(const char *text, int64_t *ret_s);

/* A whole number from 1 to @max; false if it is none. */
bool value_count(const char *text, unsigned max, unsigned *ret);

/* A size as above, or as others write it for memory: 512M and 512m are MiB. At
 * least @least bytes. */
const char *value_amount(const char *text, uint64_t least, uint64_t *ret_bytes);

/* Thousandths, of a number like 2 or 0.5, from 0.01 to 4096; false if it is
 * none. */
bool value_cpus(const char *text, unsigned *ret_milli);

#endif
