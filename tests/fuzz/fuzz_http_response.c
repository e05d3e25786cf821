/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_http_response.c - a response, head and body. The first byte says whether
 * it answers a HEAD, and into which pieces the body is cut: where it ends and
 * what it says must not depend on that.
 */
#include "base/cleanup.h"
#include "proxy/http_write.h"
#include "proxy/sniff/http_body.h"
#include "proxy/sniff/http_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

struct whole { /* a body that was read */
	enum sniff end;
	size_t used, payload;
	uint32_t sum;
};

static struct whole read_body(const struct http_response *resp,
			      const char *data, size_t len, size_t piece)
{
	struct whole w = { .end = SNIFF_MORE };
	struct http_body body;
	struct http_text payload;
	size_t used = 1;

	http_body_init(&body, resp->framing, resp->length);
	while (w.end == SNIFF_MORE && used) {
		size_t n = len - w.used < piece ? len - w.used : piece;

		w.end = http_body_read(&body, data + w.used, n, &used,
				       &payload);
		if (w.end == SNIFF_BAD)
			break;
		must(used <= n && payload.len <= used);
		for (size_t i = 0; i < payload.len; i++)
			w.sum = w.sum * 31 + (unsigned char)payload.at[i];
		w.used += used;
		w.payload += payload.len;
	}
	return w;
}

static void write_anew(const struct http_response *resp)
{
	static char buf[64 * 1024];
	static struct http_response again;
	struct wirebuf out = wirebuf_of(buf, sizeof(buf));
	const char *detail;

	http_write_response(&out, resp, resp->framing, HTTP_KEEP);
	must(!out.full);
	if (http_response_parse(buf, out.len, resp->framing == HTTP_NO_BODY,
				&again, &detail) != SNIFF_DONE) {
		must(strstr(detail, "too ") != NULL);
		return;
	}
	must(again.head_len == out.len && again.status == resp->status);
	must(again.framing == resp->framing);
	must(again.framing == HTTP_NO_BODY || again.length == resp->length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_response resp;
	AUTO_FREE char *copy = NULL;
	struct whole a, b;
	const char *detail = NULL;
	size_t head;

	if (size < 1)
		return 0;
	copy = malloc(size);
	memcpy(copy, data + 1, size - 1);
	switch (http_response_parse(copy, size - 1, data[0] & 1, &resp,
				    &detail)) {
	case SNIFF_MORE:
		must(size - 1 <= HTTP_RESPONSE_HEAD_MAX);
		return 0;
	case SNIFF_BAD:
		must(detail != NULL);
		return 0;
	case SNIFF_DONE:
		break;
	}
	head = resp.head_len;
	must(head <= size - 1 && !detail);
	must(resp.status >= 100 && resp.status < 600);
	a = read_body(&resp, copy + head, size - 1 - head, SIZE_MAX);
	b = read_body(&resp, copy + head, size - 1 - head,
		      1 + (data[0] >> 1) % 16);
	must(a.end == b.end);
	if (a.end != SNIFF_BAD)
		must(a.used == b.used && a.payload == b.payload &&
		     a.sum == b.sum);
	write_anew(&resp);
	return 0;
}
