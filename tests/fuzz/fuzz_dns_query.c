/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_dns_query.c - a question from a sandbox, and every kind of answer to it.
 *
 * Whatever was asked, the answer fits, starts with the id and echoes the
 * question's bytes; a host name that came out of it is canonical.
 */
#include <stdlib.h>

#include "dns/message.h"
#include "policy/hostname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_reply(const struct dns_query *query, const uint8_t *data,
			const struct dns_reply *reply, size_t cap)
{
	uint8_t buf[DNS_REPLY_MAX];
	size_t len = dns_reply_build(query, reply, buf, cap);

	must(len >= DNS_HEADER_LEN && len <= cap);
	must(memcmp(buf, data, 2) == 0 && (buf[2] & 0x80));
	if (query->name.len)
		must(memcmp(buf + DNS_HEADER_LEN, data + DNS_HEADER_LEN,
			    query->name.len + 4u) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char host[HOST_MAX + 1] = "ok.com", again[HOST_MAX + 1];
	char text[NAME_TEXT_MAX], long_text[400];
	struct dns_query query;
	enum dns_parse parsed = dns_query_parse(data, size, &query);

	if (parsed == DNS_PARSE_IGNORE)
		return 0;
	if (query.name.len) {
		must(strlen(name_format(&query.name, text)) < sizeof(text));
		if (name_to_host(&query.name, host))
			must(host_canonical(host, strlen(host), again) &&
			     strcmp(host, again) == 0);
	}
	memset(long_text, 'x', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	const struct dns_reply replies[] = {
		{ .rcode = DNS_FORMERR },
		{ .rcode = DNS_BADVERS },
		{ .rcode = DNS_NXDOMAIN,
		  .ede = DNS_EDE_BLOCKED,
		  .ede_text = long_text },
		{ .kind = DNS_REPLY_ADDRESS,
		  .address = { ip_v4(1) },
		  .addresses = 1,
		  .ttl = 60 },
		{ .kind = DNS_REPLY_HINFO },
		{ .kind = DNS_REPLY_PTR, .target = host },
	};
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		check_reply(&query, data, &replies[i], 512);
		check_reply(&query, data, &replies[i], DNS_REPLY_MAX);
	}
	return 0;
}
