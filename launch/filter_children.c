/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_children.c - what the gate and the ledger may ask the kernel for.
 *
 * Our own processes have an allow list: anything else is EPERM, and what only
 * an intruder would call ends the process.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/filter.h"
#include "launch/filter_rules.h"

/* The gate and the ledger: memory, time, threads, the fds they were given. */
static const char *const both[] = {
	"read",
	"write",
	"readv",
	"writev",
	"close",
	"lseek",
	"fstat",
	"newfstatat",
	"pread64",
	"pwrite64",
	"fsync",
	"fdatasync",
	"ftruncate",
	"dup",
	"dup3",
	"pipe",
	"pipe2",
	"recvmsg",
	"sendmsg",
	"recvfrom",
	"sendto",
	"recvmmsg",
	"sendmmsg",
	"getsockopt",
	"shutdown",
	"epoll_create1",
	"epoll_ctl",
	"epoll_wait",
	"epoll_pwait",
	"epoll_pwait2",
	"poll",
	"ppoll",
	"select",
	"pselect6",
	"eventfd2",
	"timerfd_create",
	"timerfd_settime",
	"timerfd_gettime",
	"signalfd4",
	"munmap",
	"mremap",
	"brk",
	"madvise",
	"msync",
	"futex",
	"set_robust_list",
	"rseq",
	"set_tid_address",
	"membarrier",
	"sched_yield",
	"sched_getaffinity",
	"getcpu",
	"clock_gettime",
	"clock_getres",
	"clock_nanosleep",
	"gettimeofday",
	"nanosleep",
	"time",
	"getrandom",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"rt_sigpending",
	"rt_sigsuspend",
	"sigaltstack",
	"restart_syscall",
	"getpid",
	"gettid",
	"getppid",
	"getuid",
	"geteuid",
	"getgid",
	"getegid",
	"getrusage",
	"sysinfo",
	"uname",
	"times",
	"exit",
	"exit_group",
};

static const char *const gate_only[] = {
	"connect",     "bind",	     "accept", "accept4", "getsockname",
	"getpeername", "setsockopt", "splice", "tee",
};

/* The log of all sessions is appended to by one ledger at a time. */
static const char *const ledger_only[] = { "flock", "fadvise64" };

/* There is no file: libraries that look for their settings are told so, and
 * take their defaults, where EPERM would make some of them fail. */
static const char *const absent[] = {
	"open",	     "openat",	   "openat2",  "access",
	"faccessat", "faccessat2", "readlink", "readlinkat",
	"stat",	     "lstat",	   "statx",
};

/* Nothing of ours calls these after isolate_self(). */
static const char *const lethal[] = {
	"execve",
	"execveat",
	"fork",
	"vfork",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"pidfd_getfd",
	"pidfd_open",
	"pidfd_send_signal",
	"kcmp",
	"unshare",
	"setns",
	"mount",
	"umount2",
	"pivot_root",
	"chroot",
	"open_tree",
	"move_mount",
	"fsopen",
	"fsmount",
	"fspick",
	"mount_setattr",
	"open_by_handle_at",
	"bpf",
	"keyctl",
	"add_key",
	"request_key",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"perf_event_open",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
};

int filter_add_list(scmp_filter_ctx ctx, uint32_t action,
		    const char *const *name, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(name[i]);
		int r;

		/* A call that this architecture does not have. */
		if (nr < 0)
			continue;
		r = seccomp_rule_add(ctx, action, nr, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

int filter_add(scmp_filter_ctx ctx, uint32_t action, int nr,
	       struct scmp_arg_cmp arg)
{
	return nr < 0 ? 0 : seccomp_rule_add_array(ctx, action, nr, 1, &arg);
}

scmp_filter_ctx seccomp_filter_new(uint32_t action)
{
	scmp_filter_ctx ctx = seccomp_init(action);

	if (!ctx)
		return NULL;
	if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
			     SCMP_ACT_KILL_PROCESS) < 0) {
		seccomp_release(ctx);
		return NULL;
	}
	/* A tree instead of a list: the common call is found in few steps. */
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return ctx;
}

/* Memory that can be executed can't be made; threads can, processes not; a
 * signal goes to ourselves. */
static int add_guarded(scmp_filter_ctx ctx)
{
	static const int fcntls[] = {
		F_GETFD,     F_SETFD,	      F_GETFL,	    F_SETFL,
		F_DUPFD,     F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_SETPIPE_SZ,
		F_GET_SEALS, F_GETLK,	      F_SETLK,	    F_OFD_SETLK,
	};
	static const uint32_t ioctls[] = { FIONBIO, FIONREAD, SIOCOUTQ };
	static const int prctls[] = { PR_SET_NAME, PR_GET_NAME,
				      PR_GET_DUMPABLE };
	struct scmp_arg_cmp get_limit[] = {
		SCMP_CMP64(0, SCMP_CMP_EQ, 0, 0),
		SCMP_CMP64(2, SCMP_CMP_EQ, 0, 0),
	};
	int r = 0;

	r |= filter_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap),
			ARG_BITS(2, PROT_EXEC, 0));
	r |= filter_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect),
			ARG_BITS(2, PROT_EXEC, 0));
	r |= filter_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone),
			ARG_BITS(0, CLONE_THREAD, CLONE_THREAD));
	/* Its flags lie in memory; glibc falls back to clone(2). */
	r |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	r |= filter_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill),
			ARG_INT(0, FILTER_PID));
	r |= seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
				    get_limit);
	for (size_t i = 0; i < ARRAY_SIZE(fcntls); i++)
		r |= filter_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl),
				ARG_INT(1, fcntls[i]));
	for (size_t i = 0; i < ARRAY_SIZE(ioctls); i++)
		r |= filter_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl),
				ARG_INT(1, ioctls[i]));
	for (size_t i = 0; i < ARRAY_SIZE(prctls); i++)
		r |= filter_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl),
				ARG_INT(0, prctls[i]));
	return r ? -EINVAL : 0;
}

static int add_sockets(scmp_filter_ctx ctx)
{
	static const int family[] = { AF_INET, AF_INET6 };
	static const int type[] = { SOCK_STREAM, SOCK_DGRAM };
	const uint32_t mask =
		INT_MASK & ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (size_t i = 0; i < 4; i++) {
		struct scmp_arg_cmp arg[] = {
			ARG_INT(0, family[i / 2]),
			ARG_BITS(1, mask, type[i % 2]),
		};
		int r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW,
					       SCMP_SYS(socket), 2, arg);

		if (r < 0)
			return r;
	}
	return 0;
}

int filter_write_child(enum isolate_role role, scmp_filter_ctx *ret_ctx)
{
	scmp_filter_ctx ctx = seccomp_filter_new(SCMP_ACT_ERRNO(EPERM));
	int r;

	*ret_ctx = ctx;
	if (!ctx)
		return -ENOMEM;
	r = filter_add_list(ctx, SCMP_ACT_ALLOW, both, ARRAY_SIZE(both));
	if (r == 0)
		r = filter_add_list(ctx, SCMP_ACT_ERRNO(ENOENT), absent,
				    ARRAY_SIZE(absent));
	if (r == 0)
		r = filter_add_list(ctx, SCMP_ACT_KILL_PROCESS, lethal,
				    ARRAY_SIZE(lethal));
	if (r == 0)
		r = add_guarded(ctx);
	if (r == 0 && role == ISOLATE_GATE)
		r = filter_add_list(ctx, SCMP_ACT_ALLOW, gate_only,
				    ARRAY_SIZE(gate_only));
	if (r == 0 && role == ISOLATE_GATE)
		r = add_sockets(ctx);
	if (r == 0 && role == ISOLATE_LEDGER)
		r = filter_add_list(ctx, SCMP_ACT_ALLOW, ledger_only,
				    ARRAY_SIZE(ledger_only));
	return r;
}
