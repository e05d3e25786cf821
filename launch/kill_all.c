/* SPDX-License-Identifier: Apache-2.0
 *
 * kill_all.c - the end of everybody in a network namespace.
 *
 * Who is killed may just have made another one: so again, until a look finds
 * nobody. A process is held by a pidfd before it is looked at the second time,
 * so that nobody else is met who got its number meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/owned.h"

/* A process that does not go has to wait for a disk, or is stopped by a
 * debugger. */
#define ROUNDS	 300
#define PAUSE_MS 10

static bool is_inside(pid_t pid, const struct stat *ns)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	/* Of one that has ended there is none. */
	return stat(path, &st) == 0 && st.st_dev == ns->st_dev &&
	       st.st_ino == ns->st_ino;
}

static void kill_one(pid_t pid, const struct stat *ns)
{
	AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 && is_inside(pid, ns))
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* How many there were, or -errno. */
static int kill_round(const struct stat *ns)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int found = 0;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		const long pid = strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || !is_inside((pid_t)pid, ns))
			continue;
		kill_one((pid_t)pid, ns);
		found++;
	}
	closedir(proc);
	return found;
}

int sandbox_kill_all(int fd)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000 * 1000 };
	struct stat ns;

	if (fstat(fd, &ns) < 0)
		return -errno;
	for (int i = 0; i < ROUNDS; i++) {
		int found = kill_round(&ns);

		if (found <= 0)
			return found;
		nanosleep(&pause, NULL);
	}
	return -EBUSY;
}
