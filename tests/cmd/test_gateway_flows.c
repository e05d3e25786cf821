/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gateway_flows.c - ranges that a policy allows, over real addresses of
 * names, come and go; with the rules in a real kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cmd/gateway_impl.h"
#include "firewall/element.h"
#include "firewall/nft.h"
#include "tests/cmd/policy_of.h"

#define NAMES "dns: {answers: real}\nallow: [other.test"
#define RANGE ", {address: 45.0.0.0/8, ports: [80-8000]}"
#define FIRST 0x2d000001u /* 45.0.0.1 */
#define MANY  3000u

static struct gateway g;
static struct policy *names, *range;

static int setup(void **state)
{
	(void)state;
	g = (struct gateway){
		.spec = { .dns_port = 53,
			  .proxy_port = 3128,
			  .transparent_port = 4000,
			  .nflog_group = 7 },
		.link = { .ifname = "sp0" },
	};
	assert_int_equal(netns_create(&g.ns, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(nft_open(g.ns.filter, &g.nft), 0);
	g.ns.filter = -1;
	assert_int_equal(ruleset_install(g.nft, &g.spec), 0);
	names = policy_of("version: 1\n" NAMES "]\n");
	range = policy_of("version: 1\n" NAMES RANGE "]\n");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	policy_unref(names);
	policy_unref(range);
	gateway_drop_changes(&g);
	nft_close(g.nft);
	netns_close(&g.ns);
	return 0;
}

/* One that a name has, with port 443. */
static void want(uint32_t i)
{
	const struct msg_publish msg = { .dst = { ip_v4(FIRST + i), 32 },
					 .count = 1,
					 .port = { { 443, 443 } } };

	assert_int_equal(gateway_publish_later(&g, names, &msg), 0);
}

/* What the kernel lets through: how many of the names' addresses, and how many
 * others. */
struct open {
	size_t names, others;
};

static int count(void *arg, const struct element_found *found)
{
	const struct element *e = &found->element;
	struct open *open = arg;

	if (e->ip == e->ip_last && e->ip >= FIRST && e->ip < FIRST + MANY &&
	    e->port == 443 && e->port_last == 443)
		open->names++;
	else
		open->others++;
	return 0;
}

static struct open is_open(void)
{
	struct open open = { 0 };

	assert_int_equal(
		element_list(g.nft, "points", ELEMENT_FLOW_KEY, count, &open),
		0);
	assert_int_equal(
		element_list(g.nft, "flows", ELEMENT_FLOW_KEY, count, &open),
		0);
	return open;
}

/* What is to be opened is there in the batch that takes the range away. */
static void test_few(void **state)
{
	(void)state;
	for (int had = 0; had < 2; had++) {
		assert_int_equal(gateway_literals(&g, names, range), 0);
		assert_true(is_open().others > 0);
		for (uint32_t i = 0; i < 100; i++)
			want(i);
		assert_int_equal(gateway_literals(&g, range, names), 0);
		assert_int_equal(is_open().names, 100);
		assert_int_equal(is_open().others, 0);
		assert_int_equal(gateway_flush(&g, names), 0);
		assert_int_equal(is_open().names, 100);
	}
}

/* More than a batch of the kernel holds: then some are opened after it. */
static void test_many(void **state)
{
	(void)state;
	assert_int_equal(gateway_literals(&g, names, range), 0);
	for (uint32_t i = 0; i < MANY; i++)
		want(i);
	assert_int_equal(gateway_literals(&g, range, names), 0);
	assert_true(is_open().names > 0);
	assert_int_equal(is_open().others, 0);
	assert_int_equal(gateway_flush(&g, names), 0);
	assert_int_equal(is_open().names, MANY);
	assert_int_equal(is_open().others, 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_few),
		TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
