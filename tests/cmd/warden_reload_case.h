/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_reload_case.h - the rest of the warden is played by what is noted
 * here.
 */
#ifndef TESTS_CMD_WARDEN_RELOAD_CASE_H
#define TESTS_CMD_WARDEN_RELOAD_CASE_H

#include "cmd/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "cmd/upstream.h"
#include "cmd/warden_give.h"

/* --- the rest of the warden ---------------------------------------------- */

static char notes[4096];

static unsigned record_calls, record_fails; /* the which-th and later */

static struct warden w;

static int gate; /* its end */

static inline void note(const char *word)
{
	size_t len = strlen(notes);

	snprintf(notes + len, sizeof(notes) - len, "%s%s", len ? " " : "",
		 word);
}

int warden_record(struct warden *warden, const struct audit_event *event)
{
	const char *digest = record_policy_digest(event->detail);
	char word[64];

	assert_ptr_equal(warden, &w);
	assert_int_equal(event->kind, EVENT_POLICY);
	assert_non_null(digest);
	snprintf(word, sizeof(word), "record:%.4s", digest);
	note(word);
	return record_fails && ++record_calls >= record_fails ? -EIO : 0;
}

void warden_finding(struct warden *warden, const char *text)
{
	(void)warden;
	(void)text;
	note("finding");
}

int warden_memfd(const char *name, const void *data, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	return fd;
}

int warden_take_message(struct warden *warden, struct msg *msg)
{
	(void)warden;
	if (msg->type != MSG_GATE_PUBLISH && msg->type != MSG_GATE_WITHDRAW)
		return -EBADMSG;
	assert_non_null(warden->coming);
	note(msg->type == MSG_GATE_PUBLISH ? "publish" : "withdraw");
	return 0;
}

void warden_answer_asked(struct warden *warden)
{
	(void)warden;
}

void warden_flush_flows(struct warden *warden)
{
	(void)warden;
	note("flush");
}

void warden_tell_gate(struct warden *warden, enum msg_type type,
		      const void *payload)
{
	(void)warden;
	(void)payload;
	assert_int_equal(type, MSG_GATE_SERVERS);
	note("servers");
}

int warden_restart_gate(struct warden *warden)
{
	/* With what it would be given. */
	char word[64];

	snprintf(word, sizeof(word), "restart:%.4s",
		 policy_digest(warden->policy));
	note(word);
	return 0;
}

void upstream_servers(const struct policy *policy,
		      const struct upstream_instead *instead,
		      struct msg_gate_servers *ret)
{
	(void)policy;
	(void)instead;
	*ret = (struct msg_gate_servers){ 0 };
}

int gateway_literals(struct gateway *g, const struct policy *old,
		     const struct policy *policy)
{
	(void)g;
	assert_ptr_not_equal(old, policy);
	note("literals");
	return 0;
}

int gateway_sweep(struct gateway *g, const struct policy *policy)
{
	(void)g;
	assert_ptr_equal(policy, w.policy);
	note("sweep");
	return 0;
}

/* Somebody changes the rules when it becomes readable. */
static int stirred = -1;

static pid_t new_gate;

int boundary_fd(const struct warden *warden)
{
	(void)warden;
	return stirred;
}

static unsigned idle; /* so many times it was about others */

bool boundary_idle(struct warden *warden)
{
	char byte;

	(void)warden;
	if (!idle)
		return false;
	idle--;
	assert_int_equal(read(boundary_fd(warden), &byte, 1), 1);
	return true;
}

bool boundary_look(struct warden *warden)
{
	char word[64];

	snprintf(word, sizeof(word), "look:%.4s",
		 policy_digest(warden->policy));
	note(word);
	warden->gate.pid = new_gate;
	return true;
}

static int verify_result;

int gateway_verify(struct gateway *g, char *reterr, size_t cap)
{
	(void)g;
	snprintf(reterr, cap, "a line");
	note("verify");
	return verify_result;
}

static inline void on_failed(void *arg, const char *why)
{
	(void)arg;
	(void)why;
	note("failed");
}

/* --- policies and gates -------------------------------------------------- */

static struct bundle bundle[2];
static struct policy *policy[2];
static char reterr[512], want[512];
static int records[2];

static inline int setup(void **state)
{
	static struct gateway gateway;
	struct policy_error error;
	int pair[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const char *host = i ? "new.example" : "old.example";

		assert_int_equal(bundle_add(&bundle[i], BUNDLE_ALLOW, "--allow",
					    host, strlen(host)),
				 0);
		assert_int_equal(policy_build(bundle[i].data, bundle[i].len,
					      &policy[i], &error),
				 0);
	}
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, records),
		0);
	w = (struct warden){
		.policy = policy_ref(policy[0]),
		.policy_fd = warden_memfd("old", bundle[0].data, bundle[0].len),
		.policy_len = bundle[0].len,
		.record_sock = records[0],
		.gateway = &gateway,
		.failed = on_failed,
		.gate = { .pid = -1, .pidfd = -1, .sock = pair[0] }
	};
	gate = pair[1];
	notes[0] = '\0';
	record_calls = record_fails = 0;
	verify_result = 0;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	policy_unref(w.policy);
	close_fd(&w.policy_fd);
	close_fd(&w.gate.sock);
	close_fd(&gate);
	for (size_t i = 0; i < 2; i++) {
		close_fd(&records[i]);
		bundle_free(&bundle[i]);
		policy_unref(policy[i]);
	}
	return 0;
}

static inline int reload_to(size_t i)
{
	reterr[0] = '\0';
	return warden_reload(&w, &bundle[i], policy[i], reterr, sizeof(reterr));
}

static inline void answer(int status, const char *text)
{
	struct msg_reloaded msg = { .status = status };

	snprintf(msg.text, sizeof(msg.text), "%s", text);
	assert_int_equal(msg_send(gate, MSG_GATE_RELOADED, &msg, -1), 0);
}

/* What it would give to another gate. */
static inline void assert_in_force(size_t i)
{
	char text[256];

	assert_string_equal(policy_digest(w.policy), policy_digest(policy[i]));
	assert_int_equal(w.policy_len, bundle[i].len);
	assert_int_equal(pread(w.policy_fd, text, sizeof(text), 0),
			 bundle[i].len);
	assert_memory_equal(text, bundle[i].data, bundle[i].len);
	assert_null(w.coming);
}

/* @format has the digests of the new policy and, perhaps, of the old one. */
static inline const char *expect(const char *format)
{
	size_t at = 0;

	for (; *format; format++) {
		if (*format == '1' || *format == '0')
			at += (size_t)snprintf(
				want + at, sizeof(want) - at, "%.4s",
				policy_digest(policy[*format - '0']));
		else
			want[at++] = *format;
	}
	want[at] = '\0';
	return want;
}

#endif
