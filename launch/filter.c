/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.c - four arrays that the build made, and the system call that makes
 * one of them law.
 */
#include "launch/filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* filter_gate, filter_ledger, filter_sandbox, filter_nest */
#include "launch/filters.inc"

int filter_apply(enum isolate_role role)
{
	struct sock_filter
		copy[ARRAY_SIZE(filter_gate) + ARRAY_SIZE(filter_ledger)];
	const struct sock_filter *code = filter_ledger;
	size_t n = ARRAY_SIZE(filter_ledger);
	struct sock_fprog program;

	if (role == ISOLATE_GATE) {
		code = filter_gate;
		n = ARRAY_SIZE(filter_gate);
	}
	memcpy(copy, code, n * sizeof(*copy));
	/* A signal goes to ourselves: who that is, is known only now. */
	for (size_t i = 0; i < n; i++)
		if (copy[i].k == FILTER_PID)
			copy[i].k = (uint32_t)getpid();
	program =
		(struct sock_fprog){ .len = (unsigned short)n, .filter = copy };
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return -errno;
	return 0;
}

int isolate_sandbox_filter(bool nest)
{
	const void *code = nest ? (const void *)filter_nest : filter_sandbox;
	size_t len = nest ? sizeof(filter_nest) : sizeof(filter_sandbox);
	AUTO_FD int fd = memfd_create("sallyport-filter", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, code, len) != (ssize_t)len)
		return -EIO;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return steal_fd(&fd);
}
