/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.c - writes a small signed log, for tests that read it with programs
 * that are not ours.
 *
 * In the directory it is given: audit.jsonl, key.pem (read if it is there),
 * key.vkey, after each record N the checkpoint checkpoint.N, the proof that
 * record I of the last tree is in it as I.tlog-proof, consistency.N (the hashes
 * from N to the last tree) and receipt.json.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/checkpoint.h"
#include "audit/dsse.h"
#include "audit/proof.h"
#include "audit/statement.h"
#include "base/cleanup.h"

#define NAME	"sallyport.example/0123456789abcdef"
#define RECORDS 13

static struct merkle_hash leaf[RECORDS];
static char note[CHECKPOINT_NOTE_MAX];
static size_t note_len;

static void must(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "sample: %s\n", what);
		exit(1);
	}
}

static void put(const char *stem, int n, const char *end, const char *data,
		size_t len)
{
	char path[64];
	AUTO_FILE FILE *file = NULL;

	if (n < 0)
		snprintf(path, sizeof(path), "%s%s", stem, end);
	else
		snprintf(path, sizeof(path), "%s%d%s", stem, n, end);
	file = fopen(path, "w");
	must(file && fwrite(data, 1, len, file) == len, path);
}

static struct key *get_key(void)
{
	static const struct text name = { NAME, sizeof(NAME) - 1 };
	const char *why = NULL;
	struct key *key;

	if (access("key.pem", F_OK) == 0) {
		must(!key_read(AT_FDCWD, "key.pem", name, &key, &why), why);
	} else {
		must(!key_generate(name, &key), "generate");
		must(!key_write(key, AT_FDCWD, "key.pem"), "key.pem");
	}
	unlink("key.vkey");
	must(!key_write_public(key, AT_FDCWD, "key.vkey"), "key.vkey");
	return key;
}

static void write_log(const struct key *key)
{
	AUTO_FILE FILE *log = fopen("audit.jsonl", "w");
	struct checkpoint checkpoint = { .origin = NAME };
	struct merkle tree = { 0 };
	char line[100];

	must(log, "audit.jsonl");
	for (int i = 0; i < RECORDS; i++) {
		int len = snprintf(line, sizeof(line),
				   "{\"metadata\":{\"sequence\":%d}}", i);

		fprintf(log, "%s\n", line);
		merkle_leaf(line, (size_t)len, &leaf[i]);
		merkle_append_hash(&tree, &leaf[i]);
		checkpoint.size = tree.size;
		merkle_root(&tree, &checkpoint.root);
		must(!checkpoint_sign(&checkpoint, key, note, sizeof(note),
				      &note_len),
		     "sign");
		put("checkpoint.", i + 1, "", note, note_len);
	}
}

static int next_leaf(void *ctx, struct merkle_hash *ret_leaf)
{
	int *given = ctx;

	*ret_leaf = leaf[(*given)++];
	return 0;
}

static void write_proofs(void)
{
	for (int i = 0; i < RECORDS; i++) {
		int given = 0;
		const struct proof_leaves leaves = { next_leaf, &given };
		char buf[4096];
		struct out out = { .buf = buf, .cap = sizeof(buf) };
		struct proof proof;
		size_t len = 0;

		must(!proof_make_inclusion((uint64_t)i, RECORDS, &leaves,
					   &proof) &&
			     !proof_format((uint64_t)i, &proof,
					   (struct text){ note, note_len }, buf,
					   sizeof(buf), &len),
		     "inclusion");
		put("", i, ".tlog-proof", buf, len);
		given = 0;
		must(!proof_make_consistency((uint64_t)i + 1, RECORDS, &leaves,
					     &proof),
		     "consistency");
		for (size_t k = 0; k < proof.count; k++) {
			out_base64(&out, proof.hash[k].byte, MERKLE_HASH);
			out_text(&out, "\n");
		}
		must(!out_end(&out, &len), "no room");
		put("consistency.", i + 1, "", buf, len);
	}
}

static void write_receipt(const struct key *key)
{
	static const struct statement_subject subject = {
		"audit.jsonl", "0123456789abcdef0123456789abcdef"
			       "0123456789abcdef0123456789abcdef"
	};
	AUTO_FREE char *json = NULL;
	char body[1024];
	struct json j = json_of(body, sizeof(body));
	size_t len;

	statement_open(&j, &subject, 1, "https://sallyport.example/receipt/v1");
	json_uint(&j, "records", RECORDS);
	statement_close(&j);
	must(!dsse_sign(STATEMENT_MEDIA_TYPE, (struct text){ body, j.len }, key,
			&json, &len),
	     "receipt");
	put("receipt", -1, ".json", json, len);
}

int main(int argc, char **argv)
{
	struct key *key;

	must(argc == 2 && chdir(argv[1]) == 0, "usage: sample DIRECTORY");
	key = get_key();
	write_log(key);
	write_proofs();
	write_receipt(key);
	key_free(key);
	return 0;
}
