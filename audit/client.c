/* SPDX-License-Identifier: Apache-2.0
 *
 * client.c - events out, acknowledgements in, and the list of who waits.
 *
 * Three things may be behind: the socket (messages are kept and sent when
 * there is room), the ledger (it acknowledges in order, so the waiters are a
 * plain queue), and, when CLIENT_QUEUE_MAX events are under way, ourselves:
 * then an event is lost. Who submits sees to it that this can't be; if it is,
 * or there is no memory, nobody who waits is told otherwise, and the loss is
 * itself recorded as soon as there is room.
 *
 * A waiter's done() may submit and cancel. So waiters are taken off their list
 * one at a time, each before it is called, and a failure is never reported
 * from within submit, but from the loop.
 */
#include "audit/client.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "base/sock.h"

#define ACKS_A_TURN	256
#define SYNC_TIMEOUT_MS 10000

struct message {
	STAILQ_ENTRY(message) entry;
	size_t len;
	uint8_t data[];
};
STAILQ_HEAD(message_list, message);

struct audit_client {
	int sock;
	struct event *readable, *writable;
	struct event *failing; /* wakes up the loop to tell waiters of -EIO */
	void (*gone)(void *arg);
	void *arg;
	bool dead;			 /* the ledger is lost, for good */
	bool told;			 /* and gone() was called */
	uint64_t submitted, sent, acked; /* numbers of the last such event */
	uint64_t lost;			 /* events, not yet reported */
	struct message_list queue;	 /* not yet sent */
	struct wait_list waiting;	 /* by number */
	struct wait_list refused;	 /* to be told -EIO */
	uint64_t refusals;		 /* numbers of those */
};

static void enlist(struct wait_list *list, struct wait *wait, uint64_t seq)
{
	wait->seq = seq;
	wait->owner = list;
	TAILQ_INSERT_TAIL(list, wait, entry);
}

static void delist(struct wait *wait)
{
	struct wait_list *list = wait->owner;

	TAILQ_REMOVE(list, wait, entry);
	wait->seq = 0;
	wait->owner = NULL;
}

/* Tells all up to number @last. Those that are added meanwhile have higher
 * numbers. */
static void tell(struct wait_list *list, uint64_t last, int status)
{
	struct wait *wait;

	while ((wait = TAILQ_FIRST(list)) && wait->seq <= last) {
		delist(wait);
		wait->done(wait, status);
	}
}

/* A timer, not event_active(): the loop looks at its sockets in between, even
 * if somebody submits again and again. */
static void wake(struct audit_client *client)
{
	static const struct timeval now = { .tv_sec = 0 };

	event_add(client->failing, &now);
}

static void refuse(struct audit_client *client, struct wait *wait)
{
	if (!wait)
		return;
	enlist(&client->refused, wait, ++client->refusals);
	wake(client);
}

static void drop_queue(struct audit_client *client)
{
	struct message *message;

	while ((message = STAILQ_FIRST(&client->queue))) {
		STAILQ_REMOVE_HEAD(&client->queue, entry);
		free(message);
	}
}

/* The ledger is lost. Only marks it: the loop tells everyone. */
static void die_later(struct audit_client *client)
{
	if (client->dead)
		return;
	client->dead = true;
	event_del(client->readable);
	event_del(client->writable);
	drop_queue(client);
	wake(client);
}

static void on_failing(evutil_socket_t sock, short what, void *arg)
{
	struct audit_client *client = arg;

	(void)sock;
	(void)what;
	if (client->dead)
		tell(&client->waiting, UINT64_MAX, -EIO);
	tell(&client->refused, client->refusals, -EIO);
	if (client->dead && !client->told) {
		client->told = true;
		if (client->gone)
			client->gone(client->arg); /* may free the client */
	}
}

/* 0, -EAGAIN, or -errno: then the ledger is lost. */
static int send_message(int sock, const void *data, size_t len)
{
	ssize_t n;

	do {
		n = send(sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int keep(struct audit_client *client, const void *data, size_t len)
{
	struct message *message = malloc(sizeof(*message) + len);

	if (!message)
		return -ENOMEM;
	message->len = len;
	memcpy(message->data, data, len);
	if (STAILQ_EMPTY(&client->queue))
		event_add(client->writable, NULL);
	STAILQ_INSERT_TAIL(&client->queue, message, entry);
	return 0;
}

static int submit(struct audit_client *client, const struct audit_event *event)
{
	uint8_t buf[RECORD_MESSAGE_MAX];
	size_t len;
	int r = -EAGAIN;

	if (client->dead)
		return -EIO;
	if (client->submitted - client->acked >= CLIENT_QUEUE_MAX)
		return -ENOBUFS;
	len = record_encode(event, client->submitted + 1, buf);
	if (STAILQ_EMPTY(&client->queue))
		r = send_message(client->sock, buf, len);
	if (r == -EAGAIN) {
		r = keep(client, buf, len);
		if (r < 0)
			return r;
	} else if (r < 0) {
		die_later(client);
		return -EIO;
	} else {
		client->sent = client->submitted + 1;
	}
	client->submitted++;
	return 0;
}

void audit_client_submit(struct audit_client *client,
			 const struct audit_event *event, struct wait *wait)
{
	int r = submit(client, event);

	if (r < 0) {
		client->lost++;
		refuse(client, wait);
	} else if (wait) {
		enlist(&client->waiting, wait, client->submitted);
	}
}

void audit_client_cancel(struct audit_client *client, struct wait *wait)
{
	(void)client;
	if (wait->seq)
		delist(wait);
}

size_t audit_client_pending(const struct audit_client *client)
{
	if (!client || client->dead)
		return 0;
	return (size_t)(client->submitted - client->acked);
}

/* One record for all that were lost; it waits for room like any other. */
static void report_lost(struct audit_client *client)
{
	char detail[96];
	struct audit_event finding = {
		.kind = EVENT_FINDING,
		.verdict = { .reason = REASON_LEDGER_UNAVAILABLE },
		.count = client->lost < UINT32_MAX ? (uint32_t)client->lost
						   : UINT32_MAX,
		.detail = detail,
	};

	if (!client->lost)
		return;
	snprintf(detail, sizeof(detail),
		 "%llu events could not be recorded: too many were under way",
		 (unsigned long long)client->lost);
	if (submit(client, &finding) == 0)
		client->lost = 0;
}

/* 1: an acknowledgement was taken; 0: none is there; -errno: lost. */
static int take_ack(struct audit_client *client)
{
	uint8_t buf[RECORD_ACK_LEN + 1];
	uint64_t seq;
	ssize_t n;

	n = recv(client->sock, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* It died with messages of ours unread. What it had acknowledged
	 * before is still to be read; then comes the end. */
	if (n < 0 && errno == ECONNRESET)
		return 1;
	if (n <= 0)
		return -EPIPE;
	if (record_ack_decode(buf, (size_t)n, &seq) < 0 ||
	    seq <= client->acked || seq > client->sent)
		return -EPROTO;
	client->acked = seq;
	return 1;
}

static void on_readable(evutil_socket_t sock, short what, void *arg)
{
	struct audit_client *client = arg;
	int r = 1;

	(void)sock;
	(void)what;
	for (int i = 0; i < ACKS_A_TURN && r > 0; i++)
		r = take_ack(client);
	/* Before the waiters, who would fill the room again. */
	report_lost(client);
	tell(&client->waiting, client->acked, 0);
	if (r < 0)
		die_later(client);
}

static void on_writable(evutil_socket_t sock, short what, void *arg)
{
	struct audit_client *client = arg;
	struct message *message;

	(void)sock;
	(void)what;
	while ((message = STAILQ_FIRST(&client->queue))) {
		int r = send_message(client->sock, message->data, message->len);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			die_later(client);
			return;
		}
		client->sent++;
		STAILQ_REMOVE_HEAD(&client->queue, entry);
		free(message);
	}
	event_del(client->writable);
}

int audit_client_new(struct event_base *base, int sock, void (*gone)(void *arg),
		     void *arg, struct audit_client **ret_client)
{
	AUTO_FD int taken = sock;
	struct audit_client *client;
	int r;

	r = sock_nonblock(taken);
	if (r < 0)
		return r;
	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->sock = steal_fd(&taken);
	client->gone = gone;
	client->arg = arg;
	STAILQ_INIT(&client->queue);
	TAILQ_INIT(&client->waiting);
	TAILQ_INIT(&client->refused);
	client->readable = event_new(base, sock, EV_READ | EV_PERSIST,
				     on_readable, client);
	client->writable = event_new(base, sock, EV_WRITE | EV_PERSIST,
				     on_writable, client);
	client->failing = evtimer_new(base, on_failing, client);
	if (!client->readable || !client->writable || !client->failing ||
	    event_add(client->readable, NULL) < 0) {
		audit_client_free(client);
		return -ENOMEM;
	}
	*ret_client = client;
	return 0;
}

/* Those who still wait are forgotten, and may cancel later without harm. */
static void forget(struct wait_list *list)
{
	struct wait *wait;

	while ((wait = TAILQ_FIRST(list)))
		delist(wait);
}

void audit_client_free(struct audit_client *client)
{
	if (!client)
		return;
	if (client->readable)
		event_free(client->readable);
	if (client->writable)
		event_free(client->writable);
	if (client->failing)
		event_free(client->failing);
	forget(&client->waiting);
	forget(&client->refused);
	drop_queue(client);
	close_fd(&client->sock);
	free(client);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits until @sock is ready for @events, or the deadline. 0 or -EIO. */
static int wait_until(int sock, short events, int64_t deadline)
{
	struct pollfd pfd = { .fd = sock, .events = events };

	for (;;) {
		int64_t left = deadline - now_ms();
		int n = left > 0 ? poll(&pfd, 1, (int)left) : 0;

		if (n > 0)
			return 0;
		if (n == 0 || errno != EINTR)
			return -EIO;
	}
}

static int send_sync(int sock, const void *data, size_t len, int64_t deadline)
{
	for (;;) {
		int r = send_message(sock, data, len);

		if (r == 0)
			return 0;
		if (r != -EAGAIN || wait_until(sock, POLLOUT, deadline) < 0)
			return -EIO;
	}
}

int audit_submit_sync(int sock, const struct audit_event *event, uint64_t seq)
{
	int64_t deadline = now_ms() + SYNC_TIMEOUT_MS;
	uint8_t buf[RECORD_MESSAGE_MAX], ack[RECORD_ACK_LEN + 1];
	uint64_t acked = 0;

	if (send_sync(sock, buf, record_encode(event, seq, buf), deadline) < 0)
		return -EIO;
	while (acked < seq) {
		ssize_t n = recv(sock, ack, sizeof(ack), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN) {
			if (wait_until(sock, POLLIN, deadline) < 0)
				return -EIO;
		} else if (n < 0 && (errno == EINTR || errno == ECONNRESET)) {
			continue;
		} else if (n <= 0 ||
			   record_ack_decode(ack, (size_t)n, &acked) < 0) {
			return -EIO;
		}
	}
	return acked == seq ? 0 : -EIO;
}
