/* SPDX-License-Identifier: Apache-2.0
 *
 * test_warden_links.c - what the warden does when links change, or a network
 * that it has joined.
 */
#include "tests/cmd/warden_boundary_case.h"

/* --- */

/* It let something out while it was there, maybe. */
static void test_links_undone(void **state)
{
	(void)state;
	assert_int_equal(write(links, "y", 1), 1);
	turn();
	assert_string_equal(notes, "links stop failed");
	has("in there: it was an interface");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
}

static void test_links(void **state)
{
	(void)state;
	assert_int_equal(write(links, "x", 1), 1);
	turn();
	assert_string_equal(notes, "links");
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
	links_result = -EBADMSG;
	assert_int_equal(write(links, "x", 1), 1);
	turn();
	assert_string_equal(notes, "links stop failed");
	has("in there: an interface");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
}

/* Where tables keep the sandbox in: the session goes on. */
static void test_links_told(void **state)
{
	(void)state;
	links_result = 1;
	assert_int_equal(write(links, "x", 1), 1);
	turn();
	assert_string_equal(notes, "links told");
	has("links were changed: in there: an interface");
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
	/* Who does it again and again is told of once in a while. */
	links_result = 0;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(write(links, "z", 1), 1);
		turn();
		assert_string_equal(notes, "links");
	}
	until_look();
	assert_string_equal(notes, "links told verify count");
	has("it was an interface; and others before that");
	assert_int_equal(w.watched.links, 4);
	/* Also at the end. */
	assert_int_equal(write(links, "z", 1), 1);
	turn();
	assert_int_equal(write(links, "z", 1), 1);
	turn();
	notes[0] = '\0';
	boundary_end(&w);
	assert_string_equal(notes, "told");
}

static void test_lock(void **state)
{
	(void)state;
	lock_result = 1;
	until_look();
	assert_string_equal(notes, "links lock told verify count");
	has("tables were put back: there was none");
	assert_int_equal(warden_held(&w), BOUNDARY_RESTORED);
	lock_result = -EPERM;
	until_look();
	assert_string_equal(notes, "links lock stop failed");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
}

/* Nobody is there at first; and how often it is looked is the caller's. */
static void test_join(void **state)
{
	const int there = gateway.link_watch[SANDBOX_SIDE];

	(void)state;
	boundary_detach(&w);
	w.watched = (struct boundary){ 0 };
	w.look_s = 1;
	gateway.link_watch[SANDBOX_SIDE] = -1;
	assert_int_equal(boundary_attach(&w), 0);
	assert_null(w.watched.link[SANDBOX_SIDE]);
	gateway.link_watch[SANDBOX_SIDE] = there;
	assert_int_equal(boundary_join(&w), 0);
	assert_non_null(w.watched.link[SANDBOX_SIDE]);
	until_look_of(1);
	assert_string_equal(notes, "links verify count");
}

static void test_links_end(void **state)
{
	(void)state;
	links_result = -EBADMSG;
	assert_int_equal(write(links, "x", 1), 1);
	boundary_end(&w);
	assert_string_equal(notes, "links stop failed");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_links),      TEST(test_links_undone),
		TEST(test_links_told), TEST(test_lock),
		TEST(test_join),       TEST(test_links_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
