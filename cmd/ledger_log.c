/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_log.c - lines, checkpoints and parts of the log that a ledger keeps.
 *
 * A part that is full is named by the warden, which has the directory; until
 * its answer comes, lines go on into the old one. The tree knows no parts.
 */
#include "cmd/ledger_log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/ledger_host.h"
#include "launch/child.h"

/* Until the warden may read again what we say. */
#define RETRY_MS 100

/* For the receipt. */
static void note_time(struct ledger_log *log, const struct audit_event *event)
{
	if (log->sequence == 0) {
		log->first_ms = event->time_ms;
		log->first_mono = clock_ms(CLOCK_MONOTONIC);
	}
	if (event->kind == EVENT_SESSION_CLOSE) {
		log->last_ms = event->time_ms;
		log->last_mono = clock_ms(CLOCK_MONOTONIC);
	}
}

/* What is written from here on is under another policy. */
static void note_policy(struct ledger_log *log, const struct audit_event *event)
{
	const char *digest = record_policy_digest(event->detail);

	if (!digest)
		return;
	snprintf(log->policy_digest, sizeof(log->policy_digest), "%s", digest);
	record_frame_make(&log->context, &log->frame);
}

int ledger_log_write(struct ledger_log *log, struct audit_event *event)
{
	size_t len;
	int r;

	if (!event->time_ms)
		event->time_ms = clock_ms(CLOCK_REALTIME);
	if (event->kind == EVENT_POLICY)
		note_policy(log, event);
	log->context.prev = writer_last(log->writer);
	len = record_format(event, log->sequence, &log->context, log->line,
			    sizeof(log->line));
	if (len == 0)
		return -EMSGSIZE;
	r = writer_append(log->writer, log->line, len);
	if (r < 0)
		return r;
	note_time(log, event);
	log->sequence++;
	tally_add(&log->tally, event);
	return log->start.sign_every ? ledger_log_settle(log) : 0;
}

int ledger_log_finding(struct ledger_log *log, enum reason reason,
		       const char *detail)
{
	struct audit_event finding = { .kind = EVENT_FINDING,
				       .verdict = { .reason = reason },
				       .detail = detail };

	return ledger_log_write(log, &finding);
}

int ledger_log_settle(struct ledger_log *log)
{
	int r = writer_flush(log->writer);

	if (r < 0)
		return r;
	return seal_now(log->seal, writer_fd(log->writer),
			writer_tree(log->writer));
}

int ledger_log_tell(const struct ledger_log *log)
{
	const struct tally_sums *sums = &log->tally.sums;
	struct msg_ledger_sums msg = { .records = log->sequence,
				       .checkpoint_ms = seal_last_ms(log->seal),
				       .allowed = sums->allowed,
				       .refused = sums->refused,
				       .up = sums->up,
				       .down = sums->down };
	int r;

	memcpy(msg.by_reason, sums->by_reason, sizeof(msg.by_reason));
	r = msg_send(CHILD_SOCKET, MSG_LEDGER_SUMS_ARE, &msg, -1);
	/* It is gone: that is seen, and told, elsewhere. */
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* --- parts --------------------------------------------------------------- */

/* Milliseconds until the part is old; -1 if it does not age. */
static int age_left(const struct ledger_log *log, uint64_t now)
{
	uint64_t max = (uint64_t)log->start.rotate_s * 1000;
	uint64_t age = now - log->part_mono;

	if (!max)
		return -1;
	if (age >= max)
		return 0;
	return max - age > INT_MAX ? INT_MAX : (int)(max - age);
}

/* Asks for another part if this one is full, once. The warden may be waiting
 * for us: so not if it would block; nor at the end. 0 or -errno. */
static int rotate(struct ledger_log *log, uint64_t now, int *ret_timeout_ms)
{
	struct msg_ledger_part part = { .number = log->parts + 1 };
	struct pollfd ready = { .fd = CHILD_SOCKET, .events = POLLOUT };
	uint64_t bytes = writer_bytes(log->writer);
	int left = age_left(log, now);
	int r;

	if (log->asked || log->has_end || !bytes ||
	    log->parts == LEDGER_PARTS_MAX)
		return 0;
	if (left &&
	    !(log->start.rotate_bytes && bytes >= log->start.rotate_bytes)) {
		*ret_timeout_ms = left;
		return 0;
	}
	if (poll(&ready, 1, 0) < 1) {
		*ret_timeout_ms = RETRY_MS;
		return 0;
	}
	r = msg_send(CHILD_SOCKET, MSG_LEDGER_ROTATE, &part, -1);
	/* It is gone: that is seen, and told, elsewhere. */
	if (r == -EPIPE || r == -ECONNRESET)
		r = 0;
	log->asked = true;
	return r;
}

int ledger_log_part(struct ledger_log *log, uint32_t number, int fd)
{
	AUTO_FD int taken = fd;
	int r;

	if (!log->asked || log->closed || number != log->parts + 1)
		return -EPROTO;
	r = ledger_log_settle(log);
	if (r == 0)
		r = writer_rotate(log->writer, steal_fd(&taken),
				  log->part_digest[log->parts]);
	if (r == -ENOTEMPTY)
		return -EPROTO; /* it is another log */
	if (r < 0)
		return r;
	log->parts++;
	log->asked = false;
	log->part_mono = clock_ms(CLOCK_MONOTONIC);
	return 0;
}

/* --- turns --------------------------------------------------------------- */

static int sync_if_durable(struct ledger_log *log)
{
	int r;

	if (!log->start.durable || log->start.sign_every ||
	    log->synced == writer_lines(log->writer))
		return 0;
	r = writer_sync(log->writer);
	if (r == 0)
		log->synced = writer_lines(log->writer);
	return r;
}

int ledger_log_turn(struct ledger_log *log, int *ret_timeout_ms)
{
	uint64_t now = clock_ms(CLOCK_MONOTONIC);
	int seal_ms = -1, part_ms = -1, r;

	r = writer_flush(log->writer);
	if (r == 0)
		r = sync_if_durable(log);
	if (r == 0 && !log->start.sign_every)
		r = seal_turn(log->seal, writer_fd(log->writer),
			      writer_tree(log->writer), now, &seal_ms);
	if (r == 0)
		r = rotate(log, now, &part_ms);
	if (r == 0)
		r = ledger_host_turn(log);
	if (r < 0)
		return r;
	*ret_timeout_ms = seal_ms < 0 || (part_ms >= 0 && part_ms < seal_ms)
				  ? part_ms
				  : seal_ms;
	return 0;
}

void ledger_log_free(struct ledger_log *log)
{
	ledger_host_free(log->host);
	seal_free(log->seal); /* its thread uses the writer's file */
	writer_free(log->writer);
	for (size_t i = 0; i < LEDGER_FILE_COUNT; i++)
		close_fd(&log->file[i]);
}
