/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_dir.c - the directory of the log of all sessions.
 *
 * A log is put aside in steps that can be taken up again, whoever dies: first
 * the state of the new one is written as `tree.new`, with what was found of the
 * old; then the old files move, `tree` as the last of them; then new ones are
 * made; and `tree.new` becomes `tree`. So nothing is moved that is not quoted.
 * A lock on the directory is held meanwhile. Whoever still has the old files
 * open finds an empty `tree`, and adds nothing.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/hostlog_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/hostlog_state.h"
#include "base/cleanup.h"

#define TREE_NEW HOSTLOG_TREE ".new"
#define ANEW_MAX 8 /* logs that one who opens begins */
/* How long a session's start waits for those who append. */
#define LOOK_MS	  50
#define OPEN_BOTH (O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

static const char *const names[] = { HOSTLOG_RECORDS, HOSTLOG_CHECKPOINTS,
				     HOSTLOG_VKEY, HOSTLOG_TREE };

static void close_files(struct hostlog_files *files)
{
	close_fd(&files->records);
	close_fd(&files->checkpoints);
	close_fd(&files->tree);
}

static bool same_file(int fd, int dir, const char *name)
{
	struct stat one, two;

	return fstat(fd, &one) == 0 &&
	       fstatat(dir, name, &two, AT_SYMLINK_NOFOLLOW) == 0 &&
	       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* `tree` is opened first and looked for again at the end: if it is still there
 * then, the others are of the same log. Returns 0, -EUCLEAN, or -errno. */
static int open_files(int dir, struct hostlog_files *ret_files)
{
	struct hostlog_files files = { -1, -1, -1 };
	int r = -EUCLEAN;

	files.tree = openat(dir, HOSTLOG_TREE, OPEN_BOTH);
	if (files.tree >= 0)
		files.records =
			openat(dir, HOSTLOG_RECORDS, OPEN_BOTH | O_APPEND);
	if (files.records >= 0)
		files.checkpoints =
			openat(dir, HOSTLOG_CHECKPOINTS, OPEN_BOTH | O_APPEND);
	if (files.checkpoints < 0) {
		/* Missing, or no file: that is not how it was left. */
		if (errno != ENOENT && errno != ELOOP && errno != EISDIR &&
		    errno != ENXIO)
			r = -errno;
	} else if (same_file(files.tree, dir, HOSTLOG_TREE)) {
		*ret_files = files;
		return 0;
	}
	close_files(&files);
	return r;
}

static void format_vkey(const struct vkey *vkey, char *ret_line)
{
	vkey_format(vkey, ret_line);
	memcpy(ret_line + strlen(ret_line), "\n", 2);
}

/* Returns 0, -ENOKEY if another key signs, or -EUCLEAN without one. */
static int check_vkey(int dir, const struct vkey *vkey)
{
	struct vkey found;
	int r = key_read_public(dir, HOSTLOG_VKEY, &found);

	if (r < 0)
		return -EUCLEAN;
	if (found.id != vkey->id || strcmp(found.name, vkey->name) != 0 ||
	    memcmp(found.public, vkey->public, VKEY_LEN) != 0)
		return -ENOKEY;
	return 0;
}

/* Returns 0, -EUCLEAN, or -errno. */
static int check_files(const struct hostlog_files *files)
{
	char buf[CHECKPOINT_NOTE_MAX];
	struct hostlog_state state;
	struct text note;
	int r = hostlog_lock(files->tree, LOOK_MS);

	if (r < 0)
		return r == -EBUSY ? 0 : r;
	r = hostlog_state_read(files->tree, &state);
	if (r == 0)
		r = hostlog_state_fits(&state, files->records,
				       files->checkpoints);
	if (r == 0 && state.tree.size)
		r = hostlog_state_head(&state, files->checkpoints, buf, &note);
	hostlog_unlock(files->tree);
	return r;
}

/* Files that can be given out. Returns 0; -EUCLEAN or -ENOKEY if the log must
 * be put aside; -errno. */
static int look(int dir, const struct vkey *vkey,
		struct hostlog_files *ret_files)
{
	struct hostlog_files files;
	int r = open_files(dir, &files);

	if (r < 0)
		return r;
	r = check_vkey(dir, vkey);
	if (r == 0)
		r = check_files(&files);
	if (r < 0) {
		close_files(&files);
		return r;
	}
	*ret_files = files;
	return 0;
}

void hostlog_last_checkpoint(int fd, char *ret_note)
{
	char tail[4 * CHECKPOINT_NOTE_MAX];
	off_t size = lseek(fd, 0, SEEK_END);
	size_t want = sizeof(tail);
	ssize_t n;

	*ret_note = '\0';
	if (size >= 0 && (uint64_t)size < want)
		want = (size_t)size;
	n = size < 0 ? -1 : pread(fd, tail, want, size - (off_t)want);
	/* Each line may be its last, and it has five. */
	for (ssize_t end = n; end > 0; end--) {
		struct checkpoint checkpoint;
		struct note note;
		ssize_t start = end - 1;

		if (tail[end - 1] != '\n')
			continue;
		for (int lines = 5; start > 0; start--)
			if (tail[start - 1] == '\n' && --lines == 0)
				break;
		if (end - start < CHECKPOINT_NOTE_MAX &&
		    note_parse((struct text){ tail + start,
					      (size_t)(end - start) },
			       &note) == 0 &&
		    checkpoint_parse(note.text, &checkpoint) == 0) {
			memcpy(ret_note, tail + start, (size_t)(end - start));
			ret_note[end - start] = '\0';
			return;
		}
	}
}

/* What is in audit.jsonl. Returns 0 or -errno. */
static int survey_records(int fd, struct hostlog_earlier *earlier)
{
	char buf[65536];
	SHA256_CTX sha;
	ssize_t n;

	SHA256_Init(&sha);
	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		SHA256_Update(&sha, buf, (size_t)n);
		earlier->bytes += (uint64_t)n;
		for (ssize_t i = 0; i < n; i++)
			earlier->records += buf[i] == '\n';
	}
	SHA256_Final(earlier->sha256, &sha);
	return 0;
}

/* A file to be put aside, for reading; -ENOENT if there is none that can be
 * read. */
static int open_old(int dir, const char *name)
{
	int fd = openat(dir, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close_fd(&fd);
	return -ENOENT;
}

static bool is_there(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A place for it: a new directory. Returns 0 or -errno. */
static int make_place(int dir, char ret_name[LOG_DIR_NAME_MAX])
{
	for (unsigned i = 1; i <= LOG_DIR_PARTS_MAX; i++) {
		snprintf(ret_name, LOG_DIR_NAME_MAX, LOG_DIR_EARLIER, i);
		if (mkdirat(dir, ret_name, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EMLINK;
}

/* What there is to be put aside; no directory is named if nothing is. Returns
 * 0 or -errno. */
static int survey(int dir, struct hostlog_earlier *earlier)
{
	AUTO_FD int records = open_old(dir, HOSTLOG_RECORDS);
	AUTO_FD int checkpoints = open_old(dir, HOSTLOG_CHECKPOINTS);
	bool some = false;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		some = some || is_there(dir, names[i]);
	if (!some)
		return 0;
	if (records >= 0) {
		r = survey_records(records, earlier);
		if (r < 0)
			return r;
	} else {
		SHA256((const uint8_t *)"", 0, earlier->sha256);
	}
	if (checkpoints >= 0)
		hostlog_last_checkpoint(checkpoints, earlier->checkpoint);
	return make_place(dir, earlier->directory);
}

/* Writes a new file and syncs it. */
static int write_file(int dir, const char *name, const void *data, size_t len)
{
	AUTO_FD int fd = openat(
		dir, name,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* Was something done of an attempt before, so that it must be gone on with?
 * If nothing was, the old log may have grown since. */
static bool is_under_way(int dir, const struct hostlog_state *state)
{
	AUTO_FD int place = -1;
	struct stat st;

	if (!*state->earlier.directory)
		return fstatat(dir, HOSTLOG_RECORDS, &st, AT_SYMLINK_NOFOLLOW) <
			       0 ||
		       (S_ISREG(st.st_mode) && st.st_size == 0);
	place = openat(dir, state->earlier.directory,
		       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	for (size_t i = 0; place >= 0 && i < ARRAY_SIZE(names); i++)
		if (is_there(place, names[i]))
			return true;
	return false;
}

/* The state to begin with: that of an attempt before, or a new one. */
static int plan(int dir, struct hostlog_state *ret_state)
{
	AUTO_FD int before = open_old(dir, TREE_NEW);
	uint8_t data[HOSTLOG_STATE_LEN];
	int r;

	if (before >= 0 && hostlog_state_read(before, ret_state) == 0 &&
	    is_under_way(dir, ret_state))
		return 0;
	*ret_state = (struct hostlog_state){ 0 };
	r = survey(dir, &ret_state->earlier);
	if (r < 0)
		return r;
	hostlog_state_save(ret_state, data);
	r = write_file(dir, TREE_NEW, data, sizeof(data));
	if (r == 0 && fsync(dir) < 0)
		r = -errno;
	return r;
}

/* In the same step as it was begun in, or later. */
static int move_old(int dir, const struct hostlog_earlier *earlier)
{
	AUTO_FD int place = -1;

	if (!*earlier->directory)
		return 0;
	place = openat(dir, earlier->directory,
		       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (place < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		/* Of those that were moved before there may be new ones. */
		if (renameat2(dir, names[i], place, names[i],
			      RENAME_NOREPLACE) < 0 &&
		    errno != ENOENT && errno != EEXIST)
			return -errno;
	}
	return fsync(place) < 0 ? -errno : 0;
}

static int make_new(int dir, const struct vkey *vkey)
{
	char line[VKEY_TEXT_MAX + 1];
	int r;

	format_vkey(vkey, line);
	if ((r = write_file(dir, HOSTLOG_RECORDS, "", 0)) < 0 ||
	    (r = write_file(dir, HOSTLOG_CHECKPOINTS, "", 0)) < 0 ||
	    (r = write_file(dir, HOSTLOG_VKEY, line, strlen(line))) < 0)
		return r;
	if (fsync(dir) < 0 || renameat(dir, TREE_NEW, dir, HOSTLOG_TREE) < 0 ||
	    fsync(dir) < 0)
		return -errno;
	return 0;
}

/* The directory is locked, and the log in it can't be gone on with. */
static int begin_anew(int dir, const struct vkey *vkey)
{
	AUTO_FD int tree = openat(dir, HOSTLOG_TREE, OPEN_BOTH);
	struct hostlog_state state;
	int r;

	/* Nobody adds to what we read. */
	if (tree >= 0) {
		r = hostlog_lock(tree, HOSTLOG_WAIT_MS);
		if (r < 0)
			return r;
	}
	r = plan(dir, &state);
	if (r < 0)
		return r;
	if (tree >= 0 && ftruncate(tree, 0) < 0)
		return -errno;
	r = move_old(dir, &state.earlier);
	return r < 0 ? r : make_new(dir, vkey);
}

static int open_dir(int home, const char *name)
{
	AUTO_FD int dir = -1;
	struct stat st;

	if (!is_there(home, name) && mkdirat(home, name, 0700) < 0 &&
	    errno != EEXIST)
		return -errno;
	dir = openat(home, name,
		     O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 || fstat(dir, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return -EPERM;
	return steal_fd(&dir);
}

static int make_vkey(const struct vkey *signer, struct vkey *ret_vkey)
{
	char name[VKEY_NAME_MAX + sizeof("/" HOSTLOG_SESSION)];
	int len = snprintf(name, sizeof(name), "%s/" HOSTLOG_SESSION,
			   signer->name);

	return vkey_make((struct text){ name, (size_t)len }, signer->public,
			 ret_vkey);
}

char *hostlog_dir_name(const struct vkey *signer, bool apart, char *ret_name)
{
	if (apart)
		snprintf(ret_name, HOSTLOG_DIR_MAX, HOSTLOG_DIR "-%08x",
			 signer->id);
	else
		snprintf(ret_name, HOSTLOG_DIR_MAX, HOSTLOG_DIR);
	return ret_name;
}

/* Can the log that a look found not be gone on with? */
static bool is_lost(int look, bool ongoing)
{
	return look == -EUCLEAN || (look == -ENOKEY && !ongoing);
}

int hostlog_dir_open(int home, const char *name, const struct vkey *signer,
		     bool ongoing, struct hostlog_files *ret_files)
{
	AUTO_FD int dir = open_dir(home, name);
	struct vkey vkey;
	int r;

	if (dir < 0)
		return dir;
	r = make_vkey(signer, &vkey);
	if (r < 0)
		return r;
	r = look(dir, &vkey, ret_files);
	if (!is_lost(r, ongoing))
		return r;
	r = hostlog_lock(dir, HOSTLOG_WAIT_MS);
	if (r < 0)
		return r;
	/* Somebody may have done it while we waited; and whoever appends to
	 * the new one at once may be killed at that, once more. */
	r = look(dir, &vkey, ret_files);
	for (int i = 0; i < ANEW_MAX && is_lost(r, ongoing); i++) {
		r = begin_anew(dir, &vkey);
		if (r == 0)
			r = look(dir, &vkey, ret_files);
	}
	return r;
}
