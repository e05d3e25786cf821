/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - takes records from its links, numbers them, writes them, and only
 * then acknowledges.
 *
 * One turn of the loop takes up to BATCH packs of records from each link that
 * has some, writes all of them with one write(2), and sends each link one
 * number: all up to here is in the log. So a busy gate pays for few system
 * calls, and an idle one waits for nobody.
 *
 * If the log can't be written, nothing is acknowledged and the process ends:
 * whoever waits for an acknowledgement sees the end of the link, and lets
 * nothing leave. A link that sends what is no record is cut off, which is
 * itself recorded. The end of a link is normal: a gate died.
 */
#include "cmd/ledger.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/ledger_end.h"
#include "cmd/ledger_host.h"
#include "cmd/ledger_log.h"
#include "cmd/ledger_pace.h"
#include "cmd/ledger_start.h"
#include "launch/child.h"

#define LINKS_MAX 8
#define BATCH	  32 /* packs */
/* At the end: more than any socket holds, so that a gate that goes on sending
 * can't keep us. */
#define LAST_TURNS 256

/* The record that closes the session must be the last one, so it waits until
 * the warden has said how it ended, and the other links have nothing more to
 * say. */
struct held {
	struct link *link; /* NULL: nothing is held */
	unsigned number;   /* of that link, whose place may be another's now */
	struct audit_event event;
	uint64_t seq;
	unsigned turns;
	char text[RECORD_MESSAGE_MAX];
};

struct link {
	int fd; /* -1: free */
	unsigned number;
	bool mute;	/* it no longer reads acknowledgements */
	bool warden;	/* may open and close the session, change its policy */
	uint64_t taken; /* number of the last record of it in the batch */
	uint64_t acked;
};

struct ledger {
	struct ledger_log log;
	unsigned links; /* ever made */
	struct link link[LINKS_MAX];
	struct held held;
	struct pace pace;
	bool more;	/* a link may have more than the last turn took */
	bool open;	/* the first record is there */
	int timeout_ms; /* until the log wants another turn */
	uint8_t pack[BATCH][RECORD_PACK_MAX + 1];
	char text[RECORD_MESSAGE_MAX];
};

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
	    (!quiet && ++held->turns < LAST_TURNS))
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

/* Takes up to BATCH packs. Returns how many records, or -errno: log lost. */
static int link_take(struct ledger *ledger, struct link *link)
{
	struct mmsghdr batch[BATCH];
	struct iovec iov[BATCH];
	int n, total = 0;

	memset(batch, 0, sizeof(batch));
	for (size_t i = 0; i < BATCH; i++) {
		/* One byte more than the longest: a longer one shows. */
		iov[i].iov_base = ledger->pack[i];
		iov[i].iov_len = sizeof(ledger->pack[i]);
		batch[i].msg_hdr.msg_iov = &iov[i];
		batch[i].msg_hdr.msg_iovlen = 1;
	}
	do {
		n = recvmmsg(link->fd, batch, BATCH, MSG_DONTWAIT, NULL);
		/* ECONNRESET: a gate that was killed left acknowledgements
		 * unread. What it had sent is still to be read. */
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno != EAGAIN)
		link_end(link);
	ledger->more |= n == BATCH;
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

/* The first record opens the session. A gate may serve before: the kernel drops
 * packets as soon as there are rules. What it says waits in its socket. */
static bool has_to_wait(const struct ledger *ledger, const struct link *link)
{
	return !ledger->open && !link->warden;
}

/* One turn: of the links that poll() found ready, or of all (NULL). Returns how
 * many records there were, or -errno: log lost. */
static int take_turn(struct ledger *ledger, const struct pollfd *ready)
{
	int total = 0, r;

	ledger->more = false;
	for (size_t i = 0; i < LINKS_MAX; i++) {
		if (ledger->link[i].fd < 0 ||
		    has_to_wait(ledger, &ledger->link[i]) ||
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
	for (size_t i = 0; i < LINKS_MAX; i++)
		link_ack(&ledger->link[i]);
	return total;
}

static void add_link(struct ledger *ledger, int fd, bool warden)
{
	for (size_t i = 0; i < LINKS_MAX; i++) {
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

/* Takes what is still there. 0 or -errno. */
static int take_last(struct ledger *ledger)
{
	int r = 1;

	for (int i = 0; i < LAST_TURNS && r > 0; i++)
		r = take_turn(ledger, NULL);
	return r < 0 ? r : 0;
}

/* The parent is gone, or mad: what we have is saved, and the log says so. */
static int abandon(struct ledger *ledger, const char *why)
{
	struct ledger_log *log = &ledger->log;
	int r = take_last(ledger);

	if (r == 0 && !log->closed)
		r = ledger_host_settle(log);
	if (r == 0 && !log->closed)
		r = ledger_log_finding(log, REASON_LEDGER_UNAVAILABLE, why);
	if (r == 0)
		r = ledger_log_settle(log);
	if (r == 0)
		r = seal_sync(log->seal);
	if (r == 0)
		ledger_host_end(log, NULL);
	return r;
}

/* 0 at the end, or -errno: it is not the time for that, or the log is lost. */
static int finish(struct ledger *ledger)
{
	int r = take_last(ledger);

	if (r == 0 && ledger->held.link)
		return -EPROTO; /* how did it end? */
	return r < 0 ? r : ledger_end_report(&ledger->log);
}

/* 1 to go on, 0 at the end; -EPROTO if it is not the time for that message;
 * -errno. */
static int obey(struct ledger *ledger, struct msg *msg)
{
	struct ledger_log *log = &ledger->log;
	int r;

	switch (msg->type) {
	case MSG_LEDGER_LINK:
		add_link(ledger, steal_fd(&msg->fd), msg->ledger_link.warden);
		return 1;
	case MSG_LEDGER_PART:
		r = ledger_log_part(log, msg->ledger_part.number,
				    steal_fd(&msg->fd));
		return r < 0 ? r : 1;
	case MSG_LEDGER_FILE:
		r = ledger_host_take(log, msg);
		return r < 0 ? r : 1;
	case MSG_LEDGER_END:
		if (log->has_end)
			return -EPROTO;
		log->has_end = true;
		log->end = msg->ledger_end;
		return 1;
	case MSG_LEDGER_ATTACKS:
		log->attacks = msg->attacks;
		return 1;
	case MSG_LEDGER_SUMS:
		r = ledger_log_tell(log);
		return r < 0 ? r : 1;
	case MSG_LEDGER_FINISH:
		return finish(ledger);
	default:
		return -EPROTO;
	}
}

/* 1 to go on, 0 at the end, -errno. */
static int control(struct ledger *ledger)
{
	struct msg msg = { .fd = -1 };
	int r = msg_recv(CHILD_SOCKET, &msg, MSG_DONTWAIT);

	if (r == -EAGAIN || r == -EINTR)
		return 1;
	if (r == 0)
		return abandon(ledger, "the warden is gone: the session was "
				       "not closed");
	if (r == 1)
		r = obey(ledger, &msg);
	else
		r = -EPROTO;
	close_fd(&msg.fd);
	if (r == -EPROTO)
		abandon(ledger, "the warden sent what the ledger does not "
				"expect");
	return r;
}

static void watch(const struct ledger *ledger, struct pollfd *pfd)
{
	pfd[LINKS_MAX].fd = CHILD_SOCKET;
	pfd[LINKS_MAX].events = POLLIN;
	pfd[LINKS_MAX + 1].fd = seal_fd(ledger->log.seal);
	pfd[LINKS_MAX + 1].events = POLLIN;
	for (size_t i = 0; i < LINKS_MAX; i++) {
		const struct link *link = &ledger->link[i];

		pfd[i].fd = has_to_wait(ledger, link) ? -1 : link->fd;
		pfd[i].events = POLLIN;
		if (!link->mute && link->acked != link->taken)
			pfd[i].events |= POLLOUT;
	}
}

/* In time for many records: what comes until then wakes nobody up. */
static void rest(const struct ledger *ledger)
{
	unsigned wait_us = pace_wait_us(&ledger->pace, pace_now_us());
	struct timespec ts = { .tv_nsec = (long)wait_us * 1000 };

	if (wait_us)
		nanosleep(&ts, NULL);
}

/* 0 at the end, or -errno. */
static int serve(struct ledger *ledger)
{
	struct pollfd pfd[LINKS_MAX + 2];
	int r;

	for (;;) {
		bool closing = ledger->held.link && ledger->log.has_end;

		if (!closing && !ledger->more)
			rest(ledger);
		watch(ledger, pfd);
		r = poll(pfd, ARRAY_SIZE(pfd),
			 closing ? 0 : ledger->timeout_ms);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r < 0)
			continue;
		pace_begin(&ledger->pace, pace_now_us());
		r = take_turn(ledger, pfd);
		if (r < 0)
			return r;
		pace_add(&ledger->pace, (unsigned)r);
		if (!pfd[LINKS_MAX].revents)
			continue;
		r = control(ledger);
		if (r <= 0)
			return r;
	}
}

int ledger_main(void)
{
	static struct ledger ledger;
	int r;

	/* It ends when its parent does, never before: the last records are
	 * those of what a signal ended. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	ledger.timeout_ms = -1;
	for (size_t i = 0; i < LINKS_MAX; i++)
		ledger.link[i].fd = -1;
	r = ledger_start(&ledger.log);
	if (r == 0)
		r = serve(&ledger);
	/* A warden that gave up before there was a log says why itself. */
	if (r < 0 && r != -ECANCELED)
		log_err("the log is lost: %s", strerror(-r));
	ledger_log_free(&ledger.log);
	return r < 0 ? 1 : 0;
}
