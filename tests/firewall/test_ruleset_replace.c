/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ruleset_replace.c - one set of rules in the place of another, and in
 * what time.
 */
#include "tests/clock.h"
#include "tests/firewall/ruleset_case.h"

#define SPACE_IPS   16
#define SPACE_PORTS 16

/* What is let through of a small space of addresses and ports. */
struct space {
	bool on[SPACE_IPS][SPACE_PORTS + 1];
	unsigned elements;
};

static int paint(void *arg, const struct element_found *found)
{
	const struct element *e = &found->element;
	struct space *space = arg;

	assert_true(found->plain);
	space->elements++;
	if (strcmp(e->ifname, "spA") != 0)
		return 0;
	assert_true(e->ip >= 0xc6336400 && e->ip_last < 0xc6336410);
	for (uint32_t ip = e->ip; ip <= e->ip_last; ip++)
		for (unsigned port = e->port; port <= e->port_last; port++) {
			bool *on = &space->on[ip - 0xc6336400][port];

			assert_false(*on); /* never twice */
			*on = true;
		}
	return 0;
}

static struct ruleset_flow random_flow(unsigned *seed)
{
	unsigned bits = 28 + (unsigned)rand_r(seed) % 5;
	uint32_t ip = (uint32_t)rand_r(seed) % 16 & (UINT32_MAX << (32 - bits));
	uint16_t first = (uint16_t)(1 + rand_r(seed) % SPACE_PORTS);
	uint16_t last = (uint16_t)(first + rand_r(seed) % 6);

	return (struct ruleset_flow){
		.dst = { ip_v4(0xc6336400 + ip), (uint8_t)bits },
		.ports = { first, last > SPACE_PORTS ? SPACE_PORTS : last }
	};
}

static void set_space(struct space *space, const struct ruleset_flow *flow,
		      bool on)
{
	uint32_t ip = ip_v4_value(&flow->dst.ip) - 0xc6336400;

	for (uint32_t i = 0; i < 1u << (32 - flow->dst.bits); i++)
		for (unsigned p = flow->ports.first; p <= flow->ports.last; p++)
			space->on[ip + i][p] = on;
}

/* Whatever is replaced by whatever, the kernel has what is meant, once, and
 * another interface's is not touched. */
static void test_replace(void **state)
{
	struct lab *lab = *state;
	struct space meant = { 0 };
	unsigned seed = 7;

	lab_flow(lab, "spB", "198.51.100.3", 5);
	for (int round = 0; round < 400; round++) {
		struct space found = { 0 };
		struct ruleset_flow gone[3], want[3];
		size_t out = (size_t)rand_r(&seed) % 4,
		       in = (size_t)rand_r(&seed) % 4;

		for (size_t i = 0; i < out; i++) {
			gone[i] = random_flow(&seed);
			set_space(&meant, &gone[i], false);
		}
		for (size_t i = 0; i < in; i++) {
			want[i] = random_flow(&seed);
			set_space(&meant, &want[i], true);
		}
		assert_int_equal(ruleset_flow_replace(lab->nft, "spA", gone,
						      out, want, in),
				 0);
		assert_int_equal(element_list(lab->nft, "flows",
					      ELEMENT_FLOW_KEY, paint, &found),
				 0);
		assert_int_equal(element_list(lab->nft, "points",
					      ELEMENT_FLOW_KEY, paint, &found),
				 0);
		assert_memory_equal(found.on, meant.on, sizeof(meant.on));
	}
	assert_true(has_flow(lab, "\"spB\" . 198.51.100.3 . 5"));
	assert_verified(lab);
}

static void test_replace_refuses(void **state)
{
	struct lab *lab = *state;
	const struct ruleset_flow good = {
		{ .ip = ip_v4(0xc6336400), .bits = 24 }, { 443, 443 }
	};
	struct ruleset_flow bad = good;

	assert_int_equal(
		ruleset_flow_replace(lab->nft, "spA", NULL, 0, &good, 1), 0);
	bad.ports.last = 1;
	assert_int_equal(
		ruleset_flow_replace(lab->nft, "spA", &good, 1, &bad, 1),
		-EINVAL);
	assert_int_equal(ruleset_flow_replace(lab->nft, "", &good, 1, NULL, 0),
			 -EINVAL);
	assert_true(has_flow(lab, "198.51.100.0/24 . 443"));
	/* What is gone already is no error. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(ruleset_flow_replace(lab->nft, "spA", &good, 1,
						      NULL, 0),
				 0);
	assert_false(has_flow(lab, ""));
}

static void test_sweep(void **state)
{
	struct lab *lab = *state;
	const struct ruleset_flow keep[] = {
		{ { ip_v4(0xc6336400), 24 }, { 443, 443 } },
		{ { ip_v4(0xc6336500), 24 }, { 80, 90 } },
	};
	const struct ruleset_flow more = { { ip_v4(0xc6336580), 25 },
					   { 85, 100 } };
	char address[IP_TEXT_MAX];

	lab_flow(lab, "spB", "198.51.100.3", 5);
	assert_int_equal(
		ruleset_flow_replace(lab->nft, "spA", NULL, 0, keep, 2), 0);
	assert_int_equal(
		ruleset_flow_replace(lab->nft, "spA", NULL, 0, &more, 1), 0);
	/* More than one batch. */
	for (uint32_t i = 1; i < 900; i++) {
		struct ip ip = ip_v4(0xc6120000 + i);

		lab_flow(lab, "spA", ip_format(&ip, address), 443);
	}
	assert_int_equal(ruleset_flow_sweep(lab->nft, "spA", keep, 2), 0);
	assert_false(has_flow(lab, "198.18."));
	assert_true(has_flow(lab, "198.51.100.0/24 . 443"));
	assert_true(has_flow(lab, "198.51.101.0/24 . 80-90"));
	assert_false(has_flow(lab, "100 "));
	assert_true(has_flow(lab, "\"spB\" . 198.51.100.3 . 5"));
	assert_int_equal(ruleset_flow_sweep(lab->nft, "spA", NULL, 0), 0);
	assert_false(has_flow(lab, "spA"));
	assert_int_equal(ruleset_flow_sweep(lab->nft, "", NULL, 0), -EINVAL);
	assert_verified(lab);
}

static void test_link_del(void **state)
{
	const struct port_range ports = { 1, 9000 };
	struct lab *lab = *state;
	struct cidr c = { .bits = 32 };
	char text[512];

	/* More than one message, and one batch of deletions, can hold. */
	for (uint32_t i = 0; i < 1100; i++) {
		c.ip = ip_v4(0xc6120000 + i);
		assert_int_equal(lab_add_flow(lab->nft, "spA", &c, &ports, 1),
				 0);
	}
	lab_flow(lab, "spB", "198.18.0.77", 443);
	assert_int_equal(ruleset_link_del(lab->nft, &lab->link[0], LAB_PROXY),
			 0);
	assert_false(has_flow(lab, "spA"));
	assert_true(has_flow(lab, "\"spB\" . 198.18.0.77 . 443"));
	assert_int_equal(ruleset_verify(lab->nft, &lab->spec, &lab->link[1], 1,
					NULL, text, sizeof(text)),
			 0);
	/* Once more is no error. */
	assert_int_equal(ruleset_link_del(lab->nft, &lab->link[0], LAB_PROXY),
			 0);
	/* No sandbox can be behind an empty or endless name. */
	struct ruleset_link bad = lab->link[0];
	memset(bad.ifname, 'x', sizeof(bad.ifname));
	assert_int_equal(ruleset_link_add(lab->nft, &bad, LAB_PROXY), -EINVAL);
	bad.ifname[0] = '\0';
	assert_int_equal(ruleset_link_add(lab->nft, &bad, LAB_PROXY), -EINVAL);
}

/* Not a benchmark: the bound is generous, a stall is not. */
static void test_quick(void **state)
{
	struct lab *lab = *state;
	double best[3] = { 1e9, 1e9, 1e9 };
	char text[512];

	for (int i = 0; i < 10; i++) {
		double t0 = exact_ms();
		assert_int_equal(ruleset_install(lab->nft, &lab->spec), 0);
		double t1 = exact_ms();
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(ruleset_link_add(lab->nft,
							  &lab->link[j],
							  LAB_PROXY),
					 0);
		double t2 = exact_ms();
		assert_int_equal(verify(lab, NULL, text), 0);
		double t3 = exact_ms();
		best[0] = t1 - t0 < best[0] ? t1 - t0 : best[0];
		best[1] = t2 - t1 < best[1] ? t2 - t1 : best[1];
		best[2] = t3 - t2 < best[2] ? t3 - t2 : best[2];
	}
	print_message("install %.2f ms, two links %.2f ms, verify %.2f ms\n",
		      best[0], best[1], best[2]);
	assert_true(best[0] < 50 && best[1] < 50 && best[2] < 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace_refuses, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_del, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quick, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
