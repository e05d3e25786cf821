/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.h - the log file: lines appended in batches, one write(2) each.
 *
 * The seam for the hash tree: every line goes through writer_append(), which
 * sees the exact bytes that will be on disk.
 */
#ifndef AUDIT_WRITER_H
#define AUDIT_WRITER_H

#include <stddef.h>
#include <stdint.h>

struct writer;

/* @fd: opened for appending; taken. 0 or -errno. */
int writer_new(int fd, struct writer **ret_writer);
void writer_free(struct writer *writer);

/* Adds one line (LF is added). Kept until writer_flush(), or until the batch
 * is full. 0 or -errno: then the log is lost and the ledger ends. */
int writer_append(struct writer *writer, const char *line, size_t len);

/* Writes what is kept: a line is either whole or cut off again. 0 or -errno. */
int writer_flush(struct writer *writer);
int writer_sync(struct writer *writer);

uint64_t writer_lines(const struct writer *writer);

#endif
