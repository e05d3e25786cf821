/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_read.h - what a ledger wrote, read as a stranger would: lines,
 * checkpoints, receipt.
 */
#ifndef TESTS_CMD_LEDGER_READ_H
#define TESTS_CMD_LEDGER_READ_H

#include "tests/cmd/ledger_rig.h"

#include "audit/checkpoint.h"
#include "audit/dsse.h"
#include "audit/merkle.h"
#include "audit/receipt.h"
#include "base/hex.h"
#include "policy/digest.h"

#define NOTE_LINES 5

struct bytes {
	char *at;
	size_t len;
};

static inline struct bytes slurp(const char *name)
{
	struct bytes bytes = { 0 };
	struct stat st;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	AUTO_FILE FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	bytes.at = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(bytes.at);
	bytes.len = fread(bytes.at, 1, (size_t)st.st_size, file);
	return bytes;
}

static inline void bytes_free(struct bytes *bytes)
{
	free(bytes->at);
}
#define AUTO_BYTES __attribute__((cleanup(bytes_free)))

static inline void vkey_of(struct vkey *ret_vkey)
{
	AUTO_BYTES struct bytes line = slurp("vkey");

	assert_true(line.len > 1 && line.at[line.len - 1] == '\n');
	assert_int_equal(
		vkey_parse((struct text){ line.at, line.len - 1 }, ret_vkey),
		0);
	assert_string_equal(ret_vkey->name, RIG_KEY "/" RIG_SESSION);
}

/* The roots over the first n lines, for each n. */
struct roots {
	size_t lines;
	struct merkle tree;
	struct merkle_hash *root;
};

static inline const char *prev_of(const json_t *record)
{
	return json_string_value(
		json_object_get(json_object_get(record, "unmapped"), "prev"));
}

/* Adds the lines of a part; each names the one before. @torn: the last may have
 * no end. */
static inline void add_part(struct roots *roots, const char *name, bool torn)
{
	static struct merkle_hash leaf;
	AUTO_BYTES struct bytes part = slurp(name);
	struct text text = { part.at, part.len }, line;
	char hex[2 * MERKLE_HASH + 1];

	while (text_line(&text, &line)) {
		json_t *record = json_loadb(line.at, line.len, 0, NULL);

		assert_non_null(record);
		if (roots->lines)
			assert_string_equal(
				prev_of(record),
				hex_format(leaf.byte, MERKLE_HASH, hex));
		else
			assert_null(prev_of(record));
		json_decref(record);
		merkle_leaf(line.at, line.len, &leaf);
		merkle_append_hash(&roots->tree, &leaf);
		roots->root =
			realloc(roots->root, (roots->lines + 2) * sizeof(leaf));
		assert_non_null(roots->root);
		merkle_root(&roots->tree, &roots->root[++roots->lines]);
	}
	if (!torn)
		assert_int_equal(text.len, 0);
}

/* Takes five lines off @text. */
static inline bool next_note(struct text *text, struct text *ret_note)
{
	struct text rest = *text, line;

	for (int i = 0; i < NOTE_LINES; i++)
		if (!text_line(&rest, &line))
			return false;
	*ret_note = (struct text){ text->at, text->len - rest.len };
	*text = rest;
	return true;
}

/* Each checkpoint in @file is good, and of lines that are there; each covers
 * more than the one before. How many lines the last covers; @torn as above. */
static inline uint64_t check_notes(const struct bytes *file,
				   const struct roots *roots, bool torn,
				   size_t *ret_count)
{
	struct text text = { file->at, file->len }, note;
	struct checkpoint checkpoint = { .size = 0 };
	uint64_t before = 0;
	struct vkey vkey;

	vkey_of(&vkey);
	for (*ret_count = 0; next_note(&text, &note); ++*ret_count) {
		assert_int_equal(checkpoint_open(note, &vkey, &checkpoint), 0);
		assert_true(checkpoint.size > before);
		assert_true(checkpoint.size <= roots->lines);
		assert_memory_equal(&checkpoint.root,
				    &roots->root[checkpoint.size],
				    sizeof(checkpoint.root));
		before = checkpoint.size;
	}
	if (!torn)
		assert_int_equal(text.len, 0);
	return checkpoint.size;
}

static inline uint64_t check_checkpoints(const struct roots *roots, bool torn,
					 size_t *ret_count)
{
	AUTO_BYTES struct bytes file = slurp("checkpoints");

	return check_notes(&file, roots, torn, ret_count);
}

/* Lines that are covered, of a log of one part. It may be written meanwhile:
 * the lines are read last, as the checkpoints before speak of no later ones. */
static inline uint64_t check_log(size_t *ret_lines, size_t *ret_count,
				 bool torn)
{
	AUTO_BYTES struct bytes notes = slurp("checkpoints");
	struct roots roots = { 0 };

	add_part(&roots, "log", torn);
	uint64_t covered = check_notes(&notes, &roots, torn, ret_count);
	*ret_lines = roots.lines;
	free(roots.root);
	return covered;
}

static inline json_t *open_receipt(void)
{
	AUTO_BYTES struct bytes file = slurp("receipt");
	AUTO_FREE char *body = NULL;
	json_t *statement = NULL;
	struct vkey vkey;
	size_t len;

	vkey_of(&vkey);
	assert_true(file.len > 1);
	assert_ptr_equal(memchr(file.at, '\n', file.len),
			 file.at + file.len - 1);
	assert_int_equal(dsse_open((struct text){ file.at, file.len - 1 },
				   STATEMENT_MEDIA_TYPE, &vkey, &body, &len),
			 0);
	assert_int_equal(statement_parse((struct text){ body, len },
					 RECEIPT_TYPE, &statement),
			 0);
	return statement;
}

/* A member of the predicate, "a.b.c". */
static inline const json_t *member(const json_t *statement, const char *path)
{
	const json_t *at = json_object_get(statement, "predicate");
	char copy[128], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, ".", &save); key;
	     key = strtok_r(NULL, ".", &save))
		at = json_object_get(at, key);
	return at;
}

static inline const char *text_at(const json_t *statement, const char *path)
{
	const char *text = json_string_value(member(statement, path));

	return text ? text : "";
}

static inline long number_at(const json_t *statement, const char *path)
{
	assert_true(json_is_integer(member(statement, path)));
	return (long)json_integer_value(member(statement, path));
}

static inline void check_subject(const json_t *statement, const char *subject,
				 const char *file)
{
	AUTO_BYTES struct bytes bytes = slurp(file);
	char hex[DIGEST_HEX];
	struct digest digest;

	digest_begin(&digest);
	digest_add(&digest, bytes.at, bytes.len);
	digest_end(&digest, hex);
	assert_non_null(statement_digest(statement, subject));
	assert_string_equal(statement_digest(statement, subject), hex);
}

#endif
