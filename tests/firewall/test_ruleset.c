/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ruleset.c - what is installed is what nft shows, and every change by
 * somebody else makes ruleset_verify() fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "firewall/element.h"
#include "lab.h"

static int setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	lab_make(lab);
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	lab_free(*state);
	free(*state);
	return 0;
}

static int verify(struct lab *lab, char *digest, char *text)
{
	text[0] = '\0';
	return ruleset_verify(lab->nft, &lab->spec, lab->link, 2, digest, text,
			      512);
}

static void assert_verified(struct lab *lab)
{
	char text[512];
	int r = verify(lab, NULL, text);

	if (r)
		fail_msg("%d: %s", r, text);
}

static void test_listing(void **state)
{
	static const char *const wanted[] = {
		"type filter hook prerouting priority -450; policy drop;",
		"type filter hook forward priority -2147483648; policy drop;",
		"meta mark set 0x00000000",
		"meta nfproto != ipv4 counter name \"ipv6\" log prefix \"ipv6\" "
		"group 7 snaplen 128 queue-threshold 1 drop",
		"iifname . ip saddr != @links counter name \"spoofed\" log",
		"ip daddr 224.0.0.0/3 counter name \"refused\"",
		"ip frag-off & 16383 != 0 goto refuse",
		"udp dport 53 tproxy ip to :53 meta mark set 0x00000001 accept",
		"tcp dport 53 tproxy ip to :53 meta mark set 0x00000001 accept",
		"iifname . ip daddr . tcp dport @doors accept",
		"iifname . ip daddr . tcp dport @flows tproxy ip to :4000 "
		"meta mark set 0x00000001 accept",
		"iifname . ip daddr @published tcp dport & 61440 == 57344 "
		"tcp flags ",
		"meta l4proto tcp reject with tcp reset",
		"meta l4proto udp reject",
		"reject with icmpx admin-prohibited",
		"elements = { \"spA\" . 198.19.0.2,",
		"\"spB\" . 198.19.0.5 . 3128 }",
		"\"spA\" . 198.18.0.7 . 443",
	};
	char *argv[] = { "nft", "list", "ruleset", NULL };
	static char text[16384];
	struct lab *lab = *state;

	lab_flow(lab, "spA", "198.18.0.7", 443);
	lab_output(lab->gateway.fd, argv, text, sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!strstr(text, wanted[i]))
			fail_msg("no \"%s\" in:\n%s", wanted[i], text);
}

static void test_verify(void **state)
{
	struct lab *lab = *state;
	char first[65], second[65], text[512];

	assert_int_equal(verify(lab, first, text), 0);
	assert_int_equal(strspn(first, "0123456789abcdef"), 64);
	/* Flows come and go, and traffic counts: the rules are the same. */
	lab_flow(lab, "spB", "198.18.0.9", 5432);
	assert_int_equal(verify(lab, second, text), 0);
	assert_string_equal(first, second);
	/* Installing again replaces the table, the sets are empty then. */
	assert_int_equal(ruleset_install(lab->nft, &lab->spec), 0);
	assert_int_equal(verify(lab, NULL, text), -EBADMSG);
	assert_non_null(strstr(text, "element"));
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(
			ruleset_link_add(lab->nft, &lab->link[i], LAB_PROXY),
			0);
	assert_int_equal(verify(lab, second, text), 0);
	assert_string_equal(first, second);
	/* The links are part of what is promised. */
	assert_int_equal(ruleset_verify(lab->nft, &lab->spec, lab->link, 1,
					NULL, text, sizeof(text)),
			 -EBADMSG);
}

/* What is published comes and goes like flows; but it is known. */
static void test_published(void **state)
{
	struct lab *lab = *state;
	char first[65], second[65], text[512];

	assert_int_equal(verify(lab, first, text), 0);
	lab->link[0].published = true;
	assert_int_equal(verify(lab, NULL, text), -EBADMSG);
	assert_non_null(strstr(text, "published"));
	assert_int_equal(ruleset_link_publish(lab->nft, &lab->link[0]), 0);
	assert_int_equal(ruleset_link_publish(lab->nft, &lab->link[0]), 0);
	assert_int_equal(verify(lab, second, text), 0);
	assert_string_equal(first, second);
	/* What somebody else publishes is none of ours. */
	assert_int_equal(lab_nft(lab, "add element inet sallyport published "
				      "{ \"spB\" . 198.19.0.5 }"),
			 0);
	assert_int_equal(verify(lab, NULL, text), -EBADMSG);
	assert_int_equal(ruleset_link_del(lab->nft, &lab->link[1], LAB_PROXY),
			 0);
	assert_int_equal(ruleset_verify(lab->nft, &lab->spec, lab->link, 1,
					NULL, text, sizeof(text)),
			 0);
	/* A link that is put back is published again. */
	assert_int_equal(ruleset_install(lab->nft, &lab->spec), 0);
	assert_int_equal(ruleset_link_add(lab->nft, &lab->link[0], LAB_PROXY),
			 0);
	assert_int_equal(ruleset_verify(lab->nft, &lab->spec, lab->link, 1,
					NULL, text, sizeof(text)),
			 0);
}

/* Each change, and how to undo it: NULL for a new installation. */
static void test_tampering(void **state)
{
	static const char *const change[] = {
		"insert rule inet sallyport pre accept",
		"add rule inet sallyport refuse accept",
		"add rule inet sallyport forward accept",
		"insert rule inet sallyport pre index 1 meta mark set 1",
		"flush chain inet sallyport pre",
		"flush chain inet sallyport forward",
		"chain inet sallyport pre { policy accept; }",
		"chain inet sallyport forward { policy accept; }",
		"add chain inet sallyport more",
		"add chain inet sallyport early { type filter hook prerouting "
		"priority -500; }",
		"add set inet sallyport other { type ipv4_addr; }",
		"add map inet sallyport m { type ipv4_addr : verdict; }",
		"add counter inet sallyport other",
		"add element inet sallyport links { \"spA\" . 10.0.0.1 }",
		"delete element inet sallyport links { \"spA\" . 198.19.0.2 }",
		"add element inet sallyport doors { \"spA\" . 198.19.0.1 . 22 }",
		"delete element inet sallyport doors { \"spA\" . 198.19.0.1 . "
		"3128 }",
		"add table inet sallyport { flags dormant; }",
		"add table ip other",
		"add table netdev other",
		"add table inet sallyport2",
		"flush ruleset",
		"delete table inet sallyport",
	};
	struct lab *lab = *state;
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		assert_verified(lab);
		if (lab_nft(lab, change[i]) != 0)
			fail_msg("nft could not: %s", change[i]);
		if (verify(lab, NULL, text) != -EBADMSG)
			fail_msg("unseen: %s", change[i]);
		assert_true(strlen(text) > 10);
		/* Whatever it was, a new installation heals it. */
		assert_int_equal(lab_nft(lab, "flush ruleset"), 0);
		assert_int_equal(ruleset_install(lab->nft, &lab->spec), 0);
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(ruleset_link_add(lab->nft,
							  &lab->link[j],
							  LAB_PROXY),
					 0);
	}
	assert_verified(lab);
}

/* One rule less, each in turn, and two rules swapped. */
static void test_every_rule_counts(void **state)
{
	static char text[16384];
	char *argv[] = { "nft", "-a", "list", "ruleset", NULL };
	struct lab *lab = *state;
	unsigned deleted = 0;

	for (unsigned skip = 0;; skip++) {
		char chain[32] = "", command[128];
		unsigned handle = 0, seen = 0;
		char *save = NULL;

		lab_output(lab->gateway.fd, argv, text, sizeof(text));
		for (char *line = strtok_r(text, "\n", &save); line && !handle;
		     line = strtok_r(NULL, "\n", &save)) {
			char *mark = strstr(line, " # handle ");

			if (sscanf(line, " chain %31s", chain) == 1 ||
			    strncmp(line, "\t\t", 2) != 0 || !mark)
				continue;
			if (seen++ == skip)
				(void)sscanf(mark, " # handle %u", &handle);
		}
		if (!handle)
			break;
		(void)snprintf(command, sizeof(command),
			       "delete rule inet sallyport %s handle %u", chain,
			       handle);
		assert_int_equal(lab_nft(lab, command), 0);
		assert_int_equal(verify(lab, NULL, text), -EBADMSG);
		deleted++;
		assert_int_equal(ruleset_install(lab->nft, &lab->spec), 0);
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(ruleset_link_add(lab->nft,
							  &lab->link[j],
							  LAB_PROXY),
					 0);
		assert_verified(lab);
	}
	assert_int_equal(deleted, 19);
}

/* A spec that differs in any number differs in the rules. */
static void test_spec(void **state)
{
	struct lab *lab = *state;
	struct ruleset_spec spec;
	char text[512];

	for (int i = 0; i < 4; i++) {
		spec = lab->spec;
		spec.dns_port = (uint16_t)(spec.dns_port + (i == 0));
		spec.proxy_port = (uint16_t)(spec.proxy_port + (i == 1));
		spec.transparent_port =
			(uint16_t)(spec.transparent_port + (i == 2));
		spec.nflog_group = (uint16_t)(spec.nflog_group + (i == 3));
		assert_int_equal(ruleset_verify(lab->nft, &spec, lab->link, 2,
						NULL, text, sizeof(text)),
				 -EBADMSG);
	}
	spec.transparent_port = 0;
	assert_int_equal(ruleset_install(lab->nft, &spec), -EINVAL);
	assert_verified(lab);
}

/* The elements of `flows`, as nft lists them. */
static bool has_flow(struct lab *lab, const char *wanted)
{
	char *argv[] = { "nft",	      "list",  "set", "inet",
			 "sallyport", "flows", NULL };
	char text[4096];

	lab_output(lab->gateway.fd, argv, text, sizeof(text));
	if (strlen(wanted) == 0)
		return strstr(text, "elements") != NULL;
	return strstr(text, wanted) != NULL;
}

static void test_flows(void **state)
{
	const struct port_range some[] = { { 80, 80 },
					   { 443, 443 },
					   { 8000, 8999 } };
	const struct port_range wide[] = { { 443, 444 }, { 7000, 9500 } };
	const struct port_range bad[] = { { 9, 8 }, { 0, 5 } };
	struct lab *lab = *state;
	struct cidr net = { .bits = 24 }, half = { .bits = 25 }, six;

	assert_true(ip_parse("198.51.100.0", &net.ip));
	assert_true(ip_parse("198.51.100.128", &half.ip));
	assert_true(cidr_parse("2001:db8::/32", &six));
	/* Twice the same, then overlapping in ports and in addresses. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			ruleset_flow_add(lab->nft, "spA", &net, some, 3), 0);
	assert_true(has_flow(lab, "198.51.100.0/24 . 8000-8999"));
	assert_int_equal(ruleset_flow_add(lab->nft, "spA", &net, wide, 2), 0);
	assert_true(has_flow(lab, "198.51.100.0/24 . 444"));
	assert_true(has_flow(lab, "198.51.100.0/24 . 7000-7999"));
	assert_true(has_flow(lab, "198.51.100.0/24 . 9000-9500"));
	assert_int_equal(ruleset_flow_add(lab->nft, "spA", &half, wide, 2), 0);
	/* The same for another interface is its own. */
	assert_int_equal(ruleset_flow_add(lab->nft, "spB", &half, some, 1), 0);
	assert_int_equal(ruleset_flow_add(lab->nft, "spB", &net, some, 1), 0);
	assert_true(has_flow(lab, "\"spB\" . 198.51.100.128/25 . 80"));
	assert_true(has_flow(lab, "\"spB\" . 198.51.100.0/25 . 80") ||
		    has_flow(lab, "\"spB\" . 198.51.100.0/24 . 80"));
	/* What is no flow changes nothing. */
	assert_int_equal(ruleset_flow_add(lab->nft, "spA", &net, &bad[0], 1),
			 -EINVAL);
	assert_int_equal(ruleset_flow_add(lab->nft, "spA", &net, &bad[1], 1),
			 -EINVAL);
	assert_int_equal(ruleset_flow_add(lab->nft, "", &net, some, 1),
			 -EINVAL);
	assert_int_equal(
		ruleset_flow_add(lab->nft, "0123456789abcdef", &net, some, 1),
		-EINVAL);
	assert_int_equal(ruleset_flow_add(lab->nft, "spA", &six, some, 1),
			 -EINVAL);
	assert_verified(lab);
}

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
		assert_int_equal(
			ruleset_flow_add(lab->nft, "spA", &c, &ports, 1), 0);
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

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Not a benchmark: the bound is generous, a stall is not. */
static void test_quick(void **state)
{
	struct lab *lab = *state;
	double best[3] = { 1e9, 1e9, 1e9 };
	char text[512];

	for (int i = 0; i < 10; i++) {
		double t0 = now_ms();
		assert_int_equal(ruleset_install(lab->nft, &lab->spec), 0);
		double t1 = now_ms();
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(ruleset_link_add(lab->nft,
							  &lab->link[j],
							  LAB_PROXY),
					 0);
		double t2 = now_ms();
		assert_int_equal(verify(lab, NULL, text), 0);
		double t3 = now_ms();
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
		cmocka_unit_test_setup_teardown(test_listing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verify, setup, teardown),
		cmocka_unit_test_setup_teardown(test_published, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_tampering, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_every_rule_counts, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_spec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace_refuses, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_del, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quick, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
