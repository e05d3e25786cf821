/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client says of commands, and who may read what is written of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon_request.h"
#include "cmd/log_reader.h"

static int parse(enum request_kind kind, const char *body, struct request *ret)
{
	struct request_error why;

	return request_parse(kind, body, strlen(body), ret, &why);
}

static void test_exec(void **state)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"command\":\"\"}",
		"{\"command\":7}",
		"{\"command\":\"x\",\"uid\":0}",
		"{\"command\":\"x\",\"command\":\"y\"}",
		"{\"command\":\"a\\u0000b\"}",
	};
	char body[MSG_EXEC_MAX + 32];
	struct request r;

	(void)state;
	assert_int_equal(parse(REQUEST_EXEC, "{\"command\":\"ls -l\"}", &r), 0);
	assert_string_equal(r.command, "ls -l");
	assert_int_equal(
		parse(REQUEST_EXEC, "{\"command\":\"a\\nb\\u001b\"}", &r), 0);
	assert_string_equal(r.command, "a?b?");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(REQUEST_EXEC, bad[i], &r), -EINVAL);
	for (int n = MSG_EXEC_MAX - 1; n <= MSG_EXEC_MAX; n++) {
		snprintf(body, sizeof(body), "{\"command\":\"%0*d\"}", n, 0);
		assert_int_equal(parse(REQUEST_EXEC, body, &r),
				 n < MSG_EXEC_MAX ? 0 : -EINVAL);
	}
}

static void test_end(void **state)
{
	static const char *const bad[] = {
		"{\"status\":256}",   "{\"status\":-1}",  "{\"status\":\"0\"}",
		"{\"ended\":\"no\"}", "{\"ended\":null}", "{\"name\":\"x\"}",
	};
	struct request r;

	(void)state;
	assert_int_equal(parse(REQUEST_END, "{}", &r), 0);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.ended, ENDED_EXIT);
	assert_int_equal(parse(REQUEST_END,
			       "{\"status\":255,\"ended\":\"timeout\"}", &r),
			 0);
	assert_int_equal(r.status, 255);
	assert_int_equal(r.ended, ENDED_TIMEOUT);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(REQUEST_END, bad[i], &r), -EINVAL);
}

static void test_temporary(void **state)
{
	struct request r;

	(void)state;
	assert_int_equal(parse(REQUEST_CREATE,
			       "{\"name\":\"a\",\"temporary\":true}", &r),
			 0);
	assert_true(r.temporary);
	assert_int_equal(parse(REQUEST_CREATE, "{\"name\":\"a\"}", &r), 0);
	assert_false(r.temporary);
	assert_int_equal(
		parse(REQUEST_CREATE, "{\"name\":\"a\",\"temporary\":1}", &r),
		-EINVAL);
	assert_int_equal(parse(REQUEST_POLICY, "{\"temporary\":true}", &r),
			 -EINVAL);
}

/* --- a reader ------------------------------------------------------------ */

static char dir[] = "/tmp/sallyport-reader-XXXXXX";

/* Can @uid open it so? */
static bool can(uid_t uid, const char *name, int flags)
{
	char path[128];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s%s", dir, name);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(2);
		_exit(open(path, flags, 0600) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return !WEXITSTATUS(status);
}

static void test_reader(void **state)
{
	char path[128];
	struct stat st;

	(void)state;
	assert_int_equal(geteuid(), 0);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	AUTO_FD int at = open(dir, O_RDONLY | O_DIRECTORY);
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(at >= 0 && fd >= 0);
	assert_false(can(1000, "/log", O_RDONLY));
	assert_int_equal(log_reader_add(fd, false, 1000), 0);
	assert_false(can(1000, "/log", O_RDONLY));
	assert_int_equal(log_reader_add(at, true, 1000), 0);
	assert_true(can(1000, "/log", O_RDONLY));
	assert_true(can(1000, "", O_RDONLY | O_DIRECTORY));
	assert_false(can(1000, "/log", O_WRONLY));
	assert_false(can(1000, "/new", O_WRONLY | O_CREAT));
	assert_false(can(1001, "/log", O_RDONLY));
	assert_false(can(1001, "", O_RDONLY | O_DIRECTORY));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_mode & 07, 0);
	/* Others may pass, and not look around. */
	assert_int_equal(log_reader_pass(dir), 0);
	assert_false(can(1001, "", O_RDONLY | O_DIRECTORY));
	assert_false(can(1001, "/log", O_RDONLY));
	assert_int_equal(log_reader_pass("/nowhere"), -ENOENT);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_temporary),
		cmocka_unit_test(test_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
