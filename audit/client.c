/* SPDX-License-Identifier: Apache-2.0
 *
 * client.c - events out, acknowledgements in, and the list of who waits.
 *
 * A message costs more than what is in it: so events are packed, and a pack
 * leaves when the loop finds nothing else ready (in a loop without priorities,
 * when all that this turn found ready was heard), when there is enough in it,
 * or when a millisecond has passed. Nothing waits for what is not there yet.
 *
 * Three things may be behind: the socket (packs are filled one after another,
 * and sent when there is room), the ledger (it acknowledges in order, so the
 * waiters are a plain queue), and, when CLIENT_QUEUE_MAX events are under way,
 * ourselves: then an event is lost. Who submits sees to it that this can't be;
 * if it is, or there is no memory, nobody who waits is told otherwise, and the
 * loss is itself recorded as soon as there is room.
 *
 * A waiter's done() may submit and cancel. So waiters are taken off their list
 * one at a time, each before it is called, and a failure is never reported
 * from within submit, but from the loop.
 */
#include "audit/client.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "base/sock.h"

#define ACKS_A_TURN  256
#define PACK_ENOUGH  32 /* events */
#define PACK_LATE_US 1000

struct pack {
	TAILQ_ENTRY(pack) entry;
	size_t len;
	uint64_t last; /* number of the last event in it */
	uint8_t data[RECORD_PACK_MAX];
};
TAILQ_HEAD(pack_list, pack);

struct audit_client {
	int sock;
	struct event *readable, *writable;
	struct event *turn_end; /* behind all that are ready: sends */
	struct event *late;	/* others were always ready: sends */
	struct event *failing;	/* wakes up the loop to tell waiters of -EIO */
	void (*gone)(void *arg);
	void *arg;
	bool dead;			 /* the ledger is lost, for good */
	bool told;			 /* and gone() was called */
	bool full;			 /* the socket: until it is writable */
	size_t pack_max;		 /* bytes that a message may have */
	uint64_t submitted, sent, acked; /* numbers of the last such event */
	uint64_t lost;			 /* events, not yet reported */
	struct pack_list queue;		 /* not yet sent; the last one grows */
	struct pack *spare;		 /* empty, or NULL */
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

/* The first pack is done with; one is kept for the next turn. */
static void drop_first(struct audit_client *client)
{
	struct pack *pack = TAILQ_FIRST(&client->queue);

	TAILQ_REMOVE(&client->queue, pack, entry);
	free(client->spare);
	client->spare = pack;
}

static void drop_queue(struct audit_client *client)
{
	while (!TAILQ_EMPTY(&client->queue))
		drop_first(client);
}

/* The ledger is lost. Only marks it: the loop tells everyone. */
static void die_later(struct audit_client *client)
{
	if (client->dead)
		return;
	client->dead = true;
	event_del(client->readable);
	event_del(client->writable);
	event_del(client->turn_end);
	event_del(client->late);
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

/* All, or as much as there is room for. */
static void send_queue(struct audit_client *client)
{
	struct pack *pack;

	while ((pack = TAILQ_FIRST(&client->queue))) {
		int r = send_message(client->sock, pack->data, pack->len);

		if (r == -EAGAIN) {
			if (!client->full)
				event_add(client->writable, NULL);
			client->full = true;
			return;
		}
		if (r < 0) {
			die_later(client);
			return;
		}
		client->sent = pack->last;
		drop_first(client);
	}
	if (client->full)
		event_del(client->writable);
	client->full = false;
	event_del(client->late);
}

static void on_turn_end(evutil_socket_t sock, short what, void *arg)
{
	struct audit_client *client = arg;

	(void)sock;
	(void)what;
	if (!client->full)
		send_queue(client);
}

static void on_writable(evutil_socket_t sock, short what, void *arg)
{
	(void)sock;
	(void)what;
	send_queue(arg);
}

static bool has_room(const struct audit_client *client, const struct pack *pack)
{
	return pack && client->pack_max - pack->len >= RECORD_PACKED_MAX;
}

/* The last pack of the queue, with room for one more event. NULL: no memory, or
 * the ledger was found dead. */
static struct pack *pack_with_room(struct audit_client *client)
{
	struct pack *pack = TAILQ_LAST(&client->queue, pack_list);

	if (has_room(client, pack))
		return pack;
	if (pack && !client->full)
		send_queue(client);
	if (client->dead)
		return NULL;
	pack = client->spare ? client->spare : malloc(sizeof(*pack));
	client->spare = NULL;
	if (!pack)
		return NULL;
	pack->len = 0;
	TAILQ_INSERT_TAIL(&client->queue, pack, entry);
	return pack;
}

/* An event was added. */
static void send_soon(struct audit_client *client)
{
	static const struct timeval late = { .tv_usec = PACK_LATE_US };
	const uint64_t unsent = client->submitted - client->sent;

	if (unsent >= PACK_ENOUGH) {
		send_queue(client);
		return;
	}
	event_active(client->turn_end, EV_TIMEOUT, 0);
	if (unsent == 1)
		event_add(client->late, &late);
}

static int submit(struct audit_client *client, const struct audit_event *event)
{
	struct pack *pack;

	if (client->dead)
		return -EIO;
	if (client->submitted - client->acked >= CLIENT_QUEUE_MAX)
		return -ENOBUFS;
	pack = pack_with_room(client);
	if (!pack)
		return client->dead ? -EIO : -ENOMEM;
	pack->last = ++client->submitted;
	pack->len += record_pack(event, pack->last, pack->data + pack->len);
	if (!client->full)
		send_soon(client);
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

/* A host may have small sockets; one event finds room in all of them. */
static size_t pack_max(int sock)
{
	socklen_t len = sizeof(int);
	int size = 0;

	if (getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, &len) < 0 ||
	    size / 2 >= RECORD_PACK_MAX)
		return RECORD_PACK_MAX;
	return size / 2 < RECORD_PACKED_MAX ? RECORD_PACKED_MAX
					    : (size_t)size / 2;
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
	client->pack_max = pack_max(client->sock);
	TAILQ_INIT(&client->queue);
	TAILQ_INIT(&client->waiting);
	TAILQ_INIT(&client->refused);
	client->readable = event_new(base, sock, EV_READ | EV_PERSIST,
				     on_readable, client);
	client->writable = event_new(base, sock, EV_WRITE | EV_PERSIST,
				     on_writable, client);
	client->turn_end = event_new(base, -1, 0, on_turn_end, client);
	client->late = evtimer_new(base, on_turn_end, client);
	client->failing = evtimer_new(base, on_failing, client);
	if (!client->readable || !client->writable || !client->turn_end ||
	    !client->late || !client->failing ||
	    event_add(client->readable, NULL) < 0) {
		audit_client_free(client);
		return -ENOMEM;
	}
	/* Fine if there are no priorities. */
	(void)event_priority_set(client->turn_end, AUDIT_CLIENT_PRIORITY);
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
	/* The last that is made: without it others may be missing. */
	if (client->failing && !client->dead)
		send_queue(client);
	if (client->readable)
		event_free(client->readable);
	if (client->writable)
		event_free(client->writable);
	if (client->turn_end)
		event_free(client->turn_end);
	if (client->late)
		event_free(client->late);
	if (client->failing)
		event_free(client->failing);
	forget(&client->waiting);
	forget(&client->refused);
	drop_queue(client);
	free(client->spare);
	close_fd(&client->sock);
	free(client);
}
