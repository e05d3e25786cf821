/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_state.c - where to go on from in the log of all sessions.
 *
 * OpenSSL's old SHA-256, for the reason that policy/digest.c gives.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/hostlog_state.h"

#include <errno.h>
#include <openssl/sha.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wire.h"

#define MAGIC	   "SPHOST1\n"
#define DIGEST_LEN 32
#define BODY_LEN   (HOSTLOG_STATE_LEN - DIGEST_LEN)

/* Magic, three numbers, prev, the tree, and what was there before. */
_Static_assert(8 + 3 * 8 + MERKLE_HASH + 2 + MERKLE_SAVED_MAX + 2 +
			       LOG_DIR_NAME_MAX + 2 * 8 + MERKLE_HASH + 2 +
			       CHECKPOINT_NOTE_MAX <=
		       BODY_LEN,
	       "the state fits its block");

static void digest(const uint8_t *data, uint8_t *ret_digest)
{
	SHA256_CTX sha;

	SHA256_Init(&sha);
	SHA256_Update(&sha, data, BODY_LEN);
	SHA256_Final(ret_digest, &sha);
}

static void put_text(struct wirebuf *w, const char *text)
{
	size_t len = strlen(text);

	wirebuf_u16(w, (uint16_t)len);
	wirebuf_put(w, text, len);
}

void hostlog_state_save(const struct hostlog_state *state, uint8_t *ret_data)
{
	struct wirebuf w = wirebuf_of(ret_data, BODY_LEN);
	uint8_t tree[MERKLE_SAVED_MAX];
	size_t len = merkle_save(&state->tree, tree);

	memset(ret_data, 0, HOSTLOG_STATE_LEN);
	wirebuf_put(&w, MAGIC, 8);
	wirebuf_u64(&w, state->records);
	wirebuf_u64(&w, state->checkpoints);
	wirebuf_u64(&w, state->last);
	wirebuf_put(&w, state->prev.byte, MERKLE_HASH);
	wirebuf_u16(&w, (uint16_t)len);
	wirebuf_put(&w, tree, len);
	put_text(&w, state->earlier.directory);
	wirebuf_u64(&w, state->earlier.records);
	wirebuf_u64(&w, state->earlier.bytes);
	wirebuf_put(&w, state->earlier.sha256, MERKLE_HASH);
	put_text(&w, state->earlier.checkpoint);
	digest(ret_data, ret_data + BODY_LEN);
}

static void take(struct wire *w, void *ret_data, size_t len)
{
	const uint8_t *from = wire_take(w, len);

	if (from)
		memcpy(ret_data, from, len);
}

/* @cap bytes at @ret_text, which are zero. */
static void take_text(struct wire *w, char *ret_text, size_t cap)
{
	size_t len = wire_u16(w);

	if (len >= cap)
		w->bad = true;
	take(w, ret_text, len);
}

static void take_tree(struct wire *w, struct merkle *ret_tree)
{
	size_t len = wire_u16(w);
	const uint8_t *data = wire_take(w, len);

	if (data && merkle_load(data, len, ret_tree) < 0)
		w->bad = true;
}

int hostlog_state_load(const uint8_t *data, size_t len,
		       struct hostlog_state *ret_state)
{
	struct hostlog_state state = { 0 };
	struct wire w = wire_of(data, BODY_LEN);
	uint8_t sum[DIGEST_LEN];

	if (len != HOSTLOG_STATE_LEN || memcmp(data, MAGIC, 8) != 0)
		return -EUCLEAN;
	digest(data, sum);
	if (memcmp(sum, data + BODY_LEN, DIGEST_LEN) != 0)
		return -EUCLEAN;
	wire_take(&w, 8);
	state.records = wire_u64(&w);
	state.checkpoints = wire_u64(&w);
	state.last = wire_u64(&w);
	take(&w, state.prev.byte, MERKLE_HASH);
	take_tree(&w, &state.tree);
	take_text(&w, state.earlier.directory, sizeof(state.earlier.directory));
	state.earlier.records = wire_u64(&w);
	state.earlier.bytes = wire_u64(&w);
	take(&w, state.earlier.sha256, MERKLE_HASH);
	take_text(&w, state.earlier.checkpoint,
		  sizeof(state.earlier.checkpoint));
	if (!wire_ok(&w) || state.last > state.checkpoints)
		return -EUCLEAN;
	*ret_state = state;
	return 0;
}

int hostlog_state_read(int fd, struct hostlog_state *ret_state)
{
	/* One byte more: a longer file shows. */
	uint8_t data[HOSTLOG_STATE_LEN + 1];
	struct stat st;
	ssize_t n;

	/* Nobody will go on from a file that was removed. */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!st.st_nlink)
		return -EUCLEAN;
	do {
		n = pread(fd, data, sizeof(data), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return hostlog_state_load(data, (size_t)n, ret_state);
}

int hostlog_state_write(int fd, const struct hostlog_state *state)
{
	uint8_t data[HOSTLOG_STATE_LEN];
	ssize_t n;

	hostlog_state_save(state, data);
	do {
		n = pwrite(fd, data, sizeof(data), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(data) ? 0 : -EIO;
}

int hostlog_state_fits(const struct hostlog_state *state, int records,
		       int checkpoints)
{
	struct stat one, two;

	if (fstat(records, &one) < 0 || fstat(checkpoints, &two) < 0)
		return -errno;
	if (!one.st_nlink || !two.st_nlink ||
	    (uint64_t)one.st_size != state->records ||
	    (uint64_t)two.st_size != state->checkpoints)
		return -EUCLEAN;
	return 0;
}

int hostlog_state_head(const struct hostlog_state *state, int checkpoints,
		       char *buf, struct text *ret_note)
{
	uint64_t len = state->checkpoints - state->last;
	struct checkpoint head;
	struct merkle_hash root;
	struct note note;
	ssize_t n;

	if (!state->tree.size || len > CHECKPOINT_NOTE_MAX)
		return -EUCLEAN;
	n = pread(checkpoints, buf, len, (off_t)state->last);
	if (n < 0)
		return -errno;
	merkle_root(&state->tree, &root);
	if (note_parse((struct text){ buf, (size_t)n }, &note) < 0 ||
	    checkpoint_parse(note.text, &head) < 0 ||
	    head.size != state->tree.size ||
	    !merkle_hash_equal(&head.root, &root))
		return -EUCLEAN;
	*ret_note = (struct text){ buf, (size_t)n };
	return 0;
}

/* A blocking flock(2) can't be given up without signals, so we ask again and
 * again: those who hold it do so for a few milliseconds. Who has waited for
 * long asks more often than who came just now, or it could wait for ever. */
int hostlog_lock(int fd, unsigned ms)
{
	uint64_t until = clock_ms(CLOCK_MONOTONIC) + ms;

	for (int wait = 8;; wait -= wait > 1) {
		uint64_t now;

		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		now = clock_ms(CLOCK_MONOTONIC);
		if (now >= until)
			return -EBUSY;
		if ((uint64_t)wait > until - now)
			wait = (int)(until - now);
		poll(NULL, 0, wait);
	}
}

void hostlog_unlock(int fd)
{
	flock(fd, LOCK_UN);
}
