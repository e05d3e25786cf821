/* SPDX-License-Identifier: Apache-2.0
 *
 * base64.c - RFC 4648 section 4, the one encoding of each value.
 */
#include "audit/base64.h"

#include <errno.h>

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *data, size_t len, char *ret_text)
{
	const uint8_t *in = data;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)in[i] << 16;

		if (n > 1)
			v |= (uint32_t)in[i + 1] << 8;
		if (n > 2)
			v |= in[i + 2];
		*ret_text++ = alphabet[v >> 18];
		*ret_text++ = alphabet[v >> 12 & 63];
		*ret_text++ = n > 1 ? alphabet[v >> 6 & 63] : '=';
		*ret_text++ = n > 2 ? alphabet[v & 63] : '=';
	}
}

/* 0 to 63, or -1. */
static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* The bytes that @quad stands for: 1, 2 or 3; 0 if it stands for none. */
static size_t read_quad(const char *quad, uint8_t *ret_bytes)
{
	size_t n = quad[3] != '=' ? 3 : quad[2] != '=' ? 2 : 1;
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		int bits = i <= n ? value_of(quad[i]) : 0;

		if (bits < 0)
			return 0;
		v = v << 6 | (uint32_t)bits;
	}
	if (v & (0xffffffu >> (8 * n)))
		return 0;
	ret_bytes[0] = (uint8_t)(v >> 16);
	ret_bytes[1] = (uint8_t)(v >> 8);
	ret_bytes[2] = (uint8_t)v;
	return n;
}

int base64_decode(const char *text, size_t len, uint8_t *ret_data, size_t cap,
		  size_t *ret_len)
{
	size_t total = 0;

	if (len % 4)
		return -EBADMSG;
	for (size_t i = 0; i < len; i += 4) {
		uint8_t bytes[3];
		size_t n = read_quad(text + i, bytes);

		if (!n || (n < 3 && i + 4 < len))
			return -EBADMSG;
		if (ret_data && n > cap - total)
			return -ENOBUFS;
		for (size_t j = 0; ret_data && j < n; j++)
			ret_data[total + j] = bytes[j];
		total += n;
	}
	*ret_len = total;
	return 0;
}

int base64_decode_exactly(const char *text, size_t len, uint8_t *ret_data,
			  size_t size)
{
	size_t got;

	if (len != BASE64_LEN(size) ||
	    base64_decode(text, len, ret_data, size, &got) || got != size)
		return -EBADMSG;
	return 0;
}
