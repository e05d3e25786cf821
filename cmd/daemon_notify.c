/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_notify.c - two environment variables and a datagram: no library for
 * that.
 */
#include "cmd/daemon_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LISTEN_FIRST 3
#define LISTEN_MAX   16

void notify_systemd(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;

	if (!len || len >= sizeof(to.sun_path) ||
	    (*path != '/' && *path != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (*path == '@')
		to.sun_path[0] = '\0';
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Nothing can be done about one that does not listen. */
	sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
	       (struct sockaddr *)&to,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

void notify_reloading(void)
{
	char text[80];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)clock_us(CLOCK_MONOTONIC));
	notify_systemd(text);
}

/* The value of a variable that is meant for this process. */
static uint64_t number(const char *name, const char *pid_name)
{
	const char *value = getenv(name), *pid = getenv(pid_name);
	char *end;

	if (!value || (pid && strtoull(pid, NULL, 10) != (uint64_t)getpid()))
		return 0;
	errno = 0;
	uint64_t n = strtoull(value, &end, 10);
	return *value >= '0' && *value <= '9' && !*end && !errno ? n : 0;
}

uint64_t notify_watchdog_us(void)
{
	return number("WATCHDOG_USEC", "WATCHDOG_PID") / 2;
}

int notify_listen_fd(const char *name)
{
	uint64_t n =
		getenv("LISTEN_PID") ? number("LISTEN_FDS", "LISTEN_PID") : 0;
	const char *names = getenv("LISTEN_FDNAMES");

	for (uint64_t i = 0; names && i < n && i < LISTEN_MAX; i++) {
		size_t len = strcspn(names, ":");
		int fd = LISTEN_FIRST + (int)i;

		if (len == strlen(name) && strncmp(names, name, len) == 0) {
			if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
				return -errno;
			return fd;
		}
		names = names[len] ? names + len + 1 : NULL;
	}
	return -ENOENT;
}
