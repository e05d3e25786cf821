/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rootless.c - the same packets as an ordinary user, in a user namespace
 * of its own.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "packets.h"

#define SOMEBODY 12345

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

int main(void)
{
	if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 ||
	    setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1) < 0 ||
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ||
	    write_text("/proc/self/setgroups", "deny") < 0 ||
	    write_text("/proc/self/uid_map", "0 12345 1") < 0 ||
	    write_text("/proc/self/gid_map", "0 12345 1") < 0) {
		perror("becoming an ordinary user");
		return 1;
	}
	return packets_run() + packets_frames_run() + packets_published_run();
}
