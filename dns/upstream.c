/* SPDX-License-Identifier: Apache-2.0
 *
 * upstream.c - c-ares 1.18, kept away from its weak spots.
 *
 *   - Ids come from getrandom(): ares_send() takes ours.
 *   - A channel keeps its socket, and so its source port, while any query is
 *     under way. So there is one channel an inquiry; it closes its sockets when
 *     the inquiry ends and waits in a pool for the next.
 *   - Every option is given, so that ares_init_options() reads no file, asks
 * for no host name and falls back to no server.
 *   - One server, one try, no check of the rcode: who is asked next is for the
 *     resolver to say, and each try has a new id and a new port.
 *   - A server that answers FORMERR without OPT makes c-ares forget EDNS for
 * the whole channel: one that got no OPT is not used again.
 *
 * c-ares calls back from deep within itself, where nothing of it may be
 * touched. on_answer() only keeps the answer; it is delivered after c-ares
 * returned.
 */
#include "dns/upstream.h"

#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "base/cleanup.h"

#define TRY_S	 2
#define POOL_MAX 32
#define SOCKETS_MAX                                              \
	4 /* one UDP, one TCP; the rest is for its own surprises \
	   */

struct inquiry {
	SLIST_ENTRY(inquiry) pooled;
	struct upstream *upstream;
	ares_channel channel;
	struct watch {
		struct inquiry *inquiry;
		struct event *event; /* NULL: free */
	} watch[SOCKETS_MAX];
	struct event *timer;
	bool ended; /* c-ares is done with it */
	int status;
	struct dns_answer answer;
	struct dns_records *records; /* if it is for some */
	uint16_t type;
	char host[HOST_MAX + 1];
	void (*done)(void *arg, int status, const struct dns_answer *answer,
		     const struct dns_records *records);
	void *arg;
};

struct upstream {
	struct event_base *base;
	SLIST_HEAD(, inquiry) pool;
	unsigned pooled;
};

static void inquiry_free(struct inquiry *inquiry)
{
	if (inquiry->channel)
		ares_destroy(inquiry->channel);
	for (size_t i = 0; i < SOCKETS_MAX; i++)
		if (inquiry->watch[i].event)
			event_free(inquiry->watch[i].event);
	if (inquiry->timer)
		event_free(inquiry->timer);
	free(inquiry->records);
	free(inquiry);
}

/* Back to the pool, if it is as good as new. */
static void release(struct inquiry *inquiry)
{
	struct upstream *upstream = inquiry->upstream;
	bool fresh = inquiry->ended && !inquiry->status &&
		     inquiry->answer.edns && upstream->pooled < POOL_MAX;

	for (size_t i = 0; i < SOCKETS_MAX; i++)
		if (inquiry->watch[i].event)
			fresh = false;
	if (!fresh) {
		inquiry_free(inquiry);
		return;
	}
	event_del(inquiry->timer);
	inquiry->ended = false;
	SLIST_INSERT_HEAD(&upstream->pool, inquiry, pooled);
	upstream->pooled++;
}

/* Tells the caller, if c-ares is done. @inquiry is gone after that. */
static void deliver(struct inquiry *inquiry)
{
	AUTO_FREE struct dns_records *records = STEAL(inquiry->records);
	struct dns_answer answer = inquiry->answer;
	int status = inquiry->status;
	void (*done)(void *, int, const struct dns_answer *,
		     const struct dns_records *) = inquiry->done;
	void *arg = inquiry->arg;

	release(inquiry);
	done(arg, status, status ? NULL : &answer, status ? NULL : records);
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *data,
		      int len)
{
	struct inquiry *inquiry = arg;

	(void)timeouts;
	inquiry->ended = true;
	if (status == ARES_SUCCESS && data && len > 0)
		inquiry->status = dns_answer_parse(
			data, (size_t)len, inquiry->host, inquiry->type,
			&inquiry->answer, inquiry->records);
	else if (status == ARES_ETIMEOUT || status == ARES_ECANCELLED)
		inquiry->status = -ETIMEDOUT;
	else
		inquiry->status = -EIO;
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct watch *watch = arg;
	struct inquiry *inquiry = watch->inquiry;

	ares_process_fd(inquiry->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	if (inquiry->ended)
		deliver(inquiry);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct inquiry *inquiry = arg;

	(void)fd;
	(void)what;
	if (!inquiry->ended)
		ares_cancel(inquiry->channel);
	deliver(inquiry);
}

static struct watch *find_watch(struct inquiry *inquiry, evutil_socket_t fd)
{
	struct watch *unused = NULL;

	for (size_t i = 0; i < SOCKETS_MAX; i++) {
		struct watch *watch = &inquiry->watch[i];

		if (!watch->event)
			unused = watch;
		else if (event_get_fd(watch->event) == fd)
			return watch;
	}
	return unused;
}

/* c-ares says which of its sockets it wants watched for what. A socket that
 * can't be watched leaves the inquiry to its timer. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable,
			    int writable)
{
	const struct timeval try = { .tv_sec = TRY_S };
	struct inquiry *inquiry = arg;
	struct watch *watch = find_watch(inquiry, fd);
	short what = EV_PERSIST;

	if (!watch)
		return;
	if (!watch->event) /* a new socket: a new try, by UDP or then TCP */
		evtimer_add(inquiry->timer, &try);
	else
		event_free(STEAL(watch->event));
	if (!readable && !writable)
		return;
	what |= readable ? EV_READ : 0;
	what |= writable ? EV_WRITE : 0;
	watch->inquiry = inquiry;
	watch->event =
		event_new(inquiry->upstream->base, fd, what, on_socket, watch);
	if (watch->event)
		event_add(watch->event, NULL);
}

static int open_channel(struct inquiry *inquiry)
{
	char lookups[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_NOCHECKRESP | ARES_FLAG_EDNS |
			 ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		/* The timer above is the one that counts. */
		.timeout = 10 * TRY_S * 1000,
		.tries = 1,
		.ndots = 1,
		.lookups = lookups,
		.ednspsz = DNS_REPLY_MAX,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = inquiry,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
		   ARES_OPT_NDOTS | ARES_OPT_SERVERS | ARES_OPT_DOMAINS |
		   ARES_OPT_LOOKUPS | ARES_OPT_SORTLIST | ARES_OPT_EDNSPSZ |
		   ARES_OPT_SOCK_STATE_CB | ARES_OPT_NOROTATE;

	return ares_init_options(&inquiry->channel, &options, mask) ? -ENOMEM
								    : 0;
}

static struct inquiry *inquiry_new(struct upstream *upstream)
{
	struct inquiry *inquiry = SLIST_FIRST(&upstream->pool);

	if (inquiry) {
		SLIST_REMOVE_HEAD(&upstream->pool, pooled);
		upstream->pooled--;
		return inquiry;
	}
	inquiry = calloc(1, sizeof(*inquiry));
	if (!inquiry)
		return NULL;
	inquiry->upstream = upstream;
	inquiry->timer = evtimer_new(upstream->base, on_timer, inquiry);
	if (!inquiry->timer || open_channel(inquiry)) {
		inquiry_free(inquiry);
		return NULL;
	}
	return inquiry;
}

static int set_server(struct inquiry *inquiry, const struct endpoint *server)
{
	struct ares_addr_port_node node = { .udp_port = server->port,
					    .tcp_port = server->port };

	node.family = server->ip.len == 4 ? AF_INET : AF_INET6;
	memcpy(&node.addr, server->ip.byte, server->ip.len);
	return ares_set_servers_ports(inquiry->channel, &node) ? -EIO : 0;
}

int upstream_ask(struct upstream *upstream, const struct endpoint *server,
		 const char *host, uint16_t type,
		 void (*done)(void *arg, int status,
			      const struct dns_answer *answer,
			      const struct dns_records *records),
		 void *arg, struct inquiry **ret_inquiry)
{
	const struct timeval try = { .tv_sec = TRY_S };
	uint8_t question[DNS_QUESTION_MAX];
	struct inquiry *inquiry;
	uint16_t id;

	if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
		return -EIO;
	inquiry = inquiry_new(upstream);
	if (!inquiry)
		return -ENOMEM;
	if (rdata_known(type))
		inquiry->records = calloc(1, sizeof(*inquiry->records));
	if ((rdata_known(type) && !inquiry->records) ||
	    set_server(inquiry, server)) {
		inquiry_free(inquiry);
		return -EIO;
	}
	memcpy(inquiry->host, host, strlen(host) + 1);
	inquiry->type = type;
	inquiry->done = done;
	inquiry->arg = arg;
	size_t len = dns_question_build(host, type, id, question);
	evtimer_add(inquiry->timer, &try);
	ares_send(inquiry->channel, question, (int)len, on_answer, inquiry);
	/* It may have failed at once; the loop says so. */
	if (inquiry->ended)
		event_active(inquiry->timer, EV_TIMEOUT, 0);
	*ret_inquiry = inquiry;
	return 0;
}

void upstream_cancel(struct inquiry *inquiry)
{
	if (inquiry)
		inquiry_free(inquiry); /* on_answer() only takes a note of it */
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
	return upstream;
}

void upstream_free(struct upstream *upstream)
{
	struct inquiry *inquiry;

	if (!upstream)
		return;
	while ((inquiry = SLIST_FIRST(&upstream->pool))) {
		SLIST_REMOVE_HEAD(&upstream->pool, pooled);
		inquiry_free(inquiry);
	}
	free(upstream);
	ares_library_cleanup();
}
