/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_boundary_case.h - the kernel and the rest of the warden are played by
 * what is noted here.
 */
#ifndef TESTS_CMD_WARDEN_BOUNDARY_CASE_H
#define TESTS_CMD_WARDEN_BOUNDARY_CASE_H

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

static inline void note(const char *word)
{
	size_t len = strlen(notes);

	snprintf(notes + len, sizeof(notes) - len, "%s%s", len ? " " : "",
		 word);
}

static inline void keep_text(const char *text)
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

/* --- */

static inline int setup(void **state)
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

static inline int teardown(void **state)
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

static inline void turn(void)
{
	notes[0] = texts[0] = '\0';
	assert_true(event_base_loop(w.base, EVLOOP_NONBLOCK) >= 0);
}

static inline void has(const char *text)
{
	if (!strstr(texts, text))
		fail_msg("no \"%s\" in: %s", text, texts);
}

static inline void until_look_of(unsigned seconds)
{
	const struct timeval limit = { .tv_sec = seconds, .tv_usec = 300000 };

	notes[0] = texts[0] = '\0';
	event_base_loopexit(w.base, &limit);
	event_base_dispatch(w.base);
}

static inline void until_look(void)
{
	until_look_of(2);
}

#endif
