/* SPDX-License-Identifier: Apache-2.0
 *
 * seal.h - when the tree's head is signed, and how: the log is synced first,
 * then the checkpoint is signed and appended to its file with one write(2). So
 * a checkpoint never speaks of lines that a crash could take away.
 *
 * One is under way at a time, in a thread of its own: records go on being
 * written meanwhile.
 */
#ifndef AUDIT_SEAL_H
#define AUDIT_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/key.h"
#include "audit/merkle.h"

#define SEAL_RECORDS 64	 /* a checkpoint is due after so many records, */
#define SEAL_MS	     250 /* or so long after the oldest unsigned one, */
#define SEAL_GAP_MS  50	 /* but not so soon after the last one began */

struct seal;

/* @key signs, its name is the origin; taken. @fd: the checkpoints, opened for
 * appending; taken. @durable: that file is synced too, each time. 0 or -errno;
 * then both are released. */
int seal_new(struct key *key, int fd, bool durable, struct seal **ret_seal);
/* Starts the thread, if it does not run yet; seal_turn() does so, too, as soon
 * as there is something for it. 0 or -errno. */
int seal_start(struct seal *seal);
/* Waits for what is under way. NULL is fine. */
void seal_free(struct seal *seal);

/* Here and now, after what is under way. All leaves of @tree are in files, the
 * last of them in @log (the others are synced). Does nothing if that tree is
 * signed. 0 or -errno: the log is lost; so it is with seal_turn(). */
int seal_now(struct seal *seal, int log, const struct merkle *tree);

/* Whatever is due at @now_ms (monotonic) is begun in the thread. @log stays
 * open until seal_wait(). @ret_timeout_ms: call again after so long; -1: not
 * until there are more records or seal_fd() is readable. 0 or -errno. */
int seal_turn(struct seal *seal, int log, const struct merkle *tree,
	      uint64_t now_ms, int *ret_timeout_ms);
/* Readable when the thread has ended one. */
int seal_fd(const struct seal *seal);
/* Until nothing is under way. 0 or -errno. */
int seal_wait(struct seal *seal);
/* Makes the checkpoints last: after seal_now(). 0 or -errno. */
int seal_sync(struct seal *seal);

/* The first and the last checkpoint that were written, whole; "" if there was
 * none. Only while nothing is under way. */
const char *seal_first(const struct seal *seal);
const char *seal_last(const struct seal *seal);
/* How many there were. */
uint64_t seal_count(const struct seal *seal);
/* When the last was written, in milliseconds of the epoch; 0 if there was none.
 * At any time. */
uint64_t seal_last_ms(const struct seal *seal);
const struct key *seal_key(const struct seal *seal);

#endif
