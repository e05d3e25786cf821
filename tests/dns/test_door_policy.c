/* SPDX-License-Identifier: Apache-2.0
 *
 * test_door_policy.c - names that are asked for while the policy changes.
 */
#include "tests/dns/door_case.h"

/* --- another policy --------------------------------------------------------
 */

/* The verdict comes before the cache: what is no longer allowed is not
 * answered, though it is still known. */
static void test_cache_and_policy(void **state)
{
	AUTO_FD int udp = client(SOCK_DGRAM, "8.8.8.8");
	AUTO_FD int tcp = client(SOCK_STREAM, "8.8.8.8");

	(void)state;
	assert_int_equal(ask_udp(udp, "ok.com"), 0);
	assert_int_equal(ask_tcp(tcp, "ok.com"), 0);
	size_t before = server_count(upstream);
	replace_policy("version: 1\nallow: ['*.wild.com']\n");
	assert_int_equal(ask_udp(udp, "ok.com"), 3);
	assert_int_equal(ask_tcp(tcp, "ok.com"), 3);
	replace_policy("version: 1\nallow: [ok.com]\n");
	assert_int_equal(ask_udp(udp, "ok.com"), 0);
	assert_int_equal(server_count(upstream), before);
}

/* What waits for a server is refused at once, and no server is asked again. */
static void test_revoked_under_way(void **state)
{
	AUTO_FD int udp = client(SOCK_DGRAM, "8.8.8.8");
	AUTO_FD int tcp = client(SOCK_STREAM, "8.8.8.8");
	uint8_t buf[2048];
	size_t asked, len = question("silent.wild.com", 1, buf);
	const double sent = exact_s();

	(void)state;
	send(udp, buf + 2, len - 2, 0);
	send(tcp, buf, len, 0);
	for (int i = 0; i < 2000 && server_count(upstream) < 2; i++)
		usleep(10000);
	asked = server_count(upstream);
	if (exact_s() - sent < 2) /* as long as it is not asked once more */
		assert_int_equal(asked, 2);
	double begin = exact_s();
	replace_policy("version: 1\nallow: [ok.com]\n");
	assert_int_equal(rcode_of(buf, recv(udp, buf, sizeof(buf), 0)), 3);
	assert_int_equal(rcode_of(buf, (ssize_t)read_tcp(tcp, buf)), 3);
	assert_true(exact_s() - begin < 1);
	assert_non_null(strstr(fake.log, "deny policy_revoked"));
	if (exact_s() - sent < 2)
		assert_int_equal(server_count(upstream), asked);
	asked = server_count(upstream);
	sleep(3); /* longer than a try */
	assert_int_equal(server_count(upstream), asked);
	assert_int_equal(ask_tcp(tcp, "ok.com"), 0);
}

/* Names in observe mode and of `default: public` are counted. */
static void test_names_limit(void **state)
{
	static const char *const policies[] = {
		"version: 1\nmode: observe\nlimits: {names: 20}\n",
		"version: 1\ndefault: public\nlimits: {names: 20}\n",
	};
	AUTO_FD int udp = client(SOCK_DGRAM, "8.8.8.8");
	char name[64];

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		unsigned answered = 0;

		replace_policy(policies[p]);
		for (unsigned i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "a4.p%zu-n%u.test", p, i);
			answered += ask_udp(udp, name) == 0;
		}
		/* The second policy does not give the first's back. */
		assert_int_equal(answered, p ? 0 : 20);
		assert_int_equal(server_count(upstream), 40);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_cache_and_policy),
		TEST(test_revoked_under_way),
		TEST(test_names_limit),
	};

	return cmocka_run_group_tests(tests, own_namespace, NULL);
}
