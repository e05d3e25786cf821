/* SPDX-License-Identifier: Apache-2.0
 *
 * log_reader.c - one access control list, of five entries, as the kernel's
 * extended attribute has it (linux/posix_acl_xattr.h).
 */
#include "cmd/log_reader.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/cleanup.h"

#define ACL_ATTRIBUTE "system.posix_acl_access"
#define ACL_VERSION   2
#define ACL_NOBODY    0xffffffffu

enum {
	TAG_OWNER = 1,
	TAG_USER = 2,
	TAG_GROUP = 4,
	TAG_MASK = 16,
	TAG_REST = 32
};
enum { MAY_SEARCH = 1, MAY_WRITE = 2, MAY_READ = 4 };

struct entry {
	uint16_t tag, permissions;
	uint32_t id;
};

struct list {
	uint32_t version;
	struct entry entry[5];
};

static struct entry entry(unsigned tag, unsigned permissions, uint32_t id)
{
	return (struct entry){ .tag = htole16((uint16_t)tag),
			       .permissions = htole16((uint16_t)permissions),
			       .id = htole32(id) };
}

int log_reader_add(int fd, bool dir, uid_t uid)
{
	const unsigned read = MAY_READ | (dir ? MAY_SEARCH : 0);
	const struct list list = {
		.version = htole32(ACL_VERSION),
		.entry = { entry(TAG_OWNER, read | MAY_WRITE, ACL_NOBODY),
			   entry(TAG_USER, read, uid),
			   entry(TAG_GROUP, 0, ACL_NOBODY),
			   entry(TAG_MASK, read, ACL_NOBODY),
			   entry(TAG_REST, 0, ACL_NOBODY) },
	};

	return fsetxattr(fd, ACL_ATTRIBUTE, &list, sizeof(list), 0) < 0 ? -errno
									: 0;
}

int log_reader_pass(const char *home)
{
	AUTO_FD int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & 0111) == 0111)
		return 0;
	return fchmod(fd, (st.st_mode & 07777) | 0111) < 0 ? -errno : 0;
}
