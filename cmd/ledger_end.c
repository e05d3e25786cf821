/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_end.c - the last record but one, the receipt, the tally.
 *
 * The receipt speaks of a log that is whole, signed and on the disk. A session
 * that was not closed, or of which the warden did not say how it ended, gets
 * none: that there is no receipt says so.
 */
#include "cmd/ledger_end.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "audit/dsse.h"
#include "audit/log_dir.h"
#include "audit/receipt.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "cmd/ledger_host.h"
#include "cmd/ledger_log.h"
#include "launch/child.h"
#include "policy/digest.h"

static uint64_t counted(const struct msg_ledger_end *end)
{
	return end->spoofed + end->refused + end->ipv6 + end->forwarded;
}

int ledger_end_packets(struct ledger_log *log)
{
	uint64_t recorded = log->tally.sums.packets, left;
	char text[128];
	int r = 0;

	if (!log->end.counted || counted(&log->end) == recorded)
		return 0;
	/* What was told too often may hide what was not told. */
	if (counted(&log->end) < recorded) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " dropped packets are recorded, and the "
			 "kernel counted %" PRIu64,
			 recorded, counted(&log->end));
		return ledger_log_finding(log, REASON_BYPASS, text);
	}
	log->unreported = counted(&log->end) - recorded;
	for (left = log->unreported; left && r == 0;) {
		struct audit_event event = {
			.kind = EVENT_PACKET,
			.verdict = { .reason = REASON_BYPASS },
			.door = DOOR_TRANSPARENT,
			.count =
				left < UINT32_MAX ? (uint32_t)left : UINT32_MAX,
			.detail = "counted by the kernel, not reported one by "
				  "one",
		};

		r = ledger_log_write(log, &event);
		left -= event.count;
	}
	return r;
}

/* --- the receipt ---------------------------------------------------------- */

/* Once in a process: they need not be released. */
static struct statement_subject subjects[LEDGER_PARTS_MAX + 3];
static char names[LEDGER_PARTS_MAX][LOG_DIR_NAME_MAX];

/* The parts of the log in their order, the policy, the ruleset. How many. */
static size_t fill_subjects(const struct ledger_log *log, char last[DIGEST_HEX])
{
	size_t n = 0;

	for (; n < log->parts; n++) {
		snprintf(names[n], sizeof(names[n]), LOG_DIR_PART,
			 (unsigned)n + 1);
		subjects[n] = (struct statement_subject){ names[n],
							  log->part_digest[n] };
	}
	writer_digest(log->writer, last);
	subjects[n++] = (struct statement_subject){ LOG_DIR_RECORDS, last };
	subjects[n++] = (struct statement_subject){ "policy",
						    log->start.policy_digest };
	if (*log->start.ruleset_digest)
		subjects[n++] =
			(struct statement_subject){ "ruleset",
						    log->start.ruleset_digest };
	return n;
}

static const char *const ended_words[] = {
	[ENDED_EXIT] = "exit",
	[ENDED_TIMEOUT] = "timeout",
	[ENDED_SIGNAL] = "signal",
	[ENDED_FAILED] = "failed",
};
static const char *const held_words[] = {
	[BOUNDARY_UNKNOWN] = "unknown",
	[BOUNDARY_HELD] = "held",
	[BOUNDARY_RESTORED] = "restored",
	[BOUNDARY_BROKEN] = "broken",
};

static void fill_session(const struct ledger_log *log, struct receipt *receipt)
{
	const struct msg_ledger_start *start = &log->start;
	const struct msg_ledger_end *end = &log->end;

	receipt->session = start->session;
	receipt->sandbox = start->sandbox_name;
	receipt->command = start->command;
	receipt->started_ms = log->first_ms;
	receipt->ended_ms = log->last_ms;
	receipt->duration_ms = log->last_mono - log->first_mono;
	receipt->boundary = start->boundary;
	receipt->held = held_words[end->held];
	receipt->separation = start->separation;
	receipt->files = start->files;
	receipt->nest = start->nest;
	receipt->status = end->status;
	receipt->ended_by = ended_words[end->ended];
	receipt->policy_digest = start->policy_digest;
	receipt->policy_name = start->policy_name;
	receipt->policy_files = start->policy_files;
	receipt->ruleset_start = start->ruleset_digest;
	receipt->ruleset_end = end->ruleset_digest;
	receipt->counted = end->counted;
	receipt->spoofed = end->spoofed;
	receipt->refused = end->refused;
	receipt->ipv6 = end->ipv6;
	receipt->forwarded = end->forwarded;
	receipt->unreported = log->unreported;
	receipt->sign_every = start->sign_every;
	receipt->durable = start->durable;
}

/* The receipt as one line with its LF, which the caller frees. 0 or -errno. */
static int make_receipt(const struct ledger_log *log, char **ret_line,
			size_t *ret_len)
{
	const struct key *key = seal_key(log->seal);
	struct receipt receipt = {
		.sums = &log->tally.sums,
		.attacks = &log->attacks,
		.records = log->sequence,
		.parts = log->parts + 1,
		.first_checkpoint = seal_first(log->seal),
		.last_checkpoint = seal_last(log->seal),
		.checkpoints = seal_count(log->seal),
		.vkey = key_public(key),
		.ephemeral = log->ephemeral,
		.subjects = subjects,
	};
	AUTO_FREE char *body = NULL;
	char last[DIGEST_HEX];
	struct utsname uts;
	size_t len;
	int r;

	if (uname(&uts) < 0)
		return -errno;
	receipt.kernel = uts.release;
	receipt.subject_count = fill_subjects(log, last);
	merkle_root(writer_tree(log->writer), &receipt.root);
	fill_session(log, &receipt);
	r = receipt_format(&receipt, &body, &len);
	if (r == 0)
		r = dsse_sign(STATEMENT_MEDIA_TYPE, (struct text){ body, len },
			      key, ret_line, ret_len);
	if (r == 0)
		(*ret_line)[(*ret_len)++] = '\n'; /* in place of the NUL */
	return r;
}

static void sha256(const char *data, size_t len, uint8_t *ret_digest)
{
	struct digest digest;
	char hex[DIGEST_HEX];

	digest_begin(&digest);
	digest_add(&digest, data, len);
	digest_end(&digest, hex);
	if (!hex_parse(hex, MERKLE_HASH, ret_digest))
		memset(ret_digest, 0, MERKLE_HASH);
}

/* Its digest is for the log of all sessions. */
static int write_receipt(const struct ledger_log *log, uint8_t *ret_digest)
{
	AUTO_FREE char *line = NULL;
	size_t len = 0, done = 0;
	int r = make_receipt(log, &line, &len);

	while (r == 0 && done < len) {
		ssize_t n = write(log->file[LEDGER_RECEIPT], line + done,
				  len - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			r = -errno;
	}
	if (r == 0)
		sha256(line, len, ret_digest);
	return r;
}

/* --- to the disk --------------------------------------------------------- */

/* A file that is synced in a thread while others are, so that a journal has to
 * be written once for all of them. */
struct last_sync {
	const struct ledger_log *log;
	int (*sync)(const struct ledger_log *log);
	bool running;
	pthread_t thread;
	int result;
};

static int sync_checkpoints(const struct ledger_log *log)
{
	return seal_sync(log->seal);
}

static int sync_receipt(const struct ledger_log *log)
{
	return fdatasync(log->file[LEDGER_RECEIPT]) < 0 ? -errno : 0;
}

static void *last_sync_run(void *arg)
{
	struct last_sync *sync = arg;

	sync->result = sync->sync(sync->log);
	return NULL;
}

/* With `durability: record` nobody speaks of a receipt before it is there. */
static void last_sync_begin(struct last_sync *sync)
{
	if (!sync->log->start.durable)
		sync->running = pthread_create(&sync->thread, NULL,
					       last_sync_run, sync) == 0;
	if (!sync->running)
		last_sync_run(sync);
}

/* Known already only where no thread does it. */
static bool last_sync_failed(const struct last_sync *sync)
{
	return !sync->running && sync->result < 0;
}

/* 0 or -errno. */
static int last_sync_end(struct last_sync *sync)
{
	if (sync->running)
		pthread_join(sync->thread, NULL);
	sync->running = false;
	if (sync->result < 0)
		log_err("checkpoints and receipt: %s", strerror(-sync->result));
	return sync->result;
}

/* --- the tally ----------------------------------------------------------- */

static int send_tally(const struct ledger_log *log, bool receipt)
{
	struct msg_tally_done done = { .records = log->tally.records,
				       .receipt = receipt };
	struct merkle_hash root;

	for (size_t i = 0; i < log->tally.rows; i++) {
		int r = msg_send(CHILD_SOCKET, MSG_TALLY_ROW,
				 &log->tally.row[i], -1);

		if (r < 0)
			return r;
	}
	merkle_root(writer_tree(log->writer), &root);
	memcpy(done.root, root.byte, sizeof(done.root));
	return msg_send(CHILD_SOCKET, MSG_TALLY_DONE, &done, -1);
}

int ledger_end_report(struct ledger_log *log)
{
	bool receipt = log->closed && log->has_end;
	struct last_sync checkpoints = { .log = log, .sync = sync_checkpoints };
	struct last_sync last = { .log = log, .sync = sync_receipt };
	uint8_t digest[MERKLE_HASH];
	int r = ledger_log_settle(log), s;

	if (r < 0)
		return r;
	last_sync_begin(&checkpoints);
	if (receipt) {
		s = write_receipt(log, digest);
		if (s < 0)
			log_err("no receipt: %s", strerror(-s));
		receipt = s == 0;
	}
	if (receipt)
		last_sync_begin(&last);
	if (last_sync_failed(&checkpoints) || last_sync_failed(&last))
		receipt = false;
	ledger_host_end(log, receipt ? digest : NULL);
	r = last_sync_end(&checkpoints);
	s = last_sync_end(&last);
	if (r < 0 || s < 0)
		return r < 0 ? r : s;
	return send_tally(log, receipt);
}
