/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the start of a TLS connection. Beside not crashing: a name that
 * comes out is canonical, no beginning of an accepted hello is refused or gives
 * another name, and what is a hello is also recognised as TLS, else it could
 * get past us on another port.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/sniff/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_prefix(const uint8_t *data, size_t len,
			 const struct tls_hello *whole)
{
	struct tls_hello hello;
	enum reason reason = REASON_RULE;
	enum sniff s = tls_hello_parse(data, len, &hello, &reason);

	check(s != SNIFF_BAD);
	check(s == SNIFF_MORE || !strcmp(hello.host, whole->host));
	check(sniff_protocol(data, len) == PROTOCOL_TLS || len < 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_hello hello;
	enum reason reason = REASON_RULE;
	char again[HOST_MAX + 1];

	if (size > SNIFF_MAX)
		size = SNIFF_MAX;
	sniff_protocol(data, size);
	switch (tls_hello_parse(data, size, &hello, &reason)) {
	case SNIFF_MORE:
		check(size < SNIFF_MAX);
		break;
	case SNIFF_BAD:
		check(reason == REASON_MALFORMED || reason == REASON_PROTOCOL);
		break;
	case SNIFF_DONE:
		check(!*hello.host ||
		      (host_canonical(hello.host, strlen(hello.host), again) &&
		       !strcmp(hello.host, again)));
		for (size_t n = size; n; n -= (n + 15) / 16)
			check_prefix(data, n, &hello);
		break;
	}
	return 0;
}
