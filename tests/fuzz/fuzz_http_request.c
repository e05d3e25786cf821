/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_http_request.c - a request head, and its body. What is accepted must
 * mean the same once it was written anew, and to every prefix of it nothing at
 * all.
 */
#include "base/cleanup.h"
#include "policy/hostname.h"
#include "proxy/http_write.h"
#include "proxy/sniff/http_authority.h"
#include "proxy/sniff/http_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool same(struct http_text a, struct http_text b)
{
	return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static void read_body(const struct http_request *req, const char *data,
		      size_t len)
{
	struct http_body body;
	size_t used;
	struct http_text payload;
	enum sniff got;

	http_body_init(&body, req->framing, req->length);
	do {
		got = http_body_read(&body, data, len, &used, &payload);
		if (got == SNIFF_BAD) {
			must(body.error != NULL);
			return;
		}
		must(used <= len && payload.len <= used);
		data += used;
		len -= used;
	} while (got == SNIFF_MORE && used);
}

static void write_anew(const struct http_request *req, const char *path)
{
	static char buf[64 * 1024];
	static struct http_request again;
	char authority[HTTP_AUTHORITY_MAX];
	struct wirebuf out = wirebuf_of(buf, sizeof(buf));
	struct http_error error;

	http_write_authority(req->host, &req->address, req->port, authority);
	http_write_request(&out, req, authority, path);
	must(!out.full);
	/* Our own additions may take it past the limits, nothing else. */
	if (http_request_parse(buf, out.len, &again, &error) != SNIFF_DONE) {
		must(error.status == 414 || error.status == 431);
		return;
	}
	must(again.head_len == out.len);
	must(same(again.method, req->method));
	must(strcmp(again.host, req->host) == 0);
	must(ip_equal(&again.address, &req->address));
	must(again.port == req->port);
	must(again.framing == req->framing && again.length == req->length);
	must(again.websocket == req->websocket);
	must(strlen(path) == again.path.len &&
	     memcmp(path, again.path.at, again.path.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_request req;
	struct http_error error = { .status = 0 };
	AUTO_FREE char *copy = malloc(size + 1);
	char path[HTTP_HEAD_MAX], again[HTTP_HEAD_MAX];
	char canonical[HOST_MAX + 1];
	size_t head;

	memcpy(copy, data, size);
	switch (http_request_parse(copy, size, &req, &error)) {
	case SNIFF_MORE:
		must(size <= HTTP_HEAD_MAX + 2);
		return 0;
	case SNIFF_BAD:
		must(error.detail && error.status >= 400);
		must(strlen(req.shown) < sizeof(req.shown));
		return 0;
	case SNIFF_DONE:
		break;
	}
	head = req.head_len;
	must(head <= size && req.port);
	must(!*req.host != !req.address.len);
	must(!*req.host ||
	     (host_canonical(req.host, strlen(req.host), canonical) &&
	      strcmp(canonical, req.host) == 0));
	read_body(&req, copy + head, size - head);
	if (!req.connect && req.form != HTTP_ASTERISK &&
	    !http_path_canonical(req.path, path, sizeof(path))) {
		struct http_text text = { path, strlen(path) };

		must(!http_path_canonical(text, again, sizeof(again)));
		must(!strcmp(path, again));
		write_anew(&req, path);
	}
	must(http_request_parse(copy, head - 1, &req, &error) == SNIFF_MORE);
	return 0;
}
