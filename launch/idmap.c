/* SPDX-License-Identifier: Apache-2.0
 *
 * idmap.c - three system calls that not every libc knows.
 */
#include "launch/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int idmap_clone_fd(int fd, int userns)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	AUTO_FD int tree = -1;

	tree = (int)syscall(SYS_open_tree, fd, "",
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
				    AT_EMPTY_PATH);
	if (tree < 0)
		return -errno;
	if (userns >= 0) {
		attr.userns_fd = (unsigned int)userns;
		if (syscall(SYS_mount_setattr, tree, "",
			    AT_EMPTY_PATH | AT_RECURSIVE, &attr,
			    sizeof(attr)) < 0)
			return -errno;
	}
	return steal_fd(&tree);
}

int idmap_attach(int tree, const char *place)
{
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, place,
		    MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}
