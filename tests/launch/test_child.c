/* SPDX-License-Identifier: Apache-2.0
 *
 * test_child.c - a child of ours is this program again: what it starts with,
 * and that it goes when we go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "launch/child.h"
#include "tests/launch/actor.h"

extern char **environ;

static void add_link(char *text, size_t cap, const char *name)
{
	char path[64], target[128];
	size_t len = strlen(text);
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/%s", name);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	snprintf(text + len, cap - len, "%s=%s\n", name, target);
}

/* The child: describes itself in one message, then waits for the end. */
static int describe(void)
{
	char text[8192] = "", byte;
	size_t len;

	snprintf(text, sizeof(text), "pid=%d uid=%u ppid=%d\n", getpid(),
		 getuid(), getppid());
	for (int fd = 0; fd < 64; fd++) {
		len = strlen(text);
		if (fcntl(fd, F_GETFD) >= 0)
			snprintf(text + len, sizeof(text) - len, "fd%d\n", fd);
	}
	for (char **e = environ; *e; e++) {
		len = strlen(text);
		snprintf(text + len, sizeof(text) - len, "env %s\n", *e);
	}
	add_link(text, sizeof(text), "ns/net");
	add_link(text, sizeof(text), "ns/user");
	add_link(text, sizeof(text), "ns/mnt");
	add_link(text, sizeof(text), "ns/ipc");
	add_link(text, sizeof(text), "ns/uts");
	add_link(text, sizeof(text), "fd/0");
	add_link(text, sizeof(text), "fd/1");
	if (send(CHILD_SOCKET, text, strlen(text), 0) < 0)
		return 3;
	return recv(CHILD_SOCKET, &byte, 1, 0) == 0 ? 7 : 4;
}

/* Prints the child's description and our own namespaces. */
static int spawn_and_print(void *arg)
{
	struct child child;
	char text[8192] = "", mine[1024] = "";
	int status = 0;
	ssize_t n;

	setenv("SECRET", "x", 1);
	setenv("SALLYPORT_TEST", "y", 1);
	if (open("/dev/null", O_RDONLY) < 0 || dup2(0, 40) < 0)
		return 90;
	if (child_spawn("describe", *(bool *)arg, &child) < 0)
		return 91;
	n = recv(child.sock, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 92;
	add_link(mine, sizeof(mine), "ns/net");
	add_link(mine, sizeof(mine), "ns/user");
	add_link(mine, sizeof(mine), "ns/mnt");
	add_link(mine, sizeof(mine), "ns/ipc");
	add_link(mine, sizeof(mine), "ns/uts");
	printf("%s--\n%s", text, mine);
	child_close(&child);
	if (waitpid(child.pid, &status, 0) != child.pid)
		return 93;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 94;
}

/* Is the line beginning with @key the same in both halves? */
static bool same(const char *text, const char *key)
{
	const char *a = strstr(text, key);
	const char *b = strstr(strstr(text, "--\n"), key);

	assert_non_null(a);
	assert_non_null(b);
	return strncmp(a, b, strcspn(a, "\n")) == 0;
}

static void check_start(enum actor who, bool nested)
{
	struct outcome out = actor_run(who, spawn_and_print, &nested);

	if (out.status != 7)
		print_message("%s", out.text);
	assert_int_equal(out.status, 7); /* it saw the end of the socket */
	assert_non_null(strstr(out.text, "pid=1 uid=0 ppid=0"));
	assert_true(same(out.text, "ns/net"));
	assert_int_equal(same(out.text, "ns/user"), !nested);
	assert_false(same(out.text, "ns/mnt"));
	assert_false(same(out.text, "ns/ipc"));
	assert_false(same(out.text, "ns/uts"));
	assert_non_null(strstr(out.text, "fd/0=/dev/null"));
	assert_non_null(strstr(out.text, "fd/1=/dev/null"));
	assert_non_null(strstr(out.text, "fd2\nfd3\nenv "));
	assert_non_null(strstr(out.text, "env SALLYPORT_TEST=y"));
	assert_non_null(strstr(out.text, "detect_leaks=0"));
	assert_null(strstr(out.text, "SECRET"));
	assert_null(strstr(out.text, "PATH="));
}

static void test_start_as_root(void **state)
{
	(void)state;
	check_start(ROOT, false);
	check_start(ROOT, true);
}

static void test_start_as_user(void **state)
{
	(void)state;
	check_start(USER, true);
}

/* Spawns, prints the outer pid and dies at once. */
static int spawn_and_die(void *arg)
{
	struct child child;
	char text[8192];

	if (child_spawn("stay", *(bool *)arg, &child) < 0)
		return 91;
	if (recv(child.sock, text, sizeof(text), 0) <= 0)
		return 92;
	printf("%d\n", child.pid);
	fflush(stdout);
	raise(SIGKILL);
	return 93;
}

/* Ignores the end of its socket: only the signal can end it. */
static int stay(void)
{
	if (send(CHILD_SOCKET, "x", 1, 0) < 0)
		return 3;
	close(2);
	for (;;)
		pause();
}

static void check_death(enum actor who, bool nested)
{
	struct outcome out = actor_run(who, spawn_and_die, &nested);
	pid_t pid = (pid_t)strtol(out.text, NULL, 10);
	char path[64];
	struct stat st;

	assert_int_equal(out.status, 1000 + SIGKILL);
	assert_true(pid > 1);
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	for (int i = 0; i < 3000 && lstat(path, &st) == 0 &&
			readlink(path, (char[8]){ 0 }, 8) > 0;
	     i++)
		poll(NULL, 0, 10);
	assert_true(readlink(path, (char[8]){ 0 }, 8) < 0);
}

static void test_dies_with_parent(void **state)
{
	(void)state;
	check_death(ROOT, false);
	check_death(USER, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_as_root),
		cmocka_unit_test(test_start_as_user),
		cmocka_unit_test(test_dies_with_parent),
	};

	if (argc == 2 && strcmp(argv[1], "describe") == 0)
		return describe();
	if (argc == 2 && strcmp(argv[1], "stay") == 0)
		return stay();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
