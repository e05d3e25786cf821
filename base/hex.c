/* SPDX-License-Identifier: Apache-2.0
 *
 * hex.c - bytes as hexadecimal digits.
 */
#include "base/hex.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

/* Each byte's two digits. */
#define OF(high)                                                            \
	high "0" high "1" high "2" high "3" high "4" high "5" high "6" high \
	     "7" high "8" high "9" high "a" high "b" high "c" high "d" high \
	     "e" high "f"
static const char pairs[] =
	OF("0") OF("1") OF("2") OF("3") OF("4") OF("5") OF("6") OF("7") OF("8")
		OF("9") OF("a") OF("b") OF("c") OF("d") OF("e") OF("f");

char *hex_format(const uint8_t *data, size_t len, char *buf)
{
	for (size_t i = 0; i < len; i++)
		memcpy(buf + 2 * i, pairs + 2 * data[i], 2);
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
