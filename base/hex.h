/* SPDX-License-Identifier: Apache-2.0
 *
 * hex.h - bytes as lower-case hexadecimal digits, the form of digests.
 */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes 2 * @len digits and a NUL to @buf. Returns @buf. */
char *hex_format(const uint8_t *data, size_t len, char *buf);

/* Reads @len bytes from 2 * @len lower-case digits at @text, which end there.
 * False if it is not that. */
bool hex_parse(const char *text, size_t len, uint8_t *ret_data);

#endif
