/* SPDX-License-Identifier: Apache-2.0
 *
 * test_element_list.c - what a set holds is listed once and wholly, even while
 * the kernel moves it to a table of another size.
 */
#include "tests/firewall/ruleset_case.h"
/* after cmocka.h */
#include <linux/netfilter/nf_tables.h>
#include <sched.h>

#define FULL   3000 /* over two messages, and six doublings of the table */
#define FEW    40
#define BATCH  200
#define ROUNDS 150
#define SWEEPS 15

static struct element element_of(size_t i)
{
	struct element e = { .ip = 0xc6336400 + (uint32_t)i,
			     .port = 443,
			     .port_last = 443,
			     .ifname = "spA" };

	e.ip_last = e.ip;
	return e;
}

/* The kernel resizes on the processor that asked for it: to read at the same
 * time, be on another one. */
static void be_on(unsigned side)
{
	static cpu_set_t ours;
	cpu_set_t one;
	size_t cpu = 0;

	if (CPU_COUNT(&ours) == 0)
		assert_int_equal(sched_getaffinity(0, sizeof(ours), &ours), 0);
	for (int skip = (int)side % CPU_COUNT(&ours);; cpu++)
		if (CPU_ISSET(cpu, &ours) && skip-- == 0)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void change(struct nft *nft, uint16_t type, size_t from, size_t to)
{
	struct element e[BATCH];
	size_t n;

	for (; from < to; from += n) {
		for (n = 0; n < BATCH && from + n < to; n++)
			e[n] = element_of(from + n);
		nft_begin(nft);
		element_put(nft, type, "points", ELEMENT_FLOW_KEY, false, e, n);
		assert_int_equal(nft_commit(nft), 0);
	}
}

struct seen {
	unsigned times[FULL];
};

static int see(void *arg, const struct element_found *found)
{
	struct seen *seen = arg;
	const uint32_t i = found->element.ip - 0xc6336400;

	assert_true(found->plain);
	assert_true(i < FULL);
	seen->times[i]++;
	return 0;
}

static void assert_listed(struct nft *nft, size_t n)
{
	struct seen seen = { 0 };

	assert_int_equal(
		element_list(nft, "points", ELEMENT_FLOW_KEY, see, &seen), 0);
	for (size_t i = 0; i < FULL; i++)
		assert_int_equal(seen.times[i], i < n);
}

static void test_resized(void **state)
{
	struct lab *lab = *state;

	for (unsigned round = 0; round < ROUNDS; round++) {
		be_on(round % 2);
		change(lab->nft, NFT_MSG_NEWSETELEM, 0, FULL);
		be_on((round + 1) % 2);
		assert_listed(lab->nft, FULL);
		be_on(round % 2);
		change(lab->nft, NFT_MSG_DELSETELEM, FEW, FULL);
		be_on((round + 1) % 2);
		assert_listed(lab->nft, FEW);
		change(lab->nft, NFT_MSG_DELSETELEM, 0, FEW);
	}
}

/* What a name no longer has goes, and nothing is in the way. */
static void test_sweep_resized(void **state)
{
	struct lab *lab = *state;
	struct ruleset_flow keep[FEW];

	for (uint32_t i = 0; i < FEW; i++)
		keep[i] =
			(struct ruleset_flow){ { ip_v4(element_of(i).ip), 32 },
					       { 443, 443 } };
	for (unsigned round = 0; round < SWEEPS; round++) {
		be_on(round % 2);
		change(lab->nft, NFT_MSG_NEWSETELEM, 0, FULL);
		be_on((round + 1) % 2);
		assert_int_equal(ruleset_flow_sweep(lab->nft, "spA", keep, FEW),
				 0);
		assert_listed(lab->nft, FEW);
	}
	assert_int_equal(ruleset_link_del(lab->nft, &lab->link[0], LAB_PROXY),
			 0);
	assert_listed(lab->nft, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_resized, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep_resized, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
