/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_target.c - what people may ask `explain` about. Whatever it is, it is a
 * name, an address or malformed, and no address is ever a name.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/bundle.h"
#include "policy/explain.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char yaml[] = "version: 1\n"
			   "allow:\n"
			   "  - '*.example'\n"
			   "  - {host: a.test, ports: [80], paths: [/v1/**]}\n"
			   "  - {address: 9.9.9.0/24, ports: [443]}\n"
			   "deny: [x.example]\n";

static struct policy *build(void)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err;

	if (bundle_add(&bundle, BUNDLE_FILE, "p.yaml", yaml, strlen(yaml)) <
		    0 ||
	    policy_build(bundle.data, bundle.len, &policy, &err) < 0)
		abort();
	bundle_free(&bundle);
	return policy;
}

static void check(const struct inquiry *inquiry, const struct explanation *e)
{
	char again[HOST_MAX + 1];
	const char *host = inquiry->host;
	struct ip ip;

	if (!!*host + !!inquiry->address.len + !!inquiry->fault != 1)
		abort();
	if (*host && (!host_canonical(host, strlen(host), again) ||
		      strcmp(host, again) != 0 || ip_parse(host, &ip)))
		abort();
	if (!inquiry->ports || !inquiry->port[0] || e->count > 9)
		abort();
	if (inquiry->fault && e->reachable)
		abort();
	if (e->reachable && *host && !host_below(host, "example") &&
	    strcmp(host, "a.test") != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy *policy;
	struct inquiry inquiry = { .method = NULL, .now_s = 1800000000 };
	struct explanation explanation;
	char *text = malloc(size + 1);

	if (!policy)
		policy = build();
	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (!inquiry_parse(text, &inquiry)) {
		explain(policy, &inquiry, &explanation);
		check(&inquiry, &explanation);
		inquiry.method = "GET";
		explain(policy, &inquiry, &explanation);
		check(&inquiry, &explanation);
	}
	free(text);
	return 0;
}
