/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.h - is a log what was written, all of it, and by whom?
 *
 * Reads each line once and keeps none: a log of any size is verified in the
 * same memory. The bytes may be anybody's.
 */
#ifndef AUDIT_VERIFY_H
#define AUDIT_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/checkpoint.h"

struct json_t;

enum verify_fault {
	VERIFY_FINE,
	VERIFY_UNREADABLE,    /* a file is missing or can't be read */
	VERIFY_NOT_A_RECORD,  /* a line that none of ours is */
	VERIFY_TOO_LONG,      /* a line beyond RECORD_LINE_MAX */
	VERIFY_TORN,	      /* the last line has no end */
	VERIFY_EDITED,	      /* a line is not what the next one says it was */
	VERIFY_MISSING,	      /* records are missing before this line */
	VERIFY_REPEATED,      /* a record that was there before, or inserted */
	VERIFY_ORDER,	      /* a record is not in its place */
	VERIFY_OTHER_SESSION, /* a record, checkpoint or receipt of another */
	VERIFY_TRUNCATED,     /* fewer records than were signed */
	VERIFY_AFTER_THE_END, /* records after the session was closed */
	VERIFY_ROOT,	      /* records are not those that were signed */
	VERIFY_CHECKPOINT,    /* what is no checkpoint, or in no order */
	VERIFY_FORKED,	      /* two checkpoints of one size, two roots */
	VERIFY_SIGNATURE,     /* a signature is wrong */
	VERIFY_WRONG_KEY,     /* another key signed */
	VERIFY_RECEIPT,	      /* it says other than the log, or is none */
	VERIFY_FAULT_COUNT
};

/* "edited", "missing", ...: for programs. */
const char *verify_word(enum verify_fault fault);

enum verify_verdict {
	VERIFY_HOLDS,	   /* whole, closed, with its receipt, by a known key */
	VERIFY_INCOMPLETE, /* nothing is wrong, but it does not prove all of
			      that: see struct verify_result */
	VERIFY_BROKEN,	   /* something is wrong */
};

struct verify_problem {
	enum verify_fault fault;
	char file[64];	/* within the directory */
	uint64_t line;	/* of that file, from 1; 0: none in particular */
	char text[320]; /* a sentence; names in it are made harmless */
};

#define VERIFY_PROBLEMS_MAX 16

struct verify_result {
	enum verify_verdict verdict;
	char session[64];
	bool known_key;	 /* the caller's, not the one beside the log */
	struct vkey key; /* that verified, under the session's name */
	uint64_t records, bytes, parts;
	uint64_t checkpoints, covered; /* records, by the last good one */
	uint64_t first_ms, last_ms;
	uint64_t allowed, refused; /* verdicts, as a receipt counts them */
	uint64_t backwards; /* records older than the one before: harmless */
	bool opened, closed;
	bool torn; /* what is not signed ends within a line: harmless, it is how
		      a process ends that is killed */
	char policy[72], ruleset[72]; /* of the first record: sha256:HEX */
	/* What it says of the log that was in its place before. */
	bool quotes_earlier;
	uint64_t earlier_records, earlier_bytes;
	char earlier_checkpoint[1280]; /* as in the record: escaped */
	char first_checkpoint[CHECKPOINT_NOTE_MAX]; /* good ones; or "" */
	char last_checkpoint[CHECKPOINT_NOTE_MAX];  /* the one that covers */
	bool has_receipt;			    /* and it is good */
	struct json_t *receipt; /* its predicate, if it is good; or NULL */
	/* Said by who called, and looked further: there is a log of all
	   sessions, and it does not name this one, or is broken. */
	bool not_named, host_broken;
	size_t problems; /* may be more than are kept; in the order of
			    the log, the first bad line first */
	struct verify_problem problem[VERIFY_PROBLEMS_MAX];
};

struct verify_options {
	const struct vkey *key; /* of the log's signer, or of the session; NULL:
				   the one beside the log is believed */
	const char *receipt;	/* another path than in the directory, or NULL
				 */
	const char *checkpoint; /* a file with a checkpoint that was kept
				   elsewhere, or NULL; a note as it is in the
				   log's own file */
	/* Each line that could be read, in order; may be NULL. @sequence counts
	   lines. */
	void (*line)(void *arg, const char *line, size_t len,
		     uint64_t sequence);
	/* Now and then; may be NULL. False: stop. */
	bool (*progress)(void *arg, uint64_t bytes, uint64_t total);
	void *arg;
};

/* @path: the directory of a session's log, or a log file in one. Returns 0 and
 * a result, which verify_free() releases, whatever is wrong with the log;
 * -ENOENT and the like if there is none, or no such file as @options name;
 * -ECANCELED, -ENOMEM. */
int verify_log(const char *path, const struct verify_options *options,
	       struct verify_result *ret);
void verify_free(struct verify_result *result);

/* Record @number and what shows that it is in the log that was verified as
 * @result: a C2SP tlog-proof with the last good checkpoint. Returns 0 and the
 * file, which the caller frees; -EINVAL of a record that is not covered;
 * -EBADMSG if the log is another by now; what reading says. */
int verify_prove(const char *path, const struct verify_result *result,
		 uint64_t number, char **ret_file, size_t *ret_len);

struct verify_shown {
	char session[64];
	uint64_t index, size; /* of the record; of the log when it was signed */
	bool known_session;   /* @key was the session's, not its signer's */
};

/* Whether @file, a tlog-proof, shows that the line @record (without LF) is in a
 * log that @key signed: the session's key, or the signer's. Returns 0; -EBADMSG
 * if @file is none; -ENOMSG if @record is no record, or not that one; -ENOKEY,
 * -EKEYREJECTED as checkpoint_open(); -EDOM if it shows nothing of the kind. */
int verify_shows(struct text record, struct text file, const struct vkey *key,
		 struct verify_shown *ret);

#endif
