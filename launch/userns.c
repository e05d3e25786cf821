/* SPDX-License-Identifier: Apache-2.0
 *
 * userns.c - three files in /proc, and an explanation when they refuse.
 *
 * Distributions forbid user namespaces in three different ways. The kernel says
 * EPERM or ENOSPC to all of them, so we look at the switches ourselves: "not
 * permitted" alone helps nobody.
 */
#include "launch/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/helper.h"

static int write_file(pid_t pid, const char *name, const char *text)
{
	char path[64];
	AUTO_FD int fd = -1;
	size_t len = strlen(text);
	ssize_t n;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	else
		snprintf(path, sizeof(path), "/proc/self/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int userns_map(pid_t pid, uid_t inside_uid, uid_t uid, gid_t inside_gid,
	       gid_t gid)
{
	char line[64];
	int r;

	/* Without this a user could leave a group that a file is denied to. */
	r = write_file(pid, "setgroups", "deny");
	if (r < 0 && r != -ENOENT)
		return r;
	snprintf(line, sizeof(line), "%u %u 1", inside_uid, uid);
	r = write_file(pid, "uid_map", line);
	if (r < 0)
		return r;
	snprintf(line, sizeof(line), "%u %u 1", inside_gid, gid);
	return write_file(pid, "gid_map", line);
}

/* The number in /proc/sys/@name, or -1 where there is no such switch. */
static long read_switch(const char *name)
{
	char path[96], text[32];
	AUTO_FD int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

/* The switches are read before we try: afterwards we may see the new
 * namespace's own. */
struct switches {
	long clone, max, apparmor;
};

static void explain(const struct switches *now, int error, char *reterr,
		    size_t cap)
{
	if (now->clone == 0)
		snprintf(reterr, cap,
			 "user namespaces are switched off: run `sysctl -w "
			 "kernel.unprivileged_userns_clone=1` as root, or run "
			 "sallyport as root");
	else if (now->max == 0 || error == ENOSPC)
		snprintf(reterr, cap,
			 "no user namespace is left (user.max_user_namespaces "
			 "is %ld): run `sysctl -w user.max_user_namespaces="
			 "15000` as root, or run sallyport as root",
			 now->max);
	else if (now->apparmor == 1)
		snprintf(reterr, cap,
			 "AppArmor restricts user namespaces: install "
			 "sallyport's AppArmor profile (package apparmor), run "
			 "`sysctl -w kernel.apparmor_restrict_unprivileged_"
			 "userns=0` as root, or run sallyport as root");
	else if (error == ENOSYS || error == EINVAL)
		snprintf(reterr, cap,
			 "this kernel has no user namespaces (CONFIG_USER_NS): "
			 "run sallyport as root");
	else
		snprintf(reterr, cap,
			 "cannot make a user namespace: %s (in a container, "
			 "its seccomp profile may forbid it; sysctls that "
			 "matter: kernel.unprivileged_userns_clone, "
			 "user.max_user_namespaces, "
			 "kernel.apparmor_restrict_unprivileged_userns)",
			 strerror(error));
}

int userns_enter(char *reterr, size_t cap)
{
	struct switches now = {
		.clone = read_switch("kernel/unprivileged_userns_clone"),
		.max = read_switch("user/max_user_namespaces"),
		.apparmor = read_switch(
			"kernel/apparmor_restrict_unprivileged_userns"),
	};
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r = 0;

	if (unshare(CLONE_NEWUSER) < 0)
		r = -errno;
	if (r == 0)
		r = userns_map(0, 0, uid, 0, gid);
	if (r < 0)
		explain(&now, -r, reterr, cap);
	return r;
}

/* A namespace needs a process to be born with. */
int userns_make(uid_t inside_uid, uid_t uid, gid_t inside_gid, gid_t gid)
{
	struct helper helper;
	char path[64];
	int r = helper_hold_userns(&helper);

	if (r < 0)
		return r;
	r = userns_map(helper.pid, inside_uid, uid, inside_gid, gid);
	if (r == 0) {
		snprintf(path, sizeof(path), "/proc/%d/ns/user",
			 (int)helper.pid);
		r = open(path, O_RDONLY | O_CLOEXEC);
		if (r < 0)
			r = -errno;
	}
	helper_end(&helper);
	return r;
}
