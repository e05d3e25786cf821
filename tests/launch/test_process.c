/* SPDX-License-Identifier: Apache-2.0
 *
 * test_process.c - how a command is started and ends, who it is and what it may
 * call.
 */
#include "tests/launch/process_case.h"

static void test_exit_statuses(void **state)
{
	static const struct {
		const char *script;
		int status;
	} row[] = { { "exit 0", 0 },
		    { "exit 3", 3 },
		    { "exit 255", 255 },
		    { "kill -9 $$", 137 },
		    { "kill -TERM $$", 143 },
		    { "(sleep 0.1; kill -9 $PPID) & exit 4", 4 } };

	(void)state;
	BOTH(who)
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		expect(run(who, SH(row[i].script)), row[i].status, NULL);
}

static void test_failed_exec(void **state)
{
	(void)state;
	BOTH(who)
	{
		struct order order = { .argv = { (char[]){ "no-such-cmd" } } };

		expect(run(who, order), 127,
		       "sallyport: no-such-cmd: command not found\n");
		expect(run(who, order), 127, "error=2\n");
		order.argv[0] = (char[]){ "/etc/passwd" };
		expect(run(who, order), 126,
		       "sallyport: /etc/passwd: permission denied\n");
		order.argv[0] = (char[]){ "/usr" };
		expect(run(who, order), 126, "error=13\n");
	}
}

static void test_identity(void **state)
{
	(void)state;
	expect(run(USER, SH("id -u; id -g")), 0, "12345\n12345\n");
	expect(run(ROOT, SH("id -u; id -g; whoami; echo $HOME; echo ~sandbox")),
	       0, "1900010007\n1900010007\nsandbox\n/root\n/root\n");
	struct order order = SH("id -u; id -G; touch x && echo wrote");

	order.plain_root = true;
	order.home = host_dir;
	expect(run(ROOT, order), 0, "12345\n12345\nwrote\n");
}

static void test_no_power(void **state)
{
	static const char *const lines[] = {
		"CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1",
		"Seccomp:\t2",
	};

	(void)state;
	BOTH(who)
	{
		struct outcome out = run(who, SH("cat /proc/self/status"));

		for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
			expect(out, 0, lines[i]);
		expect(run(who, SH("./probe probe fds")), 0, "fd0 fd1 fd2 \n");
	}
}

static void test_forbidden_calls(void **state)
{
	static const char *const lines[] = {
		"ptrace-init=1\n",  "ptrace-init-seize=1\n",
		"vmread=1\n",	    "getfd=1\n",
		"tiocsti=1\n",	    "tiocsti-high=1\n",
		"tioclinux=1\n",    "keyctl=1\n",
		"bpf=1\n",	    "unshare-user=1\n",
		"unshare-net=1\n",  "clone-user=1\n",
		"clone3=38\n",	    "setns=1\n",
		"packet=1\n",	    "raw=1\n",
		"vsock=97\n",	    "iouring=38\n",
		"mem=13\n",	    "mark=1\n",
		"\ncreate=1\n",	    "suid=1\n",
		"fchmodat2=1\n",    "\nchmod=0\n",
		"create-plain=0\n",
	};

	(void)state;
	BOTH(who)
	{
		struct outcome out = run(who, SH("./probe probe; rm -f new"));

		for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
			expect(out, 0, lines[i]);
	}
}

static void test_alone_in_its_pid_namespace(void **state)
{
	struct outcome out;

	(void)state;
	BOTH(who)
	{
		out = run(who, SH("ls -d /proc/[0-9]* | wc -l; kill -0 1; "
				  "echo $$; cat /proc/1/environ; "
				  "ls -l /proc/1/fd"));
		expect(out, 2, "2\n");
		expect(out, 2, "cat: /proc/1/environ: Permission denied");
		/* Its pid 1 can't be stopped or killed from inside. */
		expect(run(who, SH("kill -9 1; kill -STOP 1; exit 5")), 5,
		       NULL);
	}
}

static void test_signals(void **state)
{
	struct order order;

	(void)state;
	BOTH(who)
	{
		order = SH("trap 'echo got it; exit 9' TERM; : >up; "
			   "while :; do sleep 0.05; done");
		order.how = TERMINATE;
		order.says_up = true;
		expect(run(who, order), 9, "got it");
		order = SH("sleep 50");
		order.how = TERMINATE;
		expect(run(who, order), 143, NULL);
		/* Pid 1 is still bubblewrap's code, which takes no signal. */
		order.how = TERMINATE_EARLY;
		expect(run(who, order), 143, NULL);
		order = SH("trap '' TERM; sleep 50");
		order.how = KILL;
		expect(run(who, order), 137, NULL);
	}
}

/* An orphan of the command does not outlive it. */
static void test_orphans(void **state)
{
	struct outcome out;

	(void)state;
	BOTH(who)
	{
		struct timespec a, b;

		clock_gettime(CLOCK_MONOTONIC, &a);
		out = run(who, SH("(setsid sleep 30 &) ; (trap '' TERM HUP; "
				  "sleep 31) & exit 6"));
		clock_gettime(CLOCK_MONOTONIC, &b);
		expect(out, 6, NULL);
		assert_true(b.tv_sec - a.tv_sec < 10);
	}
}

static void test_start_gate(void **state)
{
	(void)state;
	BOTH(who)
	{
		struct order order = SH("echo it ran");
		struct outcome out;

		order.how = NO_START;
		out = run(who, order);
		expect(out, 125, NULL);
		assert_null(strstr(out.text, "it ran"));
	}
}

/* Prepares, waits, prints the pids and is killed. */
static int prepare_and_die(void *arg)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "echo it ran; touch it-ran; sleep 20" },
			 NULL };
	struct order *order = arg;
	struct process_spec spec;
	struct process process;
	struct netns ns;
	char why[512];

	if (netns_create(&ns, NULL, NULL, NULL, NULL) < 0)
		return 89;
	spec_for(acting, order, ns.fd, &spec);
	spec.argv = argv;
	spec.env = environ;
	if (process_prepare(&spec, &process, why, sizeof(why)) < 0)
		return 87;
	poll(NULL, 0, 500);
	printf("%d\n", process.pid);
	fflush(stdout);
	raise(SIGKILL);
	return 86;
}

static void test_our_death_before_start(void **state)
{
	(void)state;
	BOTH(who)
	{
		struct order order = { 0 };
		struct outcome out;
		char path[96];
		struct stat st;
		pid_t pid;

		snprintf(order.dir, sizeof(order.dir), "%s",
			 who == ROOT ? root_dir : user_dir);
		acting = who;
		/* Its output ends only when all of them are gone. */
		out = actor_run(who, prepare_and_die, &order);
		assert_int_equal(out.status, 1000 + SIGKILL);
		pid = (pid_t)strtol(out.text, NULL, 10);
		assert_true(pid > 1);
		assert_null(strstr(out.text, "it ran"));
		snprintf(path, sizeof(path), "%s/it-ran", order.dir);
		assert_true(stat(path, &st) < 0);
	}
}

static void test_lookup(void **state)
{
	(void)state;
	assert_int_equal(process_lookup("sh", "/usr/bin:/bin"), 0);
	assert_int_equal(process_lookup("/bin/sh", NULL), 0);
	assert_int_equal(process_lookup("no-such", "/usr/bin:/bin"), 127);
	assert_int_equal(process_lookup("/etc/passwd", NULL), 126);
	assert_int_equal(process_lookup("passwd", "/etc"), 126);
	assert_int_equal(process_lookup("/etc", NULL), 126);
	assert_int_equal(process_lookup("", "/bin"), 127);
}

/* For interactive.py: `interactive root|user CMD...` on the terminal we have.
 */
static int interactive(int argc, char **argv)
{
	bool user = argc > 2 && strcmp(argv[2], "user") == 0;
	struct pollfd p = { .events = POLLIN };
	struct process_spec spec;
	struct process process;
	char why[512] = "";
	struct netns ns;

	actor_become(user ? USER : ROOT);
	if (netns_create(&ns, NULL, NULL, NULL, NULL) < 0)
		return 89;
	spec_for(user ? USER : ROOT, &(struct order){ .cwd = "/" }, ns.fd,
		 &spec);
	spec.argv = argv + 3;
	spec.env = environ;
	spec.interactive = true;
	if (process_prepare(&spec, &process, why, sizeof(why)) < 0) {
		fprintf(stderr, "%s\n", why);
		return 87;
	}
	if (process_start(&process) < 0)
		return 90;
	p.fd = process.pidfd;
	if (poll(&p, 1, 60000) != 1)
		return 91;
	return process_wait(&process);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_failed_exec),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_no_power),
		cmocka_unit_test(test_forbidden_calls),
		cmocka_unit_test(test_alone_in_its_pid_namespace),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_start_gate),
		cmocka_unit_test(test_our_death_before_start),
		cmocka_unit_test(test_lookup),
	};

	if (argc > 1 && strcmp(argv[1], "probe") == 0) {
		int r = probe(argc, argv);

		/* No leak check at exit: it would want ptrace. */
		fflush(stdout);
		_exit(r);
	}
	if (argc > 3 && strcmp(argv[1], "interactive") == 0)
		return interactive(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
