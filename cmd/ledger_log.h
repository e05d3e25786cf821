/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_log.h - the log that a ledger keeps: its lines, its checkpoints, its
 * parts, and what it comes to.
 *
 * After any error the log is lost: nothing may be acknowledged any more.
 */
#ifndef CMD_LEDGER_LOG_H
#define CMD_LEDGER_LOG_H

#include "audit/record.h"
#include "audit/record_frame.h"
#include "audit/seal.h"
#include "audit/tally.h"
#include "audit/writer.h"
#include "cmd/privsep.h"

/* More are not begun: then the last part grows. */
#define LEDGER_PARTS_MAX 4096

struct ledger_log {
	struct msg_ledger_start start;
	char policy_digest[65]; /* in force now */
	struct msg_ledger_earlier before;
	struct record_earlier earlier;
	struct record_context context;
	struct record_frame frame; /* of it */
	struct writer *writer;
	struct seal *seal;
	int file[LEDGER_FILE_COUNT]; /* -1: not open */
	bool ephemeral;		     /* the key */
	struct ledger_host *host;    /* NULL: nobody wants it */

	uint64_t sequence;	    /* of the next line */
	uint64_t synced;	    /* lines, with `durable` */
	uint64_t first_ms, last_ms; /* times of the first and last record */
	uint64_t first_mono, last_mono;
	struct tally tally;

	bool closed; /* the record of the session's end is written */
	bool has_end;
	struct msg_ledger_end end;
	uint64_t unreported; /* packets, then */
	struct attacks attacks;

	uint32_t parts; /* full ones */
	bool asked;	/* for the next */
	uint64_t part_mono;
	char part_digest[LEDGER_PARTS_MAX][DIGEST_HEX];

	char line[RECORD_LINE_MAX];
};

/* One more record. 0 or -errno. */
int ledger_log_write(struct ledger_log *log, struct audit_event *event);
int ledger_log_finding(struct ledger_log *log, enum reason reason,
		       const char *detail);

/* After a turn, before what it took is acknowledged: all lines are in the file,
 * and as safe as the session wants them. Begins what is due. @ret_timeout_ms:
 * to be called again after so long, or never (-1), if nothing comes by the
 * links or seal_fd(). 0 or -errno. */
int ledger_log_turn(struct ledger_log *log, int *ret_timeout_ms);

/* @fd, which is taken, is the part after part @number. 0; -EPROTO if that was
 * not asked for; -errno. */
int ledger_log_part(struct ledger_log *log, uint32_t number, int fd);

/* Tells the warden what it all came to so far. 0 or -errno. */
int ledger_log_tell(const struct ledger_log *log);

/* All lines are on the disk, and signed. 0 or -errno. */
int ledger_log_settle(struct ledger_log *log);

void ledger_log_free(struct ledger_log *log);

#endif
