/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_sandbox.c - the deny list of a sandboxed command, which may be any
 * program at all: what reaches other processes, the terminal of our user, other
 * namespaces, or parts of the kernel that have no business in a sandbox.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/filter_rules.h"

#define NETLINK_PROTOCOLS 32
/* Not in every libc's headers. */
#ifndef IPPROTO_SMC
#define IPPROTO_SMC 256
#endif
#ifndef IPPROTO_L2TP
#define IPPROTO_L2TP 115
#endif

/* What a sandboxed command is refused, with EPERM. */
static const char *const refused[] = {
	/* other processes; not ptrace(2), for a debugger and its children:
	 * there is nobody else in this pid namespace but init, which is not
	 * dumpable, and calls are filtered after a tracer changed them */
	"process_vm_readv",
	"process_vm_writev",
	"pidfd_getfd",
	"kcmp",
	"process_madvise",
	"perf_event_open",
	"lookup_dcookie",
	/* namespaces and mounts */
	"setns",
	"open_by_handle_at",
	"name_to_handle_at",
	"quotactl",
	"quotactl_fd",
	"swapon",
	"swapoff",
	/* keyrings are shared by all processes of a uid */
	"keyctl",
	"add_key",
	"request_key",
	/* the kernel itself */
	"bpf",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"iopl",
	"ioperm",
	"syslog",
	"acct",
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"userfaultfd",
	"vhangup",
	"nfsservctl",
	"_sysctl",
	"uselib",
	"ustat",
	"sysfs",
	"modify_ldt",
};

/* Where a command makes no namespaces, it mounts nothing either. In one of its
 * own it may: the kernel holds each mount that it has from us where it is. */
static const char *const mounts[] = { "mount", "umount2", "pivot_root",
				      "chroot" };

/* The same by descriptors. Whoever knows these calls knows the older ones too,
 * unless he is told that he may not. */
static const char *const new_mounts[] = {
	"open_tree", "open_tree_attr", "move_mount", "fsopen",
	"fsmount",   "fsconfig",       "fspick",     "mount_setattr",
};

/* Our user's terminal: typing into it, and its line discipline. */
static int refuse_terminal(scmp_filter_ctx ctx)
{
	static const uint32_t ioctls[] = { TIOCSTI, TIOCLINUX, TIOCSETD,
					   TIOCCONS };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ioctls); i++)
		r |= filter_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl),
				ARG_INT(1, ioctls[i]));
	return r;
}

/* Flags in memory; every user of clone3 has a second way. */
static int refuse_clone3(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3),
				0);
}

/* A namespace inside the sandbox would hand out capabilities there, and with
 * them most of the kernel's network code. With --nest it may: what the rest of
 * this list refuses, it refuses there too. */
static int refuse_namespaces(scmp_filter_ctx ctx)
{
	static const uint32_t flags[] = { CLONE_NEWUSER,  CLONE_NEWNS,
					  CLONE_NEWPID,	  CLONE_NEWNET,
					  CLONE_NEWIPC,	  CLONE_NEWUTS,
					  CLONE_NEWCGROUP };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		r |= filter_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone),
				ARG_BITS(0, flags[i], flags[i]));
		r |= filter_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare),
				ARG_BITS(0, flags[i], flags[i]));
	}
	return r;
}

/* Families other than these are not bounded by a network namespace (vsock
 * reaches the hypervisor) or are kernel code that nobody needs here. */
static int refuse_families(scmp_filter_ctx ctx)
{
	int r = 0;

	for (int family = 0; family < AF_MAX + 8; family++) {
		int error = family == AF_PACKET ? EPERM : EAFNOSUPPORT;

		if (family == AF_UNIX || family == AF_INET ||
		    family == AF_INET6 || family == AF_NETLINK)
			continue;
		r |= filter_add(ctx, SCMP_ACT_ERRNO((uint32_t)error),
				SCMP_SYS(socket), ARG_INT(0, family));
	}
	return r;
}

/* libc asks NETLINK_ROUTE for addresses and interfaces. The other protocols are
 * doors into the kernel: audit, crypto, netfilter, sock_diag ... */
static int refuse_netlink(scmp_filter_ctx ctx)
{
	int r = 0;

	for (int protocol = 0; protocol < NETLINK_PROTOCOLS; protocol++) {
		struct scmp_arg_cmp args[] = {
			ARG_INT(0, AF_NETLINK),
			ARG_INT(2, protocol),
		};

		if (protocol != NETLINK_ROUTE)
			r |= seccomp_rule_add_array(
				ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT),
				SCMP_SYS(socket), 2, args);
	}
	return r;
}

/* Raw sockets would take a capability anyhow. The kernel loads a module for
 * each of these protocols, and the gate passes none of them on. */
static int refuse_inet(scmp_filter_ctx ctx)
{
	static const int families[] = { AF_INET, AF_INET6 };
	static const int protocols[] = { IPPROTO_DCCP, IPPROTO_SCTP,
					 IPPROTO_UDPLITE, IPPROTO_L2TP,
					 IPPROTO_SMC };
	const uint32_t mask =
		INT_MASK & ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		for (int type = 0; type < 16; type++) {
			struct scmp_arg_cmp args[] = {
				ARG_INT(0, families[i]),
				ARG_BITS(1, mask, type),
			};

			if (type != SOCK_STREAM && type != SOCK_DGRAM)
				r |= seccomp_rule_add_array(
					ctx, SCMP_ACT_ERRNO(EPERM),
					SCMP_SYS(socket), 2, args);
		}
		for (size_t j = 0; j < ARRAY_SIZE(protocols); j++) {
			struct scmp_arg_cmp args[] = {
				ARG_INT(0, families[i]),
				ARG_INT(2, protocols[j]),
			};

			r |= seccomp_rule_add_array(
				ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT),
				SCMP_SYS(socket), 2, args);
		}
	}
	return r;
}

/* O_TMPFILE is two bits, of which one is O_DIRECTORY: the other makes a file,
 * which linkat(2) names. */
#define MAKES_TMPFILE (O_TMPFILE & ~O_DIRECTORY)

static int refuse_open_with(scmp_filter_ctx ctx, uint32_t bit)
{
	static const uint32_t makes[] = { O_CREAT, MAKES_TMPFILE };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(makes); i++) {
		struct scmp_arg_cmp open_args[] = {
			ARG_BITS(1, makes[i], makes[i]),
			ARG_BITS(2, bit, bit),
		};
		struct scmp_arg_cmp openat_args[] = {
			ARG_BITS(2, makes[i], makes[i]),
			ARG_BITS(3, bit, bit),
		};

		if (SCMP_SYS(open) >= 0)
			r |= seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM),
						    SCMP_SYS(open), 2,
						    open_args);
		r |= seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM),
					    SCMP_SYS(openat), 2, openat_args);
	}
	return r;
}

/* A set-user-ID file left in the working directory would work outside. Its mode
 * lies in memory in openat2(2), which therefore does not exist. */
static int refuse_setid(scmp_filter_ctx ctx)
{
	static const struct {
		int nr;
		unsigned int arg;
	} call[] = {
		{ SCMP_SYS(chmod), 1 },	   { SCMP_SYS(fchmod), 1 },
		{ SCMP_SYS(fchmodat), 2 }, { 452 /* fchmodat2 */, 2 },
		{ SCMP_SYS(mknod), 1 },	   { SCMP_SYS(mknodat), 2 },
		{ SCMP_SYS(creat), 1 },
	};
	static const uint32_t bits[] = { S_ISUID, S_ISGID };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(call); j++)
			r |= filter_add(
				ctx, SCMP_ACT_ERRNO(EPERM), call[j].nr,
				ARG_BITS(call[j].arg, bits[i], bits[i]));
		r |= refuse_open_with(ctx, bits[i]);
	}
	r |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2),
			      0);
	return r;
}

static int add_refusals(scmp_filter_ctx ctx, bool nest)
{
	/* Requests in memory that no filter sees. */
	static const char *const unseen[] = { "io_uring_setup",
					      "io_uring_enter",
					      "io_uring_register" };
	int r = 0;

	r |= filter_add_list(ctx, SCMP_ACT_ERRNO(EPERM), refused,
			     ARRAY_SIZE(refused));
	r |= filter_add_list(ctx, SCMP_ACT_ERRNO(ENOSYS), unseen,
			     ARRAY_SIZE(unseen));
	if (!nest)
		r |= filter_add_list(ctx, SCMP_ACT_ERRNO(EPERM), mounts,
				     ARRAY_SIZE(mounts));
	r |= filter_add_list(ctx, SCMP_ACT_ERRNO(nest ? ENOSYS : EPERM),
			     new_mounts, ARRAY_SIZE(new_mounts));
	r |= refuse_terminal(ctx);
	if (!nest)
		r |= refuse_namespaces(ctx);
	r |= refuse_clone3(ctx);
	r |= refuse_families(ctx);
	r |= refuse_netlink(ctx);
	r |= refuse_inet(ctx);
	r |= refuse_setid(ctx);
	return r ? -EINVAL : 0;
}

int filter_write_sandbox(bool nest, scmp_filter_ctx *ret_ctx)
{
	*ret_ctx = seccomp_filter_new(SCMP_ACT_ALLOW);
	return *ret_ctx ? add_refusals(*ret_ctx, nest) : -ENOMEM;
}
