/* SPDX-License-Identifier: Apache-2.0
 *
 * base64.h - RFC 4648 section 4, the one encoding of each value.
 *
 * What is signed must not have two spellings: no white space, padding always
 * there, the bits that padding leaves unused are zero.
 */
#ifndef AUDIT_BASE64_H
#define AUDIT_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Characters for @n bytes, without a NUL. */
#define BASE64_LEN(n) (((n) + 2) / 3 * 4)

/* Writes BASE64_LEN(@len) characters to @ret_text, and no NUL. */
void base64_encode(const void *data, size_t len, char *ret_text);

/* Reads @len characters into at most @cap bytes of @ret_data (NULL: only
 * checks them, @cap is ignored). Returns 0; -EBADMSG if they are not base64;
 * -ENOBUFS. @ret_data is undefined after an error. */
int base64_decode(const char *text, size_t len, uint8_t *ret_data, size_t cap,
		  size_t *ret_len);

/* The same for what must be exactly @size bytes: else -EBADMSG. */
int base64_decode_exactly(const char *text, size_t len, uint8_t *ret_data,
			  size_t size);

#endif
