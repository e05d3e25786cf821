/* SPDX-License-Identifier: Apache-2.0
 *
 * decimal.h - a number as decimal digits, where printf would take too long.
 */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stdint.h>

#define DECIMAL_MAX 21 /* 2^64 - 1, and a NUL */

/* Writes @v and a NUL to the end of @buf. Returns where it begins; it ends at
 * buf + DECIMAL_MAX - 1. */
static inline char *decimal_format(uint64_t v, char buf[DECIMAL_MAX])
{
	char *at = buf + DECIMAL_MAX - 1;

	*at = '\0';
	/* Two at a time: what takes long is to divide. */
	while (v > 9) {
		uint64_t next = v / 100;
		uint32_t two = (uint32_t)(v - 100 * next);

		*--at = (char)('0' + two % 10);
		*--at = (char)('0' + two / 10);
		v = next;
	}
	if (v || !*at)
		*--at = (char)('0' + v);
	return at;
}

#endif
