/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper_leases.c - the file of a sandbox is its keeper's alone.
 *
 * A keeper whose daemon was killed may still be writing its last records, and
 * its gate be counting bytes, when the next one starts. The lock is of an open
 * file that only the keeper and its gate have, so it ends with the last of
 * them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "cmd/keeper.h"
#include "cmd/sandbox_file.h"

/* Longer than a keeper takes to end. */
#define WAIT_MS 15000
#define STEP_MS 10

static int lock(int fd)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000 * 1000 };

	for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; ms += STEP_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (ms >= WAIT_MS)
			return -EBUSY;
		nanosleep(&step, NULL);
	}
	return 0;
}

int keeper_leases(int fd)
{
	const off_t size = (off_t)sandbox_file_size();
	AUTO_FD int own = -1;
	char path[64];
	struct stat st;
	int err;

	/* Not a copy: that would share the daemon's lock. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_RDWR | O_CLOEXEC);
	if (own < 0)
		return -errno;
	err = lock(own);
	if (err)
		return err;
	if (fstat(own, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_size && st.st_size != size))
		return -EBADMSG;
	/* As state_leases() does. */
	err = st.st_size ? 0 : posix_fallocate(own, 0, size);
	return err ? -err : steal_fd(&own);
}
