/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - takes records from its links, numbers them, writes them, and only
 * then acknowledges.
 *
 * One turn of the loop takes up to BATCH messages from each link that has some,
 * writes all of them with one write(2), and sends each link one number: all up
 * to here is in the log. So a busy gate pays for few system calls, and an idle
 * one waits for nobody.
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

#include "audit/record.h"
#include "audit/tally.h"
#include "audit/writer.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/privsep.h"
#include "launch/child.h"
#include "launch/isolate.h"

#define LINKS_MAX 8
#define BATCH	  64
/* At the end: more than any socket holds, so that a gate that goes on sending
 * can't keep us. */
#define LAST_TURNS 256

/* The record that closes the session must be the last one, so it waits until
 * the other links have nothing more to say. */
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
	struct msg_ledger_start start;
	struct record_context context;
	struct writer *writer;
	uint64_t sequence; /* of the next line */
	bool closed;	   /* the record of the session's end is written */
	unsigned links;	   /* ever made */
	struct link link[LINKS_MAX];
	struct held held;
	struct tally tally;
	uint8_t message[BATCH][RECORD_MESSAGE_MAX + 1];
	char text[RECORD_MESSAGE_MAX];
	char line[RECORD_LINE_MAX];
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* 0 or -errno: the log is lost. */
static int write_event(struct ledger *ledger, struct audit_event *event)
{
	size_t len;
	int r;

	if (!event->time_ms)
		event->time_ms = now_ms();
	len = record_format(event, ledger->sequence, &ledger->context,
			    ledger->line, sizeof(ledger->line));
	if (len == 0)
		return -EMSGSIZE;
	r = writer_append(ledger->writer, ledger->line, len);
	if (r < 0)
		return r;
	ledger->sequence++;
	tally_add(&ledger->tally, event);
	return 0;
}

static int write_finding(struct ledger *ledger, enum reason reason,
			 const char *detail)
{
	struct audit_event finding = { .kind = EVENT_FINDING,
				       .verdict = { .reason = reason },
				       .detail = detail };

	return write_event(ledger, &finding);
}

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
	return write_finding(ledger, REASON_MALFORMED, detail);
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

	if (!held->link || (!quiet && ++held->turns < LAST_TURNS))
		return 0;
	r = write_event(ledger, &held->event);
	if (r < 0)
		return r;
	ledger->closed = true;
	if (held->link->number == held->number)
		held->link->taken = held->seq;
	held->link = NULL;
	return 1;
}

static bool is_wardens(enum event_kind kind)
{
	return kind == EVENT_SESSION_OPEN || kind == EVENT_SESSION_CLOSE ||
	       kind == EVENT_POLICY;
}

/* What is written from here on is under another policy. */
static void note_policy(struct ledger *ledger, const struct audit_event *event)
{
	const char *digest = record_policy_digest(event->detail);

	if (digest)
		snprintf(ledger->start.policy_digest,
			 sizeof(ledger->start.policy_digest), "%s", digest);
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
	    (!link->warden && is_wardens(event.kind)))
		return link_cut(ledger, link);
	if (event.kind == EVENT_SESSION_CLOSE && !ledger->held.link) {
		hold(&ledger->held, link, data, len);
		return 1;
	}
	if (event.kind == EVENT_POLICY)
		note_policy(ledger, &event);
	r = write_event(ledger, &event);
	if (r < 0)
		return r;
	link->taken = seq;
	return 1;
}

/* Takes up to BATCH messages. Returns how many, or -errno: log lost. */
static int link_take(struct ledger *ledger, struct link *link)
{
	struct mmsghdr batch[BATCH];
	struct iovec iov[BATCH];
	int n, r = 1;

	memset(batch, 0, sizeof(batch));
	for (size_t i = 0; i < BATCH; i++) {
		/* One byte more than the longest: a longer one shows. */
		iov[i].iov_base = ledger->message[i];
		iov[i].iov_len = sizeof(ledger->message[i]);
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
	if (n <= 0)
		return 0;
	for (int i = 0; i < n && r == 1; i++) {
		if (batch[i].msg_len == 0) { /* the end */
			link_end(link);
			return i;
		}
		r = take_message(ledger, link, ledger->message[i],
				 batch[i].msg_len);
	}
	return r < 0 ? r : n;
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

/* One turn. Returns how many messages there were, or -errno: log lost. */
static int take_turn(struct ledger *ledger)
{
	int total = 0, r;

	for (size_t i = 0; i < LINKS_MAX; i++) {
		if (ledger->link[i].fd < 0)
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
	r = writer_flush(ledger->writer);
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

/* Takes what is still there, and makes it last. 0 or -errno. */
static int finish(struct ledger *ledger)
{
	int r = 1;

	for (int i = 0; i < LAST_TURNS && r > 0; i++)
		r = take_turn(ledger);
	return r < 0 ? r : writer_sync(ledger->writer);
}

static int report(const struct ledger *ledger)
{
	struct msg_tally_done done = { .records = ledger->tally.records };

	for (size_t i = 0; i < ledger->tally.rows; i++) {
		int r = msg_send(CHILD_SOCKET, MSG_TALLY_ROW,
				 &ledger->tally.row[i], -1);

		if (r < 0)
			return r;
	}
	return msg_send(CHILD_SOCKET, MSG_TALLY_DONE, &done, -1);
}

/* The parent is gone, or mad: what we have is saved, and the log says so. */
static int abandon(struct ledger *ledger, const char *why)
{
	int r = finish(ledger);

	if (r == 0 && !ledger->closed) {
		r = write_finding(ledger, REASON_LEDGER_UNAVAILABLE, why);
		if (r == 0)
			r = writer_flush(ledger->writer);
		if (r == 0)
			r = writer_sync(ledger->writer);
	}
	return r;
}

/* 1 to go on, 0 at the end, -errno. */
static int control(struct ledger *ledger)
{
	struct msg msg;
	int r = msg_recv(CHILD_SOCKET, &msg, MSG_DONTWAIT);

	if (r == -EAGAIN || r == -EINTR)
		return 1;
	if (r == 0)
		return abandon(ledger, "the warden is gone: the session was "
				       "not closed");
	if (r == 1 && msg.type == MSG_LEDGER_LINK) {
		add_link(ledger, msg.fd, msg.ledger_link.warden);
		return 1;
	}
	if (r == 1 && msg.type == MSG_LEDGER_FINISH) {
		r = finish(ledger);
		return r < 0 ? r : report(ledger);
	}
	if (r == 1 && msg.fd >= 0)
		close(msg.fd);
	abandon(ledger, "the warden sent what the ledger does not expect");
	return -EPROTO;
}

/* 0 at the end, or -errno. */
static int serve(struct ledger *ledger)
{
	struct pollfd pfd[LINKS_MAX + 1];
	int r;

	for (;;) {
		pfd[LINKS_MAX].fd = CHILD_SOCKET;
		pfd[LINKS_MAX].events = POLLIN;
		for (size_t i = 0; i < LINKS_MAX; i++) {
			const struct link *link = &ledger->link[i];

			pfd[i].fd = link->fd;
			pfd[i].events = POLLIN;
			if (!link->mute && link->acked != link->taken)
				pfd[i].events |= POLLOUT;
		}
		r = poll(pfd, LINKS_MAX + 1, ledger->held.link ? 0 : -1);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r < 0)
			continue;
		r = take_turn(ledger);
		if (r < 0)
			return r;
		if (!pfd[LINKS_MAX].revents)
			continue;
		r = control(ledger);
		if (r <= 0)
			return r;
	}
}

/* The first message says whose log it is; then everything is given up. */
static int begin(struct ledger *ledger)
{
	struct isolate_spec spec = { .role = ISOLATE_LEDGER };
	const char *failed = NULL;
	struct msg msg;
	int r = msg_recv(CHILD_SOCKET, &msg, 0);

	if (r != 1 || msg.type != MSG_LEDGER_START)
		return r < 0 ? r : -EPROTO;
	ledger->start = msg.ledger_start;
	ledger->context = (struct record_context){
		.session = ledger->start.session,
		.sandbox_name = ledger->start.sandbox_name,
		.policy_digest = ledger->start.policy_digest,
		.policy_name = ledger->start.policy_name,
		.boundary = ledger->start.boundary,
	};
	for (size_t i = 0; i < LINKS_MAX; i++)
		ledger->link[i].fd = -1;
	r = writer_new(msg.fd, &ledger->writer);
	if (r < 0)
		return r;
	spec.uid = ledger->start.uid;
	spec.gid = ledger->start.gid;
	r = isolate_self(&spec, &failed);
	if (r < 0) {
		log_err("cannot isolate: %s: %s", failed ? failed : "?",
			strerror(-r));
		return r;
	}
	return msg_send(CHILD_SOCKET, MSG_LEDGER_READY, NULL, -1);
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
	r = begin(&ledger);
	if (r == 0)
		r = serve(&ledger);
	if (r < 0)
		log_err("the log is lost: %s", strerror(-r));
	writer_free(ledger.writer);
	return r < 0 ? 1 : 0;
}
