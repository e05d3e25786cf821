/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests by the control socket: one each, from our own user, in time.
 */
#include "cmd/control.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <event2/event.h>

#include "base/cleanup.h"

static char dir[4096];
static struct event_base *base;
static struct control *control;
static unsigned asked;
static char last[CONTROL_REQUEST_MAX + 1];

static void on_request(void *arg, uid_t uid, const char *request, char *reply)
{
	assert_int_equal(uid, geteuid());
	(void)arg;
	(void)uid;
	asked++;
	snprintf(last, sizeof(last), "%s", request);
	snprintf(reply, CONTROL_REPLY_MAX, "ok\nsaid %.100s\n", request);
}

/* The longest path that there may be: longer than sun_path by far. */
static int setup(void **state)
{
	size_t len;

	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/sallyport-control-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	for (int i = 0; i < 4; i++) {
		len = strlen(dir);
		dir[len++] = '/';
		memset(dir + len, 'd', 100);
		dir[len + 100] = '\0';
		if (mkdir(dir, 0700) < 0)
			return -1;
	}
	base = event_base_new();
	asked = 0;
	return base ? control_listen(dir, &control) ||
			       control_attach(control, base, on_request, NULL)
		    : -1;
}

static int teardown(void **state)
{
	(void)state;
	control_close(control);
	control = NULL;
	event_base_free(base);
	for (int i = 0; i < 5; i++) {
		if (rmdir(dir) < 0) /* so that nothing was left in it */
			return -1;
		*strrchr(dir, '/') = '\0';
	}
	return 0;
}

/* Runs @fn in a child while we serve; its status. */
static int while_serving(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	assert_true(pid > 0);
	while (waitpid(pid, &status, WNOHANG) == 0)
		event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int ask(void)
{
	char reply[CONTROL_REPLY_MAX];

	return control_ask(dir, "reload\nkey value\n", 20000, reply) ||
	       strcmp(reply, "ok\nsaid reload\nkey value\n\n") != 0;
}

static void test_asks(void **state)
{
	struct stat st;
	char path[8192];

	(void)state;
	for (unsigned i = 1; i < 100; i++) {
		assert_int_equal(while_serving(ask), 0);
		assert_int_equal(asked, i);
	}
	assert_string_equal(last, "reload\nkey value\n");
	snprintf(path, sizeof(path), "%s/" CONTROL_NAME, dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static int connect_to(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof(name.sun_path),
		 "/proc/self/fd/%d/" CONTROL_NAME, at);
	if (at < 0 || fd < 0 ||
	    connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		_exit(99);
	close(at);
	return fd;
}

/* 0 if the other end closes without a word. */
static int is_cut(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 0 ? 0 : 1;
}

static int too_long(void)
{
	static char text[CONTROL_REQUEST_MAX + 1];
	int fd = connect_to();

	memset(text, 'a', sizeof(text));
	return send(fd, text, sizeof(text), 0) < 0 || is_cut(fd);
}

static int longest(void)
{
	static char text[CONTROL_REQUEST_MAX], reply[CONTROL_REPLY_MAX];
	int fd = connect_to();

	memset(text, 'a', sizeof(text));
	return send(fd, text, sizeof(text), 0) < 0 ||
	       recv(fd, reply, sizeof(reply), 0) <= 0 || is_cut(fd);
}

static int silent(void)
{
	return is_cut(connect_to());
}

static int goes_away(void)
{
	int fd = connect_to();

	return send(fd, "status", 6, 0) != 6 || close(fd);
}

static int too_many(void)
{
	int fd[20];

	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = connect_to();
	/* Those that found no place are told at once. */
	if (is_cut(fd[ARRAY_SIZE(fd) - 1]))
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	return 0;
}

static void test_bounds(void **state)
{
	(void)state;
	assert_int_equal(while_serving(too_long), 0);
	assert_int_equal(asked, 0);
	assert_int_equal(while_serving(longest), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(while_serving(goes_away), 0);
	assert_int_equal(while_serving(too_many), 0);
	assert_int_equal(while_serving(silent), 0);
	assert_int_equal(while_serving(ask), 0);
}

static int somebody_else(void)
{
	char reply[CONTROL_REPLY_MAX];

	if (setresgid(34, 34, 34) < 0 || setresuid(34, 34, 34) < 0)
		return 77;
	return control_ask(dir, "status", 20000, reply) == -EACCES ? 0 : 1;
}

/* With a descriptor that somebody let them have, the mode is of no use. */
static int lent;
static uid_t stranger;

static int lent_socket(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (setresgid(34, 34, 34) < 0 ||
	    setresuid(stranger, stranger, stranger) < 0)
		return 77;
	snprintf(name.sun_path, sizeof(name.sun_path),
		 "/proc/self/fd/%d/" CONTROL_NAME, lent);
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return errno == EACCES ? 2 : 1;
	return is_cut(fd);
}

static void test_only_ourselves(void **state)
{
	char path[8192];

	(void)state;
	if (geteuid() != 0)
		fail_msg("only root can try to be somebody else");
	assert_int_equal(while_serving(somebody_else), 0);
	snprintf(path, sizeof(path), "%s/" CONTROL_NAME, dir);
	lent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	stranger = 34;
	assert_int_equal(while_serving(lent_socket), 2);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(while_serving(lent_socket), 0);
	stranger = 65534; /* nobody is somebody too */
	assert_int_equal(while_serving(lent_socket), 0);
	close(lent);
	assert_int_equal(asked, 0);
}

static int no_reply(void)
{
	char reply[CONTROL_REPLY_MAX];

	return control_ask(dir, "status", 50, reply) == -ETIMEDOUT ? 0 : 1;
}

static void test_names(void **state)
{
	struct control *other = NULL;
	char reply[CONTROL_REPLY_MAX], path[8192];
	int status;

	(void)state;
	snprintf(path, sizeof(path), "%s/" CONTROL_NAME, dir);
	/* Somebody serves there, however slowly. */
	assert_int_equal(control_listen(dir, &other), -EADDRINUSE);
	pid_t pid = fork();
	if (pid == 0)
		_exit(no_reply());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
	/* One that was killed: its name is taken over, and is not the first
	 * one's to take away any more. */
	control_close(control);
	assert_int_equal(access(path, F_OK), -1);
	pid = fork();
	if (pid == 0)
		_exit(control_listen(dir, &control) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(control_ask(dir, "status", 100, reply), -ECONNREFUSED);
	assert_int_equal(control_listen(dir, &control), 0);
	assert_int_equal(control_attach(control, base, on_request, NULL), 0);
	assert_int_equal(while_serving(ask), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(control_listen(dir, &other), 0);
	control_close(control);
	control = other;
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(control_attach(control, base, on_request, NULL), 0);
	assert_int_equal(while_serving(ask), 0);
	assert_int_equal(control_ask("/no/such", "status", 100, reply),
			 -ENOENT);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_asks),
		TEST(test_bounds),
		TEST(test_only_ourselves),
		TEST(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
