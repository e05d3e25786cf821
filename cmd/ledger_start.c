/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_start.c - whose log it is, by which files and with which key.
 *
 * The first message has it isolate itself, before it knows anything. What it
 * gets then are open files: the key's is read and closed, and there is none
 * left that it could be read from. What stays is the session's key, in memory.
 */
#include "cmd/ledger_start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "cmd/ledger_host.h"
#include "cmd/ledger_log.h"
#include "launch/child.h"
#include "launch/isolate.h"

static bool is_digest(const char *text)
{
	uint8_t data[32];

	return strlen(text) == 2 * sizeof(data) &&
	       hex_parse(text, sizeof(data), data);
}

/* -ECANCELED: a warden that gave up. */
static int take(enum msg_type type, struct msg *ret)
{
	int r = msg_recv(CHILD_SOCKET, ret, 0);

	if (r != 1)
		return r < 0 ? r : -ECANCELED;
	if (ret->type == type)
		return 0;
	close_fd(&ret->fd);
	return -EPROTO;
}

static int isolate(void)
{
	struct isolate_spec spec = { .role = ISOLATE_LEDGER };
	const char *failed = NULL;
	struct msg msg;
	int r = take(MSG_LEDGER_ISOLATE, &msg);

	if (r < 0)
		return r;
	spec.uid = msg.isolate.uid;
	spec.gid = msg.isolate.gid;
	r = isolate_self(&spec, &failed);
	if (r < 0)
		log_err("cannot isolate: %s: %s", failed ? failed : "?",
			strerror(-r));
	return r;
}

static int take_start(struct ledger_log *log)
{
	struct msg_ledger_start *start = &log->start;
	struct msg msg;
	int r = take(MSG_LEDGER_START, &msg);

	if (r < 0)
		return r;
	*start = msg.ledger_start;
	r = writer_new(msg.fd, &log->writer);
	if (r < 0)
		return r;
	if (!*start->session || !is_digest(start->policy_digest) ||
	    (*start->ruleset_digest && !is_digest(start->ruleset_digest)))
		return -EPROTO;
	memcpy(log->policy_digest, start->policy_digest,
	       sizeof(log->policy_digest));
	log->context = (struct record_context){
		.session = start->session,
		.sandbox_name = start->sandbox_name,
		.policy_digest = log->policy_digest,
		.policy_name = start->policy_name,
		.boundary = start->boundary,
		.frame = &log->frame,
		.ruleset_digest =
			*start->ruleset_digest ? start->ruleset_digest : NULL,
	};
	record_frame_make(&log->context, &log->frame);
	return 0;
}

/* Ours are new in a new log: what is in one would be somebody else's. */
static int take_file(struct ledger_log *log, const struct msg *msg,
		     char key_name[])
{
	uint32_t file = msg->ledger_file.file;
	AUTO_FD int fd = msg->fd;
	struct stat st;

	if (log->file[file] >= 0)
		return -EPROTO;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size && (file == LEDGER_CHECKPOINTS ||
			   file == LEDGER_RECEIPT || file == LEDGER_VKEY))
		return -ENOTEMPTY;
	if (file == LEDGER_KEY) {
		memcpy(key_name, msg->ledger_file.name,
		       sizeof(msg->ledger_file.name));
		log->ephemeral = msg->ledger_file.ephemeral;
	}
	log->file[file] = steal_fd(&fd);
	return 0;
}

static void take_earlier(struct ledger_log *log, const struct msg *msg)
{
	log->before = msg->ledger_earlier;
	log->earlier = (struct record_earlier){
		.checkpoint = log->before.checkpoint,
		.lines = log->before.lines,
		.bytes = log->before.bytes,
		.receipt = log->before.receipt,
	};
	log->context.earlier = &log->earlier;
}

/* All up to MSG_LEDGER_GO. */
static int take_rest(struct ledger_log *log, char key_name[])
{
	struct msg msg;
	int r = 0;

	while (r == 0) {
		r = msg_recv(CHILD_SOCKET, &msg, 0);
		if (r != 1)
			return r < 0 ? r : -EPROTO;
		r = 0;
		if (msg.type == MSG_LEDGER_GO)
			break;
		if (msg.type == MSG_LEDGER_FILE) {
			r = take_file(log, &msg, key_name);
		} else if (msg.type == MSG_LEDGER_EARLIER &&
			   !log->context.earlier) {
			take_earlier(log, &msg);
		} else {
			close_fd(&msg.fd);
			r = -EPROTO;
		}
	}
	for (uint32_t i = 0; r == 0 && i <= LEDGER_VKEY; i++)
		if (log->file[i] < 0)
			r = -EPROTO;
	return r;
}

/* The key is read, and then out of reach. */
static int read_key(struct ledger_log *log, const char *name,
		    struct key **ret_key)
{
	struct text text = { name, strlen(name) };
	const char *why;
	int r = key_read_fd(log->file[LEDGER_KEY], text, ret_key, &why);

	close_fd(&log->file[LEDGER_KEY]);
	if (r < 0)
		log_err("cannot read the signing key: %s", why);
	return r;
}

static int open_seal(struct ledger_log *log, const char *key_name)
{
	char name[sizeof(((struct msg_ledger_file *)0)->name) +
		  sizeof(log->start.session)];
	int n = snprintf(name, sizeof(name), "%s/%s", key_name,
			 log->start.session);
	struct key *owner = NULL, *key = NULL;
	int r = read_key(log, key_name, &owner);

	if (r == 0)
		r = key_under_name(owner, (struct text){ name, (size_t)n },
				   &key);
	if (r == 0)
		r = ledger_host_new(log, owner);
	key_free(owner);
	if (r < 0) {
		key_free(key);
		return r;
	}
	return seal_new(key, steal_fd(&log->file[LEDGER_CHECKPOINTS]),
			log->start.durable, &log->seal);
}

static int write_vkey(struct ledger_log *log)
{
	AUTO_FD int fd = steal_fd(&log->file[LEDGER_VKEY]);
	char line[VKEY_TEXT_MAX + 1];
	size_t len;
	ssize_t n;

	vkey_format(key_public(seal_key(log->seal)), line);
	len = strlen(line);
	line[len++] = '\n';
	n = write(fd, line, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ENOSPC;
}

int ledger_start(struct ledger_log *log)
{
	char key_name[sizeof(((struct msg_ledger_file *)0)->name)] = "";
	int r;

	for (size_t i = 0; i < LEDGER_FILE_COUNT; i++)
		log->file[i] = -1;
	/* While the warden builds the boundary. */
	if ((r = key_warm_up()) || (r = isolate()) || (r = take_start(log)) ||
	    (r = take_rest(log, key_name)) || (r = open_seal(log, key_name)) ||
	    (r = write_vkey(log)))
		return r;
	/* Isolation is of a process with one thread; what it starts later has
	 * as little. */
	log->part_mono = clock_ms(CLOCK_MONOTONIC);
	r = msg_send(CHILD_SOCKET, MSG_LEDGER_READY, NULL, -1);
	if (r == 0)
		ledger_host_begin(log);
	return r;
}
