/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_policy.c - the same bytes as a policy file, as options, as a bundle and
 * as a host name; and questions to whatever was built.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/bundle.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct policy *policy, const char *host)
{
	static const uint16_t ports[] = { 0, 22, 80, 443, 65535 };
	struct port_range range[16];
	size_t n = policy_ports(policy, host, 1, range, ARRAY_SIZE(range));

	(void)policy_has_below(policy, host);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		struct question q = { .host = host, .port = ports[i] };
		struct verdict v = policy_decide(policy, &q);
		struct ip ip = ip_v4(0x0a000001);
		bool listed = false;

		(void)policy_check_address(policy, v.rule, &ip, NULL, 0);
		for (size_t j = 0; j < n; j++)
			listed |= range[j].first <= ports[i] &&
				  ports[i] <= range[j].last;
		/* The firewall's view never exceeds the verdict. */
		if (ports[i] && listed && !v.allow)
			abort();
		if (v.allow && !v.rule)
			abort();
		q = (struct question){ .address = ip, .port = ports[i] };
		(void)policy_decide(policy, &q);
	}
}

static void try_build(const void *data, size_t len)
{
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	int ret = policy_build(data, len, &policy, &err);

	if (ret == 0) {
		ask(policy, "a.b.example.com");
		ask(policy, "api.example.com");
		ask(policy, "com");
		policy_unref(policy);
	} else if (policy || !*err.text) {
		abort(); /* half-loaded, or refused without a word */
	}
}

static void try_part(enum bundle_kind kind, const uint8_t *data, size_t size)
{
	struct bundle bundle = { 0 };

	if (bundle_add(&bundle, kind, "fuzz", (const char *)data, size) == 0)
		try_build(bundle.data, bundle.len);
	bundle_free(&bundle);
}

static void try_host(const uint8_t *data, size_t size)
{
	char host[HOST_MAX + 1], again[HOST_MAX + 1];

	if (!host_canonical((const char *)data, size, host))
		return;
	/* Canonical stays canonical, and is never an address. */
	if (!host_canonical(host, strlen(host), again) ||
	    strcmp(host, again) != 0)
		abort();
	struct ip ip;
	if (ip_parse(host, &ip))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_part(BUNDLE_FILE, data, size);
	try_part(BUNDLE_ALLOW, data, size);
	try_part(BUNDLE_DENY, data, size);
	try_part(BUNDLE_PERMIT, data, size);
	try_build(data, size);
	try_host(data, size);
	return 0;
}
