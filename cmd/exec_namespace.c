/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_namespace.c - looks before it enters.
 *
 * A path is only a name: by the time we open it, another sandbox may have it,
 * or after a reboot nobody. A command that then ran in our own namespace would
 * reach everything, so the file that is opened is asked what it is, and the
 * same descriptor is entered.
 */
#include "cmd/exec_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

static int __attribute__((format(printf, 4, 5)))
fault(int err, char *reterr, size_t cap, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(reterr, cap, format, ap);
	va_end(ap);
	return err;
}

/* Is @fd the same as what is at @path? One that can't be seen is another. */
static bool is_same(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int check_net(int fd, const char *path, char *reterr, size_t cap)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != NSFS_MAGIC ||
	    ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return fault(-EINVAL, reterr, cap,
			     "%s is no network namespace: the sandbox is gone",
			     path);
	if (is_same(fd, "/proc/self/ns/net") || is_same(fd, "/proc/1/ns/net"))
		return fault(-EINVAL, reterr, cap,
			     "%s is this machine's own network", path);
	return 0;
}

/* @user owns the network namespace. */
static int check_owner(int user, uid_t owner, bool root, char *reterr,
		       size_t cap)
{
	uid_t uid;

	if (is_same(user, "/proc/self/ns/user"))
		return owner == 0 && root
			       ? 0
			       : fault(-EPERM, reterr, cap,
				       "the sandbox's namespace is not its "
				       "user's");
	if (ioctl(user, NS_GET_OWNER_UID, &uid) < 0)
		return fault(-errno, reterr, cap, "whose sandbox is it? %s",
			     strerror(errno));
	if (uid != owner || (!root && owner != geteuid()))
		return fault(-EPERM, reterr, cap,
			     "the sandbox's namespace belongs to user %u", uid);
	return 0;
}

int exec_namespace_open(const char *path, uid_t owner, bool root,
			struct exec_namespace *ret, char *reterr, size_t cap)
{
	AUTO_FD int net = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
					     O_NONBLOCK | O_NOCTTY);
	int err;

	if (*path != '/' || net < 0)
		return fault(net < 0 ? -errno : -EINVAL, reterr, cap,
			     "the sandbox's namespace %s: %s", path,
			     net < 0 ? strerror(errno) : "no absolute path");
	err = check_net(net, path, reterr, cap);
	if (err)
		return err;
	AUTO_FD int user = ioctl(net, NS_GET_USERNS);
	if (user < 0)
		return fault(-errno, reterr, cap, "whose sandbox is it? %s",
			     strerror(errno));
	err = check_owner(user, owner, root, reterr, cap);
	if (err)
		return err;
	ret->net = steal_fd(&net);
	/* Root has all rights over it from where it is. */
	ret->user = root ? -1 : steal_fd(&user);
	return 0;
}

/* "0 ID 1" is all of the map. */
static bool read_map(const char *path, unsigned *ret_id)
{
	AUTO_FILE FILE *map = fopen(path, "re");
	unsigned inside, outside, count, more;

	if (!map || fscanf(map, "%u %u %u", &inside, &outside, &count) != 3 ||
	    inside != 0 || count != 1 || fscanf(map, "%u", &more) == 1)
		return false;
	*ret_id = outside;
	return true;
}

int exec_namespace_enter(const struct exec_namespace *ns, gid_t *ret_gid,
			 char *reterr, size_t cap)
{
	uid_t was = geteuid();
	unsigned uid, gid;

	if (ns->user < 0)
		return 0;
	if (setns(ns->user, CLONE_NEWUSER) < 0)
		return fault(-errno, reterr, cap,
			     "cannot enter the sandbox's user namespace: %s",
			     strerror(errno));
	if (!read_map("/proc/self/uid_map", &uid) ||
	    !read_map("/proc/self/gid_map", &gid) || uid != was)
		return fault(-EPERM, reterr, cap,
			     "the sandbox's user namespace is not yours alone");
	/* We may have another group now than when it was made. */
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return fault(-errno, reterr, cap,
			     "cannot become the sandbox's user: %s",
			     strerror(errno));
	*ret_gid = gid;
	return 0;
}

void exec_namespace_close(struct exec_namespace *ns)
{
	close_fd(&ns->net);
	close_fd(&ns->user);
}
