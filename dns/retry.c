/* SPDX-License-Identifier: Apache-2.0
 *
 * retry.c - c-ares 1.18, kept away from its weak spots.
 *
 *   - Ids are ours: ares_send() takes them. Each channel has one question, and
 *     a connection of its own.
 *   - Every option is given, so that ares_init_options() reads no file, asks
 *     for no host name and falls back to no server.
 *   - One server, one try, no check of the rcode: who is asked next is for the
 *     resolver to say.
 *
 * c-ares calls back from deep within itself, where nothing of it may be
 * touched. on_answer() only keeps the answer; it is delivered after c-ares
 * returned.
 */
#include "dns/retry.h"

#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dns/message.h"

/* Who asks gives up long before. */
#define TIMEOUT_MS 20000
/* One is enough; the rest is for its own surprises. */
#define SOCKETS_MAX 4

struct retry {
	struct event_base *base;
	ares_channel channel;
	struct watch {
		struct retry *retry;
		struct event *event; /* NULL: free */
	} watch[SOCKETS_MAX];
	bool ended; /* c-ares is done with it */
	void *answer;
	size_t len;
	void (*done)(void *arg, const void *answer, size_t len);
	void *arg;
};

static void on_answer(void *arg, int status, int timeouts, unsigned char *data,
		      int len)
{
	struct retry *retry = arg;

	(void)timeouts;
	retry->ended = true;
	if (status != ARES_SUCCESS || !data || len <= 0)
		return;
	retry->answer = malloc((size_t)len);
	if (!retry->answer)
		return;
	memcpy(retry->answer, data, (size_t)len);
	retry->len = (size_t)len;
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct watch *watch = arg;
	struct retry *retry = watch->retry;

	ares_process_fd(retry->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	if (retry->ended)
		retry->done(retry->arg, retry->answer, retry->len);
}

static struct watch *find_watch(struct retry *retry, evutil_socket_t fd)
{
	struct watch *unused = NULL;

	for (size_t i = 0; i < SOCKETS_MAX; i++) {
		struct watch *watch = &retry->watch[i];

		if (!watch->event)
			unused = watch;
		else if (event_get_fd(watch->event) == fd)
			return watch;
	}
	return unused;
}

/* c-ares says which of its sockets it wants watched for what. A socket that
 * can't be watched leaves all to who gives up. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable,
			    int writable)
{
	struct retry *retry = arg;
	struct watch *watch = find_watch(retry, fd);
	short what = EV_PERSIST;

	if (!watch)
		return;
	if (watch->event)
		event_free(STEAL(watch->event));
	if (!readable && !writable)
		return;
	what |= readable ? EV_READ : 0;
	what |= writable ? EV_WRITE : 0;
	watch->retry = retry;
	watch->event = event_new(retry->base, fd, what, on_socket, watch);
	if (watch->event)
		event_add(watch->event, NULL);
}

static int open_channel(struct retry *retry)
{
	char lookups[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_NOCHECKRESP | ARES_FLAG_NOSEARCH |
			 ARES_FLAG_NOALIASES | ARES_FLAG_USEVC | ARES_FLAG_EDNS,
		.timeout = TIMEOUT_MS,
		.tries = 1,
		.ndots = 1,
		.lookups = lookups,
		.ednspsz = DNS_REPLY_MAX,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = retry,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
		   ARES_OPT_NDOTS | ARES_OPT_SERVERS | ARES_OPT_DOMAINS |
		   ARES_OPT_LOOKUPS | ARES_OPT_SORTLIST | ARES_OPT_EDNSPSZ |
		   ARES_OPT_SOCK_STATE_CB | ARES_OPT_NOROTATE;

	return ares_init_options(&retry->channel, &options, mask) ? -ENOMEM : 0;
}

static int set_server(struct retry *retry, const struct endpoint *server)
{
	struct ares_addr_port_node node = { .udp_port = server->port,
					    .tcp_port = server->port };

	node.family = server->ip.len == 4 ? AF_INET : AF_INET6;
	memcpy(&node.addr, server->ip.byte, server->ip.len);
	return ares_set_servers_ports(retry->channel, &node) ? -EIO : 0;
}

int retry_new(struct event_base *base, const struct endpoint *server,
	      const void *question, size_t len,
	      void (*done)(void *arg, const void *answer, size_t len),
	      void *arg, struct retry **ret_retry)
{
	struct retry *retry = calloc(1, sizeof(*retry));
	int err;

	if (!retry)
		return -ENOMEM;
	retry->base = base;
	retry->done = done;
	retry->arg = arg;
	err = open_channel(retry);
	if (!err)
		err = set_server(retry, server);
	if (!err) {
		ares_send(retry->channel, question, (int)len, on_answer, retry);
		err = retry->ended ? -EIO : 0;
	}
	if (err) {
		retry_free(retry);
		return err;
	}
	*ret_retry = retry;
	return 0;
}

void retry_free(struct retry *retry)
{
	if (!retry)
		return;
	/* on_answer() only takes a note of it. */
	if (retry->channel)
		ares_destroy(retry->channel);
	for (size_t i = 0; i < SOCKETS_MAX; i++)
		if (retry->watch[i].event)
			event_free(retry->watch[i].event);
	free(retry->answer);
	free(retry);
}
