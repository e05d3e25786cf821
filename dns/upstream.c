/* SPDX-License-Identifier: Apache-2.0
 *
 * upstream.c - questions by UDP, each with an id and a source port of its own.
 *
 * A socket is connected to the server, so that the kernel passes on nobody
 * else's packets. When its question has ended it is disconnected, by which it
 * loses its port, and waits in a pool: the next connect(2) gives it another
 * one, at random, which is cheaper than another socket. Whatever had still come
 * for the old port is no answer to the next question, even if the id were the
 * right one: a socket that has anything to read before it is connected is not
 * used again.
 *
 * What comes there and is not an answer to the question is the guess of
 * somebody who has found the port. He gets no second one: it is asked again by
 * TCP. All wait equally long, so the list of those who do is in the order in
 * which they give up.
 *
 * Needs socket, connect, send, recv, getrandom.
 */
#include "dns/upstream.h"

#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dns/retry.h"

#define TRY_MS	   2000
#define POOL_MAX   256
#define POOL_IDLE  16	/* kept while nobody asks anything */
#define ANSWER_MAX 4096 /* by UDP: more than we say that we take */

struct inquiry {
	TAILQ_ENTRY(inquiry) entry; /* of those asked, or of the pool */
	struct upstream *upstream;
	int fd;
	struct event *readable;
	struct retry *retry; /* or NULL */
	bool asked;
	int64_t until_ms;
	struct endpoint server;
	size_t len, plain; /* of the question; without EDNS */
	uint8_t question[DNS_QUESTION_MAX];
	uint16_t type;
	char host[HOST_MAX + 1];
	void (*done)(void *arg, int status, const struct dns_answer *answer,
		     const struct dns_records *records);
	void *arg;
};
TAILQ_HEAD(inquiry_list, inquiry);

struct upstream {
	struct event_base *base;
	struct event *timer; /* pending while anybody waits */
	struct inquiry_list asked;
	struct inquiry_list pool[2]; /* IPv4, IPv6 */
	unsigned pooled;
	size_t ids; /* left */
	uint16_t id[64];
};

static struct inquiry_list *pool_of(struct upstream *upstream,
				    const struct ip *ip)
{
	return &upstream->pool[ip->len != 4];
}

static void inquiry_free(struct inquiry *inquiry)
{
	retry_free(inquiry->retry);
	if (inquiry->readable)
		event_free(inquiry->readable);
	close_fd(&inquiry->fd);
	free(inquiry);
}

static void shrink(struct upstream *upstream, unsigned most)
{
	struct inquiry *inquiry;

	for (size_t i = 0; i < ARRAY_SIZE(upstream->pool); i++)
		while (upstream->pooled > most &&
		       (inquiry = TAILQ_FIRST(&upstream->pool[i]))) {
			TAILQ_REMOVE(&upstream->pool[i], inquiry, entry);
			upstream->pooled--;
			inquiry_free(inquiry);
		}
}

/* --- who waits ----------------------------------------------------------- */

static void give_up_later(struct upstream *upstream)
{
	const struct inquiry *first = TAILQ_FIRST(&upstream->asked);
	int64_t ms = first ? first->until_ms - now_ms() : 0;
	struct timeval tv;

	if (!first || evtimer_pending(upstream->timer, NULL))
		return;
	ms = ms < 1 ? 1 : ms;
	tv = (struct timeval){ .tv_sec = ms / 1000,
			       .tv_usec = ms % 1000 * 1000 };
	evtimer_add(upstream->timer, &tv);
}

static void begin_wait(struct inquiry *inquiry)
{
	struct upstream *upstream = inquiry->upstream;

	inquiry->asked = true;
	inquiry->until_ms = now_ms() + TRY_MS;
	TAILQ_INSERT_TAIL(&upstream->asked, inquiry, entry);
	give_up_later(upstream);
}

static void end_wait(struct inquiry *inquiry)
{
	TAILQ_REMOVE(&inquiry->upstream->asked, inquiry, entry);
	inquiry->asked = false;
}

/* Loses its port, and waits for the next question. */
static void release(struct inquiry *inquiry)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct upstream *upstream = inquiry->upstream;

	end_wait(inquiry);
	if (inquiry->fd < 0 || upstream->pooled == POOL_MAX ||
	    connect(inquiry->fd, &nobody, sizeof(nobody)) < 0) {
		inquiry_free(inquiry);
		return;
	}
	TAILQ_INSERT_HEAD(pool_of(upstream, &inquiry->server.ip), inquiry,
			  entry);
	upstream->pooled++;
}

/* Tells who asked. @inquiry is gone after that. */
static void deliver(struct inquiry *inquiry, int status,
		    const struct dns_answer *answer,
		    const struct dns_records *records)
{
	void (*done)(void *, int, const struct dns_answer *,
		     const struct dns_records *) = inquiry->done;
	void *arg = inquiry->arg;

	release(inquiry);
	done(arg, status, status ? NULL : answer, status ? NULL : records);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct upstream *upstream = arg;
	const int64_t now = now_ms();
	struct inquiry *inquiry;

	(void)fd;
	(void)what;
	while ((inquiry = TAILQ_FIRST(&upstream->asked)) &&
	       inquiry->until_ms <= now)
		deliver(inquiry, -ETIMEDOUT, NULL, NULL);
	if (TAILQ_EMPTY(&upstream->asked))
		shrink(upstream, POOL_IDLE);
	give_up_later(upstream);
}

/* --- what comes ---------------------------------------------------------- */

static void deliver_data(struct inquiry *inquiry, const void *data, size_t len)
{
	const bool others = rdata_known(inquiry->type);
	/* Large, and seldom needed. */
	AUTO_FREE struct dns_records *records =
		others ? calloc(1, sizeof(*records)) : NULL;
	struct dns_answer answer;
	int status = -EIO;

	if (records || !others)
		status = dns_answer_parse(data, len, inquiry->host,
					  inquiry->type, &answer, records);
	deliver(inquiry, status, &answer, records);
}

static void on_retried(void *arg, const void *data, size_t len)
{
	struct inquiry *inquiry = arg;

	if (data)
		deliver_data(inquiry, data, len);
	else
		deliver(inquiry, -EIO, NULL, NULL);
}

/* By TCP: its socket is done with. */
static void retry(struct inquiry *inquiry)
{
	event_free(STEAL(inquiry->readable));
	close_fd(&inquiry->fd);
	end_wait(inquiry);
	begin_wait(inquiry);
	if (retry_new(inquiry->upstream->base, &inquiry->server,
		      inquiry->question, inquiry->len, on_retried, inquiry,
		      &inquiry->retry))
		deliver(inquiry, -EIO, NULL, NULL);
}

static int next_id(struct upstream *upstream, uint16_t *ret_id)
{
	if (!upstream->ids) {
		if (getrandom(upstream->id, sizeof(upstream->id), 0) !=
		    (ssize_t)sizeof(upstream->id))
			return -EIO;
		upstream->ids = ARRAY_SIZE(upstream->id);
	}
	*ret_id = upstream->id[--upstream->ids];
	return 0;
}

static int send_question(struct inquiry *inquiry, bool edns)
{
	union sockaddr_any to;
	socklen_t len =
		ip_to_sockaddr(&inquiry->server.ip, inquiry->server.port, &to);
	uint16_t id;
	int err = next_id(inquiry->upstream, &id);

	if (err)
		return err;
	inquiry->len = dns_question_build(inquiry->host, inquiry->type, id,
					  inquiry->question);
	inquiry->plain = inquiry->len - DNS_QUESTION_OPT;
	if (!edns) {
		inquiry->len = inquiry->plain;
		inquiry->question[11] = 0; /* records behind the question */
	}
	if (connect(inquiry->fd, &to.sa, len) < 0 ||
	    send(inquiry->fd, inquiry->question, inquiry->len,
		 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

/* Once more without EDNS, from another port and with another id. What is left
 * of the old port is as good as a guess. */
static void ask_plainly(struct inquiry *inquiry)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	end_wait(inquiry);
	begin_wait(inquiry);
	if (connect(inquiry->fd, &nobody, sizeof(nobody)) < 0 ||
	    send_question(inquiry, false))
		deliver(inquiry, -EIO, NULL, NULL);
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* Has it the id and the question? The case may be another one: then it is the
 * answer, which won't do, but not somebody's guess. */
static bool is_answer(const struct inquiry *inquiry, const uint8_t *data,
		      size_t len)
{
	static const uint8_t one[2] = { 0, 1 };

	if (len < inquiry->plain || memcmp(data, inquiry->question, 2) != 0 ||
	    memcmp(data + 4, one, sizeof(one)) != 0)
		return false;
	for (size_t i = DNS_HEADER_LEN; i < inquiry->plain; i++)
		if (lower(data[i]) != lower(inquiry->question[i]))
			return false;
	return true;
}

static void take(struct inquiry *inquiry, const uint8_t *data, size_t len)
{
	struct dns_answer answer;
	bool cut = data[2] & 2;
	bool formerr = (data[3] & 0xf) == DNS_FORMERR;

	if (cut)
		retry(inquiry);
	else if (formerr && inquiry->len > inquiry->plain &&
		 !dns_answer_parse(data, len, inquiry->host, inquiry->type,
				   &answer, NULL) &&
		 !answer.edns)
		ask_plainly(inquiry); /* it does not know EDNS */
	else
		deliver_data(inquiry, data, len);
}

static void read_answer(struct inquiry *inquiry)
{
	uint8_t data[ANSWER_MAX];
	ssize_t n = recv(inquiry->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		deliver(inquiry, -EIO, NULL, NULL); /* nobody is there */
	else if (is_answer(inquiry, data, (size_t)n))
		take(inquiry, data, (size_t)n);
	else
		retry(inquiry);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct inquiry *inquiry = arg;
	struct upstream *upstream = inquiry->upstream;

	(void)fd;
	(void)what;
	if (inquiry->asked) {
		read_answer(inquiry);
		return;
	}
	/* Too late. */
	TAILQ_REMOVE(pool_of(upstream, &inquiry->server.ip), inquiry, entry);
	upstream->pooled--;
	inquiry_free(inquiry);
}

/* --- asking -------------------------------------------------------------- */

/* From the pool, if it is as good as new. NULL: there is none. */
static struct inquiry *inquiry_pooled(struct upstream *upstream,
				      const struct ip *ip)
{
	struct inquiry_list *pool = pool_of(upstream, ip);
	struct inquiry *inquiry;
	uint8_t byte;

	while ((inquiry = TAILQ_FIRST(pool))) {
		TAILQ_REMOVE(pool, inquiry, entry);
		upstream->pooled--;
		if (recv(inquiry->fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0 &&
		    errno == EAGAIN)
			return inquiry;
		inquiry_free(inquiry);
	}
	return NULL;
}

static struct inquiry *inquiry_new(struct upstream *upstream,
				   const struct ip *ip)
{
	struct inquiry *inquiry = inquiry_pooled(upstream, ip);

	if (inquiry)
		return inquiry;
	inquiry = calloc(1, sizeof(*inquiry));
	if (!inquiry)
		return NULL;
	inquiry->upstream = upstream;
	inquiry->fd = socket(ip->len == 4 ? AF_INET : AF_INET6,
			     SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (inquiry->fd >= 0)
		inquiry->readable =
			event_new(upstream->base, inquiry->fd,
				  EV_READ | EV_PERSIST, on_readable, inquiry);
	if (!inquiry->readable || event_add(inquiry->readable, NULL)) {
		inquiry_free(inquiry);
		return NULL;
	}
	return inquiry;
}

int upstream_ask(struct upstream *upstream, const struct endpoint *server,
		 const char *host, uint16_t type,
		 void (*done)(void *arg, int status,
			      const struct dns_answer *answer,
			      const struct dns_records *records),
		 void *arg, struct inquiry **ret_inquiry)
{
	struct inquiry *inquiry = inquiry_new(upstream, &server->ip);
	int err;

	if (!inquiry)
		return -ENOMEM;
	inquiry->server = *server;
	memcpy(inquiry->host, host, strlen(host) + 1);
	inquiry->type = type;
	inquiry->done = done;
	inquiry->arg = arg;
	err = send_question(inquiry, true);
	if (err) {
		inquiry_free(inquiry);
		return err;
	}
	begin_wait(inquiry);
	*ret_inquiry = inquiry;
	return 0;
}

void upstream_cancel(struct inquiry *inquiry)
{
	if (!inquiry)
		return;
	end_wait(inquiry);
	inquiry_free(inquiry);
}

struct upstream *upstream_new(struct event_base *base)
{
	struct upstream *upstream;

	if (ares_library_init(ARES_LIB_INIT_ALL))
		return NULL;
	upstream = calloc(1, sizeof(*upstream));
	if (!upstream) {
		ares_library_cleanup();
		return NULL;
	}
	upstream->base = base;
	TAILQ_INIT(&upstream->asked);
	TAILQ_INIT(&upstream->pool[0]);
	TAILQ_INIT(&upstream->pool[1]);
	upstream->timer = evtimer_new(base, on_timer, upstream);
	if (!upstream->timer) {
		upstream_free(upstream);
		return NULL;
	}
	return upstream;
}

void upstream_free(struct upstream *upstream)
{
	if (!upstream)
		return;
	shrink(upstream, 0);
	if (upstream->timer)
		event_free(upstream->timer);
	free(upstream);
	ares_library_cleanup();
}
