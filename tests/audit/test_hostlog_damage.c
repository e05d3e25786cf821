/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hostlog_damage.c - what is not as it was left is put aside and quoted,
 * never added to.
 */
#include "tests/audit/hostlog_case.h"

static void spill(int dir, const char *name, const char *data, size_t len)
{
	AUTO_FD int fd = openat(dir, name,
				O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_put_aside, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_quote_waits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_another_key, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_taken_up, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
