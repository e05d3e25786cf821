/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_dns_answer.c - what a name server may send back to "a.ok.com".
 */
#include <stdlib.h>

#include "dns/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t types[] = { DNS_A, DNS_AAAA };

	for (size_t i = 0; i < 2; i++) {
		struct dns_answer answer;

		if (dns_answer_parse(data, size, "a.ok.com", types[i], &answer))
			continue;
		must(answer.count <= LOOKUP_MAX && answer.rcode < 16);
		must(!answer.count || answer.rcode == DNS_NOERROR);
		must(!(answer.ttl >> 31));
		for (size_t j = 0; j < answer.count; j++)
			must(answer.ip[j].len == (types[i] == DNS_A ? 4 : 16));
	}
	return 0;
}
