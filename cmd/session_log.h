/* SPDX-License-Identifier: Apache-2.0
 *
 * session_log.h - the files of a session's log (audit/log_dir.h), which the
 * warden opens and names, and the ledger writes.
 *
 * The directory is the session's alone as long as it lives. Nothing is ever
 * appended to what an earlier one left there: it moves into a directory of its
 * own, and the new log begins with what it was.
 */
#ifndef CMD_SESSION_LOG_H
#define CMD_SESSION_LOG_H

#include <stdbool.h>

#include "audit/log_dir.h"
#include "cmd/privsep.h"

struct session_log {
	bool durable; /* names, too, are on the disk before we go on */
	int dir;      /* locked */
	/* New and empty, for the ledger; -1 once it has them. */
	int records, checkpoints, vkey, receipt;
	uid_t reader;	/* may read it, too; 0: nobody else */
	unsigned parts; /* that are full */
	bool has_earlier;
	struct msg_ledger_earlier earlier;
	char kept[LOG_DIR_NAME_MAX]; /* where that is now */
};

/* Makes the files in @dir, which is there; with @durable their names are on the
 * disk, too. 0, or -errno and in @reterr what could not be done: -EBUSY while
 * another session writes there. */
int session_log_open(const char *dir, bool durable, struct session_log *ret,
		     char *reterr, size_t cap);

/* The user @reader may read all of it, too, parts to come included; 0: nobody.
 * Before the ledger has its files. 0 or -errno. */
int session_log_share(struct session_log *log, uid_t reader);

/* The part that is written becomes number @number, which must be the next, and
 * a new one begins. Its file, or -errno: then all is as it was. */
int session_log_rotate(struct session_log *log, unsigned number);

/* All is written: the receipt, if there is one, gets its name. 0 or -errno. */
int session_log_finish(struct session_log *log, bool receipt);

void session_log_close(struct session_log *log);

#endif
