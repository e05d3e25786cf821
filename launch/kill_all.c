/* SPDX-License-Identifier: Apache-2.0
 *
 * kill_all.c - the end of everybody in a network namespace.
 *
 * Who is killed may just have made another one: so again, until a look finds
 * nobody. That one may have missed whoever makes another one of himself and
 * ends, which takes less time than a look: it is the last only if nobody at
 * all was made meanwhile, or if several in a row found nobody. A process is
 * held by a pidfd before it is looked at the second time, so that nobody else
 * is met who got its number meanwhile.
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
#define LOOKS	 8

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

/* How many processes and threads there have been; 0 if that is not known. */
static unsigned long long ever_made(void)
{
	AUTO_FILE FILE *file = fopen("/proc/stat", "re");
	unsigned long long made = 0;
	char line[512];

	while (file && !made && fgets(line, sizeof(line), file))
		if (sscanf(line, "processes %llu", &made) != 1)
			made = 0;
	return made;
}

int sandbox_kill_all(int fd)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000 * 1000 };
	struct stat ns;
	int nobody = 0;

	if (fstat(fd, &ns) < 0)
		return -errno;
	for (int i = 0; i < ROUNDS; i++) {
		const unsigned long long before = ever_made();
		int found = kill_round(&ns);

		if (found < 0)
			return found;
		if (!found &&
		    ((before && ever_made() == before) || ++nobody == LOOKS))
			return 0;
		if (!found)
			continue;
		nobody = 0;
		nanosleep(&pause, NULL);
	}
	return -EBUSY;
}
