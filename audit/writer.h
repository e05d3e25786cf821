/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.h - the log file: lines appended in batches, one write(2) each.
 *
 * Every line is a leaf of one RFC 6962 tree over all parts of the log, and the
 * exact bytes of each part are digested while they are written.
 */
#ifndef AUDIT_WRITER_H
#define AUDIT_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "audit/merkle.h"
#include "policy/digest.h"

struct writer;

/* @fd: opened for appending, empty; taken. 0; -ENOTEMPTY, nothing is added to
 * what somebody else wrote; -errno. */
int writer_new(int fd, struct writer **ret_writer);
void writer_free(struct writer *writer);

/* Adds one line (LF is added). Kept until writer_flush(), or until the batch
 * is full. 0 or -errno: then the log is lost and the ledger ends. */
int writer_append(struct writer *writer, const char *line, size_t len);

/* Writes what is kept: a line is either whole or cut off again. 0 or -errno. */
int writer_flush(struct writer *writer);
int writer_sync(struct writer *writer);

/* Flushes, and goes on in @fd, which is as for writer_new(): taken. The digest
 * of the part that ends here comes back. 0 or -errno. */
int writer_rotate(struct writer *writer, int fd, char ret_digest[DIGEST_HEX]);

/* Lines in the file, over all parts; bytes of this part, with those kept. */
uint64_t writer_lines(const struct writer *writer);
uint64_t writer_bytes(const struct writer *writer);
/* Of this part, as it is in the file. */
void writer_digest(const struct writer *writer, char ret_digest[DIGEST_HEX]);

/* Over all lines appended: after writer_flush(), over all in the file. */
const struct merkle *writer_tree(const struct writer *writer);
/* The leaf hash of the last one; NULL if there is none. */
const uint8_t *writer_last(const struct writer *writer);
/* Of this part, to be synced elsewhere; the writer's. */
int writer_fd(const struct writer *writer);

#endif
