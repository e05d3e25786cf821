/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_reload.c - another policy for a gate that serves.
 *
 *	record	EVENT_POLICY: nobody is judged by what the log does not name
 *	gate	builds it whole, swaps, judges again what goes on, and answers
 *	kernel	literal ranges, which are ours to open and close
 *
 * Once the record is written there are two ends. The gate refuses: it still has
 * the old policy, we too, and a second record says so. Or the new one is in
 * force, whatever happens to the gate meanwhile: one that dies, or does not
 * answer, is replaced by one that never knew the old policy.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/upstream.h"
#include "cmd/warden.h"
#include "cmd/warden_give.h"

static struct audit_event change_of(const struct policy *from,
				    const struct policy *to, char *detail)
{
	record_policy_detail(policy_digest(from), policy_digest(to), detail);
	return (struct audit_event){ .kind = EVENT_POLICY,
				     .sandbox = WARDEN_SANDBOX_ID,
				     .verdict = { .allow = true },
				     .detail = detail };
}

static int record(struct warden *w, const struct policy *from,
		  const struct policy *to)
{
	char detail[RECORD_POLICY_DETAIL_MAX];
	const struct audit_event event = change_of(from, to, detail);

	return warden_record(w, &event);
}

/* A ledger that did not take a record in time may have it on its way: then it
 * finds the opposite behind it. */
static void take_back(struct warden *w, const struct policy *from,
		      const struct policy *to)
{
	char detail[RECORD_POLICY_DETAIL_MAX];
	const struct audit_event event = change_of(from, to, detail);
	uint8_t buf[RECORD_PACKED_MAX];

	send(w->record_sock, buf, record_pack(&event, ++w->record_seq, buf),
	     MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Does what the gate asks for until it answers. 0; 1 if it refuses, with why in
 * @ret; -errno if there is no gate any more, or none that answers in time. */
static int await_answer(struct warden *w, struct msg_reloaded *ret)
{
	const int64_t end = now_ms() + WARDEN_CHILD_MS;
	/* Rules that somebody changes do not wait for a policy. */
	struct pollfd ready[] = {
		{ .fd = w->gate.sock, .events = POLLIN },
		{ .fd = boundary_fd(w), .events = POLLIN },
	};
	struct msg msg;
	int got;

	for (;;) {
		int64_t left = end - now_ms();

		got = left > 0 ? poll(ready, ARRAY_SIZE(ready), (int)left) : 0;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -ETIMEDOUT;
		if (ready[1].revents && boundary_idle(w))
			continue;
		if (ready[1].revents)
			return -ECANCELED;
		got = msg_recv(w->gate.sock, &msg, MSG_DONTWAIT);
		if (got == -EAGAIN)
			continue;
		if (got <= 0)
			return got < 0 ? got : -ECHILD;
		if (msg.type == MSG_GATE_RELOADED)
			break;
		got = warden_take_message(w, &msg);
		warden_answer_asked(w);
		if (got)
			return got;
	}
	*ret = msg.reloaded;
	return ret->status ? 1 : 0;
}

static int hand_over(struct warden *w, int fd, uint64_t len,
		     struct msg_reloaded *ret)
{
	const struct msg_gate_policy msg = { .len = len };
	int err;

	if (w->gate.sock < 0)
		return -ECHILD;
	err = msg_send(w->gate.sock, MSG_GATE_POLICY, &msg, fd);
	return err ? err : await_answer(w, ret);
}

/* The literal ranges, and a look at all of the rules. */
static void change_kernel(struct warden *w, const struct policy *old,
			  bool swept)
{
	char differs[256] = "", text[400];
	int err = 0;

	if (!w->gateway)
		return;
	if (swept)
		err = gateway_sweep(w->gateway, w->policy);
	if (!err)
		err = gateway_literals(w->gateway, old, w->policy);
	/* Only then: by what is to be opened it is known what they leave. */
	if (!swept)
		warden_flush_flows(w);
	if (!err)
		err = gateway_verify(w->gateway, differs, sizeof(differs));
	if (!err)
		return;
	snprintf(text, sizeof(text), "the rules after a reload: %s%s%s",
		 strerror(-err), *differs ? ": " : "", differs);
	log_err("%s", text);
	warden_finding(w, text);
}

/* From here on every gate gets it. */
static void adopt(struct warden *w, struct policy *policy, int *fd,
		  uint64_t len)
{
	w->policy = policy_ref(policy);
	close_fd(&w->policy_fd);
	w->policy_fd = steal_fd(fd);
	w->policy_len = len;
	upstream_servers(policy, &w->instead, &w->servers);
}

static int refused(struct warden *w, const struct policy *policy,
		   const struct msg_reloaded *answer, char *reterr, size_t cap)
{
	snprintf(reterr, cap, "the gate refused the policy: %.400s",
		 *answer->text ? answer->text : strerror(-answer->status));
	/* Without that record the log would name a policy that is not in force:
	 * better no session. */
	if (record(w, policy, w->policy) && w->failed)
		w->failed(w->arg, "the ledger does not take records");
	return answer->status;
}

static int put_in_force(struct warden *w, const struct bundle *bundle,
			struct policy *policy, int *fd, char *reterr,
			size_t cap)
{
	struct policy *old = w->policy;
	struct msg_reloaded answer;
	int err;

	w->coming = policy;
	err = hand_over(w, *fd, bundle->len, &answer);
	w->coming = NULL;
	if (err > 0) {
		warden_flush_flows(w);
		return refused(w, policy, &answer, reterr, cap);
	}
	adopt(w, policy, fd, bundle->len);
	if (err < 0 && w->gate.pid > 0)
		kill(w->gate.pid, SIGKILL);
	/* Then they are those of the new policy now, and so is the gate. */
	if (err == -ECANCELED && boundary_look(w)) {
		policy_unref(old);
		err = w->gate.pid > 0 ? 0 : -ECHILD;
		if (err)
			snprintf(reterr, cap,
				 "the session ends: its boundary "
				 "was changed");
		return err;
	}
	/* What the old gate had opened, nobody can tell any more. */
	change_kernel(w, old, err < 0);
	policy_unref(old);
	if (err < 0)
		err = warden_restart_gate(w);
	else
		warden_tell_gate(w, MSG_GATE_SERVERS, &w->servers);
	if (err)
		snprintf(reterr, cap, "the gate could not be started again");
	return err;
}

int warden_reload(struct warden *w, const struct bundle *bundle,
		  struct policy *policy, char *reterr, size_t cap)
{
	AUTO_FD int fd = -1;
	int err;

	/* Nothing in it has changed. */
	if (strcmp(policy_digest(policy), policy_digest(w->policy)) == 0)
		return 0;
	fd = warden_memfd("policy", bundle->data, bundle->len);
	if (fd < 0) {
		snprintf(reterr, cap, "keeping the policy: %s", strerror(-fd));
		return fd;
	}
	err = record(w, w->policy, policy);
	if (err) {
		take_back(w, policy, w->policy);
		snprintf(reterr, cap, "the ledger does not take records");
		return err;
	}
	return put_in_force(w, bundle, policy, &fd, reterr, cap);
}
