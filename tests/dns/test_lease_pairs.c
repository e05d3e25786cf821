/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lease_pairs.c - which name was told which address, across the death of
 * the gate.
 */
#include "tests/dns/lease_case.h"

#define PAIRS_AT (ENTRY_LEN * LEASE_MAX)
#define PAIR_LEN 32

static size_t names_at(struct lease_table *table, const char *ip,
		       const char *name[4])
{
	struct ip at;

	assert_true(ip_parse(ip, &at));
	return lease_names_at(table, &at, name, 4);
}

static int bind_to(struct lease_table *table, const char *host, const char *ip)
{
	struct ip at;

	assert_true(ip_parse(ip, &at));
	return lease_bind(table, host, &at);
}

static void test_pairs(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	const char *name[4], *host;
	struct ip ip;

	(void)state;
	/* Only what was admitted, and no address of the pool. */
	assert_int_equal(bind_to(table, "ok.com", "93.184.216.34"), -ENOSPC);
	assert_int_equal(admit(table, "ok.com"), REASON_RULE);
	assert_int_equal(admit(table, "ok2.com"), REASON_RULE);
	assert_int_equal(bind_to(table, "ok.com", "198.18.0.1"), -EINVAL);
	assert_int_equal(bind_to(table, "ok.com", "198.18.255.255"), -EINVAL);
	assert_false(lease_pair_at(table, 0, &host, &ip));
	/* Several names of one address, several addresses of one name. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(bind_to(table, "ok.com", "93.184.216.34"), 0);
		assert_int_equal(bind_to(table, "ok2.com", "93.184.216.34"), 0);
		assert_int_equal(bind_to(table, "ok.com", "93.184.216.35"), 0);
		assert_int_equal(bind_to(table, "ok.com", "2606:2800::1"), 0);
	}
	/* It is no lease. */
	assert_true(ip_parse("93.184.216.34", &ip));
	assert_null(lease_name(table, &ip));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(names_at(table, "93.184.216.34", name), 2);
		assert_string_equal(name[0], "ok.com");
		assert_string_equal(name[1], "ok2.com");
		assert_int_equal(names_at(table, "93.184.216.35", name), 1);
		assert_int_equal(names_at(table, "2606:2800::1", name), 1);
		assert_int_equal(names_at(table, "93.184.216.36", name), 0);
		assert_true(ip_parse("93.184.216.34", &ip));
		assert_int_equal(lease_names_at(table, &ip, name, 1), 1);
		assert_true(lease_pair_at(table, 3, &host, &ip));
		assert_string_equal(host, "ok.com");
		assert_int_equal(ip.len, 16);
		assert_false(lease_pair_at(table, 4, &host, &ip));
		/* As a gate that was restarted sees it. */
		lease_table_free(table);
		table = attach(fd);
	}
	lease_table_free(table);
}

/* Any byte of a pair, or of the entry it is for, undoes it, and the others
 * stand. */
static void test_pairs_corrupt(void **state)
{
	static const size_t offsets[] = { PAIRS_AT,	 PAIRS_AT + 4,
					  PAIRS_AT + 5,	 PAIRS_AT + 6,
					  PAIRS_AT + 7,	 PAIRS_AT + 8,
					  PAIRS_AT + 16, PAIRS_AT + 31,
					  ENTRY_HOST };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		AUTO_FD int fd = file();
		struct lease_table *table = attach(fd);
		const char *name[4], *host;
		struct ip ip;

		admit(table, "ok.com");
		admit(table, "ok2.com");
		assert_int_equal(bind_to(table, "ok.com", "93.184.216.34"), 0);
		assert_int_equal(bind_to(table, "ok2.com", "93.184.216.34"), 0);
		lease_table_free(table);
		corrupt(fd, offsets[i], "\xee", 1);
		table = attach(fd);
		assert_int_equal(names_at(table, "93.184.216.34", name), 1);
		assert_string_equal(name[0], "ok2.com");
		assert_true(lease_pair_at(table, 0, &host, &ip));
		assert_null(host);
		assert_int_equal(ip.len, 0);
		/* Its place is not used again. */
		assert_int_equal(bind_to(table, "ok2.com", "93.184.216.35"), 0);
		assert_true(lease_pair_at(table, 2, &host, &ip));
		assert_string_equal(host, "ok2.com");
		lease_table_free(table);
	}
}

/* A pair that was copied to another place does not hold; nor does one that is
 * there twice. */
static void test_pairs_copied(void **state)
{
	AUTO_FD int fd = file(), other = file();
	struct lease_table *table = attach(fd), *twin = attach(other);
	const char *name[4], *host;
	struct ip ip;
	uint8_t pair[PAIR_LEN], none[PAIR_LEN] = { 0 };

	(void)state;
	admit(table, "ok.com");
	admit(twin, "ok.com");
	assert_int_equal(bind_to(table, "ok.com", "93.184.216.34"), 0);
	assert_int_equal(bind_to(twin, "ok.com", "93.184.216.99"), 0);
	assert_int_equal(bind_to(twin, "ok.com", "93.184.216.34"), 0);
	lease_table_free(table);
	lease_table_free(twin);
	/* Whole and right, for its place: the second of the same. */
	assert_int_equal(pread(other, pair, PAIR_LEN, PAIRS_AT + PAIR_LEN),
			 PAIR_LEN);
	corrupt(fd, PAIRS_AT + PAIR_LEN, pair, PAIR_LEN);
	table = attach(fd);
	assert_int_equal(names_at(table, "93.184.216.34", name), 1);
	assert_true(lease_pair_at(table, 0, &host, &ip));
	assert_string_equal(host, "ok.com");
	assert_true(lease_pair_at(table, 1, &host, &ip));
	assert_null(host);
	lease_table_free(table);
	/* Moved */
	assert_int_equal(pread(fd, pair, PAIR_LEN, PAIRS_AT), PAIR_LEN);
	corrupt(fd, PAIRS_AT, none, PAIR_LEN);
	corrupt(fd, PAIRS_AT + PAIR_LEN, pair, PAIR_LEN);
	table = attach(fd);
	assert_int_equal(names_at(table, "93.184.216.34", name), 0);
	lease_table_free(table);
}

static void test_pairs_full(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	const char *name[4];
	struct ip ip;

	(void)state;
	admit(table, "ok.com");
	for (uint32_t i = 0; i < LEASE_PAIRS_MAX; i++) {
		ip = ip_v4(0x5db80000u + i);
		assert_int_equal(lease_bind(table, "ok.com", &ip), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bind_to(table, "ok.com", "8.8.8.8"), -ENOSPC);
		assert_int_equal(lease_bind(table, "ok.com", &ip), 0);
		assert_int_equal(lease_names_at(table, &ip, name, 4), 1);
		assert_int_equal(names_at(table, "93.184.0.0", name), 1);
		lease_table_free(table);
		table = attach(fd);
	}
	lease_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_pairs_corrupt),
		cmocka_unit_test(test_pairs_copied),
		cmocka_unit_test(test_pairs_full),
	};

	policy = policy_text("version: 1\n"
			     "allow: [ok.com, ok2.com, ok3.com, '*.wild.com', "
			     "'*.other.com']\n");
	policy_text_limits(
		policy, (struct limits){ .names = 6, .names_per_wildcard = 3 });
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	policy_unref(policy);
	return failed;
}
