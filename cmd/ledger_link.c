/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_link.c - one turn of a ledger: takes what its links have, writes it,
 * acknowledges it.
 *
 * A link that sends what is no record is cut off, which is itself recorded. The
 * end of a link is normal: a gate died.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/ledger_end.h"
#include "cmd/ledger_host.h"
#include "cmd/ledger_impl.h"

static void link_end(struct link *link)
{
	close_fd(&link->fd);
}

/* 0 or -errno: log lost. */
static int link_cut(struct ledger *ledger, struct link *link)
{
	char detail[96];

	snprintf(detail, sizeof(detail),
		 "link %u sent what is no record: it was cut off",
		 link->number);
	link_end(link);
	return ledger_log_finding(&ledger->log, REASON_MALFORMED, detail);
}

static void hold(struct held *held, struct link *link, const uint8_t *data,
		 size_t len)
{
	/* It was decoded a moment ago: now its strings are kept. */
	if (record_decode(data, len, &held->event, &held->seq, held->text) < 0)
		return;
	held->link = link;
	held->number = link->number;
	held->turns = 0;
}

/* 1 if the held record was written, 0 if not (yet), or -errno: log lost. */
static int release(struct ledger *ledger, bool quiet)
{
	struct held *held = &ledger->held;
	int r;

	if (!held->link || !ledger->log.has_end ||
	    (!quiet && ++held->turns < LEDGER_LAST_TURNS))
		return 0;
	r = ledger_host_settle(&ledger->log);
	if (r == 0)
		r = ledger_end_packets(&ledger->log);
	if (r == 0)
		r = ledger_log_write(&ledger->log, &held->event);
	if (r < 0)
		return r;
	ledger->log.closed = true;
	if (held->link->number == held->number)
		held->link->taken = held->seq;
	held->link = NULL;
	return 1;
}

/* What only the warden knows, and may say. */
static bool is_wardens(const struct audit_event *event)
{
	return event->kind == EVENT_SESSION_OPEN ||
	       event->kind == EVENT_SESSION_CLOSE ||
	       event->kind == EVENT_POLICY || event->kind == EVENT_RULESET ||
	       event->kind == EVENT_EXEC || event->kind == EVENT_ATTACKS ||
	       event->pid || (event->process && *event->process);
}

/* 1, or 0 if it was no record and the link is cut off; -errno: log lost. */
static int take_message(struct ledger *ledger, struct link *link,
			const uint8_t *data, size_t len)
{
	struct audit_event event;
	uint64_t seq;
	int r;

	if (record_decode(data, len, &event, &seq, ledger->text) < 0 ||
	    seq <= link->taken || ledger->held.link == link ||
	    (!link->warden && is_wardens(&event)))
		return link_cut(ledger, link);
	event.by_gate = !link->warden;
	if (event.by_gate)
		event.time_ms = 0; /* the clock is ours to read */
	if (event.kind == EVENT_SESSION_CLOSE && !ledger->held.link) {
		hold(&ledger->held, link, data, len);
		return 1;
	}
	r = ledger_log_write(&ledger->log, &event);
	if (r < 0)
		return r;
	ledger->open |= event.kind == EVENT_SESSION_OPEN;
	link->taken = seq;
	return 1;
}

/* Takes what is in a pack. Returns how many records, or -errno: log lost. After
 * the record of the end there is none: who comes late is not heard. */
static int take_pack(struct ledger *ledger, struct link *link,
		     const uint8_t *data, size_t len)
{
	struct wire pack = wire_of(data, len), message;
	int n = 0, r;

	if (ledger->log.closed) {
		link_end(link);
		return 0;
	}
	if (len > RECORD_PACK_MAX)
		return link_cut(ledger, link);
	while ((r = record_unpack(&pack, &message)) > 0) {
		r = take_message(ledger, link, message.at, message.left);
		if (r <= 0)
			return r < 0 ? r : n;
		n++;
	}
	if (r < 0)
		r = link_cut(ledger, link);
	return r < 0 ? r : n;
}

/* Takes up to LEDGER_BATCH packs. Returns how many records, or -errno: log
 * lost. */
static int link_take(struct ledger *ledger, struct link *link)
{
	struct mmsghdr batch[LEDGER_BATCH];
	struct iovec iov[LEDGER_BATCH];
	int n, total = 0;

	memset(batch, 0, sizeof(batch));
	for (size_t i = 0; i < LEDGER_BATCH; i++) {
		/* One byte more than the longest: a longer one shows. */
		iov[i].iov_base = ledger->pack[i];
		iov[i].iov_len = sizeof(ledger->pack[i]);
		batch[i].msg_hdr.msg_iov = &iov[i];
		batch[i].msg_hdr.msg_iovlen = 1;
	}
	do {
		n = recvmmsg(link->fd, batch, LEDGER_BATCH, MSG_DONTWAIT, NULL);
		/* ECONNRESET: a gate that was killed left acknowledgements
		 * unread. What it had sent is still to be read. */
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno != EAGAIN)
		link_end(link);
	ledger->more |= n == LEDGER_BATCH;
	for (int i = 0; i < n && link->fd >= 0; i++) {
		int r = 0;

		if (batch[i].msg_len)
			r = take_pack(ledger, link, ledger->pack[i],
				      batch[i].msg_len);
		else
			link_end(link);
		if (r < 0)
			return r;
		total += r;
	}
	return total;
}

/* One message for all that is in the log now. A peer that does not read gets a
 * later number when it does. */
static void link_ack(struct link *link)
{
	uint8_t ack[RECORD_ACK_LEN];

	if (link->fd < 0 || link->mute || link->acked == link->taken)
		return;
	record_ack_encode(link->taken, ack);
	if (send(link->fd, ack, sizeof(ack), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		link->acked = link->taken;
	else if (errno != EAGAIN && errno != EINTR)
		link->mute = true; /* it may still have records for us */
}

bool ledger_has_to_wait(const struct ledger *ledger, const struct link *link)
{
	return !ledger->open && !link->warden;
}

int ledger_turn(struct ledger *ledger, const struct pollfd *ready)
{
	int total = 0, r;

	ledger->more = false;
	for (size_t i = 0; i < LEDGER_LINKS_MAX; i++) {
		if (ledger->link[i].fd < 0 ||
		    ledger_has_to_wait(ledger, &ledger->link[i]) ||
		    (ready && !(ready[i].revents & ~POLLOUT)))
			continue;
		r = link_take(ledger, &ledger->link[i]);
		if (r < 0)
			return r;
		total += r;
	}
	r = release(ledger, total == 0);
	if (r < 0)
		return r;
	total += r;
	r = ledger_log_turn(&ledger->log, &ledger->timeout_ms);
	if (r < 0)
		return r;
	for (size_t i = 0; i < LEDGER_LINKS_MAX; i++)
		link_ack(&ledger->link[i]);
	return total;
}

void ledger_add_link(struct ledger *ledger, int fd, bool warden)
{
	for (size_t i = 0; i < LEDGER_LINKS_MAX; i++) {
		if (ledger->link[i].fd >= 0)
			continue;
		ledger->link[i] = (struct link){ .fd = fd,
						 .warden = warden,
						 .number = ++ledger->links };
		return;
	}
	/* Its peer sees the end, and lets nothing leave. */
	log_err("no room for another link");
	close(fd);
}
