/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_give.c - what the children are given before they serve.
 *
 * All of it stays ours too, so that a gate that died is replaced by one that
 * gets the same.
 */
#include "cmd/warden_give.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/host_log.h"
#include "cmd/session.h"
#include "cmd/upstream.h"
#include "cmd/warden.h"
#include "launch/isolate.h"

/* How long we wait for a gate that does not read what we say. */
#define GATE_SEND_S 2

/* A new line to the ledger: its other end is the caller's. */
static int ledger_link(struct warden *w, bool own)
{
	struct msg_ledger_link link = { .warden = own };
	int pair[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	err = msg_send(w->ledger.sock, MSG_LEDGER_LINK, &link, pair[0]);
	close(pair[0]);
	if (err) {
		close(pair[1]);
		return err;
	}
	return pair[1];
}

int warden_await(const struct child *child, enum msg_type type)
{
	struct pollfd poll_fd = { .fd = child->sock, .events = POLLIN };
	struct msg msg;
	int got;

	got = poll(&poll_fd, 1, WARDEN_CHILD_MS);
	if (got <= 0)
		return got < 0 ? -errno : -ETIMEDOUT;
	got = msg_recv(child->sock, &msg, 0);
	if (got <= 0)
		return got < 0 ? got : -ECHILD;
	close_fd(&msg.fd);
	return msg.type == type ? 0 : -EBADMSG;
}

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

const char *warden_separation(const struct warden *w)
{
	return !w->root ? "namespace" : w->bare ? "uid-chroot" : "uid";
}

static void describe(const struct warden *w, struct msg_ledger_start *start)
{
	const struct log_settings *log = policy_log(w->policy);
	const struct session *session = w->session;

	COPY(start->session, session->id);
	COPY(start->sandbox_name, session->name);
	COPY(start->policy_digest, policy_digest(w->policy));
	snprintf(start->policy_name, sizeof(start->policy_name), "%.63s",
		 policy_name(w->policy));
	COPY(start->boundary, w->boundary);
	COPY(start->separation, warden_separation(w));
	if (w->files)
		COPY(start->files, w->files);
	start->nest = w->nest;
	COPY(start->policy_files, session->policy_text);
	if (w->gateway)
		COPY(start->ruleset_digest, w->gateway->digest);
	if (w->command)
		snprintf(start->command, sizeof(start->command), "%.127s",
			 w->command);
	start->sign_every = log->sign_every;
	start->durable = log->durable;
	start->rotate_bytes = log->rotate_bytes;
	start->rotate_s = log->rotate_s;
	start->host = host_log_wanted(session);
	if (strlen(session->dir) < sizeof(start->directory))
		memcpy(start->directory, session->dir,
		       strlen(session->dir) + 1);
}

/* It is the ledger's from then on. */
static int give_file(struct warden *w, enum ledger_file which, int *fd)
{
	const struct signing *signing = &w->session->signing;
	struct msg_ledger_file file = { .file = which };
	int err;

	if (which == LEDGER_KEY) {
		COPY(file.name, signing->name);
		file.ephemeral = signing->ephemeral;
	}
	err = msg_send(w->ledger.sock, MSG_LEDGER_FILE, &file, *fd);
	close_fd(fd);
	return err;
}

int warden_give_host_log(struct warden *w, bool ongoing)
{
	struct hostlog_files files;
	int err;

	if (!host_log_wanted(w->session))
		return 0;
	err = host_log_open(w->session, ongoing, &files);
	/* The ledger notes that it got none. */
	if (err) {
		log_warn("%s: the log of all sessions: %s", w->session->home,
			 err == -ENODATA ? "the public half of the key is not "
					   "beside it"
					 : hostlog_error(err));
		return 0;
	}
	err = give_file(w, LEDGER_HOST_LOG, &files.records);
	if (!err)
		err = give_file(w, LEDGER_HOST_CHECKPOINTS, &files.checkpoints);
	if (!err)
		err = give_file(w, LEDGER_HOST_TREE, &files.tree);
	close_fd(&files.checkpoints);
	close_fd(&files.tree);
	return err;
}

int warden_give_ledger(struct warden *w)
{
	struct session_log *log = &w->session->files;
	struct msg_ledger_start start = { 0 };
	int err;

	describe(w, &start);
	err = msg_send(w->ledger.sock, MSG_LEDGER_START, &start, log->records);
	close_fd(&log->records);
	if (err ||
	    (err = give_file(w, LEDGER_CHECKPOINTS, &log->checkpoints)) ||
	    (err = give_file(w, LEDGER_RECEIPT, &log->receipt)) ||
	    (err = give_file(w, LEDGER_VKEY, &log->vkey)) ||
	    (err = give_file(w, LEDGER_KEY, &w->session->signing.fd)) ||
	    (err = warden_give_host_log(w, false)))
		return err;
	if (log->has_earlier)
		err = msg_send(w->ledger.sock, MSG_LEDGER_EARLIER,
			       &log->earlier, -1);
	if (!err)
		err = msg_send(w->ledger.sock, MSG_LEDGER_GO, NULL, -1);
	if (err)
		return err;
	w->record_sock = ledger_link(w, true);
	return w->record_sock < 0 ? w->record_sock : 0;
}

int warden_isolate_ledger(struct warden *w)
{
	struct msg_isolate isolate = { 0 };

	if (w->root)
		isolate.uid = isolate.gid =
			w->ledger_uid ? w->ledger_uid : ISOLATE_UID_LEDGER;
	return msg_send(w->ledger.sock, MSG_LEDGER_ISOLATE, &isolate, -1);
}

int warden_isolate_gate(struct warden *w)
{
	struct msg_gate_start start = {
		/* Numbers of flows are never used twice in a session. */
		.flow_base = ((uint64_t)w->starts << 40) + 1,
		.answer = w->answer,
	};
	const struct timeval limit = { .tv_sec = GATE_SEND_S };

	if (setsockopt(w->gate.sock, SOL_SOCKET, SO_SNDTIMEO, &limit,
		       sizeof(limit)) < 0)
		return -errno;
	if (w->root)
		start.uid = start.gid =
			w->gate_uid ? w->gate_uid : ISOLATE_UID_GATE;
	return msg_send(w->gate.sock, MSG_GATE_START, &start, -1);
}

static int give_network(struct warden *w)
{
	struct msg_gate_uplink uplink;
	int err = upstream_prefixes(&uplink);

	if (err)
		return err;
	upstream_servers(w->policy, &w->instead, &w->servers);
	if ((err = msg_send(w->gate.sock, MSG_GATE_UPLINK, &uplink, -1)))
		return err;
	return msg_send(w->gate.sock, MSG_GATE_SERVERS, &w->servers, -1);
}

static int give_sandbox(struct warden *w)
{
	struct msg_gate_sandbox sandbox = { .id = WARDEN_SANDBOX_ID };

	if (w->gateway) {
		sandbox.ifindex = w->gateway->ifindex;
		sandbox.ip = w->gateway->link.ip;
		sandbox.gateway = w->gateway->link.gateway;
		sandbox.leased = 1;
	}
	return msg_send(w->gate.sock, MSG_GATE_SANDBOX, &sandbox, w->lease_fd);
}

static int give_sockets(struct warden *w)
{
	for (uint32_t i = 0; i < GATE_SOCKET_COUNT; i++) {
		struct msg_gate_socket msg = { .socket = i,
					       .bound = w->bound[i] };
		int err;

		if (w->socket[i] < 0)
			continue;
		err = msg_send(w->gate.sock, MSG_GATE_SOCKET, &msg,
			       w->socket[i]);
		if (err)
			return err;
	}
	return 0;
}

int warden_give_gate(struct warden *w)
{
	struct msg_gate_policy policy = { .len = w->policy_len };
	AUTO_FD int link = ledger_link(w, false);
	int err;

	if (link < 0)
		return link;
	w->starts++;
	if ((err = msg_send(w->gate.sock, MSG_GATE_LEDGER, NULL, link)) ||
	    (err = msg_send(w->gate.sock, MSG_GATE_POLICY, &policy,
			    w->policy_fd)) ||
	    (err = msg_send(w->gate.sock, MSG_GATE_CLIENTS, &w->clients, -1)) ||
	    (err = give_sandbox(w)) || (err = give_sockets(w)) ||
	    (err = warden_give_forwards(w)) || (err = give_network(w)))
		return err;
	return msg_send(w->gate.sock, MSG_GATE_GO, NULL, -1);
}
