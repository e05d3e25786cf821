/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - takes records from its links, numbers them, writes them, and only
 * then acknowledges.
 *
 * One turn of the loop takes up to LEDGER_BATCH packs of records from each link
 * that has some, writes all of them with one write(2), and sends each link one
 * number: all up to here is in the log. So a busy gate pays for few system
 * calls, and an idle one waits for nobody.
 *
 * If the log can't be written, nothing is acknowledged and the process ends:
 * whoever waits for an acknowledgement sees the end of the link, and lets
 * nothing leave.
 */
#include "cmd/ledger.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/ledger_end.h"
#include "cmd/ledger_host.h"
#include "cmd/ledger_impl.h"
#include "cmd/ledger_start.h"
#include "launch/child.h"

/* Takes what is still there. 0 or -errno. */
static int take_last(struct ledger *ledger)
{
	int r = 1;

	for (int i = 0; i < LEDGER_LAST_TURNS && r > 0; i++)
		r = ledger_turn(ledger, NULL);
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
		ledger_add_link(ledger, steal_fd(&msg->fd),
				msg->ledger_link.warden);
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
		attacks_add(&log->attacks, &msg->attacks);
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
	pfd[LEDGER_LINKS_MAX].fd = CHILD_SOCKET;
	pfd[LEDGER_LINKS_MAX].events = POLLIN;
	pfd[LEDGER_LINKS_MAX + 1].fd = seal_fd(ledger->log.seal);
	pfd[LEDGER_LINKS_MAX + 1].events = POLLIN;
	for (size_t i = 0; i < LEDGER_LINKS_MAX; i++) {
		const struct link *link = &ledger->link[i];

		pfd[i].fd = ledger_has_to_wait(ledger, link) ? -1 : link->fd;
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
	struct pollfd pfd[LEDGER_LINKS_MAX + 2];
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
		r = ledger_turn(ledger, pfd);
		if (r < 0)
			return r;
		pace_add(&ledger->pace, (unsigned)r);
		if (!pfd[LEDGER_LINKS_MAX].revents)
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
	for (size_t i = 0; i < LEDGER_LINKS_MAX; i++)
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
