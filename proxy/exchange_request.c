/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_request.c - each request by itself: parsed, checked against the
 * authority that this connection is for, written anew for the server, judged.
 *
 * The new head is written into the server's buffer before the verdict, while
 * the pieces of the parsed one still lie where they came in; without an allowed
 * flow there is no socket for it to go to.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proxy/exchange_impl.h"
#include "proxy/http_write.h"
#include "proxy/refuse.h"
#include "proxy/sniff/http_authority.h"
#include "proxy/vet.h"

struct judged { /* one request on its way to a flow */
	struct http_request req;
	struct http_error error;
	char method[33];
	char seen[HTTP_AUTHORITY_MAX], detail[HTTP_AUTHORITY_MAX + 48];
	char path[HTTP_HEAD_MAX];
};

static bool fixed(const struct exchange *x)
{
	return x->config.host || x->config.address.len;
}

static struct flow_ask ask_of(const struct exchange *x, const struct judged *j)
{
	const struct exchange_config *c = &x->config;

	return (struct flow_ask){
		.sandbox = c->sandbox,
		.door = c->door,
		.src_ip = c->src_ip,
		.src_port = c->src_port,
		.host = x->host[0] ? x->host : NULL,
		.address = c->names_at.len ? c->names_at : x->address,
		.port = x->port,
		.protocol = "http",
		.method = j->method[0] ? j->method : NULL,
		.target = j->path[0] ? j->path : NULL,
		.websocket = j->req.websocket,
		.overrides = x->overrides,
		.another = x->asked,
		.fold = c->fold,
	};
}

/* What is asked for until a request says more. */
static void set_authority(struct exchange *x, const struct http_request *req)
{
	const struct exchange_config *c = &x->config;

	x->host[0] = '\0';
	x->address = c->address;
	x->port = c->port ? c->port : 80;
	if (c->host)
		memcpy(x->host, x->fixed_host, sizeof(x->host));
	if (!req || fixed(x))
		return;
	memcpy(x->host, req->host, sizeof(x->host));
	x->address = req->address;
	if (c->door == DOOR_HTTP && !c->port)
		x->port = req->port;
}

void exchange_refuse(struct exchange *x, enum reason reason, uint16_t status,
		     const char *detail)
{
	char text[REFUSE_MAX], authority[IP_TEXT_MAX], *body;
	const char *host = x->host;
	size_t len;

	if (!*host && x->address.len)
		host = ip_format(&x->address, authority);
	len = refuse_http(reason, status, *host ? host : NULL, x->port, detail,
			  text);
	body = memmem(text, len, "\r\n\r\n", 4);
	if (x->head && body)
		len = (size_t)(body + 4 - text);
	if (!x->answered && buf_room(&x->side[CLIENT].out) >= len)
		buf_put(&x->side[CLIENT].out, text, len);
	buf_clear(&x->side[CLIENT].in);
	buf_clear(&x->side[SERVER].out);
	exchange_phase(x, EXCHANGE_LINGER);
}

/* A refusal without a flow. */
static bool refuse(struct exchange *x, const struct judged *j,
		   enum reason reason, uint16_t status, const char *detail)
{
	struct flow_ask ask = ask_of(x, j);

	flow_record_refusal(x->config.services, &ask, reason,
			    x->host[0] ? x->host : j->req.shown, detail);
	exchange_refuse(x, reason, status, detail);
	return true;
}

void exchange_late(struct exchange *x)
{
	struct judged j;
	struct buf *in = &x->side[CLIENT].in;

	j.method[0] = j.path[0] = '\0';
	http_request_parse(in->data + in->start, buf_len(in), &j.req, &j.error);
	set_authority(x, NULL);
	x->head = false;
	refuse(x, &j, REASON_TIMEOUT, 408, "the request did not come in time");
}

/* Host is not what this connection is for. */
static bool other_authority(const struct exchange *x,
			    const struct http_request *req)
{
	const struct exchange_config *c = &x->config;

	if (req->port != x->port)
		return true;
	if (c->names_at.len && !fixed(x))
		return !vet_name_at(c->services, c->sandbox, &c->names_at,
				    req->host);
	return fixed(x) &&
	       (strcmp(req->host, x->host) != 0 ||
		(!x->host[0] && !ip_equal(&req->address, &x->address)));
}

/* Is this a request that may be asked here at all? Else fills the error. */
static bool acceptable(const struct exchange *x, struct judged *j)
{
	const struct http_request *req = &j->req;
	struct http_error *error = &j->error;

	*error = (struct http_error){ REASON_MALFORMED, NULL, 400 };
	if (req->connect) {
		*error = (struct http_error){ REASON_PROTOCOL,
					      "CONNECT among plain requests",
					      0 };
	} else if (x->config.door == DOOR_HTTP && !fixed(x) &&
		   req->form != HTTP_ABSOLUTE) {
		error->detail = "this is a proxy: the target must be a whole "
				"URL, http://host/path";
	} else if (http_via_us(req->header, req->headers)) {
		*error = (struct http_error){
			REASON_SELF, "the request came through here before", 0
		};
	} else if (other_authority(x, req)) {
		http_write_authority(req->host, &req->address, req->port,
				     j->seen);
		snprintf(j->detail, sizeof(j->detail),
			 "Host says %s on a connection for another", j->seen);
		*error = (struct http_error){ REASON_NAME_MISMATCH, j->detail,
					      403 };
	}
	return !error->detail;
}

static void on_flow(void *arg, struct flow *flow,
		    const struct flow_result *result)
{
	struct exchange *x = arg;

	x->flow = flow;
	x->decided = true;
	x->result = *result;
	exchange_run(x);
}

static bool start_flow(struct exchange *x, const struct judged *j)
{
	struct flow_ask ask = ask_of(x, j);
	struct flow *flow;

	x->decided = false;
	x->result.server = NULL;
	x->up = x->down = x->told = 0;
	x->told_at = clock_ms(CLOCK_MONOTONIC);
	exchange_phase(x, EXCHANGE_DECIDE);
	x->asked = true;
	flow = flow_start(x->config.wheel, x->config.services, &ask, on_flow,
			  x);
	if (!flow) {
		exchange_cut(x, "error");
		return true;
	}
	x->flow = flow;
	return true;
}

static bool accept_request(struct exchange *x, struct judged *j)
{
	struct wirebuf out = wirebuf_of(x->side[SERVER].out.data, EXCHANGE_BUF);
	struct http_request *req = &j->req;
	char authority[HTTP_AUTHORITY_MAX];

	x->http10 = req->minor == 0;
	x->keep = req->keep_alive;
	x->websocket = req->websocket;
	x->overrides = http_overrides(req->header, req->headers);
	x->expect_continue = req->expect_continue;
	x->up_framing = req->framing;
	x->up_done = x->down_done = x->answered = false;
	x->interim = 0;
	http_body_init(&x->up_body, req->framing, req->length);
	http_write_authority(x->host, &x->address, x->port, authority);
	http_write_request(&out, req, authority, j->path);
	if (out.full)
		return refuse(x, j, REASON_MALFORMED, 431,
			      "the head is too long");
	x->side[SERVER].out.start = 0;
	x->side[SERVER].out.end = out.len;
	buf_drop(&x->side[CLIENT].in, req->head_len);
	return start_flow(x, j);
}

static bool judge(struct exchange *x, struct judged *j)
{
	struct http_request *req = &j->req;
	const char *detail;

	snprintf(j->method, sizeof(j->method), "%.*s", (int)req->method.len,
		 req->method.at);
	x->head = strcmp(j->method, "HEAD") == 0;
	set_authority(x, req);
	if (!acceptable(x, j))
		return refuse(x, j, j->error.reason, j->error.status,
			      j->error.detail);
	detail = http_path_canonical(req->path, j->path, sizeof(j->path));
	if (detail) {
		j->path[0] = '\0';
		return refuse(x, j, REASON_MALFORMED, 400, detail);
	}
	return accept_request(x, j);
}

static enum protocol protocol_of(const struct buf *in)
{
	return sniff_protocol((const uint8_t *)in->data + in->start,
			      buf_len(in));
}

/* A head that will never be whole is not waited for. */
static bool never_whole(const struct buf *in)
{
	const enum protocol protocol = protocol_of(in);

	return protocol == PROTOCOL_OTHER || protocol == PROTOCOL_SOCKS5;
}

static bool refuse_other(struct exchange *x, struct judged *j)
{
	set_authority(x, NULL);
	x->head = false;
	j->req.websocket = false;
	j->req.shown[0] = '\0';
	return refuse(x, j, REASON_PROTOCOL, 0, "not HTTP/1");
}

/* Nobody may be there to hear it any more. */
static bool refuse_cut_off(struct exchange *x, struct judged *j)
{
	set_authority(x, NULL);
	x->head = false;
	j->req.websocket = false;
	return refuse(x, j, REASON_MALFORMED, 400,
		      "the request ends in the middle");
}

bool exchange_room_to_ask(struct exchange *x)
{
	return services_room(x->config.services, &x->room);
}

bool exchange_step_head(struct exchange *x)
{
	struct side *client = &x->side[CLIENT];
	struct buf *in = &client->in;
	struct judged j;

	j.method[0] = j.path[0] = '\0';
	x->answered = false;
	if (buf_len(in) && !exchange_room_to_ask(x))
		return false;
	if (protocol_of(in) == PROTOCOL_TLS)
		return refuse_other(x, &j);
	switch (http_request_parse(in->data + in->start, buf_len(in), &j.req,
				   &j.error)) {
	case SNIFF_MORE:
		if (!client->eof)
			return never_whole(in) && refuse_other(x, &j);
		if (buf_len(in))
			return refuse_cut_off(x, &j);
		exchange_phase(x, EXCHANGE_OVER);
		return false;
	case SNIFF_DONE:
		return judge(x, &j);
	case SNIFF_BAD:
		break;
	}
	snprintf(j.method, sizeof(j.method), "%.*s", (int)j.req.method.len,
		 j.req.method.at);
	set_authority(x, NULL);
	x->head = strcasecmp(j.method, "HEAD") == 0;
	return refuse(x, &j, j.error.reason, j.error.status, j.error.detail);
}

static bool begin_relay(struct exchange *x)
{
	static const char go[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct side *server = &x->side[SERVER];

	side_open(server, x, STEAL(x->result.server));
	if (x->expect_continue && x->up_framing != HTTP_NO_BODY)
		buf_put(&x->side[CLIENT].out, go, sizeof(go) - 1);
	exchange_phase(x, EXCHANGE_RELAY);
	return true;
}

bool exchange_step_decide(struct exchange *x)
{
	if (!x->decided)
		return false;
	x->decided = false;
	if (x->result.verdict.allow && x->result.server)
		return begin_relay(x);
	exchange_refuse(x, x->result.verdict.reason, 0, x->result.detail);
	exchange_end_flow(x, "refused");
	return true;
}
