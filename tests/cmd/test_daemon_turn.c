/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose namespace the daemon makes next, where users keep their makers waiting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon_impl.h"

#define USERS 12 /* more than there are places */
#define EACH  6

static struct daemon daemon_;
static struct box boxes[USERS * EACH + 8];
static size_t n;

static struct box *ask_for(uid_t uid)
{
	struct box *box = &boxes[n++];

	*box = (struct box){ .daemon = &daemon_, .maker_sock = -1, .ns = -1 };
	box->sandbox.spec.uid = uid;
	box->sandbox.spec.link = KEEP_LINK_OWN;
	*daemon_.last = &box->sandbox;
	daemon_.last = &box->sandbox.next;
	box_queue(box);
	return box;
}

static int begin(void **state)
{
	(void)state;
	daemon_ = (struct daemon){ .last = &daemon_.first };
	n = 0;
	return 0;
}

/* A maker for the next one, whoever that is. */
static struct box *make_next(void)
{
	struct box *box = daemon_next_namespace(&daemon_);

	if (box) {
		box->maker_sock = 0;
		daemon_.turn =
			box->turn > daemon_.turn ? box->turn : daemon_.turn;
	}
	return box;
}

static void made(struct box *box)
{
	box->maker_sock = -1;
	box->ns = 0;
	box->queued = false;
}

static size_t making(uid_t uid)
{
	size_t ret = 0;

	for (size_t i = 0; i < n; i++)
		ret += boxes[i].sandbox.spec.uid == uid &&
		       box_is_making(&boxes[i]);
	return ret;
}

/* Four have all places, and many more behind them: the fifth gets the first
 * that becomes free, and no user has more than his share. */
static void test_fifth(void **state)
{
	struct box *late;

	(void)state;
	for (uid_t uid = 1; uid <= 4; uid++)
		for (size_t i = 0; i < EACH; i++)
			ask_for(uid);
	while (make_next())
		;
	for (uid_t uid = 1; uid <= 4; uid++)
		assert_int_equal(making(uid), 2);
	late = ask_for(5);
	assert_null(daemon_next_namespace(&daemon_));
	made(&boxes[0]);
	assert_ptr_equal(make_next(), late);
	assert_null(make_next());
}

/* With one place for each of some: those who have none wait for one round, not
 * for all that the others have. */
static void test_rounds(void **state)
{
	size_t turns[USERS] = { 0 };

	(void)state;
	for (uid_t uid = 0; uid < USERS; uid++)
		for (size_t i = 0; i < EACH; i++)
			ask_for(uid);
	for (size_t i = 0; i < USERS * EACH; i++) {
		struct box *box = make_next();
		size_t least = SIZE_MAX, most = 0;

		assert_non_null(box);
		turns[box->sandbox.spec.uid]++;
		made(box);
		for (size_t k = 0; k < USERS; k++) {
			least = turns[k] < least ? turns[k] : least;
			most = turns[k] > most ? turns[k] : most;
		}
		assert_in_range(most - least, 0, 1);
	}
	assert_null(make_next());
}

/* Nor for those who always come again as somebody else. */
static void test_newcomers(void **state)
{
	struct box *first, *second;

	(void)state;
	first = ask_for(1);
	second = ask_for(1);
	assert_ptr_equal(make_next(), first);
	made(first);
	for (uid_t uid = 100; uid < 108; uid++) {
		ask_for(uid);
		if (make_next() == second)
			return;
		for (size_t i = 0; i < n; i++)
			if (box_is_making(&boxes[i]))
				made(&boxes[i]);
	}
	fail_msg("the second one of user 1 is never made");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fifth, begin),
		cmocka_unit_test_setup(test_rounds, begin),
		cmocka_unit_test_setup(test_newcomers, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
