/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hostlog.c - the log of all sessions: it grows by one session at a time.
 */
#include "tests/audit/hostlog_case.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_it_says, setup,
						teardown),
		cmocka_unit_test(test_state),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
