/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_reply.c - what answers on the control socket. The first byte says into
 * which pieces it is cut: what is read must not depend on that, and nothing
 * that was cut off may pass for a whole answer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/client_reply.h"
#include "proxy/sniff/sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static enum sniff read_in(struct client_reply *reply, const uint8_t *data,
			  size_t size, size_t piece)
{
	enum sniff got = SNIFF_MORE;

	for (size_t at = 0; at < size && got == SNIFF_MORE; at += piece)
		got = client_reply_read(reply, data + at,
					size - at < piece ? size - at : piece);
	return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client_reply whole = { 0 }, cut = { 0 };
	enum sniff a, b;

	if (size < 2 || size > 65536)
		return 0;
	a = read_in(&whole, data + 1, size - 1, size);
	b = read_in(&cut, data + 1, size - 1, (size_t)data[0] % 64 + 1);
	/* Bytes behind a whole answer are seen only if they came with it. */
	must(a == b || (a == SNIFF_BAD && b == SNIFF_DONE));
	if (a == SNIFF_DONE) {
		must(whole.status >= 200 && whole.status <= 599);
		must(whole.status == cut.status && whole.len == cut.len);
		must(whole.body && !whole.body[whole.len]);
		must(memcmp(whole.body, cut.body, whole.len) == 0);
		/* It ends with its last byte and no sooner. */
		client_reply_free(&cut);
		must(read_in(&cut, data + 1, size - 2, 4096) != SNIFF_DONE);
	}
	if (a == SNIFF_BAD) {
		must(whole.error != NULL);
		must(client_reply_read(&whole, "x", 1) == SNIFF_BAD);
	}
	client_reply_free(&whole);
	client_reply_free(&cut);
	return 0;
}
