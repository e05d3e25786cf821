/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_case.h - a log of all sessions in a folder of its own, and what a
 * stranger reads of it.
 */
#ifndef TESTS_AUDIT_HOSTLOG_CASE_H
#define TESTS_AUDIT_HOSTLOG_CASE_H

#include "audit/hostlog.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <openssl/evp.h>

#include "audit/checkpoint.h"
#include "audit/hostlog_dir.h"
#include "audit/hostlog_state.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "tests/scratch.h"

#define NAME "host.test"

struct world {
	char path[64];
	int home, host; /* directories */
	struct key *key;
};

static inline struct key *key_of(uint8_t seed)
{
	uint8_t bytes[KEY_SEED] = { seed };
	struct key *key;

	assert_int_equal(
		key_of_seed((struct text){ NAME, strlen(NAME) }, bytes, &key),
		0);
	return key;
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_int_equal(scratch_make(w->path, sizeof(w->path)), 0);
	w->home = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(w->home >= 0);
	assert_int_equal(mkdirat(w->home, HOSTLOG_DIR, 0700), 0);
	w->host = openat(w->home, HOSTLOG_DIR, O_RDONLY | O_CLOEXEC);
	w->key = key_of(1);
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	assert_int_equal(scratch_remove(w->path), 0);
	close(w->home);
	close(w->host);
	key_free(w->key);
	free(w);
	return 0;
}

static inline struct hostlog *opened_by(struct world *w, const struct key *key)
{
	struct hostlog_files files;
	struct hostlog *log;

	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR, key_public(key),
					  false, &files),
			 0);
	assert_int_equal(hostlog_new(&files, key, &log), 0);
	return log;
}

static inline struct hostlog *opened(struct world *w)
{
	return opened_by(w, w->key);
}

static inline int add(struct hostlog *log, const char *session)
{
	struct hostlog_entry entry = {
		.event = HOSTLOG_OPENED,
		.session = session,
		.sandbox_name = "box",
		.policy_digest = "abcd",
		.directory = "/somewhere",
	};

	return hostlog_append(log, &entry);
}

/* The whole file, with a NUL. */
static inline char *slurp(int dir, const char *name, size_t *ret_len)
{
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	data = calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	*ret_len = (size_t)st.st_size;
	return data;
}

static inline struct vkey vkey_of(int dir)
{
	struct vkey vkey;

	assert_int_equal(key_read_public(dir, HOSTLOG_VKEY, &vkey), 0);
	assert_string_equal(vkey.name, NAME "/host");
	return vkey;
}

static inline const char *text_at(json_t *record, const char *key)
{
	return json_string_value(
		json_object_get(json_object_get(record, "unmapped"), key));
}

/* One line: in its place, chained to the one before. */
static inline json_t *check_line(struct text line, uint64_t sequence,
				 const struct merkle_hash *prev)
{
	json_t *record = json_loadb(line.at, line.len, 0, NULL);
	char hex[2 * MERKLE_HASH + 1];
	json_t *metadata;

	assert_non_null(record);
	metadata = json_object_get(record, "metadata");
	assert_int_equal(
		json_integer_value(json_object_get(metadata, "sequence")),
		sequence);
	if (sequence)
		assert_string_equal(text_at(record, "prev"),
				    hex_format(prev->byte, MERKLE_HASH, hex));
	else
		assert_null(text_at(record, "prev"));
	return record;
}

static inline struct text note_at(struct text *rest)
{
	struct text note = { rest->at, 0 }, line;

	for (int i = 0; i < 5; i++)
		if (!text_line(rest, &line))
			return (struct text){ NULL, 0 };
	note.len = (size_t)(rest->at - note.at);
	return note;
}

/* Each record has a signed checkpoint; @torn: but for the last ones. Calls
 * @seen with each record. Returns how many there are. */
static inline uint64_t
verify(int dir, bool torn, void (*seen)(void *arg, json_t *record), void *arg)
{
	struct vkey vkey = vkey_of(dir);
	size_t len, notes_len;
	AUTO_FREE char *data = slurp(dir, HOSTLOG_RECORDS, &len);
	AUTO_FREE char *notes = slurp(dir, HOSTLOG_CHECKPOINTS, &notes_len);
	struct text lines = { data, len }, heads = { notes, notes_len }, line;
	struct merkle tree = { 0 };
	struct merkle_hash prev, root;

	while (text_line(&lines, &line)) {
		json_t *record = check_line(line, tree.size, &prev);
		struct text note = note_at(&heads);
		struct checkpoint head;

		merkle_leaf(line.at, line.len, &prev);
		merkle_append_hash(&tree, &prev);
		merkle_root(&tree, &root);
		if (note.at || !torn) {
			assert_non_null(note.at);
			assert_int_equal(checkpoint_open(note, &vkey, &head),
					 0);
			assert_int_equal(head.size, tree.size);
			assert_memory_equal(head.root.byte, root.byte,
					    MERKLE_HASH);
		}
		if (seen)
			seen(arg, record);
		json_decref(record);
	}
	assert_true(torn || (!lines.len && !heads.len));
	return tree.size;
}

static inline json_t *first_record(int dir)
{
	size_t len;
	AUTO_FREE char *data = slurp(dir, HOSTLOG_RECORDS, &len);
	struct text text = { data, len }, line;

	assert_true(text_line(&text, &line));
	return json_loadb(line.at, line.len, 0, NULL);
}

static inline void sha256_hex(const char *data, size_t len, char *ret_hex)
{
	uint8_t digest[32];

	assert_int_equal(
		EVP_Digest(data, len, digest, NULL, EVP_sha256(), NULL), 1);
	memcpy(ret_hex, "sha256:", 7);
	hex_format(digest, 32, ret_hex + 7);
}

/* The first record quotes what lies in the directory it names; returns that
 * name in @ret_name. False if it quotes nothing. */
static inline bool check_quote(int host, int dir, char *ret_name)
{
	json_t *record = first_record(dir);
	json_t *earlier =
		json_object_get(json_object_get(record, "unmapped"), "earlier");
	char hex[80], note[CHECKPOINT_NOTE_MAX];
	size_t len;

	if (!earlier) {
		json_decref(record);
		return false;
	}
	snprintf(ret_name, LOG_DIR_NAME_MAX, "%s",
		 json_string_value(json_object_get(earlier, "directory")));
	AUTO_FD int place = openat(host, ret_name, O_RDONLY | O_CLOEXEC);
	assert_true(place >= 0);
	AUTO_FREE char *data = slurp(place, HOSTLOG_RECORDS, &len);
	assert_int_equal(json_integer_value(json_object_get(earlier, "bytes")),
			 len);
	sha256_hex(data, len, hex);
	assert_string_equal(
		json_string_value(json_object_get(earlier, "digest")), hex);
	AUTO_FD int notes =
		openat(place, HOSTLOG_CHECKPOINTS, O_RDONLY | O_CLOEXEC);
	hostlog_last_checkpoint(notes, note);
	assert_string_equal(*note ? json_string_value(json_object_get(
					    earlier, "checkpoint"))
				  : note,
			    note);
	json_decref(record);
	return true;
}

#endif
