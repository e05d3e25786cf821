/* SPDX-License-Identifier: Apache-2.0
 *
 * ech.h - encrypted ClientHellos, as far as they are seen from outside.
 */
#ifndef TESTS_PROXY_ECH_H
#define TESTS_PROXY_ECH_H

#include "tests/proxy/doors.h"

#define ECH 0xfe0d

/* An outer one: @enc and @payload bytes, and @more behind them. */
static inline size_t outer(uint8_t *buf, size_t cap, size_t enc, size_t payload,
			   size_t more)
{
	struct wirebuf b = wirebuf_of(buf, cap);

	wirebuf_u8(&b, 0);
	wirebuf_u16(&b, 1); /* HKDF-SHA256 */
	wirebuf_u16(&b, 1); /* AES-128-GCM */
	wirebuf_u8(&b, 0x42);
	wirebuf_u16(&b, (uint16_t)enc);
	for (size_t i = 0; i < enc; i++)
		wirebuf_u8(&b, 0xee);
	wirebuf_u16(&b, (uint16_t)payload);
	for (size_t i = 0; i < payload + more; i++)
		wirebuf_u8(&b, 0xaa);
	assert_false(b.full);
	return b.len;
}

#endif
