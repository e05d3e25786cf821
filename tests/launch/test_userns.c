/* SPDX-License-Identifier: Apache-2.0
 *
 * test_userns.c - entering and making user namespaces, and what a user is told
 * where they are forbidden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>

#include "tests/launch/actor.h"

static int print_file(const char *path)
{
	char text[256];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text), f) : 0;

	printf("%s: %.*s", path, (int)n, text);
	if (f)
		fclose(f);
	return 0;
}

static int describe(void *arg)
{
	(void)arg;
	printf("uid %u gid %u\n", getuid(), getgid());
	print_file("/proc/self/setgroups");
	print_file("/proc/self/uid_map");
	return print_file("/proc/self/gid_map");
}

static void test_enter(void **state)
{
	struct outcome out = actor_run(USER, describe, NULL);

	(void)state;
	assert_int_equal(out.status, 0);
	assert_non_null(strstr(out.text, "uid 0 gid 0\n"));
	assert_non_null(strstr(out.text, "setgroups: deny"));
	assert_non_null(strstr(out.text,
			       "uid_map:          0      12345          1\n"));
	assert_non_null(strstr(out.text,
			       "gid_map:          0      12345          1\n"));
}

/* Each user namespace has a limit of its own, which its root can set. */
static int enter_without_any_left(void *arg)
{
	int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY);
	char why[512] = "";
	int r;

	(void)arg;
	if (fd < 0 || write(fd, "0", 1) != 1)
		return 90;
	r = userns_enter(why, sizeof(why));
	printf("%s\n", why);
	return r < 0 ? 5 : 0;
}

static void test_none_left(void **state)
{
	struct outcome out = actor_run(USER, enter_without_any_left, NULL);

	(void)state;
	assert_int_equal(out.status, 5);
	assert_non_null(
		strstr(out.text, "sysctl -w user.max_user_namespaces="));
}

static int make_and_join(void *arg)
{
	int fd = userns_make(0, 1234567, 0, 7654321);

	(void)arg;
	if (fd < 0 || setns(fd, CLONE_NEWUSER) < 0)
		return 90;
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return 91;
	describe(NULL);
	/* Without the power of the root that made it. */
	return access("/root/x", F_OK) < 0 && errno == EACCES ? 6 : 92;
}

static void test_make(void **state)
{
	struct outcome out = actor_run(ROOT, make_and_join, NULL);

	(void)state;
	assert_int_equal(out.status, 6);
	assert_non_null(strstr(out.text,
			       "uid_map:          0    1234567          1\n"));
	assert_non_null(strstr(out.text,
			       "gid_map:          0    7654321          1\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_enter),
		cmocka_unit_test(test_none_left),
		cmocka_unit_test(test_make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
