/* SPDX-License-Identifier: Apache-2.0
 *
 * session_log.c - the files of a session's log.
 *
 * Two locks: ours on the directory, and one on the file of records, which goes
 * with its descriptor to the ledger. So a ledger that outlives its warden by a
 * moment keeps its file, too. Both are waited for a little: those who had a
 * session that was killed are about to end.
 */
#include "cmd/session_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/note.h"
#include "base/cleanup.h"
#include "cmd/log_reader.h"

#define LOG_DIR_EARLIER_SCAN "earlier-%6u"
#define EARLIER_MAX	     999999u
#define LOCK_WAIT_MS	     2000
#define LOCK_STEP_MS	     20

#define NEW_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW)

/* --- whose directory it is ----------------------------------------------- */

/* Where a file system has no locks we do without. */
static int lock(int fd)
{
	int wait_ms = LOCK_WAIT_MS;
	const struct timespec step = { .tv_nsec = LOCK_STEP_MS * 1000000l };

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return 0;
		if (wait_ms <= 0)
			return -EBUSY;
		nanosleep(&step, NULL);
		wait_ms -= LOCK_STEP_MS;
	}
	return 0;
}

/* A file to be read, or -errno. */
static int open_old(int dir, const char *name)
{
	struct stat st;
	AUTO_FD int fd = openat(dir, name,
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
					O_NOCTTY);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? steal_fd(&fd) : -EINVAL;
}

/* A new log is made, and an old one looked at, only under the lock of the
 * directory; so a file of records that is locked has a writer. */
static int take_dir(struct session_log *log)
{
	int r = lock(log->dir);

	if (r < 0)
		return r;
	AUTO_FD int records = open_old(log->dir, LOG_DIR_RECORDS);

	return records < 0 ? 0 : lock(records);
}

/* --- what an earlier session left ---------------------------------------- */

static bool is_part(const char *name)
{
	static const char begin[] = LOG_DIR_RECORDS ".";
	size_t len = sizeof(begin) - 1;

	return strncmp(name, begin, len) == 0 &&
	       strspn(name + len, "0123456789") == 6 && strlen(name) == len + 6;
}

static bool is_ours(const char *name)
{
	static const char *const names[] = {
		LOG_DIR_RECORDS, LOG_DIR_CHECKPOINTS, LOG_DIR_VKEY,
		LOG_DIR_RECEIPT, LOG_DIR_RECEIPT_NEW,
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return is_part(name);
}

static int count(int dir, const char *name, struct msg_ledger_earlier *to)
{
	static char buf[256 << 10];
	AUTO_FD int fd = open_old(dir, name);
	ssize_t n = 0;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0) {
		const char *at = buf, *end = buf + n;

		to->bytes += (uint64_t)n;
		while ((at = memchr(at, '\n', (size_t)(end - at)))) {
			to->lines++;
			if (++at == end)
				break;
		}
	}
	/* What is no file, or can't be read, is moved all the same. */
	return fd >= 0 && n < 0 ? -errno : 0;
}

/* @at is behind a line: moves it before @lines of them. False if there are
 * fewer. */
static bool go_back(struct text text, size_t *at, unsigned lines)
{
	while (lines--) {
		if (!*at)
			return false;
		do
			--*at;
		while (*at && text.at[*at - 1] != '\n');
	}
	return true;
}

/* Without its last @lines, @text ends with a checkpoint. */
static bool take_note(struct text text, unsigned lines,
		      struct msg_ledger_earlier *to)
{
	size_t begin, end = text.len;
	struct checkpoint checkpoint;
	struct note parsed;
	struct text note;

	if (!go_back(text, &end, lines))
		return false;
	begin = end;
	if (!go_back(text, &begin, 5))
		return false;
	note = (struct text){ text.at + begin, end - begin };
	if (note.len >= sizeof(to->checkpoint) ||
	    note_parse(note, &parsed) < 0 ||
	    checkpoint_parse(parsed.text, &checkpoint) < 0)
		return false;
	memcpy(to->checkpoint, note.at, note.len);
	to->checkpoint[note.len] = '\0';
	return true;
}

/* The last whole one: a crash may have cut what follows. */
static void take_checkpoint(int dir, struct msg_ledger_earlier *to)
{
	static char tail[3 * CHECKPOINT_NOTE_MAX];
	AUTO_FD int fd = open_old(dir, LOG_DIR_CHECKPOINTS);
	struct text text = { tail, 0 };
	struct stat st;
	off_t from;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	from = st.st_size > (off_t)sizeof(tail)
		       ? st.st_size - (off_t)sizeof(tail)
		       : 0;
	n = pread(fd, tail, sizeof(tail), from);
	if (n <= 0)
		return;
	text.len = (size_t)n;
	while (text.len && tail[text.len - 1] != '\n')
		text.len--;
	for (unsigned lines = 0; lines < 5; lines++)
		if (take_note(text, lines, to))
			return;
}

/* The number of a place that an earlier log was moved to; 0: it is none. */
static unsigned place_number(const char *name)
{
	char same[LOG_DIR_NAME_MAX];
	unsigned number;

	if (sscanf(name, LOG_DIR_EARLIER_SCAN, &number) != 1 ||
	    number > EARLIER_MAX)
		return 0;
	snprintf(same, sizeof(same), LOG_DIR_EARLIER, number);
	return strcmp(name, same) == 0 ? number : 0;
}

/* @ret_place: so many places are taken, from the first; 0 if some between them
 * are free. */
static int look(struct session_log *log, DIR *all, unsigned *ret_place)
{
	struct msg_ledger_earlier *earlier = &log->earlier;
	struct stat st;
	unsigned taken = 0, highest = 0;
	int r = 0;

	for (struct dirent *d; r == 0 && (d = readdir(all));) {
		unsigned number = place_number(d->d_name);

		taken += number != 0;
		if (number > highest)
			highest = number;
		if (!is_ours(d->d_name))
			continue;
		log->has_earlier = true;
		if (is_part(d->d_name) ||
		    strcmp(d->d_name, LOG_DIR_RECORDS) == 0)
			r = count(log->dir, d->d_name, earlier);
	}
	*ret_place = taken == highest ? taken : 0;
	earlier->receipt = fstatat(log->dir, LOG_DIR_RECEIPT, &st,
				   AT_SYMLINK_NOFOLLOW) == 0 &&
			   S_ISREG(st.st_mode) && st.st_size > 0;
	take_checkpoint(log->dir, earlier);
	return r;
}

/* After the first @last, so that the place after many is found at once. */
static int make_place(struct session_log *log, unsigned last)
{
	for (unsigned i = last < EARLIER_MAX ? last + 1 : 1; i <= EARLIER_MAX;
	     i++) {
		snprintf(log->kept, sizeof(log->kept), LOG_DIR_EARLIER, i);
		if (mkdirat(log->dir, log->kept, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -ENOSPC;
}

static int move(struct session_log *log, DIR *all, unsigned last)
{
	AUTO_FD int to = -1;
	int r = make_place(log, last);

	if (r < 0)
		return r;
	to = openat(log->dir, log->kept,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (to < 0)
		return -errno;
	rewinddir(all);
	for (struct dirent *d; (d = readdir(all));) {
		/* Where there are no locks, another one may have been faster.
		 */
		if (is_ours(d->d_name) &&
		    renameat2(log->dir, d->d_name, to, d->d_name,
			      RENAME_NOREPLACE) < 0 &&
		    errno != ENOENT)
			return -errno;
	}
	return 0;
}

static int keep_earlier(struct session_log *log)
{
	int fd = openat(log->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = fd < 0 ? NULL : fdopendir(fd);
	unsigned last = 0;
	int r;

	if (!all) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	r = look(log, all, &last);
	if (r == 0 && log->has_earlier)
		r = move(log, all, last);
	closedir(all);
	return r;
}

/* --- the new one --------------------------------------------------------- */

static int make_file(int dir, const char *name, int flags, mode_t mode,
		     int *ret_fd)
{
	*ret_fd = openat(dir, name, NEW_FLAGS | flags, mode);
	return *ret_fd < 0 ? -errno : 0;
}

static int make_records(int dir, int *ret_fd)
{
	int r = make_file(dir, LOG_DIR_RECORDS, O_APPEND, 0600, ret_fd);

	return r < 0 ? r : lock(*ret_fd);
}

static int sync_dir(int dir)
{
	return fsync(dir) < 0 && errno != EINVAL ? -errno : 0;
}

static int make_files(struct session_log *log)
{
	int r;

	if ((r = make_records(log->dir, &log->records)) ||
	    (r = make_file(log->dir, LOG_DIR_CHECKPOINTS, O_APPEND, 0600,
			   &log->checkpoints)) ||
	    (r = make_file(log->dir, LOG_DIR_VKEY, 0, 0644, &log->vkey)) ||
	    (r = make_file(log->dir, LOG_DIR_RECEIPT_NEW, 0, 0600,
			   &log->receipt)))
		return r;
	/* Else their names get there with the file of records, where the file
	 * system takes names along, or within seconds. */
	return log->durable ? sync_dir(log->dir) : 0;
}

int session_log_open(const char *dir, bool durable, struct session_log *ret,
		     char *reterr, size_t cap)
{
	const char *what = dir;
	int r;

	*ret = (struct session_log){ .durable = durable,
				     .dir = -1,
				     .records = -1,
				     .checkpoints = -1,
				     .vkey = -1,
				     .receipt = -1 };
	ret->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	r = ret->dir < 0 ? -errno : take_dir(ret);
	if (r == -EBUSY) {
		snprintf(reterr, cap,
			 "%s: another session writes its log there", dir);
		session_log_close(ret);
		return r;
	}
	if (r == 0) {
		r = keep_earlier(ret);
		what = "keeping the log that is there";
	}
	if (r == 0) {
		r = make_files(ret);
		what = "making the files of the log";
	}
	if (r < 0) {
		snprintf(reterr, cap, "%s%s%s: %s", dir,
			 what == dir ? "" : ": ", what == dir ? "" : what,
			 strerror(-r));
		session_log_close(ret);
	}
	return r;
}

int session_log_share(struct session_log *log, uid_t reader)
{
	const int files[] = { log->records, log->checkpoints, log->vkey,
			      log->receipt };
	int r = 0;

	if (!reader)
		return 0;
	log->reader = reader;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = log_reader_add(files[i], false, reader);
	/* Last: until then nobody gets at any. */
	return r < 0 ? r : log_reader_add(log->dir, true, reader);
}

int session_log_rotate(struct session_log *log, unsigned number)
{
	char name[LOG_DIR_NAME_MAX];
	int fd = -1, r;

	if (number != log->parts + 1 || number > LOG_DIR_PARTS_MAX)
		return -EBADMSG;
	snprintf(name, sizeof(name), LOG_DIR_PART, number);
	if (renameat2(log->dir, LOG_DIR_RECORDS, log->dir, name,
		      RENAME_NOREPLACE) < 0)
		return -errno;
	r = make_records(log->dir, &fd);
	if (r < 0) {
		close_fd(&fd);
		renameat(log->dir, name, log->dir, LOG_DIR_RECORDS);
		return r;
	}
	log->parts = number;
	if (log->reader)
		(void)log_reader_add(fd, false, log->reader);
	/* Who finds one name after a crash finds both. */
	if (fsync(log->dir) < 0 && errno != EINVAL) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

int session_log_finish(struct session_log *log, bool receipt)
{
	struct stat st;

	if (receipt) {
		if (renameat2(log->dir, LOG_DIR_RECEIPT_NEW, log->dir,
			      LOG_DIR_RECEIPT, RENAME_NOREPLACE) < 0)
			return -errno;
		return log->durable ? sync_dir(log->dir) : 0;
	}
	/* What was begun stays, under the name that says so. */
	if (fstatat(log->dir, LOG_DIR_RECEIPT_NEW, &st, AT_SYMLINK_NOFOLLOW) ==
		    0 &&
	    st.st_size == 0)
		unlinkat(log->dir, LOG_DIR_RECEIPT_NEW, 0);
	return 0;
}

void session_log_close(struct session_log *log)
{
	close_fd(&log->records);
	close_fd(&log->checkpoints);
	close_fd(&log->vkey);
	close_fd(&log->receipt);
	close_fd(&log->dir);
}
