/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.c - a batch of lines becomes one write(2); each line becomes a leaf
 * when it comes, and beside it those before become a piece of the part's
 * digest.
 *
 * That takes whole blocks. What is left over when a batch is written, less than
 * one, stays in front of the next.
 *
 * A disk may fill up in the middle of a line. What was written of that line is
 * cut off again, so that whoever reads the log later finds whole lines only;
 * then the writer has failed for good: a log with a hole is no log.
 */
#include "audit/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/sha_pair.h"
#include "base/cleanup.h"

#define BATCH_MAX (256 * 1024)

struct writer {
	int fd;
	int failed;		 /* the -errno that ended it, or 0 */
	off_t size;		 /* of the part, all of it whole lines */
	uint64_t lines;		 /* in the files */
	struct merkle tree;	 /* of those in the batch, too */
	struct merkle_hash last; /* leaf of it */
	bool pair;		 /* sha_pair_works() */
	struct digest before;	 /* of what the part has before the batch */
	struct digest ahead;	 /* of that, and of batch[0, hashed) */
	size_t written;		 /* of the batch: in the file already */
	size_t hashed;		 /* of the batch; whole blocks */
	size_t len, pending;	 /* bytes and lines in the batch */
	char batch[BATCH_MAX];
};

/* 0 if nothing is in it yet. */
static int check_empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_size ? -ENOTEMPTY : 0;
}

static void begin_part(struct writer *writer, int fd)
{
	writer->fd = fd;
	writer->size = 0;
	writer->written = 0;
	writer->hashed = 0;
	writer->len = 0;
	digest_begin(&writer->before);
	digest_begin(&writer->ahead);
}

int writer_new(int fd, struct writer **ret_writer)
{
	AUTO_FD int taken = fd;
	struct writer *writer;
	int r = check_empty(taken);

	if (r < 0)
		return r;
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return -ENOMEM;
	writer->pair = sha_pair_works();
	begin_part(writer, steal_fd(&taken));
	*ret_writer = writer;
	return 0;
}

void writer_free(struct writer *writer)
{
	if (!writer)
		return;
	close_fd(&writer->fd);
	free(writer);
}

static void hash_line(struct writer *writer, const char *line, size_t len)
{
	if (!writer->pair) {
		merkle_leaf(line, len, &writer->last);
		return;
	}
	writer->hashed += sha_pair_leaf(
		line, len, &writer->last, &writer->ahead,
		writer->batch + writer->hashed, writer->len - writer->hashed);
}

int writer_append(struct writer *writer, const char *line, size_t len)
{
	if (writer->failed)
		return writer->failed;
	if (len >= BATCH_MAX - SHA_BLOCK || memchr(line, '\n', len))
		return -EINVAL;
	if (len + 1 > BATCH_MAX - writer->len) {
		int r = writer_flush(writer);

		if (r < 0)
			return r;
	}
	hash_line(writer, line, len);
	writer->failed = merkle_append_hash(&writer->tree, &writer->last);
	if (writer->failed)
		return writer->failed;
	memcpy(writer->batch + writer->len, line, len);
	writer->batch[writer->len + len] = '\n';
	writer->len += len + 1;
	writer->pending++;
	return 0;
}

/* Of the batch, @done bytes are in the file: keeps the whole lines of them. */
static void settle(struct writer *writer, size_t done)
{
	const char *end = memrchr(writer->batch, '\n', done);
	size_t whole = end ? (size_t)(end - writer->batch) + 1 : 0;

	for (size_t i = writer->written; i < whole; i++)
		writer->lines += writer->batch[i] == '\n';
	writer->size += (off_t)(whole - writer->written);
	writer->written = whole;
	writer->len = whole;
	/* Nothing can be done if this fails too; the reader of the log will
	 * find the last line cut. */
	if (whole < done && ftruncate(writer->fd, writer->size) < 0)
		return;
}

/* All of the batch is in the file. */
static void begin_batch(struct writer *writer)
{
	size_t left = writer->len - writer->hashed;
	size_t rest = left % SHA_BLOCK;

	writer->lines += writer->pending;
	writer->size += (off_t)(writer->len - writer->written);
	digest_add(&writer->ahead, writer->batch + writer->hashed, left - rest);
	writer->before = writer->ahead;
	memmove(writer->batch, writer->batch + writer->len - rest, rest);
	writer->hashed = 0;
	writer->written = rest;
	writer->len = rest;
}

int writer_flush(struct writer *writer)
{
	size_t done = writer->written;

	if (!writer->pending)
		return writer->failed;
	while (!writer->failed && done < writer->len) {
		ssize_t n = write(writer->fd, writer->batch + done,
				  writer->len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			writer->failed = -EIO;
		else if (errno != EINTR)
			writer->failed = -errno;
	}
	if (writer->failed)
		settle(writer, done);
	else
		begin_batch(writer);
	writer->pending = 0;
	return writer->failed;
}

int writer_sync(struct writer *writer)
{
	/* EINVAL: a pipe or a terminal, which has nothing to sync. */
	if (!writer->failed && fdatasync(writer->fd) < 0 && errno != EINVAL)
		writer->failed = -errno;
	return writer->failed;
}

int writer_rotate(struct writer *writer, int fd, char ret_digest[DIGEST_HEX])
{
	AUTO_FD int taken = fd;
	int r = writer_flush(writer);

	if (r == 0)
		r = check_empty(taken);
	if (r < 0)
		return r;
	writer_digest(writer, ret_digest);
	close(writer->fd);
	begin_part(writer, steal_fd(&taken));
	return 0;
}

uint64_t writer_lines(const struct writer *writer)
{
	return writer->lines;
}

uint64_t writer_bytes(const struct writer *writer)
{
	return (uint64_t)writer->size + writer->len - writer->written;
}

void writer_digest(const struct writer *writer, char ret_digest[DIGEST_HEX])
{
	struct digest so_far = writer->before;

	digest_add(&so_far, writer->batch, writer->written);
	digest_end(&so_far, ret_digest);
}

const struct merkle *writer_tree(const struct writer *writer)
{
	return &writer->tree;
}

const uint8_t *writer_last(const struct writer *writer)
{
	return writer->tree.size ? writer->last.byte : NULL;
}

int writer_fd(const struct writer *writer)
{
	return writer->fd;
}
