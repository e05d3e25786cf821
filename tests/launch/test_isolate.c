/* SPDX-License-Identifier: Apache-2.0
 *
 * test_isolate.c - a child gives up everything, then tries what an intruder in
 * it would try. The parent looks at it from outside, in /proc.
 */
#include "tests/launch/isolate_probe.h"

static void print_status(pid_t pid)
{
	static const char *const keys[] = {
		"Uid:",	   "Gid:",    "Groups:", "CapInh:",	"CapPrm:",
		"CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:"
	};
	char path[64], line[256];
	struct stat st;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (strncmp(line, keys[i], strlen(keys[i])) == 0)
				printf("%s", line);
	if (f)
		fclose(f);
	/* The directory itself always has the process's uid. */
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	if (stat(path, &st) == 0)
		printf("owner %u\n", st.st_uid);
}

struct order {
	enum isolate_role role;
	uint32_t ids[2];
	bool nested;
	char what;
};

static int run_probe(void *arg)
{
	const struct order *order = arg;
	struct child child;
	char text[8192] = "";
	int status = 0;
	ssize_t n;

	if (child_spawn(order->role == ISOLATE_GATE ? "gate" : "ledger",
			order->nested, &child) < 0)
		return 90;
	if (send(child.sock, order->ids, sizeof(order->ids), 0) < 0)
		return 91;
	n = recv(child.sock, text, sizeof(text) - 1, 0);
	if (n <= 0) {
		waitpid(child.pid, &status, 0);
		printf("died before its report: %x\n", status);
		return 92;
	}
	printf("%s", text);
	print_status(child.pid);
	if (send(child.sock, &order->what, 1, 0) < 0)
		return 93;
	if (waitpid(child.pid, &status, 0) != child.pid)
		return 94;
	child_close(&child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int errno_of(const char *text, const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "%s|", name);
	for (at = text; (at = strstr(at, key)); at++)
		if (at == text || at[-1] == '\n')
			return (int)strtol(at + strlen(key), NULL, 10);
	return -2;
}

static void check_status(const char *text, const struct order *order)
{
	static const char *const caps[] = { "Inh", "Prm", "Eff", "Bnd", "Amb" };
	char line[128];

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		snprintf(line, sizeof(line), "Cap%s:\t0000000000000000\n",
			 caps[i]);
		assert_non_null(strstr(text, line));
	}
	assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
	assert_non_null(strstr(text, "Seccomp:\t2\n"));
	if (order->ids[0]) {
		snprintf(line, sizeof(line), "Uid:\t%u\t%u\t%u\t%u\n",
			 order->ids[0], order->ids[0], order->ids[0],
			 order->ids[0]);
		assert_non_null(strstr(text, line));
		snprintf(line, sizeof(line), "Gid:\t%u\t%u\t%u\t%u\n",
			 order->ids[1], order->ids[1], order->ids[1],
			 order->ids[1]);
		assert_non_null(strstr(text, line));
		assert_non_null(strstr(text, "Groups:\t \n"));
	}
	/* Not dumpable: its files in /proc are root's (of nobody we map). */
	assert_non_null(strstr(text, "owner "));
	assert_null(strstr(text, "owner 1900000"));
}

static void check_role(enum actor who, struct order order)
{
	struct outcome out = actor_run(who, run_probe, &order);

	if (out.status != 42)
		print_message("%s", out.text);
	assert_int_equal(out.status, 42);
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		int want = order.role == ISOLATE_GATE ? attempts[i].gate
						      : attempts[i].ledger;
		int got = errno_of(out.text, attempts[i].name);

		if (got != want)
			print_message("%s: %d, not %d\n", attempts[i].name, got,
				      want);
		assert_int_equal(got, want);
	}
	check_status(out.text, &order);
}

static void test_as_root(void **state)
{
	(void)state;
	check_role(ROOT, (struct order){ ISOLATE_GATE,
					 { ISOLATE_UID_GATE, ISOLATE_UID_GATE },
					 false,
					 'x' });
	check_role(ROOT,
		   (struct order){ ISOLATE_LEDGER,
				   { ISOLATE_UID_LEDGER, ISOLATE_UID_LEDGER },
				   false,
				   'x' });
}

static void test_as_user(void **state)
{
	(void)state;
	check_role(USER, (struct order){ ISOLATE_GATE, { 0, 0 }, true, 'x' });
	check_role(USER, (struct order){ ISOLATE_LEDGER, { 0, 0 }, true, 'x' });
}

static void test_deadly_calls(void **state)
{
	(void)state;
	for (const char *what = "epvunmbkigr"; *what; what++) {
		struct order order = {
			ISOLATE_GATE,
			{ ISOLATE_UID_GATE, ISOLATE_UID_GATE },
			false,
			*what,
		};
		struct outcome out = actor_run(ROOT, run_probe, &order);

		if (out.status != 128 + SIGSYS)
			print_message("call %c: %d\n", *what, out.status);
		assert_int_equal(out.status, 128 + SIGSYS);
	}
}

static void test_sandbox_filter_is_a_program(void **state)
{
	int fd = isolate_sandbox_filter(false);
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_size > 64 && st.st_size % 8 == 0);
	assert_true(st.st_size / 8 <= 4096); /* BPF_MAXINSNS */
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_root),
		cmocka_unit_test(test_as_user),
		cmocka_unit_test(test_deadly_calls),
		cmocka_unit_test(test_sandbox_filter_is_a_program),
	};

	if (argc == 2 && strcmp(argv[1], "gate") == 0)
		return probe(ISOLATE_GATE);
	if (argc == 2 && strcmp(argv[1], "ledger") == 0)
		return probe(ISOLATE_LEDGER);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
