/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as what a SOCKS5 client sends: a greeting, then a request. Beside
 * not crashing: a host that comes out is canonical, lengths are inside the
 * input, and what is shown of a bad name is printable.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/sniff/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_shown(const char *shown, size_t cap)
{
	check(memchr(shown, '\0', cap) != NULL);
	for (; *shown; shown++)
		check(*shown > 0x20 && *shown < 0x7f);
}

static void request(const uint8_t *data, size_t size)
{
	struct socks_request req;
	uint8_t reply = 0;
	enum reason reason = REASON_RULE;
	char again[HOST_MAX + 1];

	memset(&req, 1, sizeof(req));
	switch (socks_request_parse(data, size, &req, &reply, &reason)) {
	case SNIFF_MORE:
		check(size < 4 + 1 + 255 + 2);
		break;
	case SNIFF_BAD:
		check(reply != 0 && reason != REASON_RULE);
		check_shown(req.shown, sizeof(req.shown));
		break;
	case SNIFF_DONE:
		check(req.len <= size && req.port);
		check(!*req.host == (req.address.len != 0));
		check(!*req.host ||
		      (host_canonical(req.host, strlen(req.host), again) &&
		       !strcmp(req.host, again)));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = 0;
	uint8_t method = 1;

	switch (socks_greeting(data, size, &len, &method)) {
	case SNIFF_MORE:
		check(size < 2 + 255);
		break;
	case SNIFF_BAD:
		request(data, size);
		break;
	case SNIFF_DONE:
		check(len <= size && (method == 0 || method == 0xff));
		request(data + len, size - len);
		break;
	}
	return 0;
}
