/* SPDX-License-Identifier: Apache-2.0
 *
 * tls_hello_case.h - hellos as OpenSSL makes them.
 */
#ifndef TESTS_PROXY_TLS_HELLO_CASE_H
#define TESTS_PROXY_TLS_HELLO_CASE_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proxy/sniff/tls_hello.h"
#include "tests/proxy/hello.h"

#define NAME "api.example.com"

static inline enum sniff parse(const uint8_t *data, size_t len,
			       struct tls_hello *ret, enum reason *reason)
{
	/* An exact copy, so that ASan sees a read past the end. */
	AUTO_FREE uint8_t *copy = malloc(len ? len : 1);
	struct tls_hello hello;

	assert_non_null(copy);
	if (len)
		memcpy(copy, data, len);
	*reason = REASON_RULE;
	return tls_hello_parse(copy, len, ret ? ret : &hello, reason);
}

static inline void assert_bad(const uint8_t *data, size_t len, enum reason want)
{
	enum reason reason;

	assert_int_equal(parse(data, len, NULL, &reason), SNIFF_BAD);
	assert_int_equal(reason, want);
}

#endif
