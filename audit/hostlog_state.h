/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_state.h - the file `tree` of the log of all sessions: where to go on
 * from, so that nobody has to read the log to add to it.
 *
 * Nothing in it is believed that the last signed checkpoint does not say too.
 * Its digest is there to find an unfinished write, not a forger.
 */
#ifndef AUDIT_HOSTLOG_STATE_H
#define AUDIT_HOSTLOG_STATE_H

#include "audit/checkpoint.h"
#include "audit/log_dir.h"

/* One block, written at once. */
#define HOSTLOG_STATE_LEN 4096

/* A log that was put aside, as it was found. */
struct hostlog_earlier {
	char directory[LOG_DIR_NAME_MAX]; /* "": there was none */
	uint64_t records, bytes;	  /* whole lines, all bytes */
	uint8_t sha256[MERKLE_HASH];	  /* of audit.jsonl */
	/* The last whole one, NUL at its end; "" if there was none. */
	char checkpoint[CHECKPOINT_NOTE_MAX];
};

struct hostlog_state {
	struct merkle tree;
	uint64_t records, checkpoints;	/* bytes of the files */
	uint64_t last;			/* offset of the last checkpoint */
	struct merkle_hash prev;	/* leaf hash of the last record */
	struct hostlog_earlier earlier; /* to be said in the first record */
};

/* Fills HOSTLOG_STATE_LEN bytes. */
void hostlog_state_save(const struct hostlog_state *state, uint8_t *ret_data);
/* Returns 0, or -EUCLEAN if it is not what hostlog_state_save() wrote. */
int hostlog_state_load(const uint8_t *data, size_t len,
		       struct hostlog_state *ret_state);

/* The same from and to a file. Return 0, -EUCLEAN, or what pread(2) and
 * pwrite(2) say. */
int hostlog_state_read(int fd, struct hostlog_state *ret_state);
int hostlog_state_write(int fd, const struct hostlog_state *state);

/* Do the sizes of the files fit? Returns 0, -EUCLEAN, or what fstat(2) says. */
int hostlog_state_fits(const struct hostlog_state *state, int records,
		       int checkpoints);

/* The last checkpoint, which must say what @state does; who signed it is not
 * looked at. *@ret_note points into @buf, CHECKPOINT_NOTE_MAX bytes. Returns 0,
 * -EUCLEAN (of an empty log too), or what pread(2) says. */
int hostlog_state_head(const struct hostlog_state *state, int checkpoints,
		       char *buf, struct text *ret_note);

/* Waits up to @ms for the lock on @fd. Returns 0, -EBUSY, or what flock(2)
 * says. */
int hostlog_lock(int fd, unsigned ms);
void hostlog_unlock(int fd);

#endif
