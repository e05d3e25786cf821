/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lease.c - names, addresses and limits, across the death of the gate.
 */
#include "tests/dns/lease_case.h"

static struct ip lease(struct lease_table *table, const char *host,
		       bool expect_new)
{
	struct ip ip;
	bool is_new = !expect_new;

	assert_int_equal(lease_get(table, host, &ip, &is_new), 0);
	assert_int_equal(is_new, expect_new);
	return ip;
}

static void test_lease(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	struct ip ip, again;
	char text[IP_TEXT_MAX];
	bool is_new;

	(void)state;
	assert_int_equal(lease_get(table, "ok.com", &ip, &is_new), -ENOSPC);
	assert_int_equal(admit(table, "ok.com"), REASON_RULE);
	ip = ip_v4(LEASE_POOL_BASE + 1);
	assert_null(lease_name(table, &ip)); /* counted, not leased */
	ip = lease(table, "ok.com", true);
	assert_string_equal(ip_format(&ip, text), "198.18.0.1");
	again = lease(table, "ok.com", false);
	assert_true(ip_equal(&ip, &again));
	assert_string_equal(lease_name(table, &ip), "ok.com");
	assert_int_equal(admit(table, "x.wild.com"), REASON_RULE);
	ip = lease(table, "x.wild.com", true);
	assert_string_equal(lease_name(table, &ip), "x.wild.com");

	static const char *const strangers[] = { "198.18.0.0",	   "198.18.0.3",
						 "198.17.255.255", "0.0.0.0",
						 "198.19.0.1",	   "::1",
						 "255.255.255.255" };
	for (size_t i = 0; i < ARRAY_SIZE(strangers); i++) {
		assert_true(ip_parse(strangers[i], &ip));
		assert_null(lease_name(table, &ip));
	}
	lease_table_free(table);
	lease_table_free(NULL);
}

static void test_survives(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	struct ip ip, before;
	const char *host;
	size_t i, leases = 0;

	(void)state;
	/* A gate that is killed: no destructor runs. */
	pid_t pid = fork();
	if (pid == 0) {
		struct lease_table *own = NULL;
		bool is_new;

		if (lease_table_attach(fd, &own) || admit(own, "x.wild.com") ||
		    admit(own, "y.wild.com") ||
		    lease_get(own, "y.wild.com", &ip, &is_new))
			_exit(1);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	lease_table_free(table);

	table = attach(fd);
	before = ip_v4(LEASE_POOL_BASE + 2);
	assert_string_equal(lease_name(table, &before), "y.wild.com");
	ip = lease(table, "y.wild.com", false);
	assert_true(ip_equal(&ip, &before));
	/* The budget of the wildcard (3) was not reset. */
	assert_int_equal(admit(table, "y.wild.com"), REASON_RULE);
	assert_int_equal(admit(table, "z.wild.com"), REASON_RULE);
	assert_int_equal(admit(table, "a.wild.com"), REASON_LIMIT_NAMES);
	assert_int_equal(admit(table, "x.wild.com"), REASON_RULE);
	for (i = 0; lease_at(table, i, &host, &ip); i++) {
		if (!ip.len)
			continue;
		leases++;
		assert_string_equal(host, "y.wild.com");
		assert_true(ip_equal(&ip, &before));
	}
	assert_int_equal(i, LEASE_MAX);
	assert_int_equal(leases, 1);
	lease_table_free(table);
}

static void test_limits(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	char host[64];

	(void)state;
	for (int i = 0; i < 3; i++) {
		snprintf(host, sizeof(host), "n%d.wild.com", i);
		assert_int_equal(admit(table, host), REASON_RULE);
	}
	assert_int_equal(admit(table, "n9.wild.com"), REASON_LIMIT_NAMES);
	/* Another wildcard, and exact names, have budgets of their own, */
	assert_int_equal(admit(table, "n.other.com"), REASON_RULE);
	assert_int_equal(admit(table, "ok.com"), REASON_RULE);
	assert_int_equal(admit(table, "ok2.com"), REASON_RULE);
	/* but all names together have one too (6). */
	assert_int_equal(admit(table, "ok3.com"), REASON_LIMIT_NAMES);
	assert_int_equal(admit(table, "ok2.com"), REASON_RULE);
	/* No rule, as under default: public: counted the same. */
	assert_int_equal(lease_admit(table, policy, "any.net", NULL),
			 REASON_LIMIT_NAMES);
	lease_table_free(table);
}

static void test_full(void **state)
{
	struct policy *large =
		policy_text("version: 1\nallow: ['*.wild.com']\n");
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	const struct question question = { .host = "x.wild.com" };
	const struct rule *rule = policy_decide(large, &question).rule;
	unsigned names = 0;
	char host[64];
	struct ip ip;
	bool is_new;

	(void)state;
	policy_text_limits(
		large,
		(struct limits){ .names = 9999, .names_per_wildcard = 9999 });
	for (; names <= LEASE_MAX; names++) {
		snprintf(host, sizeof(host), "n%u.wild.com", names);
		if (lease_admit(table, large, host, rule) != REASON_RULE)
			break;
		assert_int_equal(lease_get(table, host, &ip, &is_new), 0);
		assert_string_equal(lease_name(table, &ip), host);
		unsigned last = ip.byte[3];
		assert_true(last != 0 && last != 255);
	}
	assert_true(names >= 4000 && names <= LEASE_MAX);
	/* Full is full, now and after a restart; what is there stays. */
	lease_table_free(table);
	table = attach(fd);
	assert_int_equal(lease_admit(table, large, host, rule),
			 REASON_LIMIT_NAMES);
	assert_int_equal(lease_get(table, "n0.wild.com", &ip, &is_new), 0);
	assert_int_equal(ip_v4_value(&ip), LEASE_POOL_BASE + 1);
	lease_table_free(table);
	policy_unref(large);
}

static void test_corrupt(void **state)
{
	static const size_t offsets[] = {
		0, 8, 16, ENTRY_HOST, ENTRY_HOST + 3, ENTRY_HOST + 200
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		AUTO_FD int fd = file();
		struct lease_table *table = attach(fd);
		struct ip first, ip;

		admit(table, "ok.com");
		first = lease(table, "ok.com", true);
		lease_table_free(table);
		corrupt(fd, offsets[i], "X", 1);
		table = attach(fd);
		assert_null(lease_name(table, &first));
		/* Known again only as a new name, at a new address. */
		assert_int_equal(admit(table, "ok.com"), REASON_RULE);
		ip = lease(table, "ok.com", true);
		assert_false(ip_equal(&ip, &first));
		assert_string_equal(lease_name(table, &ip), "ok.com");
		lease_table_free(table);
		/* Also after one more restart. */
		table = attach(fd);
		assert_null(lease_name(table, &first));
		/* It counts: 6 names, 2 of them used. */
		assert_int_equal(admit(table, "n1.wild.com"), REASON_RULE);
		assert_int_equal(admit(table, "n2.wild.com"), REASON_RULE);
		assert_int_equal(admit(table, "n.other.com"), REASON_RULE);
		assert_int_equal(admit(table, "ok2.com"), REASON_RULE);
		assert_int_equal(admit(table, "ok3.com"), REASON_LIMIT_NAMES);
		lease_table_free(table);
	}
}

/* A copy of a good entry elsewhere does not check: its slot is part of it. */
static void test_copied_entry(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	AUTO_FREE void *entry = malloc(ENTRY_LEN);
	struct ip ip = ip_v4(LEASE_POOL_BASE + 6);

	(void)state;
	admit(table, "ok.com");
	lease(table, "ok.com", true);
	lease_table_free(table);
	assert_int_equal(pread(fd, entry, ENTRY_LEN, 0), ENTRY_LEN);
	corrupt(fd, 5 * ENTRY_LEN, entry, ENTRY_LEN);
	table = attach(fd);
	assert_null(lease_name(table, &ip));
	ip = ip_v4(LEASE_POOL_BASE + 1);
	assert_string_equal(lease_name(table, &ip), "ok.com");
	lease_table_free(table);
}

static void test_garbage_file(void **state)
{
	AUTO_FD int fd = file();
	AUTO_FREE uint8_t *junk = malloc(lease_table_size());
	struct lease_table *table;
	const char *host;
	struct ip ip;

	(void)state;
	for (size_t i = 0; i < lease_table_size(); i++)
		junk[i] = (uint8_t)(i * 2654435761u >> 13);
	corrupt(fd, 0, junk, lease_table_size());
	table = attach(fd);
	for (size_t i = 0; lease_at(table, i, &host, &ip); i++)
		assert_int_equal(ip.len, 0);
	/* Nothing is free: fail closed. */
	assert_int_equal(admit(table, "ok.com"), REASON_LIMIT_NAMES);
	lease_table_free(table);
}

/* Each page costs the start of a session a fault, and memory ever after. */
static void test_unused_has_no_pages(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = attach(fd);
	const char *host;
	struct ip ip;
	size_t i;

	(void)state;
	for (i = 0; lease_at(table, i, &host, &ip); i++)
		assert_null(host);
	assert_int_equal(i, LEASE_MAX);
	assert_false(lease_pair_at(table, 0, &host, &ip));
	assert_int_equal(lseek(fd, 0, SEEK_DATA), -1);
	assert_int_equal(errno, ENXIO);
	lease_table_free(table);
}

static void test_short_file(void **state)
{
	AUTO_FD int fd = file();
	struct lease_table *table = NULL;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)lease_table_size() - 1), 0);
	assert_int_equal(lease_table_attach(fd, &table), -EINVAL);
	assert_int_equal(lease_table_attach(-1, &table), -EBADF);
	assert_null(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_survives),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_copied_entry),
		cmocka_unit_test(test_garbage_file),
		cmocka_unit_test(test_unused_has_no_pages),
		cmocka_unit_test(test_short_file),
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
