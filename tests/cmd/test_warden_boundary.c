/* SPDX-License-Identifier: Apache-2.0
 *
 * What the warden does, and in which order, when rules or links change, with
 * or without news of it. The kernel and the rest of the warden are played by
 * what is noted here.
 */
#include "cmd/warden_boundary.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/warden.h"
#include "cmd/warden_give.h"
#include "firewall/watch.h"

static char notes[4096], texts[4096];
static struct warden w;
static struct gateway gateway;
static int rules, links; /* our ends of the watches */

static void note(const char *word)
{
	size_t len = strlen(notes);

	snprintf(notes + len, sizeof(notes) - len, "%s%s", len ? " " : "",
		 word);
}

static void keep_text(const char *text)
{
	size_t len = strlen(texts);

	snprintf(texts + len, sizeof(texts) - len, "%s\n", text);
}

/* --- the rest of the warden ---------------------------------------------- */

static uint32_t recorded_pid;
static char recorded_process[32];

int warden_record(struct warden *warden, const struct audit_event *event)
{
	assert_ptr_equal(warden, &w);
	note(event->kind == EVENT_FINDING ? "finding" : "ruleset");
	keep_text(event->detail);
	recorded_pid = event->pid;
	snprintf(recorded_process, sizeof(recorded_process), "%s",
		 event->process ? event->process : "");
	return 0;
}

/* Of what is only told. */
void warden_finding(struct warden *warden, const char *text)
{
	assert_ptr_equal(warden, &w);
	note("told");
	keep_text(text);
}

void warden_failed(struct warden *warden, const char *why)
{
	assert_int_equal(warden_held(warden), BOUNDARY_BROKEN);
	note("failed");
	keep_text(why);
}

void warden_stop_gate(struct warden *warden)
{
	(void)warden;
	note("stop");
}

int warden_start_gate(struct warden *warden)
{
	(void)warden;
	note("start");
	return 0;
}

/* --- the kernel ---------------------------------------------------------- */

static int verify_result, links_result, restore_result, lock_result;
static uint32_t restored_to;

int gateway_verify(struct gateway *g, char *reterr, size_t cap)
{
	(void)g;
	note("verify");
	if (verify_result)
		snprintf(reterr, cap, "a rule is missing");
	return verify_result;
}

int gateway_verify_links(struct gateway *g, char *reterr, size_t cap)
{
	(void)g;
	note("links");
	if (links_result)
		snprintf(reterr, cap, "there: an interface");
	return links_result;
}

/* Only said of a sandbox that has any. */
int gateway_verify_lock(struct gateway *g, char *reterr, size_t cap)
{
	(void)g;
	if (lock_result) {
		note("lock");
		snprintf(reterr, cap, "there was none");
	}
	return lock_result;
}

int gateway_restore(struct gateway *g, const struct policy *policy,
		    uint32_t *ret_generation, char *reterr, size_t cap)
{
	(void)g;
	(void)policy;
	note("restore");
	if (restore_result) {
		snprintf(reterr, cap, "another table");
		return restore_result;
	}
	verify_result = 0;
	*ret_generation = restored_to;
	return 0;
}

int gateway_counters(struct gateway *g, struct ruleset_counters *ret)
{
	(void)g;
	*ret = (struct ruleset_counters){ 0 };
	note("count");
	return 0;
}

int watch_read(int fd, struct watch_change *ret)
{
	ssize_t n = read(fd, ret, sizeof(*ret));

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n == sizeof(*ret) ? 1 : -EIO;
}

/* "x": news; "y": of what is undone by now; "z": the same where that is only
 * told. */
int gateway_link_news(struct gateway *g, int fd, char *reterr, size_t cap)
{
	char byte = 0;

	(void)g;
	if (read(fd, &byte, 1) != 1)
		return 0;
	snprintf(reterr, cap, "there: it was an interface");
	return byte == 'y' ? -EBADMSG : byte == 'z' ? 2 : 1;
}

static void commit(uint32_t generation, uint32_t pid)
{
	const struct watch_change change = { .generation = generation,
					     .pid = pid,
					     .process = "nft" };

	assert_int_equal(write(rules, &change, sizeof(change)), sizeof(change));
}

/* --- */

static int setup(void **state)
{
	int pair[2];

	(void)state;
	gateway = (struct gateway){ .digest = "abc", .link_watch = { -1, -1 } };
	assert_int_equal(pipe2(pair, O_NONBLOCK | O_CLOEXEC), 0);
	gateway.rules_watch = pair[0];
	rules = pair[1];
	assert_int_equal(pipe2(pair, O_NONBLOCK | O_CLOEXEC), 0);
	gateway.link_watch[GATEWAY_SIDE] = pair[0];
	gateway.link_watch[SANDBOX_SIDE] = dup(pair[0]);
	links = pair[1];
	w = (struct warden){ .gateway = &gateway, .base = event_base_new() };
	assert_non_null(w.base);
	notes[0] = texts[0] = '\0';
	verify_result = links_result = restore_result = lock_result = 0;
	restored_to = 100;
	assert_int_equal(boundary_attach(&w), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	boundary_detach(&w);
	boundary_detach(&w);
	event_base_free(w.base);
	close(gateway.rules_watch);
	close(gateway.link_watch[0]);
	close(gateway.link_watch[1]);
	close(rules);
	close(links);
	return 0;
}

static void turn(void)
{
	notes[0] = texts[0] = '\0';
	assert_true(event_base_loop(w.base, EVLOOP_NONBLOCK) >= 0);
}

static void has(const char *text)
{
	if (!strstr(texts, text))
		fail_msg("no \"%s\" in: %s", text, texts);
}

static void test_restored(void **state)
{
	(void)state;
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
	verify_result = -EBADMSG;
	commit(7, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
	has("changed by nft (pid 42 as the kernel counts): a rule is missing");
	has("put back: ruleset sha256:abc");
	assert_int_equal(recorded_pid, 42);
	assert_string_equal(recorded_process, "nft");
	assert_int_equal(warden_held(&w), BOUNDARY_RESTORED);
}

/* The look shows nothing, and still somebody was there. */
static void test_nothing_to_see(void **state)
{
	(void)state;
	commit(7, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
	has("in what is let through");
}

/* Two in a row: the second was done away with by what the first one caused. */
static void test_repaired(void **state)
{
	(void)state;
	commit(99, 42);
	commit(100, 43);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start "
				   "finding");
	has("nft (pid 43 as the kernel counts): that was put back already");
	/* One more is another change. */
	commit(101, 44);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
}

static void test_lost(void **state)
{
	const struct watch_change change = { .lost = true };

	(void)state;
	assert_int_equal(write(rules, &change, sizeof(change)), sizeof(change));
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
	has("faster than could be watched");
	assert_int_equal(recorded_pid, 0);
}

static void test_too_often(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= BOUNDARY_RESTORES_MAX; i++) {
		restored_to = 10 * i;
		commit(10 * i, 42);
		turn();
		assert_int_equal(warden_held(&w), BOUNDARY_RESTORED);
	}
	commit(1000, 42);
	commit(1001, 42);
	turn();
	assert_string_equal(notes, "stop verify finding stop failed");
	has("more often");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
	/* Nobody looks any more. */
	turn();
	assert_string_equal(notes, "");
	assert_false(boundary_look(&w));
	assert_int_equal(boundary_fd(&w), -1);
}

static void test_not_put_back(void **state)
{
	(void)state;
	restore_result = -EBADMSG;
	commit(7, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore stop failed");
	has("could not be put back: another table");
}

/* Somebody is at it again: no gate, and the next round. */
static void test_changed_meanwhile(void **state)
{
	(void)state;
	restore_result = -EBADMSG;
	commit(7, 42);
	commit(8, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore "
				   "stop verify finding restore stop failed");
}

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

static void until_look_of(unsigned seconds)
{
	const struct timeval limit = { .tv_sec = seconds, .tv_usec = 300000 };

	notes[0] = texts[0] = '\0';
	event_base_loopexit(w.base, &limit);
	event_base_dispatch(w.base);
}

static void until_look(void)
{
	until_look_of(2);
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

/* Without any news. */
static void test_looks(void **state)
{
	(void)state;
	until_look();
	assert_string_equal(notes, "links verify count");
	verify_result = -EBADMSG;
	until_look();
	assert_string_equal(
		notes, "links verify stop finding restore ruleset start count");
	has("changed by somebody, unseen: a rule is missing");
	links_result = -EBADMSG;
	until_look();
	assert_string_equal(notes, "links stop failed");
}

/* What is found at the end is not put back any more. */
static void test_end(void **state)
{
	(void)state;
	commit(7, 42);
	boundary_end(&w);
	assert_string_equal(notes, "finding");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
	notes[0] = '\0';
	boundary_end(&w);
	assert_string_equal(notes, "");
}

static void test_quiet_end(void **state)
{
	(void)state;
	boundary_end(&w);
	assert_string_equal(notes, "");
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
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

/* In a namespace of others their commits are theirs, as long as ours is whole.
 */
static void test_shared(void **state)
{
	struct guard_spec *some = (struct guard_spec *)&gateway;

	(void)state;
	gateway.guard = some;
	commit(1, 11);
	turn();
	assert_string_equal(notes, "verify");
	commit(2, 11);
	commit(3, 11);
	notes[0] = '\0';
	assert_true(boundary_idle(&w));
	assert_false(boundary_look(&w));
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
	/* And where ours is not. */
	verify_result = -EBADMSG;
	assert_false(boundary_idle(&w));
	commit(4, 11);
	turn();
	assert_non_null(strstr(notes, "stop"));
	assert_non_null(strstr(notes, "restore"));
	assert_int_equal(warden_held(&w), BOUNDARY_RESTORED);
	gateway.guard = NULL;
	assert_false(boundary_idle(&w));
}

static void test_serve(void **state)
{
	struct warden none = { .base = w.base };

	(void)state;
	assert_int_equal(boundary_attach(&none), 0);
	assert_int_equal(boundary_fd(&none), -1);
	assert_false(boundary_look(&none));
	boundary_end(&none);
	assert_int_equal(warden_held(&none), BOUNDARY_UNKNOWN);
	assert_string_equal(notes, "");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_restored),
		TEST(test_nothing_to_see),
		TEST(test_repaired),
		TEST(test_lost),
		TEST(test_too_often),
		TEST(test_not_put_back),
		TEST(test_changed_meanwhile),
		TEST(test_links),
		TEST(test_links_undone),
		TEST(test_links_told),
		TEST(test_lock),
		TEST(test_join),
		TEST(test_looks),
		TEST(test_end),
		TEST(test_quiet_end),
		TEST(test_links_end),
		TEST(test_shared),
		TEST(test_serve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
