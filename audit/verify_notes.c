/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_notes.c - do the checkpoints fit the records?
 *
 * They are read side by side with the records: when there are as many as the
 * next checkpoint speaks of, the roots are compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/verify_state.h"
#include "base/cleanup.h"

#define NOTE_LINES 5

int verify_open_notes(struct verify *v)
{
	int fd = verify_open_file(v->dirfd, LOG_DIR_CHECKPOINTS);
	struct stat st;

	if (fd == -ENOENT) {
		v->notes.missing = v->notes.ended = true;
		return 0;
	}
	if (fd < 0) {
		verify_say(v, VERIFY_UNREADABLE, LOG_DIR_CHECKPOINTS, 0,
			   "the checkpoints: %s", verify_open_why(fd));
		v->notes.bad = v->notes.ended = true;
		return 0;
	}
	v->notes.file = fstat(fd, &st) < 0 ? NULL : fdopen(fd, "r");
	if (!v->notes.file) {
		close(fd);
		return -ENOMEM;
	}
	v->notes.left = (uint64_t)st.st_size;
	return 0;
}

void verify_close_notes(struct verify *v)
{
	if (v->notes.file)
		fclose(v->notes.file);
	v->notes.file = NULL;
}

enum took { TOOK_NOTE, TOOK_NOTHING, TOOK_PART, TOOK_RUBBISH };

/* Appends a line of the file, with its LF, to @buf. */
static enum took take_line(struct verify_notes *notes, char *buf, size_t cap,
			   size_t *len)
{
	int c;

	while (notes->left && (c = getc(notes->file)) != EOF) {
		notes->left--;
		if (*len + 1 == cap || !c)
			return TOOK_RUBBISH;
		buf[(*len)++] = (char)c;
		if (c == '\n')
			return TOOK_NOTE;
	}
	return TOOK_PART;
}

/* The next five lines, as a text. */
static enum took take_note(struct verify_notes *notes, char *buf, size_t cap)
{
	size_t len = 0;

	for (int i = 0; i < NOTE_LINES; i++) {
		enum took took = take_line(notes, buf, cap, &len);

		if (took == TOOK_PART && !len)
			return TOOK_NOTHING;
		if (took != TOOK_NOTE)
			return took;
	}
	buf[len] = '\0';
	notes->line += NOTE_LINES;
	return TOOK_NOTE;
}

bool verify_peek_note(struct verify *v, char ret_text[CHECKPOINT_NOTE_MAX])
{
	struct verify_notes notes = v->notes;
	bool there;

	*ret_text = '\0';
	if (!notes.file)
		return false;
	there = take_note(&notes, ret_text, CHECKPOINT_NOTE_MAX) == TOOK_NOTE;
	if (!there)
		*ret_text = '\0';
	rewind(notes.file);
	return there;
}

/* Why a note can't be opened, as a fault and a sentence. */
static void say_note(struct verify *v, int r, const char *text,
		     const char *file, uint64_t line)
{
	char origin[CHECKPOINT_ORIGIN_MAX + 1];

	snprintf(origin, sizeof(origin), "%.*s", (int)strcspn(text, "\n"),
		 text);
	if (r == -EKEYREJECTED)
		verify_say(v, VERIFY_SIGNATURE, file, line,
			   "the signature of the checkpoint is wrong");
	else if (r != -ENOKEY)
		verify_say(v, VERIFY_CHECKPOINT, file, line,
			   "this is no checkpoint");
	else if (strcmp(origin, v->key.name) != 0)
		verify_say(v, VERIFY_OTHER_SESSION, file, line,
			   "a checkpoint of %.100s; this is %.100s", origin,
			   v->key.name);
	else
		verify_say(v, VERIFY_WRONG_KEY, file, line,
			   "the checkpoint is not signed with the key of the "
			   "session");
	v->notes.bad = true;
}

static void keep_first(struct verify_result *result, const char *text)
{
	if (!*result->first_checkpoint)
		snprintf(result->first_checkpoint,
			 sizeof(result->first_checkpoint), "%s", text);
}

/* The file ended, maybe within a checkpoint. */
static void end_notes(struct verify *v, enum took took)
{
	struct verify_notes *notes = &v->notes;

	notes->ended = true;
	if (took == TOOK_NOTHING)
		return;
	if (took == TOOK_PART && !v->receipt.present) {
		/* Whoever wrote it was killed. */
		v->result->torn = true;
		return;
	}
	notes->bad = true;
	verify_say(v, VERIFY_CHECKPOINT, LOG_DIR_CHECKPOINTS, notes->line + 1,
		   took == TOOK_PART ? "the file ends within this checkpoint"
				     : "this is no checkpoint");
}

/* Sizes only grow. */
static bool grows(struct verify *v, const struct checkpoint *checkpoint,
		  uint64_t line)
{
	const struct checkpoint *last = &v->notes.last;

	if (!v->notes.count || checkpoint->size > last->size)
		return true;
	v->notes.bad = true;
	if (checkpoint->size == last->size &&
	    !merkle_hash_equal(&checkpoint->root, &last->root))
		verify_say(v, VERIFY_FORKED, LOG_DIR_CHECKPOINTS, line,
			   "two logs were signed: this checkpoint and the one "
			   "before are of %" PRIu64
			   " records, and those are not the same",
			   last->size);
	else
		verify_say(v, VERIFY_CHECKPOINT, LOG_DIR_CHECKPOINTS, line,
			   "the checkpoints are not in order: %" PRIu64
			   " records after %" PRIu64,
			   checkpoint->size, last->size);
	return false;
}

/* Reads on to the next checkpoint that is good in itself. */
static void next_note(struct verify *v)
{
	struct verify_notes *notes = &v->notes;

	notes->has_next = false;
	while (!notes->ended) {
		uint64_t line = notes->line + 1;
		enum took took =
			take_note(notes, notes->text, sizeof(notes->text));
		struct text text = { notes->text, 0 };
		int r;

		if (took != TOOK_NOTE) {
			end_notes(v, took);
			return;
		}
		text.len = strlen(notes->text);
		r = checkpoint_open(text, &v->key, &notes->next);
		if (r < 0) {
			say_note(v, r, notes->text, LOG_DIR_CHECKPOINTS, line);
			/* Who knows where the next one begins? */
			notes->ended = r == -EBADMSG;
			continue;
		}
		if (!grows(v, &notes->next, line))
			continue;
		notes->count++;
		notes->last = notes->next;
		notes->next_line = line;
		notes->has_next = true;
		return;
	}
}

static void say_root(struct verify *v)
{
	const struct verify_result *result = v->result;

	v->root.set = true;
	v->root.problem = result->problems;
	v->root.from = result->covered;
	v->root.to = v->tree.size;
	v->root.line = v->notes.next_line;
	if (result->covered + 1 == v->tree.size)
		verify_say(v, VERIFY_ROOT, v->uncovered.file, v->uncovered.line,
			   "this line is not the one that was signed "
			   "(" LOG_DIR_CHECKPOINTS ":%" PRIu64 ")",
			   v->root.line);
	else
		verify_say(v, VERIFY_ROOT, v->uncovered.file, v->uncovered.line,
			   "from here to %s:%" PRIu64
			   ", at least one of records %" PRIu64 " to %" PRIu64
			   " is not the one that was signed "
			   "(" LOG_DIR_CHECKPOINTS ":%" PRIu64 ")",
			   v->before_at.file, v->before_at.line,
			   result->covered, v->tree.size - 1, v->root.line);
}

/* A later checkpoint fits: then it is not the records that are wrong. */
static void say_fork(struct verify *v)
{
	struct verify_result *result = v->result;

	v->root.set = false;
	if (v->root.problem >= VERIFY_PROBLEMS_MAX)
		return;
	verify_say_in(&result->problem[v->root.problem], VERIFY_FORKED,
		      LOG_DIR_CHECKPOINTS, v->root.line,
		      "two logs were signed: this checkpoint is of other "
		      "records than those of the checkpoint of line %" PRIu64,
		      v->notes.next_line);
}

static void compare(struct verify *v)
{
	struct verify_result *result = v->result;
	struct merkle_hash root;

	if (v->tree_bad)
		return;
	merkle_root(&v->tree, &root);
	if (!merkle_hash_equal(&root, &v->notes.next.root)) {
		if (!v->root.set)
			say_root(v);
		return;
	}
	if (v->root.set)
		say_fork(v);
	result->checkpoints++;
	result->covered = v->tree.size;
	v->wants_uncovered = true;
	keep_first(result, v->notes.text);
	snprintf(result->last_checkpoint, sizeof(result->last_checkpoint), "%s",
		 v->notes.text);
}

static void compare_kept(struct verify *v)
{
	struct merkle_hash root;

	merkle_root(&v->tree, &root);
	if (!v->tree_bad && !v->root.set &&
	    !merkle_hash_equal(&root, &v->kept.root))
		verify_say(v, VERIFY_FORKED, v->kept_name, 1,
			   "two logs were signed: the checkpoint that was kept "
			   "is of %" PRIu64
			   " records, and those are not the ones in this log",
			   v->kept.size);
}

void verify_meet_notes(struct verify *v)
{
	if (v->has_kept && v->kept.size == v->tree.size)
		compare_kept(v);
	while (v->notes.has_next && v->notes.next.size == v->tree.size) {
		compare(v);
		next_note(v);
	}
}

static void begin_kept(struct verify *v)
{
	const char *path = v->options->checkpoint;
	AUTO_FILE FILE *file = path ? fopen(path, "re") : NULL;
	char text[CHECKPOINT_NOTE_MAX];
	size_t len;
	int r;

	if (!file)
		return;
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	r = checkpoint_open((struct text){ text, len }, &v->key, &v->kept);
	if (r < 0)
		say_note(v, r, text, v->kept_name, 1);
	v->has_kept = !r;
}

int verify_open_kept(struct verify *v, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(v->kept_name, sizeof(v->kept_name), "%.60s",
		 slash ? slash + 1 : path);
	return access(path, R_OK) < 0 ? -errno : 0;
}

void verify_begin_notes(struct verify *v)
{
	if (!v->has_key) {
		v->notes.ended = true;
		return;
	}
	begin_kept(v);
	next_note(v);
	verify_meet_notes(v);
}

static void say_truncated(struct verify *v, uint64_t size, const char *file,
			  uint64_t line)
{
	uint64_t there = v->tree_bad ? v->expected : v->tree.size;

	if (size <= there)
		return;
	verify_say(v, VERIFY_TRUNCATED, v->reader.file, v->before_at.line,
		   "the log ends after %" PRIu64 " records; %" PRIu64
		   " were signed (%s:%" PRIu64 ")",
		   there, size, file, line);
}

/* The newest one that was signed may be beyond the end. */
static void end_beyond(struct verify *v)
{
	uint64_t size = 0, line = 0;

	while (v->notes.has_next) {
		size = v->notes.next.size;
		line = v->notes.next_line;
		next_note(v);
	}
	if (size)
		say_truncated(v, size, LOG_DIR_CHECKPOINTS, line);
}

/* Without a receipt the last checkpoint may be on the way, or whoever wrote it
 * was killed then: that proves nothing, and nothing is wrong. The receipt is
 * made after it. */
void verify_end_notes(struct verify *v)
{
	struct verify_result *result = v->result;

	end_beyond(v);
	if (v->has_kept)
		say_truncated(v, v->kept.size, v->kept_name, 2);
	if (!v->has_key || v->tree_bad || v->root.set || v->notes.bad)
		return;
	if (v->notes.missing && (result->closed || v->receipt.present))
		verify_say(v, VERIFY_UNREADABLE, LOG_DIR_CHECKPOINTS, 0,
			   "the checkpoints: it is missing");
	else if (result->closed && result->covered < result->records &&
		 v->receipt.present)
		verify_say(v, VERIFY_TRUNCATED, LOG_DIR_CHECKPOINTS,
			   v->notes.line,
			   "the last checkpoints are missing: the session was "
			   "closed after %" PRIu64 " records, and only %" PRIu64
			   " are signed",
			   result->records, result->covered);
}
