/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunked body, and the same read once more in the simplest way there is,
 * with all of it at hand: they find the same payload and the same end. The
 * first byte says into which pieces ours is cut.
 */
#include "proxy/sniff/http_body.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct found {
	enum sniff end;
	size_t used, payload;
	uint64_t sum; /* of the payload */
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void count(struct found *f, const char *at, size_t len)
{
	f->payload += len;
	while (len--)
		f->sum = f->sum * 31 + (unsigned char)*at++;
}

static struct found ours(const char *data, size_t len, size_t piece)
{
	struct found f = { .end = SNIFF_MORE };
	struct http_body body;
	struct http_text payload;
	size_t used;

	http_body_init(&body, HTTP_CHUNKED, 0);
	while (f.end == SNIFF_MORE && f.used < len) {
		size_t n = len - f.used < piece ? len - f.used : piece;

		f.end = http_body_read(&body, data + f.used, n, &used,
				       &payload);
		if (f.end == SNIFF_BAD) {
			must(body.error != NULL);
			break;
		}
		must(used > 0 && used <= n && payload.len <= used);
		must(!payload.len ||
		     payload.at + payload.len == data + f.used + used);
		count(&f, payload.at, payload.len);
		f.used += used;
	}
	return f;
}

/* The next line without its CR LF; NULL: there is none yet, or no good one. */
static const char *line_of(const char **at, const char *end, size_t *ret_len)
{
	const char *line = *at;
	const char *lf = memchr(line, '\n', (size_t)(end - line));

	if (!lf || lf == line || lf[-1] != '\r')
		return NULL;
	*at = lf + 1;
	*ret_len = (size_t)(lf - 1 - line);
	return line;
}

/* What RFC 9112 section 7.1 makes of it; only DONE is sure. */
static struct found theirs(const char *data, size_t len)
{
	struct found f = { .end = SNIFF_BAD };
	const char *at = data, *end = data + len, *line;
	size_t n;

	while ((line = line_of(&at, end, &n))) {
		char number[17] = { 0 }, *stop;
		uint64_t size;

		n = strnlen(line, n);
		memcpy(number, line, n < 16 ? n : 16);
		size = strtoull(number, &stop, 16);
		if (!size)
			break;
		if (stop == number || size > (uint64_t)(end - at))
			return f;
		count(&f, at, size);
		at += size;
		if (end - at < 2 || memcmp(at, "\r\n", 2) != 0)
			return f;
		at += 2;
	}
	while (line && (line = line_of(&at, end, &n)) && n)
		;
	f.used = (size_t)(at - data);
	f.end = line ? SNIFF_DONE : SNIFF_BAD;
	return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *copy = NULL;
	struct found whole, cut, again;

	if (size < 2)
		return 0;
	copy = malloc(size - 1);
	must(copy != NULL);
	memcpy(copy, data + 1, size - 1);
	whole = ours(copy, size - 1, SIZE_MAX);
	cut = ours(copy, size - 1, 1 + data[0] % 16);
	must(whole.end == cut.end);
	if (whole.end == SNIFF_BAD)
		return 0;
	must(whole.used == cut.used && whole.payload == cut.payload &&
	     whole.sum == cut.sum);
	if (whole.end != SNIFF_DONE)
		return 0;
	again = theirs(copy, whole.used);
	must(again.end == SNIFF_DONE && again.used == whole.used &&
	     again.payload == whole.payload && again.sum == whole.sum);
	return 0;
}
