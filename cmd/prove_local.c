/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_local.c - ways out that are no packets: descriptors, other processes,
 * namespaces.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

static void vsock(struct prove_try *t)
{
	const struct sockaddr_vm to = { .svm_family = AF_VSOCK,
					.svm_cid = VMADDR_CID_HOST,
					.svm_port = 22 };
	const struct timeval limit = { .tv_usec = 500000 };
	AUTO_FD int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		prove_saw_error(t, "AF_VSOCK", -errno);
		return;
	}
	setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &limit,
		   sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		prove_saw(t, PROVE_OUT, "connected to the hypervisor's host");
	else
		prove_saw(t, PROVE_UNABLE, "AF_VSOCK: %s", strerror(errno));
}

/* --- what was left open ----------------------------------------------------
 */

static void descriptors(struct prove_try *t)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	char target[128], path[300];

	while (d && (e = readdir(d))) {
		long fd = strtol(e->d_name, NULL, 10);
		ssize_t n;

		/* Two of ours: the program, and the sheet. */
		if (*e->d_name == '.' || fd == dirfd(d) || fd <= STDERR_FILENO)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		prove_saw(t, PROVE_OUT, "descriptor %ld is open: %s", fd,
			  target);
	}
	if (d)
		closedir(d);
	prove_saw(t, PROVE_UNABLE, "only 0, 1 and 2 are open");
}

static void secret(struct prove_try *t)
{
	DIR *d = opendir(t->task->secret);
	const int err = errno;
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (*e->d_name != '.')
			prove_saw(t, PROVE_OUT,
				  "the logs can be seen: %.40s/%.60s",
				  t->task->secret, e->d_name);
	if (d)
		closedir(d);
	prove_saw(t, PROVE_UNABLE, "%s",
		  d ? "nothing is there" : strerror(err));
}

/* What the kernel lets the whole machine's owner do. */
static void kernel_files(struct prove_try *t)
{
	static const char *const files[] = {
		"/proc/sysrq-trigger",
		"/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/modprobe",
		"/proc/sys/net/ipv4/ip_forward",
		"/sys/kernel/uevent_helper",
		"/dev/mem",
		"/dev/kmem",
		"/dev/kmsg",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		AUTO_FD int fd = open(files[i], O_WRONLY | O_CLOEXEC);

		if (fd >= 0)
			prove_saw(t, PROVE_OUT, "%s can be written to",
				  files[i]);
		else
			prove_saw_error(t, files[i], -errno);
	}
}

/* --- other processes, other namespaces --------------------------------------
 */

static void rights(struct prove_try *t)
{
	AUTO_FILE FILE *f = fopen("/proc/self/status", "re");
	unsigned long long caps;
	char line[256];
	int nnp = -1;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %llx", &caps) == 1 && caps)
			prove_saw(t, PROVE_OUT, "it has capabilities: %llx",
				  caps);
		(void)sscanf(line, "NoNewPrivs: %d", &nnp);
	}
	if (nnp != 1)
		prove_saw(t, PROVE_OUT,
			  "it may get more rights: setuid "
			  "programs work");
	prove_saw(t, PROVE_UNABLE, "no capability, no_new_privs");
}

static void namespaces(struct prove_try *t)
{
	char path[64];
	struct stat st;

	for (size_t i = 0; i < PROVE_NAMESPACES; i++) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s",
			 prove_namespaces[i]);
		if (stat(path, &st) < 0)
			continue;
		if (st.st_ino == t->task->ns[i])
			prove_saw(t, PROVE_OUT,
				  "it shares this machine's %s namespace",
				  prove_namespaces[i]);
	}
	prove_saw(t, PROVE_UNABLE, "all are its own");
}

/* Any process that can be seen and has another network. */
static void enter(struct prove_try *t)
{
	struct stat own = { 0 }, st;
	DIR *d = opendir("/proc");
	struct dirent *e;
	char path[300];

	(void)stat("/proc/self/ns/net", &own);
	while (d && (e = readdir(d))) {
		if (*e->d_name < '1' || *e->d_name > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/ns/net", e->d_name);
		AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino == own.st_ino)
			continue;
		if (setns(fd, CLONE_NEWNET) == 0)
			prove_saw(t, PROVE_OUT,
				  "it entered the network of process %s",
				  e->d_name);
		else
			prove_saw_error(t, "setns", -errno);
	}
	if (d)
		closedir(d);
	prove_saw(t, PROVE_UNABLE, "no other network is in sight");
}

/* Root of a namespace of its own, with rights over a network of its own: that
 * must be one more without exit. */
static void nested(struct prove_try *t)
{
	struct ip ip = prove_ip("9.9.9.9");

	if (syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNET) < 0) {
		prove_saw_error(t, "unshare", -errno);
		return;
	}
	AUTO_FD int fd = prove_connect(&ip, 8300, 700);
	if (fd >= 0)
		prove_saw(t, PROVE_OUT, "connected from an inner namespace");
	else
		prove_saw(t, PROVE_UNABLE, "an inner namespace has no exit: %s",
			  strerror(-fd));
}

/* Numbers of ours may be theirs, too: is @pid in our own namespace, which is
 * not that of the machine? */
static bool is_own(const struct prove_try *t, pid_t pid)
{
	struct stat own, st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat("/proc/self/ns/pid", &own) == 0 &&
	       own.st_ino != t->task->ns[1] && stat(path, &st) == 0;
}

/* Processes outside: by their own number, and the first one that is seen. */
static void trace(struct prove_try *t)
{
	const pid_t pids[] = { t->task->outsider, 1 };
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		if (pids[i] <= 0 || is_own(t, pids[i]))
			continue;
		if (ptrace(PTRACE_SEIZE, pids[i], NULL, NULL) == 0)
			prove_saw(t, PROVE_OUT, "it traces process %d",
				  (int)pids[i]);
		else
			prove_saw_error(t, "ptrace", -errno);
		if (process_vm_readv(pids[i], &here, 1, &there, 1, 0) == 1)
			prove_saw(t, PROVE_OUT,
				  "it reads the memory of process %d",
				  (int)pids[i]);
		AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, pids[i], 0);
		AUTO_FD int got = (int)syscall(SYS_pidfd_getfd, pidfd, 3, 0);
		if (pidfd >= 0 && got >= 0)
			prove_saw(t, PROVE_OUT,
				  "it took a descriptor of process %d",
				  (int)pids[i]);
	}
	prove_saw(t, PROVE_UNABLE, "nobody outside is in sight");
}

static void signals(struct prove_try *t)
{
	if (t->task->outsider <= 0)
		prove_saw(t, PROVE_SKIPPED, "no process outside is known");
	else if (is_own(t, t->task->outsider))
		prove_saw(t, PROVE_UNABLE, "that number is another's in here");
	else if (kill(t->task->outsider, 0) == 0)
		prove_saw(t, PROVE_OUT,
			  "it can end process %d, which is "
			  "outside",
			  (int)t->task->outsider);
	else
		prove_saw_error(t, "kill", -errno);
}

/* Environments and command lines of others: where keys are. */
static void proc_leaks(struct prove_try *t)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	char path[300], text[256];
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		const long pid = strtol(e->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || pid == getppid())
			continue;
		n++;
		snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
		AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, text, sizeof(text)) > 0)
			prove_saw(t, PROVE_OUT,
				  "the environment of process %ld can be read",
				  pid);
	}
	if (d)
		closedir(d);
	prove_saw(t, PROVE_UNABLE, "%u other processes are in sight", n);
}

static void control_memory(struct prove_try *t)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/dev/shm/sallyport-prove-%s",
		 t->task->token);
	if (stat(path, &st) == 0)
		prove_saw(t, PROVE_OUT, "it shares this machine's /dev/shm");
	else
		prove_saw(t, PROVE_UNABLE, "a private one, or none");
}

static const struct prove_attack attacks[] = {
	{ "vsock", "K7", "the hypervisor", vsock, NULL, 0, 0 },
	{ "descriptors", "K4", "inherited descriptors", descriptors, NULL, 0,
	  PROVE_BOX },
	{ "log", "K12", "the session's log", secret, NULL, 0, PROVE_BOX },
	{ "kernel-files", "K12", "the kernel's switches", kernel_files, NULL, 0,
	  PROVE_BOX },
	{ "rights", "K13", "capabilities and setuid", rights, NULL, 0,
	  PROVE_BOX },
	{ "namespaces", "K2", "namespaces shared with outside", namespaces,
	  NULL, 0, PROVE_BOX },
	{ "setns", "K8", "another process's network", enter, NULL, 0,
	  PROVE_BOX },
	{ "unshare", "K8", "a network of its own", nested, NULL, 0, 0 },
	{ "ptrace", "K11", "tracing what is outside", trace, NULL, 0,
	  PROVE_BOX },
	{ "signal", "K11", "signals to what is outside", signals, NULL, 0,
	  PROVE_BOX },
	{ "proc", "K12", "what /proc tells of others", proc_leaks, NULL, 0,
	  PROVE_BOX },
	{ "shm", "K15", "shared memory", control_memory, NULL, 0, PROVE_BOX },
};

const struct prove_group prove_local = { attacks, ARRAY_SIZE(attacks) };
