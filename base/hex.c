/* SPDX-License-Identifier: Apache-2.0
 *
 * hex.c - bytes as hexadecimal digits.
 */
#include "base/hex.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

char *hex_format(const uint8_t *data, size_t len, char *buf)
{
	for (size_t i = 0; i < len; i++) {
		buf[2 * i] = digits[data[i] >> 4];
		buf[2 * i + 1] = digits[data[i] & 15];
	}
	buf[2 * len] = '\0';
	return buf;
}

/* -1: none. */
static int digit(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool hex_parse(const char *text, size_t len, uint8_t *ret_data)
{
	if (strlen(text) != 2 * len)
		return false;
	for (size_t i = 0; i < len; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret_data[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
