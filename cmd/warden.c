/* SPDX-License-Identifier: Apache-2.0
 *
 * warden.c - starts, supervises and ends the gate and the ledger.
 *
 * Everything that the gate needs to live again (sockets, policy, leases) stays
 * open here, so that a gate that died is replaced and takes up where it was;
 * until then nobody answers, and the sandbox reaches nothing.
 */
#include "cmd/warden.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/client.h"
#include "audit/tally.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/sandbox_file.h"
#include "cmd/session.h"
#include "cmd/upstream.h"
#include "cmd/warden_give.h"
#include "launch/isolate.h"
#include "launch/link.h"

#define RESOLV_POLL_S 2

/* --- what the gate needs ------------------------------------------------- */

int warden_memfd(const char *name, const void *data, size_t len)
{
	AUTO_FD int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const uint8_t *at = data;

	if (fd < 0)
		return -errno;
	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS,
		  F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return steal_fd(&fd);
}

static int lease_memfd(void)
{
	AUTO_FD int fd = memfd_create("leases", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)sandbox_file_size()) < 0)
		return -errno;
	return steal_fd(&fd);
}

static int spawn(struct warden *w, const char *role, struct child *ret)
{
	return w->bare ? child_spawn_bare(role, ret)
		       : child_spawn(role, !w->root, ret);
}

static int spawn_gate(struct warden *w)
{
	int err = spawn(w, "gate", &w->gate);

	return err ? err : warden_isolate_gate(w);
}

int warden_begin(struct warden *w)
{
	int err;

	w->record_sock = w->policy_fd = w->lease_fd = w->watch_fd = -1;
	w->gate = w->ledger =
		(struct child){ .pid = -1, .pidfd = -1, .sock = -1 };
	w->begun = true;
	w->watch_fd = link_watch();
	if (w->watch_fd < 0)
		return w->watch_fd;
	if ((err = spawn(w, "ledger", &w->ledger)) ||
	    (err = warden_isolate_ledger(w)))
		return err;
	return spawn_gate(w);
}

int warden_start(struct warden *w)
{
	int err = w->begun ? 0 : warden_begin(w);

	if (err)
		return err;
	policy_ref(w->policy);
	w->policy_fd = warden_memfd("policy", w->bundle->data, w->bundle->len);
	if (w->policy_fd < 0)
		return w->policy_fd;
	w->policy_len = w->bundle->len;
	w->lease_fd = w->lease_file ? w->lease_file : lease_memfd();
	return w->lease_fd < 0 ? w->lease_fd : 0;
}

int warden_ready(struct warden *w)
{
	int err;

	if ((err = warden_give_ledger(w)) || (err = warden_give_gate(w)) ||
	    (err = warden_await(&w->ledger, MSG_LEDGER_READY)))
		return err;
	return warden_await(&w->gate, MSG_GATE_READY);
}

/* --- supervision --------------------------------------------------------- */

void warden_finding(struct warden *w, const char *text)
{
	struct audit_event event = { .kind = EVENT_FINDING,
				     .sandbox = WARDEN_SANDBOX_ID,
				     .detail = text };

	warden_record(w, &event);
}

void warden_failed(struct warden *w, const char *why)
{
	log_err("%s", why);
	warden_finding(w, why);
	if (w->failed)
		w->failed(w->arg, why);
}

/* Three in a minute: something kills it as fast as we start it. */
static bool crashes_too_often(struct warden *w)
{
	time_t now = time(NULL);

	memmove(w->crash, w->crash + 1, sizeof(w->crash) - sizeof(w->crash[0]));
	w->crash[WARDEN_CRASHES_MAX - 1] = now;
	return w->crash[0] && now - w->crash[0] < 60;
}

static int watch_gate(struct warden *w);

int warden_start_gate(struct warden *w)
{
	int err;

	/* It would serve behind a boundary that is none. */
	if (warden_held(w) == BOUNDARY_BROKEN)
		return -EPERM;
	if ((err = spawn_gate(w)) || (err = warden_give_gate(w)) ||
	    (err = warden_await(&w->gate, MSG_GATE_READY)) ||
	    (err = watch_gate(w)))
		warden_failed(w, "the gate could not be started again");
	return err;
}

int warden_restart_gate(struct warden *w)
{
	warden_stop_gate(w);
	if (crashes_too_often(w)) {
		warden_failed(w, "the gate died three times in a minute");
		return -ECHILD;
	}
	log_warn("the gate died; starting it again");
	warden_finding(w, "the gate died and is started again");
	return warden_start_gate(w);
}

static void on_gate_died(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	warden_restart_gate(arg);
}

/* A gate that does not read is no gate: its death is seen, and another one
 * started. */
void warden_tell_gate(struct warden *w, enum msg_type type, const void *payload)
{
	if (msg_send(w->gate.sock, type, payload, -1) && w->gate.pid > 0)
		kill(w->gate.pid, SIGKILL);
}

static void on_gate_message(evutil_socket_t fd, short what, void *arg)
{
	struct warden *w = arg;
	struct msg msg;
	int got;

	(void)what;
	while ((got = msg_recv(fd, &msg, MSG_DONTWAIT)) > 0) {
		got = warden_take_message(w, &msg);
		if (got)
			break;
	}
	warden_flush_flows(w);
	if (got == -EAGAIN)
		return;
	/* The end, or nonsense: it dies, and its pidfd tells. */
	warden_drop_event(&w->gate_event);
	if (got < 0)
		kill(w->gate.pid, SIGKILL);
}

static void on_ledger_message(evutil_socket_t fd, short what, void *arg)
{
	struct warden *w = arg;

	(void)fd;
	(void)what;
	if (warden_take_ledger(w) == 0)
		return;
	/* Nonsense: it dies, and its pidfd tells. */
	warden_drop_event(&w->ledger_event);
	kill(w->ledger.pid, SIGKILL);
}

static void on_ledger_grace_over(evutil_socket_t fd, short what, void *arg)
{
	struct warden *w = arg;

	(void)fd;
	(void)what;
	warden_failed(w, "the ledger died: the session can't be recorded");
}

/* The gate has seen it too: nothing new leaves, and what goes on is cut before
 * the session ends for it. */
static void on_ledger_died(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval grace = { .tv_sec = LEDGER_GRACE_S + 1 };
	struct warden *w = arg;

	(void)fd;
	(void)what;
	warden_drop_event(&w->ledger_event);
	warden_drop_event(&w->ledger_died);
	log_err("the ledger died: nothing new leaves any more, the session "
		"ends in %d s",
		LEDGER_GRACE_S + 1);
	if (event_base_once(w->base, -1, EV_TIMEOUT, on_ledger_grace_over, w,
			    &grace))
		on_ledger_grace_over(-1, 0, w);
}

static void on_uplink_changed(evutil_socket_t fd, short what, void *arg)
{
	struct warden *w = arg;
	struct msg_gate_uplink uplink;
	char drop[8192];

	(void)what;
	while (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) > 0 ||
	       errno == ENOBUFS)
		;
	/* Without the whole list the machine's neighbours could be dialled. */
	if (upstream_prefixes(&uplink))
		warden_failed(w, "the machine's own prefixes can't be read");
	else if (w->gate.sock >= 0)
		warden_tell_gate(w, MSG_GATE_UPLINK, &uplink);
}

static void on_resolv_time(evutil_socket_t fd, short what, void *arg)
{
	struct warden *w = arg;
	struct msg_gate_servers servers = w->servers;

	(void)fd;
	(void)what;
	upstream_servers(w->policy, &w->instead, &servers);
	if (memcmp(&servers, &w->servers, sizeof(servers)) == 0 ||
	    w->gate.sock < 0)
		return;
	w->servers = servers;
	warden_tell_gate(w, MSG_GATE_SERVERS, &servers);
}

static struct event *watch(struct warden *w, int fd, event_callback_fn fn)
{
	struct event *event =
		event_new(w->base, fd, EV_READ | EV_PERSIST, fn, w);

	if (event && event_add(event, NULL)) {
		event_free(event);
		return NULL;
	}
	return event;
}

static int watch_gate(struct warden *w)
{
	w->gate_event = watch(w, w->gate.sock, on_gate_message);
	w->gate_died = watch(w, w->gate.pidfd, on_gate_died);
	return w->gate_event && w->gate_died ? 0 : -ENOMEM;
}

int warden_attach(struct warden *w, struct event_base *base)
{
	const struct timeval often = { .tv_sec = RESOLV_POLL_S };
	int err;

	w->base = base;
	if ((err = watch_gate(w)) || (err = boundary_attach(w)))
		return err;
	w->ledger_died = watch(w, w->ledger.pidfd, on_ledger_died);
	w->ledger_event = watch(w, w->ledger.sock, on_ledger_message);
	w->uplink_event = watch(w, w->watch_fd, on_uplink_changed);
	w->resolv_event = event_new(base, -1, EV_PERSIST, on_resolv_time, w);
	w->flows_event = evtimer_new(base, warden_on_flows_time, w);
	if (!w->flows_event || !w->ledger_died || !w->ledger_event ||
	    !w->uplink_event || !w->resolv_event ||
	    event_add(w->resolv_event, &often))
		return -ENOMEM;
	return 0;
}

int warden_record(struct warden *w, const struct audit_event *event)
{
	if (w->record_sock < 0)
		return -EIO;
	return audit_submit_sync(w->record_sock, event, ++w->record_seq);
}
