/* SPDX-License-Identifier: Apache-2.0
 *
 * test_process_files.c - what a command sees of files, and of sockets among
 * them.
 */
#include "tests/launch/process_case.h"

static void test_files(void **state)
{
	static const char script[] =
		"ls -A /run; ls -A /tmp /var/tmp; echo --;"
		"touch /tmp/a /var/tmp/b /dev/shm/c && echo tmp-writable;"
		"for d in /etc /usr /bin /var/lib /opt /; do "
		"touch $d/x 2>/dev/null && echo BAD $d; done;"
		"cat /etc/resolv.conf; pwd;"
		"touch here && echo cwd-writable; ls -ln here; rm here;"
		"mount -o remount,rw / 2>/dev/null && echo BAD mount;"
		"cat /dev/vda /dev/mem /dev/kmsg 2>/dev/null | head -c 1;"
		"ls /dev | tr '\\n' ' '";

	(void)state;
	BOTH(who)
	{
		struct outcome out = run(who, SH(script));

		expect(out, 0, ".sallyport\n");
		expect(out, 0, "tmp-writable");
		expect(out, 0, "cwd-writable");
		expect(out, 0, "nameserver 192.0.2.53\n");
		expect(out, 0, who == ROOT ? root_dir : user_dir);
		expect(out, 0,
		       who == ROOT ? "1900010007 1900010007" : "12345 12345");
		expect(out, 0, "core fd full null ptmx pts random shm");
		assert_null(strstr(out.text, "BAD"));
		assert_null(strstr(out.text, "netns"));
		assert_null(strstr(out.text, "sp-host-tmp"));
	}
}

/* The usual devices, not to be changed; and none where it can write. */
static void test_devices(void **state)
{
	static const char script[] =
		"cd /dev; stat -c '%n %F %a %t:%T' null zero full random "
		"urandom tty; echo x > null && head -c 9 zero urandom | wc -c;"
		"echo x > full || echo is-full;"
		"for f in x shm/../x; do touch $f && echo BAD $f; done;"
		"rm -f null && echo BAD rm; chmod 600 null && echo BAD chmod;"
		"mv null gone && echo BAD mv; mknod shm/n c 1 3 && echo BAD n;"
		"ln -P null shm/n && cat shm/n && echo BAD ln;"
		"awk '$5 == \"/dev\" || $5 == \"/dev/shm\" { o = $6 }"
		" END { print \"shm \" o }' /proc/self/mountinfo";
	static const char all[] = "null character special file 666 1:3\n"
				  "zero character special file 666 1:5\n"
				  "full character special file 666 1:7\n"
				  "random character special file 666 1:8\n"
				  "urandom character special file 666 1:9\n"
				  "tty character special file 666 5:0\n";

	(void)state;
	BOTH(who)
	{
		struct outcome out = run(who, SH(script));

		expect(out, 0, all);
		expect(out, 0, "is-full");
		expect(out, 0, "shm rw,nosuid,nodev,");
		/* Without root its /dev is its own, as its /tmp is. */
		if (who == ROOT)
			assert_null(strstr(out.text, "BAD"));
	}
}

/* What it made belongs, outside, to the owner of the directory. */
static void test_files_outside(void **state)
{
	char path[96];
	struct stat st;

	(void)state;
	expect(run(ROOT, SH("echo hi > made; cat theirs")), 1, "theirs:");
	snprintf(path, sizeof(path), "%s/made", root_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	unlink(path);
	expect(run(USER, SH("echo hi > made")), 0, NULL);
	snprintf(path, sizeof(path), "%s/made", user_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, ACTOR_UID);
	unlink(path);
}

static void test_hidden(void **state)
{
	static const char script[] =
		"cat deep/er/hidden/secret; ls -A deep/er/hidden;"
		"echo x > deep/er/hidden/new;"
		"mv deep moved; mv deep/er deep/moved;"
		"mv deep/er/hidden deep/er/gone; rm -rf deep/er/hidden;"
		"umount deep/er/hidden; touch deep/er/beside && echo beside;"
		"rm deep/er/beside; cat deep/er/file; cat \"$0\" ";
	char file[96], path[128];
	struct stat st;

	(void)state;
	BOTH(who)
	{
		const char *dir = who == ROOT ? root_dir : user_dir;
		struct order order = SH(script);
		struct outcome out;

		snprintf(file, sizeof(file), "%s/deep/er/file", dir);
		order.also_hide = file;
		out = run(who, order);
		assert_null(strstr(out.text, "TOP SECRET"));
		assert_null(strstr(out.text, "FILE SECRET"));
		assert_non_null(strstr(out.text, "beside\n"));
		snprintf(path, sizeof(path), "%s/deep/er/hidden/secret", dir);
		assert_int_equal(stat(path, &st), 0);
		snprintf(path, sizeof(path), "%s/deep/er/hidden/new", dir);
		assert_true(stat(path, &st) < 0);
	}
}

static void test_hidden_above(void **state)
{
	struct order order = SH("true");

	(void)state;
	order.also_hide = "/var/tmp";
	order.plain_root = true;
	expect(run(ROOT, order), 87, "must stay hidden");
}

static void test_host_sockets(void **state)
{
	char script[512];

	(void)state;
	BOTH(who)
	{
		snprintf(script, sizeof(script),
			 "./probe probe connect %s/sock;"
			 "./probe probe connect %s/agent/sock; "
			 "ls -A %s/agent; ./probe probe connect ./sock",
			 host_dir, host_dir, host_dir);
		struct outcome out = run(who, SH(script));

		expect(out, 0, "connect=");
		assert_null(strstr(out.text, "connect=0"));
		assert_null(strstr(out.text, "other-file"));
	}
	/* The sockets are there, and would take anybody. */
	snprintf(script, sizeof(script), "%s/sock", host_dir);
	assert_int_equal(try_connect(script), 0);
}

static void test_system_cwd(void **state)
{
	static const struct {
		const char *cwd, *script, *text, *note;
	} row[] = {
		{ "/", "pwd; touch x || echo ro", "/\n", "read-only" },
		{ "/etc", "pwd; touch x || echo ro", "ro\n", "read-only" },
		{ "/usr/lib", "pwd; touch x || echo ro", "ro\n", "read-only" },
		{ "/tmp", "pwd; ls -A | wc -l", "/tmp\n0\n", "private" },
		{ "/run", "pwd", "/run\n", "private" },
		{ "/proc/self", "pwd", "/\n", "not visible" },
		{ "/dev/shm", "pwd", "/\n", "not visible" },
	};

	(void)state;
	BOTH(who)
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct order order = SH(row[i].script);
		struct outcome out;

		order.cwd = row[i].cwd;
		order.print_note = true;
		out = run(who, order);
		expect(out, 0, row[i].text);
		expect(out, 0, row[i].note);
	}
	struct order order = SH("pwd; ls -A; touch x && echo wrote");
	char closed[96];

	order.cwd = "/root";
	order.print_note = true;
	expect(run(ROOT, order), 0, "private");
	expect(run(ROOT, order), 0, "wrote");
	/* Behind a directory that its uid can't enter. */
	snprintf(closed, sizeof(closed), "%s/closed/work", host_dir);
	order = SH("pwd; touch x && echo wrote; rm x; ls -A ..");
	order.cwd = closed;
	expect(run(ROOT, order), 0, "/closed/work\nwrote\nwork\n");
	order.cwd = "/nonexistent";
	expect(run(ROOT, order), 87, "No such file");
	order.cwd = root_dir;
	order.plain_root = true;
	order.home = "/opt";
	expect(run(ROOT, order), 87, "can't enter");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_files_outside),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_hidden_above),
		cmocka_unit_test(test_host_sockets),
		cmocka_unit_test(test_system_cwd),
	};

	if (argc > 1 && strcmp(argv[1], "probe") == 0) {
		int r = probe(argc, argv);

		/* No leak check at exit: it would want ptrace. */
		fflush(stdout);
		_exit(r);
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
