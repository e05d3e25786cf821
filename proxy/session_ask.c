/* SPDX-License-Identifier: Apache-2.0
 *
 * session_ask.c - a session while its flow opens: nothing is read, somebody may
 * hang up, and the policy may change.
 */
#include <event2/event.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "proxy/exchange.h"
#include "proxy/session_door.h"
#include "proxy/tunnel.h"
#include "proxy/wanted.h"

#define ASK_SECONDS 60

void session_unwatch(struct session *s)
{
	if (s->hangup)
		event_free(STEAL(s->hangup));
}

void session_renew(struct session *s)
{
	struct policy *before = s->policy, *now = s->c.sandbox->policy;

	s->policy = now ? policy_ref(now) : NULL;
	s->agree.policy = s->policy;
	s->agree.now_s = time(NULL);
	policy_unref(before);
}

void session_agree(struct session *s)
{
	s->agree = (struct agree){
		.policy = s->policy,
		.host = *s->host ? s->host : NULL,
		.address = s->address,
		.port = s->port,
		.door = s->door,
		.now_s = time(NULL),
	};
	s->agree.wanted = session_ahead(s);
}

enum wanted session_ahead(const struct session *s)
{
	const struct question question = {
		.host = *s->host ? s->host : NULL,
		.address = s->address,
		.port = s->port,
		.door = s->door,
		.now_s = time(NULL),
	};

	return wanted_ahead(s->policy, &question);
}

/* 502 is for a server that said no, 504 for one that did not answer (RFC 9110
 * section 15.6.5), be it the one that knows the address. */
static bool is_late(const char *detail)
{
	return detail && (strcasestr(detail, "timed out") ||
			  strcasestr(detail, "no answer"));
}

static void on_flow(void *arg, struct flow *flow,
		    const struct flow_result *result)
{
	struct session *s = arg;
	const struct verdict *verdict = &result->verdict;
	char yes[REFUSE_MAX];
	AUTO_FD int server = verdict->allow ? result->fd : -1;
	size_t len;

	s->flow = flow;
	session_unwatch(s);
	if (!verdict->allow) {
		session_tell(s, verdict->reason,
			     is_late(result->detail) ? 504 : 0, result->detail);
		return;
	}
	len = s->form->accept ? s->form->accept(yes) : 0;
	if (len && !session_say(s, yes, len)) {
		session_reset(s);
		return;
	}
	event_del(s->timer);
	s->agree.wanted = flow_wanted(flow);
	if (server < 0)
		session_exchange(s, true);
	else
		session_tunnel(s, steal_fd(&server));
}

/* Whoever does not answer, the ledger or a resolver: the client does not hold a
 * place for ever. */
void session_late(struct session *s)
{
	static const char detail[] = "no verdict or connection in time";

	session_unwatch(s);
	flow_refuse(s->flow, REASON_TIMEOUT, NULL, detail);
	session_tell(s, REASON_TIMEOUT, 504, detail);
}

/* Nobody waits for the answer any more: reset, or it ended without having said
 * what a tunnel would be for. A transparent client may end and listen. */
static bool hung_up(const struct session *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN | POLLRDHUP };
	char byte;

	if (poll(&p, 1, 0) <= 0)
		return false;
	if (p.revents & (POLLERR | POLLHUP))
		return true;
	return (p.revents & POLLRDHUP) && s->door != DOOR_TRANSPARENT &&
	       s->len == s->used &&
	       recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_hangup(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	if (s->state != SESSION_ASKING || !hung_up(s))
		return;
	session_unwatch(s);
	flow_close(STEAL(s->flow), 0, 0, "client hung up");
	session_reset(s);
}

/* Tells when something happens on a socket that is not to be read yet. */
static bool watch(struct session *s)
{
	s->hangup = event_new(s->c.base, s->fd, EV_READ | EV_ET | EV_PERSIST,
			      on_hangup, s);
	return s->hangup && !event_add(s->hangup, NULL);
}

void session_ask(struct session *s, const char *protocol, const char *sni)
{
	struct flow_ask ask = session_asks(s);
	struct flow *flow;

	session_renew(s);
	ask.protocol = protocol;
	ask.sni = sni;
	event_del(s->readable);
	session_timer(s, ASK_SECONDS);
	s->state = SESSION_ASKING;
	flow = flow_start(s->c.base, s->c.services, &ask, on_flow, s);
	s->flow = flow;
	if (flow && watch(s))
		return;
	flow_close(STEAL(s->flow), 0, 0, "error");
	session_reset(s);
}

/* Is what the client said first still fine? What is held is looked at when it
 * is whole. */
static bool still(void *arg, const struct policy *policy, enum wanted wanted)
{
	const struct session *s = arg;
	struct agree agree = s->agree;

	agree.policy = policy;
	agree.wanted = wanted;
	agree.now_s = time(NULL);
	return !s->tunnel || !s->settled || agree_still(&agree);
}

static void cut(struct session *s, enum reason reason)
{
	const bool asking = s->state == SESSION_ASKING;
	uint64_t up = 0, down = 0;

	tunnel_abort(STEAL(s->tunnel), &up, &down);
	exchange_revoke(STEAL(s->exchange), reason);
	flow_cut(STEAL(s->flow), reason, up, down, "cut");
	if (asking)
		session_reset(s);
	else
		session_end(s);
}

void session_recheck(struct session *s)
{
	enum reason reason = REASON_RULE;

	if (s->state != SESSION_ASKING && s->state != SESSION_RELAY) {
		session_renew(s);
		return;
	}
	if (s->flow)
		reason = flow_recheck(s->flow, s->c.sandbox, still, s);
	if (!reason_info(reason)->allow) {
		cut(s, reason);
		return;
	}
	session_renew(s);
	if (s->tunnel) {
		s->agree.wanted = flow_wanted(s->flow);
		tunnel_meter(s->tunnel, flow_meters(s->flow));
	}
	if (s->exchange)
		exchange_recheck(s->exchange);
}
