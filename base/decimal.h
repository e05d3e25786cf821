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
	do
		*--at = (char)('0' + v % 10);
	while (v /= 10);
	return at;
}

#endif
