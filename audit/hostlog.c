/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog.c - adds to the log of all sessions.
 *
 * The order is: the record, to the disk; a checkpoint over it; the new state.
 * Whoever dies in between leaves files that do not fit each other, and the
 * next session's warden puts them aside (hostlog_dir.h). What the disk refused
 * is taken back, so that a full disk is no such end; but never a checkpoint
 * that is written, as somebody may have seen it.
 *
 * Needs flock, fstat, pread64, pwrite64, write, ftruncate, fdatasync, poll.
 */
#include "audit/hostlog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/checkpoint.h"
#include "audit/hostlog_record.h"
#include "audit/hostlog_state.h"
#include "base/cleanup.h"
#include "base/clock.h"

struct hostlog {
	struct hostlog_files files;
	struct key *key; /* NAME/host */
	struct hostlog_state state;
	char line[HOSTLOG_LINE_MAX];
	char note[CHECKPOINT_NOTE_MAX];
	char own[CHECKPOINT_NOTE_MAX]; /* what we signed last; "": nothing */
};

static void close_files(struct hostlog_files *files)
{
	close_fd(&files->records);
	close_fd(&files->checkpoints);
	close_fd(&files->tree);
}

void hostlog_free(struct hostlog *log)
{
	if (!log)
		return;
	close_files(&log->files);
	key_free(log->key);
	free(log);
}

static int derive(const struct key *key, struct key **ret_key)
{
	char name[VKEY_NAME_MAX + sizeof("/" HOSTLOG_SESSION)];
	int len = snprintf(name, sizeof(name), "%s/" HOSTLOG_SESSION,
			   key_public(key)->name);

	return key_under_name(key, (struct text){ name, (size_t)len }, ret_key);
}

int hostlog_new(const struct hostlog_files *files, const struct key *key,
		struct hostlog **ret_log)
{
	struct hostlog_files taken = *files;
	struct hostlog *log = calloc(1, sizeof(*log));
	int r = -ENOMEM;

	if (!log) {
		close_files(&taken);
		return r;
	}
	log->files = taken;
	r = derive(key, &log->key);
	if (r < 0) {
		hostlog_free(log);
		return r;
	}
	*ret_log = log;
	return 0;
}

void hostlog_reopen(struct hostlog *log, const struct hostlog_files *files)
{
	close_files(&log->files);
	log->files = *files;
}

/* The state must be what our key signed last. */
static int check_signed(struct hostlog *log)
{
	const struct hostlog_state *state = &log->state;
	struct checkpoint checkpoint;
	struct text note;
	int r;

	if (!state->tree.size)
		return state->records || state->checkpoints ? -EUCLEAN : 0;
	r = hostlog_state_head(state, log->files.checkpoints, log->note, &note);
	if (r < 0)
		return r;
	/* Of the session's opening, mostly. */
	if (*log->own && text_is(note, log->own))
		return 0;
	r = checkpoint_open(note, key_public(log->key), &checkpoint);
	if (r < 0)
		return r == -ENOKEY || r == -ENOMEM ? r : -EUCLEAN;
	return 0;
}

static int check(struct hostlog *log)
{
	int r = hostlog_state_read(log->files.tree, &log->state);

	if (r == 0)
		r = hostlog_state_fits(&log->state, log->files.records,
				       log->files.checkpoints);
	return r < 0 ? r : check_signed(log);
}

/* All of it, or none: *@size is that of the file. */
static int add(int fd, const char *data, size_t len, uint64_t *size)
{
	size_t done = 0;
	int r = 0;

	while (done < len && r == 0) {
		ssize_t n = write(fd, data + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			r = -EIO;
		else if (errno != EINTR)
			r = -errno;
	}
	/* If this fails too, the next one finds files that do not fit. */
	if (r < 0 && ftruncate(fd, (off_t)*size) < 0)
		return r;
	if (r == 0)
		*size += len;
	return r;
}

static int add_checkpoint(struct hostlog *log, struct hostlog_state *state)
{
	struct checkpoint head = { .size = state->tree.size };
	size_t len;
	int r;

	snprintf(head.origin, sizeof(head.origin), "%s",
		 key_public(log->key)->name);
	merkle_root(&state->tree, &head.root);
	r = checkpoint_sign(&head, log->key, log->note, sizeof(log->note),
			    &len);
	if (r < 0)
		return r;
	memcpy(log->own, log->note, len + 1);
	state->last = state->checkpoints;
	return add(log->files.checkpoints, log->note, len, &state->checkpoints);
}

/* The lock is held, and log->state is what is there. */
static int add_record(struct hostlog *log, const struct hostlog_entry *entry)
{
	const struct hostlog_files *files = &log->files;
	struct hostlog_state next = log->state;
	size_t len = hostlog_record(entry, &next, clock_ms(CLOCK_REALTIME),
				    log->line);
	int r;

	if (!len || len == sizeof(log->line))
		return -EMSGSIZE;
	merkle_leaf(log->line, len, &next.prev);
	r = merkle_append_hash(&next.tree, &next.prev);
	if (r < 0)
		return r;
	log->line[len] = '\n';
	memset(&next.earlier, 0, sizeof(next.earlier));
	r = add(files->records, log->line, len + 1, &next.records);
	if (r < 0)
		return r;
	if (fdatasync(files->records) < 0)
		r = -errno;
	else
		r = add_checkpoint(log, &next);
	if (r < 0) {
		/* No checkpoint says that it was there. */
		if (ftruncate(files->records, (off_t)log->state.records) < 0)
			return -EUCLEAN;
		return r;
	}
	return hostlog_state_write(files->tree, &next);
}

int hostlog_append(struct hostlog *log, const struct hostlog_entry *entry)
{
	int r = hostlog_lock(log->files.tree, HOSTLOG_WAIT_MS);

	if (r < 0)
		return r;
	r = check(log);
	if (r == 0)
		r = add_record(log, entry);
	hostlog_unlock(log->files.tree);
	return r;
}

const char *hostlog_error(int err)
{
	switch (err) {
	case -EBUSY:
		return "another session holds it";
	case -EUCLEAN:
		return "it is not as the last session left it";
	case -ENOKEY:
		return "another key signed it";
	default:
		return strerror(-err);
	}
}
