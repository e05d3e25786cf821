/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_marks.c - a note is a text of entries "DEVICE INODE BIRTH PATH", each
 * ending in NUL. An inode number is used again after a while, so that the time
 * of birth belongs to it, where a file system knows it. A path with three times
 * 0 was given up: no file is that.
 */
#include "cmd/policy_marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/session.h"

#define NOTES	      "masked"
#define MARK_NOTE_MAX ((size_t)1 << 20)
#define ENTRY_MAX     (PATH_MAX + 64)

struct identity {
	uint64_t dev, ino, born;
};

static const struct identity nobody;

static int identify(int fd, const char *path, struct identity *ret)
{
	int flags = AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH);
	struct statx st;

	if (statx(fd, path, flags, STATX_INO | STATX_BTIME, &st) < 0)
		return -errno;
	*ret = (struct identity){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
	};
	if (st.stx_mask & STATX_BTIME)
		ret->born = (uint64_t)st.stx_btime.tv_sec * 1000000000 +
			    st.stx_btime.tv_nsec;
	return 0;
}

static bool same(const struct identity *a, const struct identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->born == b->born;
}

/* --- of this session ----------------------------------------------------- */

static int make_note(struct policy_marks *marks, const char *home,
		     const char *id)
{
	char dir[PATH_MAX];
	int len = snprintf(dir, sizeof(dir), "%s/" NOTES, home);
	int err;

	if (len < 0 || (size_t)len >= sizeof(dir))
		return -ENAMETOOLONG;
	err = session_mkdir(dir);
	if (err)
		return err;
	if (asprintf(&marks->note, "%s/%s", dir, id) < 0) {
		marks->note = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int write_entry(const char *note, const struct identity *file,
		       const char *path)
{
	char entry[ENTRY_MAX];
	int len = snprintf(entry, sizeof(entry),
			   "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s", file->dev,
			   file->ino, file->born, path);
	AUTO_FD int fd = open(
		note, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		0600);

	if (fd < 0)
		return -errno;
	if (len < 0 || (size_t)len >= sizeof(entry))
		return -ENAMETOOLONG;
	len++; /* with its NUL */
	return write(fd, entry, (size_t)len) == len ? 0 : -EIO;
}

static int grow(struct policy_marks *marks)
{
	int *fd = reallocarray(marks->fd, marks->n + 1, sizeof(*fd));
	char **path;

	if (!fd)
		return -ENOMEM;
	marks->fd = fd;
	path = reallocarray(marks->path, marks->n + 1, sizeof(*path));
	if (!path)
		return -ENOMEM;
	marks->path = path;
	return 0;
}

int policy_marks_add(struct policy_marks *marks, const char *home,
		     const char *id, const char *path)
{
	AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	AUTO_FREE char *copy = strdup(path);
	struct identity file;
	int err;

	if (fd < 0)
		return -errno;
	if (!copy || grow(marks))
		return -ENOMEM;
	err = identify(fd, "", &file);
	if (!err && !marks->note)
		err = make_note(marks, home, id);
	if (!err)
		err = write_entry(marks->note, &file, path);
	if (err)
		return err;
	marks->fd[marks->n] = steal_fd(&fd);
	marks->path[marks->n++] = STEAL(copy);
	return 0;
}

/* What is not there at the end the command has not written. */
static bool is_kept(const char *path, int fd)
{
	struct identity was, is;
	int err = identify(AT_FDCWD, path, &is);

	if (err)
		return err == -ENOENT;
	return identify(fd, "", &was) == 0 && same(&was, &is);
}

const char *policy_marks_settle(struct policy_marks *marks)
{
	const char *first = NULL;

	for (size_t i = 0; i < marks->n; i++) {
		if (is_kept(marks->path[i], marks->fd[i]))
			continue;
		write_entry(marks->note, &nobody, marks->path[i]);
		first = first ? first : marks->path[i];
	}
	if (marks->note && !first)
		unlink(marks->note);
	return first;
}

void policy_marks_free(struct policy_marks *marks)
{
	for (size_t i = 0; i < marks->n; i++) {
		close(marks->fd[i]);
		free(marks->path[i]);
	}
	free(marks->fd);
	free(marks->path);
	free(marks->note);
	*marks = (struct policy_marks){ 0 };
}

/* --- of others ----------------------------------------------------------- */

static int read_note(int dir, const char *name, char **ret_text, size_t *ret)
{
	AUTO_FD int fd = openat(dir, name,
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	AUTO_FREE char *text = malloc(MARK_NOTE_MAX);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	n = read(fd, text, MARK_NOTE_MAX);
	if (n < 0)
		return -errno;
	*ret_text = STEAL(text);
	*ret = (size_t)n;
	return 0;
}

/* Does an entry name @path, and another file than @file? */
static bool tells(const char *entry, const char *path,
		  const struct identity *file)
{
	struct identity was;
	int at = 0;

	if (sscanf(entry, "%" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &was.dev,
		   &was.ino, &was.born, &at) != 3 ||
	    entry[at] != ' ' || strcmp(entry + at + 1, path) != 0)
		return false;
	return !same(&was, file);
}

static bool note_tells(int dir, const char *name, const char *path,
		       const struct identity *file)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	int err = read_note(dir, name, &text, &len);

	/* It has been taken back just now; or it can't be asked. */
	if (err)
		return err != -ENOENT;
	for (const char *at = text, *end; len; at = end + 1) {
		end = memchr(at, '\0', len);
		if (!end)
			break; /* not yet whole: its command has not begun */
		if (tells(at, path, file))
			return true;
		len -= (size_t)(end - at) + 1;
	}
	return false;
}

static int complain(const char *home, const char *id, const char *path,
		    struct policy_error *reterr)
{
	snprintf(reterr->text, sizeof(reterr->text),
		 "%.120s: it was replaced by another file while a sandboxed "
		 "command ran, which could write to it\nLook at what it says "
		 "now. If it is yours: rm %.180s/" NOTES "/%.40s",
		 path, home, id);
	return -EINVAL;
}

int policy_marks_check(const char *home, const char *path,
		       struct policy_error *reterr)
{
	AUTO_FREE char *real = realpath(path, NULL);
	char name[PATH_MAX];
	struct identity file;
	const struct dirent *entry;
	int len = snprintf(name, sizeof(name), "%s/" NOTES, home), ret = 0;
	DIR *dir = NULL;

	if (len > 0 && (size_t)len < sizeof(name))
		dir = opendir(name);
	if (!dir)
		return 0; /* nobody has noted anything */
	if (!real || identify(AT_FDCWD, real, &file)) {
		closedir(dir);
		return 0; /* it is gone: who reads it will say so */
	}
	while (!ret && (entry = readdir(dir)))
		if (*entry->d_name != '.' &&
		    note_tells(dirfd(dir), entry->d_name, real, &file))
			ret = complain(home, entry->d_name, path, reterr);
	closedir(dir);
	return ret;
}
