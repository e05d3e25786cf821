/* SPDX-License-Identifier: Apache-2.0
 *
 * What a TLS server answers first (first byte even), and what a client says
 * when a second hello is due (odd). Beside not crashing: how the bytes are cut
 * changes nothing, an answer is decided in time, records that were skipped may
 * be forgotten, and no beginning of an accepted hello is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/sniff/tls_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* In pieces of @step bytes, as long as there is no decision. */
static enum tls_answer read_answer(const uint8_t *data, size_t size,
				   size_t step)
{
	struct tls_answer_reader r = { .seen = 0 };
	enum tls_answer answer = TLS_ANSWER_MORE;

	for (size_t at = 0; at < size && answer == TLS_ANSWER_MORE;
	     at += step) {
		size_t n = size - at < step ? size - at : step;

		answer = tls_answer_read(&r, data + at, n);
	}
	check(r.seen <= TLS_ANSWER_MAX);
	return answer;
}

static void fuzz_answer(const uint8_t *data, size_t size)
{
	const enum tls_answer answer = read_answer(data, size, SIZE_MAX);

	check(answer != TLS_ANSWER_MORE || size <= TLS_ANSWER_MAX);
	check(answer != TLS_ANSWER_RETRY || size >= 43);
	for (size_t step = 1; step < 48; step += 1 + step / 2)
		check(read_answer(data, size, step) == answer);
}

static enum sniff read_second(const uint8_t *data, size_t size,
			      size_t *ret_skip, char host[HOST_MAX + 1])
{
	struct tls_hello hello;
	enum reason reason = REASON_RULE;
	enum sniff s = tls_second_hello(data, size, ret_skip, &hello, &reason);

	check(*ret_skip <= size);
	check(s != SNIFF_BAD || reason != REASON_RULE);
	if (s == SNIFF_DONE) {
		check(hello.len <= size - *ret_skip);
		memcpy(host, hello.host, HOST_MAX + 1);
	}
	return s;
}

static void fuzz_second(const uint8_t *data, size_t size)
{
	char host[HOST_MAX + 1], again[HOST_MAX + 1];
	size_t skip, none;
	enum sniff s = read_second(data, size, &skip, host);

	/* The rest alone reads the same. */
	check(read_second(data + skip, size - skip, &none, again) == s);
	check(none == 0);
	check(s != SNIFF_DONE || !strcmp(host, again));
	for (size_t n = size; s == SNIFF_DONE && n; n -= (n + 15) / 16) {
		enum sniff part = read_second(data, n, &none, again);

		check(part != SNIFF_BAD);
		check(part == SNIFF_MORE || !strcmp(host, again));
		check(none <= skip);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (size > SNIFF_MAX)
		size = SNIFF_MAX;
	if (data[0] & 1)
		fuzz_second(data + 1, size - 1);
	else
		fuzz_answer(data + 1, size - 1);
	return 0;
}
