/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate_probe.h - what an intruder would try in a child that has given up
 * everything, told to its parent.
 */
#ifndef TESTS_LAUNCH_ISOLATE_PROBE_H
#define TESTS_LAUNCH_ISOLATE_PROBE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#include "base/cleanup.h"
#include "launch/child.h"
#include "launch/isolate.h"
#include "tests/launch/actor.h"

static inline int result(long r)
{
	return r < 0 ? errno : 0;
}

static inline int try_open(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	return fd < 0 ? errno : 0;
}

static inline void *no_thing(void *arg)
{
	return arg;
}

/* The ledger signs in one, begun after isolate_self(). */
static inline int try_thread(void)
{
	pthread_t id;
	int r = pthread_create(&id, NULL, no_thing, NULL);

	return r ? r : pthread_join(id, NULL);
}

/* One line for each attempt: name and errno. */
struct attempt {
	const char *name;
	int gate, ledger; /* expected */
};

static const struct attempt attempts[] = {
	{ "open /", ENOENT, ENOENT },
	{ "open /proc/self", ENOENT, ENOENT },
	{ "open ../../..", ENOENT, ENOENT },
	{ "create", ENOENT, ENOENT },
	{ "mkdir", EPERM, EPERM },
	{ "unix", EPERM, EPERM },
	{ "socketpair", EPERM, EPERM },
	{ "netlink", EPERM, EPERM },
	{ "packet", EPERM, EPERM },
	{ "vsock", EPERM, EPERM },
	{ "raw", EPERM, EPERM },
	{ "raw6", EPERM, EPERM },
	{ "tcp", 0, EPERM },
	{ "tcp6 nonblock", 0, EPERM },
	{ "udp", 0, EPERM },
	{ "listen", EPERM, EPERM },
	{ "kill", EPERM, EPERM },
	{ "mmap exec", EPERM, EPERM },
	{ "mprotect exec", EPERM, EPERM },
	{ "mmap", 0, 0 },
	{ "fork", EPERM, EPERM },
	{ "tiocsti", EPERM, EPERM },
	{ "setuid", EPERM, EPERM },
	{ "dumpable", EPERM, EPERM },
	{ "chdir", EPERM, EPERM },
	{ "memfd", EPERM, EPERM },
	{ "setrlimit", EPERM, EPERM },
	{ "epoll", 0, 0 },
	{ "pipe", 0, 0 },
	{ "clock", 0, 0 },
	{ "fdatasync", 0, 0 },
	{ "flock", EPERM, 0 },
	{ "fadvise", EPERM, 0 },
	{ "thread", 0, 0 },
};

static inline int page_exec(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED
		       ? errno
		       : result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static inline int page(int prot)
{
	return mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? errno
		       : 0;
}

static inline int attempt_socket(const char *name)
{
	const struct {
		const char *name;
		int family, type, protocol;
	} kind[] = {
		{ "unix", AF_UNIX, SOCK_STREAM, 0 },
		{ "netlink", AF_NETLINK, SOCK_RAW, 0 },
		{ "packet", AF_PACKET, SOCK_RAW, 0 },
		{ "vsock", AF_VSOCK, SOCK_STREAM, 0 },
		{ "raw", AF_INET, SOCK_RAW, IPPROTO_ICMP },
		{ "raw6", AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6 },
		{ "tcp", AF_INET, SOCK_STREAM, 0 },
		{ "tcp6 nonblock", AF_INET6,
		  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0 },
		{ "udp", AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kind); i++)
		if (strcmp(kind[i].name, name) == 0)
			return result(socket(kind[i].family, kind[i].type,
					     kind[i].protocol));
	return -1;
}

static inline int attempt(const char *name, int file)
{
	struct timespec now;
	int fds[2];
	int r = attempt_socket(name);

	if (r >= 0)
		return r;
#define IS(x) (strcmp(name, x) == 0)
	if (IS("open /") || IS("open /proc/self") || IS("open ../../.."))
		return try_open(name + 5, O_RDONLY);
	if (IS("create"))
		return try_open("/new", O_WRONLY | O_CREAT);
	if (IS("mkdir"))
		return result(mkdir("/new", 0700));
	if (IS("socketpair"))
		return result(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	if (IS("listen"))
		return result(listen(CHILD_SOCKET, 1));
	if (IS("kill"))
		return result(kill(1, 0));
	if (IS("mmap exec"))
		return page(PROT_READ | PROT_EXEC);
	if (IS("mmap"))
		return page(PROT_READ | PROT_WRITE);
	if (IS("mprotect exec"))
		return page_exec();
	if (IS("fork"))
		return result(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	if (IS("tiocsti"))
		return result(ioctl(2, TIOCSTI, "x"));
	if (IS("setuid"))
		return result(syscall(SYS_setuid, 0));
	if (IS("dumpable"))
		return result(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	if (IS("chdir"))
		return result(chdir("/"));
	if (IS("memfd"))
		return result(memfd_create("x", 0));
	if (IS("setrlimit"))
		return result(syscall(SYS_setrlimit, 7, fds));
	if (IS("epoll"))
		return result(epoll_create1(EPOLL_CLOEXEC));
	if (IS("pipe"))
		return result(pipe2(fds, O_NONBLOCK));
	if (IS("clock"))
		return result(syscall(SYS_clock_gettime, CLOCK_REALTIME, &now));
	if (IS("fdatasync"))
		return result(fdatasync(file));
	if (IS("flock"))
		return result(flock(file, LOCK_EX | LOCK_NB));
	if (IS("fadvise"))
		return result(syscall(SYS_fadvise64, file, 0, 0,
				      POSIX_FADV_DONTNEED));
	if (IS("thread"))
		return try_thread();
	return -1;
#undef IS
}

/* The child. Asked by single letters after its report. */
static inline void obey(char what)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	switch (what) {
	case 'e':
		execl("/proc/self/exe", "x", NULL);
		break;
	case 'p':
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		break;
	case 'v':
		process_vm_readv(1, &iov, 1, &iov, 1, 0);
		break;
	case 'u':
		unshare(CLONE_NEWUSER);
		break;
	case 'n':
		setns(2, 0);
		break;
	case 'm':
		mount("none", "/", "tmpfs", 0, NULL);
		break;
	case 'b':
		syscall(SYS_bpf, 0, NULL, 0);
		break;
	case 'k':
		syscall(SYS_keyctl, 0, 0, 0, 0, 0);
		break;
	case 'i':
		syscall(SYS_init_module, NULL, 0, "");
		break;
	case 'g':
		syscall(SYS_pidfd_getfd, 2, 2, 0);
		break;
	case 'r':
		syscall(SYS_io_uring_setup, 1, NULL);
		break;
	}
}

static inline int probe(enum isolate_role role)
{
	struct isolate_spec spec = { .role = role };
	char text[8192] = "", what;
	const char *why = "";
	uint32_t ids[2];
	int memory = memfd_create("log", 0);
	size_t len = 0;

	if (recv(CHILD_SOCKET, ids, sizeof(ids), 0) != sizeof(ids))
		return 3;
	spec.uid = ids[0];
	spec.gid = ids[1];
	int r = isolate_self(&spec, &why);
	if (r < 0) {
		len = (size_t)snprintf(text, sizeof(text), "failed: %s: %s\n",
				       why, strerror(-r));
		send(CHILD_SOCKET, text, len, 0);
		return 4;
	}
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s|%d\n", attempts[i].name,
					attempt(attempts[i].name, memory));
	/* The allocator must live on. */
	for (int i = 0; i < 100; i++)
		free(calloc(1, 1u << 20));
	if (send(CHILD_SOCKET, text, len, 0) < 0)
		return 5;
	if (recv(CHILD_SOCKET, &what, 1, 0) == 1)
		obey(what);
	return 42;
}

#endif
