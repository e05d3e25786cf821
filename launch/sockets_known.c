/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets_known.c - a file of directories, sorted by device and inode.
 *
 * An entry that is made, removed or renamed changes the directory's ctime,
 * which nobody can set. So the same device, inode and ctime are the same
 * entries, on file systems that are known to keep to that, and if the time was
 * no longer the present one when the directory was read: within one tick of the
 * clock there may be two changes, and only one time.
 *
 * The file is its owner's alone and lies where no sandbox sees it. What it says
 * is checked for bounds only: a wrong length is met as if nothing was known.
 */
#include "launch/sockets_known.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAGIC	   "SPKNOWN1"
#define DIRS_MAX   16384u
#define NAMES_MAX  (4u << 20)
#define SETTLED_S  2
#define WORTH_DIRS 64 /* new ones, to write the file for */

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

struct head {
	char magic[8];
	uint32_t dirs, names;
};

struct dir {
	uint64_t dev, ino;
	int64_t s;
	uint32_t ns, entries;
	uint32_t at, len; /* in the names */
};

struct list {
	struct dir *dir;
	char *name;
	uint32_t dirs, names, dirs_cap, names_cap;
};

struct known {
	char path[PATH_MAX];
	struct list old, new; /* the old one lies in the file */
	void *map;
	size_t mapped;
	bool *seen; /* of the old ones */
	time_t now;
	dev_t judged;
	bool judged_well;
};

static int compare(const void *a, const void *b)
{
	const struct dir *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

static bool is_ours(int fd, off_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || st.st_mode & 077)
		return false;
	*ret_size = st.st_size;
	return true;
}

static void load(struct known *known)
{
	AUTO_FD int fd = open(known->path,
			      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct list *old = &known->old;
	const struct head *head;
	off_t size;

	if (fd < 0 || !is_ours(fd, &size) || size < (off_t)sizeof(*head))
		return;
	head = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (head == MAP_FAILED)
		return;
	known->map = (void *)(uintptr_t)head;
	known->mapped = (size_t)size;
	if (memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0 ||
	    head->dirs > DIRS_MAX || head->names > NAMES_MAX ||
	    (uint64_t)size != sizeof(*head) + head->names +
				      (uint64_t)head->dirs * sizeof(*old->dir))
		return;
	known->seen = calloc(head->dirs + 1, sizeof(*known->seen));
	if (!known->seen)
		return;
	old->dir = (struct dir *)(head + 1);
	old->name = (char *)(old->dir + head->dirs);
	old->dirs = head->dirs;
	old->names = head->names;
}

struct known *known_open(const char *path)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	snprintf(known->path, sizeof(known->path), "%s", path);
	known->now = time(NULL);
	load(known);
	return known;
}

/* Its names lie within, and the last is terminated. */
static bool is_whole(const struct list *list, const struct dir *dir)
{
	return dir->at <= list->names && dir->len <= list->names - dir->at &&
	       (!dir->len || !list->name[dir->at + dir->len - 1]);
}

bool known_find(struct known *known, const struct stat *st,
		struct known_dir *ret)
{
	const struct list *old = &known->old;
	const struct dir key = { .dev = st->st_dev, .ino = st->st_ino };
	const struct dir *dir = old->dirs ? bsearch(&key, old->dir, old->dirs,
						    sizeof(*old->dir), compare)
					  : NULL;

	if (!dir || dir->s != st->st_ctim.tv_sec ||
	    dir->ns != st->st_ctim.tv_nsec || !is_whole(old, dir))
		return false;
	known->seen[dir - old->dir] = true;
	*ret = (struct known_dir){ .entries = dir->entries,
				   .name = old->name + dir->at,
				   .end = old->name + dir->at + dir->len };
	return true;
}

/* Does a change of its entries show in a directory's ctime, for everybody? */
static bool keeps_time(struct known *known, int dir, dev_t dev)
{
	struct statfs fs;

	if (known->judged == dev)
		return known->judged_well;
	known->judged = dev;
	known->judged_well = false;
	if (fstatfs(dir, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		known->judged_well = true;
	}
	return known->judged_well;
}

static bool grow(void **array, uint32_t *cap, uint64_t want, size_t size)
{
	uint64_t more = *cap ? *cap : 256;
	void *grown;

	if (want <= *cap)
		return true;
	while (more < want)
		more *= 2;
	grown = reallocarray(*array, more, size);
	if (!grown)
		return false;
	*array = grown;
	*cap = (uint32_t)more;
	return true;
}

static void append(struct list *list, const struct dir *what, const char *name)
{
	struct dir *dir;

	if (list->dirs >= DIRS_MAX || what->len > NAMES_MAX - list->names ||
	    !grow((void **)&list->dir, &list->dirs_cap, list->dirs + 1u,
		  sizeof(*list->dir)) ||
	    !grow((void **)&list->name, &list->names_cap,
		  (uint64_t)list->names + what->len, 1))
		return;
	dir = &list->dir[list->dirs++];
	*dir = *what;
	dir->at = list->names;
	if (dir->len)
		memcpy(list->name + dir->at, name, dir->len);
	list->names += dir->len;
}

void known_add(struct known *known, int fd, const struct stat *st,
	       const struct known_dir *what)
{
	struct dir dir = { .dev = st->st_dev,
			   .ino = st->st_ino,
			   .s = st->st_ctim.tv_sec,
			   .ns = (uint32_t)st->st_ctim.tv_nsec,
			   .entries = what->entries };
	size_t len = (size_t)(what->end - what->name);

	/* Without nanoseconds: the clock of that file system has large ticks,
	 * and may meet the same one twice when it is set back. */
	if (!dir.ns || dir.s > known->now - SETTLED_S || len > NAMES_MAX ||
	    !keeps_time(known, fd, st->st_dev))
		return;
	dir.len = (uint32_t)len;
	append(&known->new, &dir, what->name);
}

static bool is_new(const struct list *sorted, uint32_t n, const struct dir *dir)
{
	return bsearch(dir, sorted->dir, n, sizeof(*dir), compare);
}

/* Those that were not met this time come last: another working directory's. */
static void keep_old(struct known *known)
{
	struct list *new = &known->new;
	const struct list *old = &known->old;
	const uint32_t n = new->dirs;

	qsort(new->dir, n, sizeof(*new->dir), compare);
	for (int seen = 1; seen >= 0; seen--)
		for (uint32_t i = 0; i < old->dirs; i++)
			if (known->seen[i] == (bool)seen &&
			    is_whole(old, &old->dir[i]) &&
			    !is_new(new, n, &old->dir[i]))
				append(new, &old->dir[i],
				       old->name + old->dir[i].at);
	qsort(new->dir, new->dirs, sizeof(*new->dir), compare);
}

static bool write_all(int fd, const void *buf, size_t len)
{
	return write(fd, buf, len) == (ssize_t)len;
}

/* A limit to the size of files would end us. */
static bool may_write(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && size <= limit.rlim_cur;
}

static void save(struct known *known)
{
	const struct list *list = &known->new;
	struct head head = { .magic = MAGIC };
	size_t size = list->dirs * sizeof(*list->dir);
	char path[PATH_MAX + 8];
	AUTO_FD int fd = -1;

	head.dirs = list->dirs;
	head.names = list->names;
	if (!may_write(sizeof(head) + size + list->names))
		return;
	snprintf(path, sizeof(path), "%s.XXXXXX", known->path);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return;
	if (!write_all(fd, &head, sizeof(head)) ||
	    !write_all(fd, list->dir, size) ||
	    !write_all(fd, list->name, list->names) ||
	    rename(path, known->path) < 0)
		unlink(path);
}

void known_close(struct known *known)
{
	if (!known)
		return;
	if (known->new.dirs >= WORTH_DIRS) {
		keep_old(known);
		save(known);
	}
	if (known->map)
		munmap(known->map, known->mapped);
	free(known->new.dir);
	free(known->new.name);
	free(known->seen);
	free(known);
}
