/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_read.c - verifies a log of all sessions.
 *
 * Each record has one checkpoint, so both files are read side by side. How much
 * there is of the checkpoints is settled first: a record that is added
 * meanwhile is one that is not signed yet, as one is whose ledger was killed.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/hostlog_read.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hex.h"

struct reader {
	struct hostlog_read *ret;
	FILE *records, *notes;
	uint64_t notes_left; /* bytes */
	struct vkey vkey;
	struct merkle tree;
	struct merkle_hash prev;
	SHA256_CTX sha;
	bool unsigned_rest; /* no more checkpoints to be had */
	void (*line)(void *arg, const struct hostlog_line *line);
	void *arg;
	char buf[HOSTLOG_LINE_MAX];
	char note[CHECKPOINT_NOTE_MAX];
};

static void __attribute__((format(printf, 2, 3)))
say(struct reader *r, const char *format, ...)
{
	va_list args;

	if (*r->ret->problem)
		return;
	va_start(args, format);
	vsnprintf(r->ret->problem, sizeof(r->ret->problem), format, args);
	va_end(args);
}

static void say_line(struct reader *r, const char *what)
{
	say(r, "line %llu of " HOSTLOG_RECORDS " %s",
	    (unsigned long long)r->tree.size + 1, what);
}

static void say_note(struct reader *r, const char *what)
{
	say(r, "checkpoint %llu %s", (unsigned long long)r->tree.size, what);
}

static const char *text_of(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static bool hash_of(const char *text, uint8_t *ret_hash)
{
	return text && strncmp(text, "sha256:", 7) == 0 &&
	       strlen(text) == 7 + 2 * MERKLE_HASH &&
	       hex_parse(text + 7, MERKLE_HASH, ret_hash);
}

static bool take_earlier(json_t *object, struct hostlog_earlier *ret)
{
	const char *directory = text_of(object, "directory");
	const char *checkpoint = text_of(object, "checkpoint");
	unsigned number;
	char end;

	if (!directory ||
	    sscanf(directory, "earlier-%6u%c", &number, &end) != 1)
		return false;
	snprintf(ret->directory, sizeof(ret->directory), LOG_DIR_EARLIER,
		 number);
	snprintf(ret->checkpoint, sizeof(ret->checkpoint), "%s",
		 checkpoint ? checkpoint : "");
	ret->records = (uint64_t)json_integer_value(
		json_object_get(object, "records"));
	ret->bytes =
		(uint64_t)json_integer_value(json_object_get(object, "bytes"));
	return strcmp(ret->directory, directory) == 0 &&
	       hash_of(text_of(object, "digest"), ret->sha256);
}

/* Is it in its place? */
static bool check_place(struct reader *r, json_t *record, json_t *ours)
{
	json_t *metadata = json_object_get(record, "metadata");
	json_t *sequence = json_object_get(metadata, "sequence");
	const char *prev = text_of(ours, "prev");
	char hex[2 * MERKLE_HASH + 1];

	if (!json_is_integer(sequence) ||
	    (uint64_t)json_integer_value(sequence) != r->tree.size)
		return false;
	if (!r->tree.size)
		return !prev;
	return prev && !json_object_get(ours, "earlier") &&
	       strcmp(prev, hex_format(r->prev.byte, MERKLE_HASH, hex)) == 0;
}

static void take_record(struct reader *r, json_t *record)
{
	json_t *ours = json_object_get(record, "unmapped");
	json_t *earlier = json_object_get(ours, "earlier");
	const char *word = text_of(ours, "event");
	struct hostlog_line line = { .session = text_of(ours, "session"),
				     .directory = text_of(ours, "directory"),
				     .vkey = text_of(ours, "vkey"),
				     .receipt = text_of(ours, "receipt") };

	for (int i = 1; word && i < HOSTLOG_EVENT_COUNT; i++)
		if (strcmp(word, hostlog_word((enum hostlog_event)i)) == 0)
			line.event = (enum hostlog_event)i;
	if (!line.event || !line.session) {
		say_line(r, "is no record");
		return;
	}
	if (!check_place(r, record, ours))
		say_line(r, "is not in its place, or the one before it was "
			    "edited");
	if (earlier && !take_earlier(earlier, &r->ret->earlier))
		say_line(r, "quotes nothing that can be an earlier log");
	if (r->line)
		r->line(r->arg, &line);
}

/* The next line of a file, with its LF; @left limits how much is read. Returns
 * its length, less than @cap; 0 at the end; @cap if it is too long, cut. */
static size_t next_line(FILE *file, char *buf, size_t cap, uint64_t *left)
{
	size_t len = 0;
	int c;

	while (len < cap && *left && (c = getc_unlocked(file)) != EOF) {
		buf[len++] = (char)c;
		--*left;
		if (c == '\n')
			break;
	}
	return len;
}

/* Five lines. False if there are no more. */
static bool next_note(struct reader *r, struct text *ret_note)
{
	size_t len = 0;

	for (int i = 0; i < 5; i++) {
		size_t n = next_line(r->notes, r->note + len,
				     sizeof(r->note) - len, &r->notes_left);

		len += n;
		if (!n || r->note[len - 1] != '\n') {
			/* Cut off at the end: its writer was killed. */
			if (r->notes_left)
				say_note(r, "is none");
			return false;
		}
	}
	*ret_note = (struct text){ r->note, len };
	return true;
}

/* The checkpoint of the record that was added just now. */
static void meet_note(struct reader *r)
{
	struct checkpoint head;
	struct merkle_hash root;
	struct text note;
	int err;

	if (r->unsigned_rest)
		return;
	if (!next_note(r, &note)) {
		r->unsigned_rest = true;
		return;
	}
	err = checkpoint_open(note, &r->vkey, &head);
	merkle_root(&r->tree, &root);
	if (err == -ENOKEY)
		say_note(r, "is signed by another key");
	else if (err < 0)
		say_note(r, err == -EKEYREJECTED ? "has a wrong signature"
						 : "is none");
	else if (head.size != r->tree.size)
		say_note(r, "is not in its place");
	else if (!merkle_hash_equal(&head.root, &root))
		say_note(r, "is of other records");
	else if (!*r->ret->problem)
		r->ret->covered = r->tree.size;
}

static void take_line(struct reader *r, size_t len)
{
	json_t *record = json_loadb(r->buf, len, JSON_REJECT_DUPLICATES, NULL);

	if (record)
		take_record(r, record);
	else
		say_line(r, "is no record");
	json_decref(record);
	merkle_leaf(r->buf, len, &r->prev);
	merkle_append_hash(&r->tree, &r->prev);
	meet_note(r);
}

static void take_lines(struct reader *r)
{
	uint64_t all = UINT64_MAX;
	struct text note;
	size_t len;

	while ((len = next_line(r->records, r->buf, sizeof(r->buf), &all))) {
		SHA256_Update(&r->sha, r->buf, len);
		r->ret->bytes += len;
		if (r->buf[len - 1] == '\n') {
			take_line(r, len - 1);
		} else if (len == sizeof(r->buf)) {
			say_line(r, "is too long");
			r->ret->torn = true;
		} else {
			r->ret->torn = true;
		}
	}
	r->ret->records = r->tree.size;
	if (!r->unsigned_rest && next_note(r, &note))
		say(r, "more than the %llu records that are there were signed",
		    (unsigned long long)r->tree.size);
	SHA256_Final(r->ret->sha256, &r->sha);
}

/* Which key should have signed. */
static int find_key(struct reader *r, int dir, const struct vkey *key)
{
	char name[VKEY_NAME_MAX + sizeof("/" HOSTLOG_SESSION)];
	int len;

	if (!key) {
		if (key_read_public(dir, HOSTLOG_VKEY, &r->vkey) < 0)
			say(r, HOSTLOG_VKEY " is no key");
		return 0;
	}
	len = snprintf(name, sizeof(name), "%s/" HOSTLOG_SESSION, key->name);
	return vkey_make((struct text){ name, (size_t)len }, key->public,
			 &r->vkey);
}

static FILE *open_file(int dir, const char *name)
{
	AUTO_FD int fd = openat(dir, name,
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	FILE *file;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return NULL;
	}
	file = fdopen(fd, "r");
	if (file)
		fd = -1;
	return file;
}

/* Before the first record only the state knows what was there. */
static void read_state(struct reader *r, int dir)
{
	AUTO_FD int fd = openat(dir, HOSTLOG_TREE,
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct hostlog_state state;

	if (fd >= 0 && hostlog_state_read(fd, &state) == 0)
		r->ret->earlier = state.earlier;
}

int hostlog_read(int dir, const struct vkey *key,
		 void (*line)(void *arg, const struct hostlog_line *line),
		 void *arg, struct hostlog_read *ret)
{
	AUTO_FILE FILE *notes = open_file(dir, HOSTLOG_CHECKPOINTS);
	AUTO_FREE struct reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int err;

	if (!r)
		return -ENOMEM;
	*ret = (struct hostlog_read){ 0 };
	r->ret = ret;
	r->line = line;
	r->arg = arg;
	r->notes = notes;
	r->unsigned_rest = !notes || fstat(fileno(notes), &st) < 0;
	r->notes_left = r->unsigned_rest ? 0 : (uint64_t)st.st_size;
	AUTO_FILE FILE *records = open_file(dir, HOSTLOG_RECORDS);
	if (!records)
		return -errno;
	r->records = records;
	err = find_key(r, dir, key);
	if (err < 0)
		return err;
	SHA256_Init(&r->sha);
	take_lines(r);
	if (ferror(records))
		return -EIO;
	if (!notes)
		say(r, HOSTLOG_CHECKPOINTS " is missing");
	if (!ret->records)
		read_state(r, dir);
	ret->vkey = r->vkey;
	return 0;
}
