/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ruleset.c - what is installed is what nft shows, and every change by
 * somebody else makes ruleset_verify() fail.
 */
#include "tests/firewall/ruleset_case.h"

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
		"iifname . ip daddr . tcp dport @points tproxy ip to :4000 "
		"meta mark set 0x00000001 accept",
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
	assert_int_equal(deleted, 20);
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

/* What has one address and one port is found in one step; it is one thing with
 * what has more. */
static void test_points(void **state)
{
	struct ruleset_flow wide = { { .bits = 32 }, { 443, 445 } };
	struct lab *lab = *state;

	assert_true(ip_parse("198.18.0.7", &wide.dst.ip));
	lab_flow(lab, "spA", "198.18.0.7", 443);
	lab_flow(lab, "spB", "198.18.0.7", 444);
	assert_true(set_has(lab, "points", "\"spA\" . 198.18.0.7 . 443"));
	assert_false(set_has(lab, "flows", ""));
	assert_int_equal(
		ruleset_flow_replace(lab->nft, "spA", NULL, 0, &wide, 1), 0);
	assert_true(set_has(lab, "points", "\"spA\" . 198.18.0.7 . 443"));
	assert_true(set_has(lab, "flows", "\"spA\" . 198.18.0.7 . 444-445"));
	wide.ports.first = wide.ports.last = 444;
	assert_int_equal(
		ruleset_flow_replace(lab->nft, "spA", &wide, 1, NULL, 0), 0);
	assert_true(set_has(lab, "points", "\"spA\" . 198.18.0.7 . 445"));
	assert_false(set_has(lab, "flows", ""));
	assert_int_equal(ruleset_flow_sweep(lab->nft, "spA", NULL, 0), 0);
	assert_false(set_has(lab, "points", "\"spA\""));
	assert_int_equal(ruleset_link_del(lab->nft, &lab->link[1], LAB_PROXY),
			 0);
	assert_false(set_has(lab, "points", ""));
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
		assert_int_equal(lab_add_flow(lab->nft, "spA", &net, some, 3),
				 0);
	assert_true(has_flow(lab, "198.51.100.0/24 . 8000-8999"));
	assert_int_equal(lab_add_flow(lab->nft, "spA", &net, wide, 2), 0);
	assert_true(has_flow(lab, "198.51.100.0/24 . 444"));
	assert_true(has_flow(lab, "198.51.100.0/24 . 7000-7999"));
	assert_true(has_flow(lab, "198.51.100.0/24 . 9000-9500"));
	assert_int_equal(lab_add_flow(lab->nft, "spA", &half, wide, 2), 0);
	/* The same for another interface is its own. */
	assert_int_equal(lab_add_flow(lab->nft, "spB", &half, some, 1), 0);
	assert_int_equal(lab_add_flow(lab->nft, "spB", &net, some, 1), 0);
	assert_true(has_flow(lab, "\"spB\" . 198.51.100.128/25 . 80"));
	assert_true(has_flow(lab, "\"spB\" . 198.51.100.0/25 . 80") ||
		    has_flow(lab, "\"spB\" . 198.51.100.0/24 . 80"));
	/* What is no flow changes nothing. */
	assert_int_equal(lab_add_flow(lab->nft, "spA", &net, &bad[0], 1),
			 -EINVAL);
	assert_int_equal(lab_add_flow(lab->nft, "spA", &net, &bad[1], 1),
			 -EINVAL);
	assert_int_equal(lab_add_flow(lab->nft, "", &net, some, 1), -EINVAL);
	assert_int_equal(
		lab_add_flow(lab->nft, "0123456789abcdef", &net, some, 1),
		-EINVAL);
	assert_int_equal(lab_add_flow(lab->nft, "spA", &six, some, 1), -EINVAL);
	assert_verified(lab);
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
		cmocka_unit_test_setup_teardown(test_points, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
