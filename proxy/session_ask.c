/* SPDX-License-Identifier: Apache-2.0
 *
 * session_ask.c - a session while its flow opens: nothing is read, somebody may
 * hang up, and the policy may change.
 */
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "proxy/exchange.h"
#include "proxy/session_door.h"
#include "proxy/tunnel.h"
#include "proxy/wanted.h"
#include "proxy/watch.h"

#define ASK_SECONDS 60

void session_renew(struct session *s)
{
	struct policy *before = s->policy, *now = s->c.sandbox->policy;

	s->policy = now ? policy_ref(now) : NULL;
	if (s->first) {
		s->first->agree.policy = s->policy;
		s->first->agree.now_s = time(NULL);
	}
	policy_unref(before);
}

void session_agree(struct session *s)
{
	s->first->agree = (struct agree){
		.policy = s->policy,
		.host = *s->first->host ? s->first->host : NULL,
		.address = s->address,
		.port = s->port,
		.door = s->door,
		.now_s = time(NULL),
	};
	s->first->agree.wanted = session_ahead(s);
}

enum wanted session_ahead(const struct session *s)
{
	const struct question question = {
		.host = *s->first->host ? s->first->host : NULL,
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
	AUTO_WATCH struct watch *server =
		verdict->allow ? result->server : NULL;
	size_t len;

	s->flow = flow;
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
	wheel_cancel(&s->timer);
	s->first->agree.wanted = flow_wanted(flow);
	if (server)
		session_tunnel(s, STEAL(server));
	else
		session_exchange(s, true);
}

/* Whoever does not answer, the ledger or a resolver: the client does not hold a
 * place for ever. */
void session_late(struct session *s)
{
	static const char detail[] = "no verdict or connection in time";

	flow_refuse(s->flow, REASON_TIMEOUT, NULL, detail);
	session_tell(s, REASON_TIMEOUT, 504, detail);
}

/* Nobody waits for the answer any more: reset, or it ended without having said
 * what a tunnel would be for. A transparent client may end and listen. */
static bool hung_up(const struct session *s)
{
	struct pollfd p = { .fd = watch_fd(s->watch),
			    .events = POLLIN | POLLRDHUP };
	char byte;

	if (poll(&p, 1, 0) <= 0)
		return false;
	if (p.revents & (POLLERR | POLLHUP))
		return true;
	return (p.revents & POLLRDHUP) && s->door != DOOR_TRANSPARENT &&
	       s->len == s->used &&
	       recv(p.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void session_hangup(struct session *s)
{
	/* What it says before it may is left: from now on only changes. */
	if (!hung_up(s) && !watch_for(s->watch, EV_READ | EV_ET))
		return;
	flow_close(STEAL(s->flow), 0, 0, "client hung up");
	session_reset(s);
}

void session_ask(struct session *s, const char *protocol, const char *sni)
{
	struct flow_ask ask = session_asks(s);
	struct flow *flow;

	session_renew(s);
	ask.protocol = protocol;
	ask.sni = sni;
	session_timer(s, ASK_SECONDS);
	s->state = SESSION_ASKING;
	flow = flow_start(s->c.wheel, s->c.services, &ask, on_flow, s);
	s->flow = flow;
	if (flow)
		return;
	session_reset(s);
}

/* Is what the client said first still fine? What is held is looked at when it
 * is whole. */
static bool still(void *arg, const struct policy *policy, enum wanted wanted)
{
	const struct session *s = arg;
	struct agree agree = {
		.policy = policy,
		.host = flow_host(s->flow),
		.address = s->address,
		.port = s->port,
		.door = s->door,
		.wanted = wanted,
		.now_s = time(NULL),
		.protocol = s->spoke,
		.ech = flow_has_ech(s->flow),
	};

	if (flow_sni(s->flow))
		snprintf(agree.sni, sizeof(agree.sni), "%s", flow_sni(s->flow));
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
		if (s->first)
			s->first->agree.wanted = flow_wanted(s->flow);
		tunnel_meter(s->tunnel, flow_meters(s->flow));
	}
	if (s->exchange)
		exchange_recheck(s->exchange);
}
