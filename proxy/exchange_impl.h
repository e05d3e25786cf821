/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_impl.h - what the files of an exchange share; nobody else's.
 *
 *	exchange.c	   start and end, phases, time
 *	exchange_io.c	   two sockets, four buffers
 *	exchange_request.c one request: parse, judge, refuse
 *	exchange_relay.c   bodies and the response
 *	exchange_switch.c  websockets
 *	exchange_cut.c	   what ends before its time: budgets, revocation
 *
 * Each step works on buffers only, and says whether it got anywhere; sockets
 * are read when libevent says so and written as soon as there are bytes.
 */
#ifndef PROXY_EXCHANGE_IMPL_H
#define PROXY_EXCHANGE_IMPL_H

#include "base/wheel.h"
#include "base/wire.h"
#include "policy/hostname.h"
#include "proxy/exchange.h"
#include "proxy/flow.h"
#include "proxy/sniff/http_body.h"
#include "proxy/sniff/http_response.h"

struct tunnel;
struct watch;

#define EXCHANGE_BUF	 (64 * 1024)
#define EXCHANGE_INTERIM 32 /* 1xx responses before the final one */

enum exchange_phase {
	EXCHANGE_HEAD,	 /* waits for a request: DECIDE, LINGER, OVER */
	EXCHANGE_DECIDE, /* a flow is starting: RELAY, LINGER */
	EXCHANGE_RELAY,	 /* bodies: HEAD again, SWITCH, LINGER, OVER */
	EXCHANGE_SWITCH, /* flushes a 101: TUNNEL, OVER */
	EXCHANGE_TUNNEL, /* the tunnel has both sockets: OVER */
	EXCHANGE_LINGER, /* last bytes out, what still comes is dropped: OVER */
	EXCHANGE_OVER,	 /* freed at the end of the run */
};

struct buf {
	char *data;
	size_t start, end; /* EXCHANGE_BUF in all */
};

enum { CLIENT, SERVER };

struct side {
	struct exchange *exchange;
	struct watch *watch; /* NULL: there is none */
	bool eof;
	bool broken; /* reset, or can't be written to */
	struct buf in, out;
};

struct exchange {
	struct exchange_config config;
	char fixed_host[HOST_MAX + 1];
	enum exchange_phase phase;
	bool running;
	struct side side[2];
	struct timer timer;
	uint64_t since;	 /* when what the present limit is for began */
	size_t lingered; /* bytes dropped; EXCHANGE_LINGER */
	bool shut;

	/* the present request */
	char host[HOST_MAX + 1];
	struct ip address;
	uint16_t port;
	bool head, http10, keep, websocket, expect_continue;
	bool overrides; /* http_overrides() */
	bool asked;	/* there was a flow for another request before */
	struct http_body up_body, down_body;
	enum http_framing up_framing, down_framing; /* as we write them */
	bool up_done, down_done;
	bool answered; /* the head of the response is in side[CLIENT].out */
	unsigned interim;
	struct flow *flow;
	bool decided;
	struct flow_result result;
	uint64_t up, down; /* bytes on the upstream connection */
	struct wait room;  /* HEAD: the next request is left unread */
	size_t prepaid; /* of side[SERVER].out: taken off the budget already */
	bool spent;	/* there was more than the budget had */
	uint64_t told, told_at; /* the last progress record */
	bool paused; /* it is not accepted yet, and the next one is due */
	struct tunnel *tunnel;
};

void exchange_phase(struct exchange *x, enum exchange_phase phase);
/* Runs steps until none gets anywhere. May free @x. */
void exchange_run(struct exchange *x);
void exchange_free(struct exchange *x);
/* Closes the upstream connection and the flow. */
void exchange_end_flow(struct exchange *x, const char *how);
/* Ends all of it by RST: a client must not take what it got for whole. */
void exchange_cut(struct exchange *x, const char *how);
void exchange_progress(struct exchange *x);
/* A tunnel needs none, and may last. */
void exchange_drop_buffers(struct exchange *x);

/* exchange_io.c */
size_t buf_len(const struct buf *b);
size_t buf_room(struct buf *b); /* moves bytes to the front */
void buf_put(struct buf *b, const void *data, size_t len);
void buf_drop(struct buf *b, size_t len);
void buf_clear(struct buf *b);
void side_open(struct side *side, struct exchange *x, struct watch *watch);
int side_fd(const struct side *side); /* or -1 */
void side_close(struct side *side);
void side_reset(const struct side *side); /* when it is closed */
bool side_flush(struct side *side);	  /* wrote something? */
void side_arm(struct side *side, bool read, bool write);

/* exchange_request.c */
/* Is there room for the record of what comes next? If not, the exchange runs
 * when there is. */
bool exchange_room_to_ask(struct exchange *x);
bool exchange_step_head(struct exchange *x);
bool exchange_step_decide(struct exchange *x);
/* Answers with a refusal, unless a response has begun, and closes. What was
 * pipelined is forgotten. The flow is not touched. */
void exchange_refuse(struct exchange *x, enum reason reason, uint16_t status,
		     const char *detail);
/* No request came in time: recorded, 408. */
void exchange_late(struct exchange *x);

/* exchange_cut.c */

/* How many of @len bytes may go @way now; they are taken off the budget. 0:
 * none of them, and the exchange will end for it. */
size_t exchange_spend(struct exchange *x, enum direction way, size_t len);
/* How many may be read. */
size_t exchange_room(const struct exchange *x, enum direction way, size_t len);
/* The budget is used up: 403 if nothing was answered yet, else it is cut. */
void exchange_over_budget(struct exchange *x);

/* exchange_relay.c */
bool exchange_step_relay(struct exchange *x);
/* The exchange failed: recorded, refused. */
void exchange_fail(struct exchange *x, enum reason reason, uint16_t status,
		   const char *detail);

/* exchange_switch.c */
bool exchange_step_switch(struct exchange *x);

#endif
