/* SPDX-License-Identifier: Apache-2.0
 *
 * What systemd hears of us, and what it hands us.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon_notify.h"

/* Listens at @name, whose '@' stands for a NUL, and is told so. */
static int listen_at(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, name, strlen(name));
	if (*name == '@')
		at.sun_path[0] = '\0';
	assert_int_equal(
		bind(fd, (struct sockaddr *)&at,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				 strlen(name))),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void expect(int fd, const char *text)
{
	char got[128] = "";

	assert_true(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT) > 0);
	assert_int_equal(strncmp(got, text, strlen(text)), 0);
}

static void test_words(void **state)
{
	char dir[] = "/tmp/sallyport-notify-XXXXXX", names[2][64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(names[0], sizeof(names[0]), "%s/s", dir);
	snprintf(names[1], sizeof(names[1]), "@sallyport-test-%d", getpid());
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_FD int fd = listen_at(names[i]);

		notify_systemd("READY=1");
		expect(fd, "READY=1");
		notify_reloading();
		expect(fd, "RELOADING=1\nMONOTONIC_USEC=");
	}
	unlink(names[0]);
	rmdir(dir);
	/* To nobody: no more than that. */
	notify_systemd("READY=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_systemd("READY=1");
	unsetenv("NOTIFY_SOCKET");
	notify_systemd("READY=1");
}

static void test_watchdog(void **state)
{
	char pid[32];

	(void)state;
	assert_int_equal(notify_watchdog_us(), 0);
	setenv("WATCHDOG_USEC", "3000000", 1);
	assert_int_equal(notify_watchdog_us(), 1500000);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_us(), 1500000);
	/* That was for who started us. */
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_us(), 0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "3x", 1);
	assert_int_equal(notify_watchdog_us(), 0);
	setenv("WATCHDOG_USEC", "-3", 1);
	assert_int_equal(notify_watchdog_us(), 0);
}

static void test_sockets(void **state)
{
	char pid[32];

	(void)state;
	snprintf(pid, sizeof(pid), "%d", getpid());
	assert_int_equal(notify_listen_fd("control"), -ENOENT);
	setenv("LISTEN_FDS", "2", 1);
	setenv("LISTEN_FDNAMES", "docker:control", 1);
	/* Without a pid it is nobody's. */
	assert_int_equal(notify_listen_fd("control"), -ENOENT);
	setenv("LISTEN_PID", "1", 1);
	assert_int_equal(notify_listen_fd("control"), -ENOENT);
	setenv("LISTEN_PID", pid, 1);
	assert_int_equal(dup2(STDIN_FILENO, 4), 4);
	assert_int_equal(notify_listen_fd("control"), 4);
	assert_int_equal(fcntl(4, F_GETFD), FD_CLOEXEC);
	assert_int_equal(notify_listen_fd("contro"), -ENOENT);
	assert_int_equal(notify_listen_fd("other"), -ENOENT);
	setenv("LISTEN_FDS", "1", 1);
	assert_int_equal(notify_listen_fd("control"), -ENOENT);
	close(4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_sockets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
