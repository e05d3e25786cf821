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

static const char base[] = "version: 1\n"
			   "extends: [github]\n"
			   "deny: [{file: list}]\n"
			   "limits: {names: 9, upload: 1 MB}\n";

#define NOW 1800000000

static bool is_in(const struct port_range *range, size_t n, uint16_t port)
{
	for (size_t i = 0; i < n; i++)
		if (range[i].first <= port && port <= range[i].last)
			return true;
	return false;
}

static void check(const struct policy *policy, const struct question *q,
		  const struct verdict *v)
{
	struct port_range range[16];
	size_t n;

	if (v->allow && !v->rule && v->reason != REASON_PUBLIC &&
	    v->reason != REASON_OBSERVE)
		abort();
	if (v->reason == REASON_PUBLIC && !policy_is_public(policy))
		abort();
	if (v->reason == REASON_OBSERVE && !policy_observes(policy))
		abort();
	if (!q->host || q->door != DOOR_TRANSPARENT || !q->port ||
	    policy_observes(policy))
		return;
	/* The firewall's view never exceeds the verdict. */
	n = policy_ports(policy, q->host, q->now_s, range, ARRAY_SIZE(range));
	if (is_in(range, n, q->port) && !v->allow)
		abort();
	if (n < ARRAY_SIZE(range) && v->allow && !is_in(range, n, q->port))
		abort();
}

static void ask(const struct policy *policy, const char *host, int64_t now_s)
{
	static const uint16_t ports[] = { 0, 22, 80, 443, 65535 };
	static const struct {
		const char *method, *path;
	} requests[] = { { NULL, NULL },
			 { "GET", "/a/b" },
			 { "POST", "/a//b;c?d" } };
	struct ip ip = ip_v4(0x0a000001);

	(void)policy_has_below(policy, host);
	for (size_t i = 0; i < ARRAY_SIZE(ports) * DOOR_COUNT; i++) {
		struct question q = { .host = host,
				      .port = ports[i / DOOR_COUNT],
				      .door = (enum door)(i % DOOR_COUNT),
				      .now_s = now_s };

		for (size_t j = 0; j < ARRAY_SIZE(requests); j++) {
			q.method = requests[j].method;
			q.path = requests[j].path;
			struct verdict v = policy_decide(policy, &q);

			if (!j)
				check(policy, &q, &v);
			(void)policy_check_address(policy, v.rule, &ip, NULL,
						   0);
		}
		q.host = NULL;
		q.address = ip;
		(void)policy_decide(policy, &q);
	}
}

static void try_build(const void *data, size_t len)
{
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	int ret = policy_build(data, len, &policy, &err);

	if (ret == 0) {
		ask(policy, "a.b.example.com", 0);
		ask(policy, "a.b.example.com", NOW);
		ask(policy, "api.example.com", NOW);
		ask(policy, "com", NOW);
		policy_unref(policy);
	} else if (policy || !*err.text) {
		abort(); /* half-loaded, or refused without a word */
	}
}

static void try_part(enum bundle_kind kind, const uint8_t *data, size_t size)
{
	struct bundle bundle = { 0 };

	/* What it may name, see the seeds. */
	if (bundle_add(&bundle, kind, "fuzz", (const char *)data, size) == 0 &&
	    bundle_add(&bundle, BUNDLE_LIST, "list", "b.example.com\n", 14) ==
		    0 &&
	    bundle_add(&bundle, BUNDLE_INCLUDED, "base.yaml", base,
		       sizeof(base) - 1) == 0)
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
