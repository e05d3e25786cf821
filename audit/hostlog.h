/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog.h - the log of all sessions of a user, so that none of them can
 * vanish unseen: its leaves are their openings and receipts.
 *
 *	host/audit.jsonl     the records
 *	host/checkpoints     a signed tree head after each record
 *	host/host.vkey	     the public key that signs them, under NAME/host
 *	host/tree	     where to go on from: see hostlog_state.h
 *	host/earlier-000001/ a log that came to no clean end, or that another
 *			     key signed. The first record after it says what
 *			     was found.
 *	host-ID/	     the same, of sessions that were told to use another
 *			     key; ID is the key's, eight digits
 *
 * Many sessions append, one at a time: each holds a lock on `tree` meanwhile.
 * What is not exactly as the last one left it is never added to.
 */
#ifndef AUDIT_HOSTLOG_H
#define AUDIT_HOSTLOG_H

#include "audit/key.h"
#include "audit/log_dir.h"
#include "audit/merkle.h"

#define HOSTLOG_DIR	    "host"
#define HOSTLOG_RECORDS	    LOG_DIR_RECORDS
#define HOSTLOG_CHECKPOINTS LOG_DIR_CHECKPOINTS
#define HOSTLOG_VKEY	    "host.vkey"
#define HOSTLOG_TREE	    "tree"
#define HOSTLOG_SESSION	    "host" /* where other logs name their session */
#define HOSTLOG_LINE_MAX    8192

/* How long an append waits for those of other sessions. */
#define HOSTLOG_WAIT_MS 4000

enum hostlog_event {
	HOSTLOG_OPENED = 1,
	HOSTLOG_RECEIPT, /* it ended, and there is a receipt */
	HOSTLOG_ENDED,	 /* it ended without */
	HOSTLOG_EVENT_COUNT
};
/* "session_opened", "session_receipt", "session_ended"; "unknown". */
const char *hostlog_word(enum hostlog_event event);

struct hostlog_entry {
	enum hostlog_event event;
	const char *session;
	/* Of an opening: */
	const char *sandbox_name, *policy_digest;
	const char *directory;	 /* absolute; left out if it is not plain text
				    of less than HOSTLOG_DIRECTORY_MAX bytes */
	const struct vkey *vkey; /* of the session, NAME/SESSION */
	/* Of an end: */
	const uint8_t *receipt; /* SHA-256 of the file */
	uint64_t records;
	struct merkle_hash root;
};
#define HOSTLOG_DIRECTORY_MAX 1024

/* Open for reading and writing; records and checkpoints also for appending. A
 * lock is that of an open file: nobody else may keep a copy of these. */
struct hostlog_files {
	int records, checkpoints, tree;
};

struct hostlog;

/* Takes @files over, also after an error. @key stays the caller's, and is that
 * of NAME. Returns 0; -EINVAL if NAME/host is too long; -ENOMEM. */
int hostlog_new(const struct hostlog_files *files, const struct key *key,
		struct hostlog **ret_log);
void hostlog_free(struct hostlog *log); /* NULL is fine */

/* Goes on with @files, which it takes over: those from before may have been put
 * aside meanwhile. */
void hostlog_reopen(struct hostlog *log, const struct hostlog_files *files);

/* Adds one record: on the disk when it returns, and signed. Blocks; one thread
 * at a time. Returns 0;
 * -EBUSY    somebody held the lock for HOSTLOG_WAIT_MS;
 * -EUCLEAN  the files are not as the last append left them, or were put aside;
 * -ENOKEY   another key signed;
 * -ENOSPC and the like, then nothing was added. */
int hostlog_append(struct hostlog *log, const struct hostlog_entry *entry);

/* A part of a sentence about such an error. */
const char *hostlog_error(int err);

#endif
