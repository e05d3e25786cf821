/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_host.c - a session in the log of all sessions.
 *
 * The opening is written by a thread that lives as long as that takes, so that
 * nothing waits for the disk or for other sessions; nobody else touches the log
 * until it is joined. If it could not be written, it is tried once more before
 * the end is: the warden sends the files anew then.
 */
#include "cmd/ledger_host.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "audit/hostlog.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/ledger_log.h"

struct ledger_host {
	struct hostlog *log; /* NULL: no files came */
	struct hostlog_entry opening;
	struct hostlog_files again; /* until all of them are there */
	pthread_t thread;
	bool running; /* to be joined */
	bool told;    /* of its failure */
	atomic_bool done;
	int result; /* of the opening: the thread's until it is done */
};

static bool whole(const struct hostlog_files *files)
{
	return files->records >= 0 && files->checkpoints >= 0 &&
	       files->tree >= 0;
}

int ledger_host_new(struct ledger_log *log, const struct key *owner)
{
	struct hostlog_files files = {
		steal_fd(&log->file[LEDGER_HOST_LOG]),
		steal_fd(&log->file[LEDGER_HOST_CHECKPOINTS]),
		steal_fd(&log->file[LEDGER_HOST_TREE])
	};
	struct ledger_host *host;

	if (!log->start.host) {
		close_fd(&files.records);
		close_fd(&files.checkpoints);
		close_fd(&files.tree);
		return 0;
	}
	host = calloc(1, sizeof(*host));
	if (!host)
		return -ENOMEM;
	log->host = host;
	host->again = (struct hostlog_files){ -1, -1, -1 };
	if (hostlog_new(&files, owner, &host->log) < 0)
		host->log = NULL;
	/* Without files it waits for better ones. */
	host->result = whole(&files) ? 0 : -ENOENT;
	return 0;
}

static void *say_opened(void *arg)
{
	struct ledger_host *host = arg;

	host->result = hostlog_append(host->log, &host->opening);
	atomic_store(&host->done, true);
	return NULL;
}

void ledger_host_begin(struct ledger_log *log)
{
	struct ledger_host *host = log->host;
	int err;

	if (!host)
		return;
	host->opening = (struct hostlog_entry){
		.event = HOSTLOG_OPENED,
		.session = log->start.session,
		.sandbox_name = log->start.sandbox_name,
		.policy_digest = log->start.policy_digest,
		.directory = log->start.directory,
		.vkey = key_public(seal_key(log->seal)),
	};
	if (!host->log || host->result < 0) {
		host->done = true;
		return;
	}
	err = pthread_create(&host->thread, NULL, say_opened, host);
	host->running = err == 0;
	if (err) {
		host->result = -err;
		host->done = true;
	}
}

int ledger_host_turn(struct ledger_log *log)
{
	struct ledger_host *host = log->host;
	char detail[160];

	/* Nothing comes before the record that opens the session, or after the
	 * one that closes it. */
	if (!host || host->told || !log->sequence || log->closed ||
	    !atomic_load(&host->done) || host->result == 0)
		return 0;
	host->told = true;
	snprintf(detail, sizeof(detail),
		 "the log of all sessions could not be written: %s",
		 host->result == -ENOENT ? "it could not be opened"
					 : hostlog_error(host->result));
	return ledger_log_finding(log, REASON_LEDGER_UNAVAILABLE, detail);
}

static void join(struct ledger_host *host)
{
	if (host->running)
		pthread_join(host->thread, NULL);
	host->running = false;
}

int ledger_host_settle(struct ledger_log *log)
{
	if (log->host)
		join(log->host);
	return ledger_host_turn(log);
}

int ledger_host_take(struct ledger_log *log, struct msg *msg)
{
	struct ledger_host *host = log->host;
	int *to;

	if (!host || log->has_end)
		return -EPROTO;
	switch (msg->ledger_file.file) {
	case LEDGER_HOST_LOG:
		to = &host->again.records;
		break;
	case LEDGER_HOST_CHECKPOINTS:
		to = &host->again.checkpoints;
		break;
	case LEDGER_HOST_TREE:
		to = &host->again.tree;
		break;
	default:
		return -EPROTO;
	}
	if (*to >= 0)
		return -EPROTO;
	*to = steal_fd(&msg->fd);
	if (!whole(&host->again) || !host->log)
		return 0;
	join(host);
	hostlog_reopen(host->log, &host->again);
	host->again = (struct hostlog_files){ -1, -1, -1 };
	return 0;
}

void ledger_host_end(struct ledger_log *log, const uint8_t *receipt)
{
	struct ledger_host *host = log->host;
	struct hostlog_entry entry = {
		.event = receipt ? HOSTLOG_RECEIPT : HOSTLOG_ENDED,
		.session = log->start.session,
		.receipt = receipt,
		.records = log->sequence,
	};
	int r = 0;

	if (!host || !host->log)
		return;
	join(host);
	merkle_root(writer_tree(log->writer), &entry.root);
	if (host->result < 0)
		r = hostlog_append(host->log, &host->opening);
	if (r == 0)
		r = hostlog_append(host->log, &entry);
	if (r < 0)
		log_err("the log of all sessions does not say how this one "
			"ended: %s",
			hostlog_error(r));
}

void ledger_host_free(struct ledger_host *host)
{
	if (!host)
		return;
	join(host);
	hostlog_free(host->log);
	close_fd(&host->again.records);
	close_fd(&host->again.checkpoints);
	close_fd(&host->again.tree);
	free(host);
}
