/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of all sessions: it grows by one session at a time, and what is not
 * as it was left is put aside and quoted, never added to.
 */
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

#define NAME "host.test"

struct world {
	char path[64];
	int home, host; /* directories */
	struct key *key;
};

static struct key *key_of(uint8_t seed)
{
	uint8_t bytes[KEY_SEED] = { seed };
	struct key *key;

	assert_int_equal(
		key_of_seed((struct text){ NAME, strlen(NAME) }, bytes, &key),
		0);
	return key;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->path, sizeof(w->path), "/tmp/hostlog.XXXXXX");
	assert_non_null(mkdtemp(w->path));
	w->home = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(w->home >= 0);
	assert_int_equal(mkdirat(w->home, HOSTLOG_DIR, 0700), 0);
	w->host = openat(w->home, HOSTLOG_DIR, O_RDONLY | O_CLOEXEC);
	w->key = key_of(1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	char *argv[] = { "rm", "-rf", w->path, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	close(w->home);
	close(w->host);
	key_free(w->key);
	free(w);
	return 0;
}

static struct hostlog *opened_by(struct world *w, const struct key *key)
{
	struct hostlog_files files;
	struct hostlog *log;

	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR, key_public(key),
					  false, &files),
			 0);
	assert_int_equal(hostlog_new(&files, key, &log), 0);
	return log;
}

static struct hostlog *opened(struct world *w)
{
	return opened_by(w, w->key);
}

static int add(struct hostlog *log, const char *session)
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
static char *slurp(int dir, const char *name, size_t *ret_len)
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

static void spill(int dir, const char *name, const char *data, size_t len)
{
	AUTO_FD int fd = openat(dir, name,
				O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
}

static struct vkey vkey_of(int dir)
{
	struct vkey vkey;

	assert_int_equal(key_read_public(dir, HOSTLOG_VKEY, &vkey), 0);
	assert_string_equal(vkey.name, NAME "/host");
	return vkey;
}

static const char *text_at(json_t *record, const char *key)
{
	return json_string_value(
		json_object_get(json_object_get(record, "unmapped"), key));
}

/* One line: in its place, chained to the one before. */
static json_t *check_line(struct text line, uint64_t sequence,
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

static struct text note_at(struct text *rest)
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
static uint64_t verify(int dir, bool torn,
		       void (*seen)(void *arg, json_t *record), void *arg)
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

static json_t *first_record(int dir)
{
	size_t len;
	AUTO_FREE char *data = slurp(dir, HOSTLOG_RECORDS, &len);
	struct text text = { data, len }, line;

	assert_true(text_line(&text, &line));
	return json_loadb(line.at, line.len, 0, NULL);
}

static void test_grows(void **state)
{
	struct world *w = *state;
	char session[32];
	struct stat st;

	for (int i = 0; i < 20; i++) {
		struct hostlog *log = opened(w);

		snprintf(session, sizeof(session), "s%d", i);
		assert_int_equal(add(log, session), 0);
		assert_int_equal(add(log, session), 0);
		hostlog_free(log);
	}
	assert_int_equal(verify(w->host, false, NULL, NULL), 40);
	assert_int_equal(fstatat(w->host, HOSTLOG_TREE, &st, 0), 0);
	assert_int_equal(st.st_size, HOSTLOG_STATE_LEN);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(faccessat(w->host, "earlier-000001", F_OK, 0) < 0);
}

static void test_what_it_says(void **state)
{
	struct world *w = *state;
	struct hostlog *log = opened(w);
	uint8_t receipt[32] = { 0xab };
	struct hostlog_entry entry = {
		.event = HOSTLOG_OPENED,
		.session = "s1\n\x1b[1m",
		.sandbox_name = "b\"ox",
		.policy_digest = "00ff",
		.directory = "/home/\xc3\xa9\\t",
		.vkey = key_public(w->key),
	};
	size_t len;
	json_t *record;

	assert_int_equal(hostlog_append(log, &entry), 0);
	record = first_record(w->host);
	assert_string_equal(text_at(record, "event"), "session_opened");
	assert_string_equal(text_at(record, "session"), entry.session);
	assert_string_equal(text_at(record, "sandbox"), entry.sandbox_name);
	assert_string_equal(text_at(record, "directory"), entry.directory);
	assert_memory_equal(text_at(record, "vkey"), NAME "+", 10);
	json_decref(record);

	entry.event = HOSTLOG_RECEIPT;
	entry.receipt = receipt;
	entry.records = 7;
	assert_int_equal(hostlog_append(log, &entry), 0);
	entry.event = HOSTLOG_OPENED;
	entry.directory = "/home/\xe2\x80\xae";
	assert_int_equal(hostlog_append(log, &entry), 0);
	hostlog_free(log);
	assert_int_equal(verify(w->host, false, NULL, NULL), 3);
	AUTO_FREE char *data = slurp(w->host, HOSTLOG_RECORDS, &len);
	struct text lines = { data, len }, line;
	text_line(&lines, &line);
	text_line(&lines, &line);
	record = json_loadb(line.at, line.len, 0, NULL);
	assert_string_equal(text_at(record, "event"), "session_receipt");
	assert_memory_equal(text_at(record, "receipt"), "sha256:ab00", 11);
	json_decref(record);
	/* A path that would be escaped is none. */
	text_line(&lines, &line);
	record = json_loadb(line.at, line.len, 0, NULL);
	assert_null(text_at(record, "directory"));
	json_decref(record);
	for (size_t i = 0; i < len; i++)
		assert_true(data[i] == '\n' || (unsigned char)data[i] >= 0x20);
}

/* No byte of the state can change, and none can be missing. */
static void test_state(void **state)
{
	uint8_t data[HOSTLOG_STATE_LEN + 1] = { 0 };
	struct hostlog_state in = { .records = 5, .checkpoints = 9, .last = 2 };
	struct hostlog_state out;

	(void)state;
	memset(in.earlier.directory, 'd', sizeof(in.earlier.directory) - 1);
	memset(in.earlier.checkpoint, 'c', sizeof(in.earlier.checkpoint) - 1);
	in.tree.size = MERKLE_SIZE_MAX; /* all peaks */
	hostlog_state_save(&in, data);
	assert_int_equal(hostlog_state_load(data, HOSTLOG_STATE_LEN, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	for (size_t i = 0; i < HOSTLOG_STATE_LEN; i++) {
		data[i] ^= 0x10;
		assert_int_equal(
			hostlog_state_load(data, HOSTLOG_STATE_LEN, &out),
			-EUCLEAN);
		data[i] ^= 0x10;
		assert_int_equal(hostlog_state_load(data, i, &out), -EUCLEAN);
	}
	assert_int_equal(hostlog_state_load(data, sizeof(data), &out),
			 -EUCLEAN);
}

static void sha256_hex(const char *data, size_t len, char *ret_hex)
{
	uint8_t digest[32];

	assert_int_equal(
		EVP_Digest(data, len, digest, NULL, EVP_sha256(), NULL), 1);
	memcpy(ret_hex, "sha256:", 7);
	hex_format(digest, 32, ret_hex + 7);
}

/* The first record quotes what lies in the directory it names; returns that
 * name in @ret_name. False if it quotes nothing. */
static bool check_quote(int host, int dir, char *ret_name)
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

enum damage {
	TORN_LINE,
	ADDED_LINE,
	LOST_LINE,
	TORN_CHECKPOINT,
	LOST_CHECKPOINT,
	EDITED_ROOT,
	EDITED_TREE,
	SHORT_TREE,
	NO_TREE,
	NO_RECORDS_AT_ALL,
	NO_VKEY,
	OLD_TREE,
	DAMAGES
};

static void damage(int host, enum damage what, const char *old_tree)
{
	size_t records, notes, tree;
	AUTO_FREE char *r = slurp(host, HOSTLOG_RECORDS, &records);
	AUTO_FREE char *n = slurp(host, HOSTLOG_CHECKPOINTS, &notes);
	AUTO_FREE char *t = slurp(host, HOSTLOG_TREE, &tree);

	switch (what) {
	case TORN_LINE:
		spill(host, HOSTLOG_RECORDS, r, records - 3);
		break;
	case ADDED_LINE:
		r[records] = '\n'; /* where the NUL was */
		spill(host, HOSTLOG_RECORDS, r, records + 1);
		break;
	case LOST_LINE:
		*(char *)memrchr(r, '\n', records - 1) = '\0';
		spill(host, HOSTLOG_RECORDS, r, strlen(r));
		break;
	case TORN_CHECKPOINT:
		spill(host, HOSTLOG_CHECKPOINTS, n, notes - 9);
		break;
	case LOST_CHECKPOINT:
		spill(host, HOSTLOG_CHECKPOINTS, n, notes / 3);
		break;
	case EDITED_ROOT:
		n[notes - 120] ^= 1;
		for (size_t i = notes - 5; i > notes - 200; i--)
			n[i] = n[i] == 'A' ? 'B' : n[i];
		spill(host, HOSTLOG_CHECKPOINTS, n, notes);
		break;
	case EDITED_TREE:
		t[70] ^= 1;
		spill(host, HOSTLOG_TREE, t, tree);
		break;
	case SHORT_TREE:
		spill(host, HOSTLOG_TREE, t, 100);
		break;
	case NO_TREE:
		unlinkat(host, HOSTLOG_TREE, 0);
		break;
	case NO_RECORDS_AT_ALL:
		spill(host, HOSTLOG_RECORDS, "", 0);
		break;
	case NO_VKEY:
		unlinkat(host, HOSTLOG_VKEY, 0);
		break;
	case OLD_TREE:
		spill(host, HOSTLOG_TREE, old_tree, HOSTLOG_STATE_LEN);
		break;
	default:
		fail();
	}
}

static void test_put_aside(void **state)
{
	struct world *w = *state;
	char name[LOG_DIR_NAME_MAX], expected[LOG_DIR_NAME_MAX];

	for (int i = 0; i < DAMAGES; i++) {
		struct hostlog *log = opened(w), *next;
		size_t len;

		assert_int_equal(add(log, "one"), 0);
		assert_int_equal(add(log, "two"), 0);
		AUTO_FREE char *old = slurp(w->host, HOSTLOG_TREE, &len);
		assert_int_equal(add(log, "three"), 0);
		damage(w->host, (enum damage)i, old);
		if (i != NO_VKEY) /* which only the opener looks at */
			assert_int_equal(add(log, "four"), -EUCLEAN);

		next = opened(w);
		assert_int_equal(add(next, "five"), 0);
		assert_int_equal(add(log, "six"), -EUCLEAN);
		assert_int_equal(verify(w->host, false, NULL, NULL), 1);
		assert_true(check_quote(w->host, w->host, name));
		snprintf(expected, sizeof(expected), LOG_DIR_EARLIER, i + 1);
		assert_string_equal(name, expected);
		hostlog_free(log);
		hostlog_free(next);
	}
}

/* The quote waits in the state until somebody writes a record. */
static void test_quote_waits(void **state)
{
	struct world *w = *state;
	struct hostlog *log = opened(w);
	char name[LOG_DIR_NAME_MAX];

	assert_int_equal(add(log, "one"), 0);
	damage(w->host, TORN_LINE, NULL);
	for (int i = 0; i < 3; i++)
		hostlog_free(opened(w));
	hostlog_free(log);
	log = opened(w);
	assert_int_equal(add(log, "two"), 0);
	hostlog_free(log);
	assert_true(check_quote(w->host, w->host, name));
	assert_string_equal(name, "earlier-000001");
}

static void test_another_key(void **state)
{
	struct world *w = *state;
	struct hostlog *log = opened(w), *other;
	struct key *key = key_of(2);
	struct hostlog_files files;
	char name[LOG_DIR_NAME_MAX];
	int same = open(w->path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(add(log, "one"), 0);
	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR, key_public(key),
					  true, &files),
			 -ENOKEY);
	assert_int_equal(hostlog_dir_open(same, HOSTLOG_DIR, key_public(w->key),
					  true, &files),
			 0);
	assert_int_equal(hostlog_new(&files, key, &other), 0);
	assert_int_equal(add(other, "forged"), -ENOKEY);
	hostlog_free(other);

	other = opened_by(w, key);
	assert_int_equal(add(other, "two"), 0);
	assert_int_equal(add(log, "three"), -EUCLEAN);
	assert_int_equal(verify(w->host, false, NULL, NULL), 1);
	assert_true(check_quote(w->host, w->host, name));
	hostlog_free(other);
	hostlog_free(log);
	key_free(key);
	close(same);
}

/* Whoever died while a log was put aside: the next one goes on. */
static void test_taken_up(void **state)
{
	static const char *const names[] = { HOSTLOG_RECORDS,
					     HOSTLOG_CHECKPOINTS, HOSTLOG_VKEY,
					     HOSTLOG_TREE };
	struct world *w = *state;

	for (unsigned moved = 0; moved <= 5; moved++) {
		struct hostlog *log = opened(w);
		struct hostlog_state plan = { 0 };
		uint8_t data[HOSTLOG_STATE_LEN];
		char place[LOG_DIR_NAME_MAX], from[80], to[80], hex[80];
		size_t len;

		assert_int_equal(add(log, "one"), 0);
		hostlog_free(log);
		damage(w->host, TORN_LINE, NULL);
		AUTO_FREE char *old = slurp(w->host, HOSTLOG_RECORDS, &len);
		for (unsigned i = 1; i < 100; i++) {
			snprintf(place, sizeof(place), LOG_DIR_EARLIER, i);
			if (mkdirat(w->host, place, 0700) == 0)
				break;
		}
		snprintf(plan.earlier.directory, sizeof(place), "%s", place);
		plan.earlier.bytes = len;
		sha256_hex(old, len, hex);
		assert_true(hex_parse(hex + 7, 32, plan.earlier.sha256));
		AUTO_FD int notes = openat(w->host, HOSTLOG_CHECKPOINTS,
					   O_RDONLY | O_CLOEXEC);
		hostlog_last_checkpoint(notes, plan.earlier.checkpoint);
		hostlog_state_save(&plan, data);
		spill(w->host, HOSTLOG_TREE ".new", (char *)data, sizeof(data));
		for (unsigned i = 0; i < moved && i < 4; i++) {
			snprintf(from, sizeof(from), "%s", names[i]);
			snprintf(to, sizeof(to), "%s/%s", place, names[i]);
			assert_int_equal(renameat(w->host, from, w->host, to),
					 0);
		}
		if (moved == 5)
			spill(w->host, HOSTLOG_RECORDS, "", 0);

		log = opened(w);
		assert_int_equal(add(log, "two"), 0);
		hostlog_free(log);
		assert_int_equal(verify(w->host, false, NULL, NULL), 1);
		assert_true(check_quote(w->host, w->host, to));
		if (moved)
			assert_string_equal(to, place);
		assert_true(faccessat(w->host, HOSTLOG_TREE ".new", F_OK, 0) <
			    0);
	}
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* A session that was stopped at the wrong moment stops no other. */
static void test_held(void **state)
{
	struct world *w = *state;
	struct hostlog *log = opened(w);
	AUTO_FD int tree = openat(w->host, HOSTLOG_TREE, O_RDWR | O_CLOEXEC);
	uint64_t start;

	assert_int_equal(add(log, "one"), 0);
	assert_int_equal(flock(tree, LOCK_EX), 0);
	start = now_ms();
	hostlog_free(opened(w));
	assert_in_range(now_ms() - start, 0, 500);
	start = now_ms();
	assert_int_equal(add(log, "two"), -EBUSY);
	assert_in_range(now_ms() - start, HOSTLOG_WAIT_MS,
			HOSTLOG_WAIT_MS + 1500);
	flock(tree, LOCK_UN);
	assert_int_equal(add(log, "three"), 0);
	hostlog_free(log);
	assert_int_equal(verify(w->host, false, NULL, NULL), 2);
}

/* What a full disk refuses is taken back. */
static void test_full(void **state)
{
	struct world *w = *state;
	struct hostlog *log = opened(w);
	struct rlimit old, small;
	size_t len;

	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 10; i++)
		assert_int_equal(add(log, "one"), 0);
	free(slurp(w->host, HOSTLOG_RECORDS, &len));
	assert_true(len > HOSTLOG_STATE_LEN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = len + 20; /* in the middle of a line */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(add(log, "two"), -EFBIG);
	assert_int_equal(add(log, "two"), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(verify(w->host, false, NULL, NULL), 10);
	assert_int_equal(add(log, "three"), 0);
	hostlog_free(log);
	assert_int_equal(verify(w->host, false, NULL, NULL), 11);
}

static void test_not_ours(void **state)
{
	struct world *w = *state;
	struct hostlog_files files;

	assert_int_equal(fchmodat(w->home, HOSTLOG_DIR, 0770, 0), 0);
	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR,
					  key_public(w->key), false, &files),
			 -EPERM);
	assert_int_equal(unlinkat(w->home, HOSTLOG_DIR, AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/tmp", w->home, HOSTLOG_DIR), 0);
	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR,
					  key_public(w->key), false, &files),
			 -ENOTDIR);
	assert_int_equal(unlinkat(w->home, HOSTLOG_DIR, 0), 0);
	assert_int_equal(hostlog_dir_open(w->home, HOSTLOG_DIR,
					  key_public(w->key), false, &files),
			 0);
	close(files.records);
	close(files.checkpoints);
	close(files.tree);
}

#define WORKERS 50
#define ROUNDS	12

/* Says "here is one" after each record that is in the log, as a session does
 * that goes on. Its own number is the session's. */
static void work(struct world *w, unsigned number, int out)
{
	char session[32];

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t said = number << 8 | i;
		struct hostlog_files files;
		struct hostlog *log;
		int r = hostlog_dir_open(w->home, HOSTLOG_DIR,
					 key_public(w->key), i > 0, &files);

		if (r < 0 || hostlog_new(&files, w->key, &log) < 0)
			_exit(2);
		snprintf(session, sizeof(session), "%u", said + 1);
		r = add(log, session);
		/* Another one was killed between our look and this. */
		if (r < 0 && r != -EUCLEAN)
			_exit(3);
		if (r == 0 && write(out, &said, sizeof(said)) < 0)
			_exit(4);
		hostlog_free(log);
	}
	_exit(0);
}

static void mark(void *arg, json_t *record)
{
	bool *seen = arg;
	unsigned long number = strtoul(text_at(record, "session"), NULL, 10);

	assert_in_range(number, 0, WORKERS << 8);
	assert_false(seen[number]);
	seen[number] = true;
}

/* Back from the newest log to the first; returns how many there were. */
static unsigned walk(struct world *w, bool *seen)
{
	char name[LOG_DIR_NAME_MAX] = ".";
	unsigned logs = 0;

	for (bool more = true; more; logs++) {
		AUTO_FD int dir = openat(w->host, name, O_RDONLY | O_CLOEXEC);

		assert_true(dir >= 0);
		verify(dir, logs > 0, mark, seen);
		more = check_quote(w->host, dir, name);
	}
	return logs;
}

/* Who appends just now; 0 if nobody does. */
static pid_t holder(struct world *w)
{
	AUTO_FILE FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	struct stat st;
	pid_t pid;
	unsigned long inode;

	if (!locks || fstatat(w->host, HOSTLOG_TREE, &st, 0) < 0)
		return 0;
	while (fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*u: FLOCK %*s %*s %d %*x:%*x:%lu", &pid,
			   &inode) == 2 &&
		    inode == st.st_ino)
			return pid;
	return 0;
}

static void test_many_at_once(void **state)
{
	static bool seen[(WORKERS << 8) + 1];
	struct world *w = *state;
	unsigned kills = 0, said = 0, earlier = 0;
	pid_t pid[WORKERS];
	struct hostlog *log;
	uint32_t got;
	int out[2];

	memset(seen, 0, sizeof(seen));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	srand((unsigned)now_ms());
	for (unsigned i = 0; i < WORKERS; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			work(w, i, out[1]);
	}
	close(out[1]);
	for (unsigned i = 0; i < WORKERS / 2; i++) {
		pid_t victim = i % 2 ? holder(w) : 0;

		usleep((unsigned)rand() % 8000);
		for (unsigned j = 0; j < WORKERS && i % 2 && victim; j++)
			if (pid[j] == victim)
				kills += kill(victim, SIGKILL) == 0;
		if (i % 2 == 0)
			kills += kill(pid[rand() % WORKERS], SIGKILL) == 0;
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		int status;

		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	}
	log = opened(w);
	assert_int_equal(add(log, "0"), 0);
	hostlog_free(log);
	earlier = walk(w, seen) - 1;
	while (read(out[0], &got, sizeof(got)) == sizeof(got)) {
		said++;
		assert_true(seen[got + 1]);
	}
	close(out[0]);
	assert_true(kills > 0 && said > 0);
	print_message("%u records, %u killed, begun anew %u times\n", said,
		      kills, earlier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_it_says, setup,
						teardown),
		cmocka_unit_test(test_state),
		cmocka_unit_test_setup_teardown(test_put_aside, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_quote_waits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_another_key, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_taken_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_at_once, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
