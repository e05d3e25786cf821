/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_relay.c - a request's body up, its response down, both decoded and
 * framed anew. A response that could be read in two ways is not passed on.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proxy/exchange_impl.h"
#include "proxy/http_write.h"

/* Room for a chunk's size and ends, and for the last chunk. */
#define CHUNK_OVERHEAD 32

void exchange_fail(struct exchange *x, enum reason reason, uint16_t status,
		   const char *detail)
{
	flow_refuse(x->flow, reason, NULL, detail);
	if (x->answered) {
		exchange_cut(x, "refused");
		return;
	}
	flow_status(x->flow, status);
	exchange_refuse(x, reason, status, detail);
	exchange_end_flow(x, "refused");
}

static void put_payload(struct buf *out, enum http_framing framing,
			struct http_text payload)
{
	char size[24];
	int n;

	if (payload.len == 0)
		return;
	if (framing != HTTP_CHUNKED) {
		buf_put(out, payload.at, payload.len);
		return;
	}
	n = snprintf(size, sizeof(size), "%zx\r\n", payload.len);
	buf_put(out, size, (size_t)n);
	buf_put(out, payload.at, payload.len);
	buf_put(out, "\r\n", 2);
}

static void put_end(struct buf *out, enum http_framing framing)
{
	if (framing == HTTP_CHUNKED)
		buf_put(out, "0\r\n\r\n", 5);
}

/* Moves what there is of a body. MORE: nothing left to move, or no room. */
static enum sniff move_body(struct http_body *body, struct buf *in,
			    struct buf *out, enum http_framing framing)
{
	for (;;) {
		size_t room = buf_room(out), len = buf_len(in), used;
		struct http_text payload;
		enum sniff got;

		if (room <= CHUNK_OVERHEAD)
			return SNIFF_MORE;
		if (len > room - CHUNK_OVERHEAD)
			len = room - CHUNK_OVERHEAD;
		got = http_body_read(body, in->data + in->start, len, &used,
				     &payload);
		if (got == SNIFF_BAD)
			return got;
		put_payload(out, framing, payload);
		buf_drop(in, used);
		if (got == SNIFF_DONE) {
			put_end(out, framing);
			return got;
		}
		if (used == 0)
			return got;
	}
}

static bool move_request(struct exchange *x)
{
	struct side *client = &x->side[CLIENT], *server = &x->side[SERVER];
	size_t before = buf_len(&client->in);

	if (server->broken) {
		/* It may have answered early, and closed: no more goes up. */
		buf_clear(&server->out);
		x->keep = false;
		return false;
	}
	switch (move_body(&x->up_body, &client->in, &server->out,
			  x->up_framing)) {
	case SNIFF_BAD:
		exchange_fail(x, REASON_MALFORMED, 400, x->up_body.error);
		return true;
	case SNIFF_DONE:
		x->up_done = true;
		x->since = clock_ms(CLOCK_MONOTONIC);
		return true;
	case SNIFF_MORE:
		break;
	}
	if (client->eof && buf_len(&client->in) == 0) {
		exchange_cut(x, "the client left within its request");
		return true;
	}
	return buf_len(&client->in) != before;
}

static bool no_response(struct exchange *x)
{
	if (buf_len(&x->side[SERVER].in) == 0)
		exchange_fail(x, REASON_CONNECT_FAILED, 502,
			      "the server closed without a response");
	else
		exchange_fail(x, REASON_PROTOCOL, 502,
			      "the server closed within the response");
	return true;
}

/* How the client will know where the body ends, and what comes after. */
static enum http_after choose_framing(struct exchange *x,
				      const struct http_response *resp)
{
	x->down_framing = resp->framing;
	if (resp->framing == HTTP_UNTIL_CLOSE || resp->framing == HTTP_CHUNKED)
		x->down_framing = x->http10 ? HTTP_UNTIL_CLOSE : HTTP_CHUNKED;
	if (!x->up_done || x->down_framing == HTTP_UNTIL_CLOSE)
		x->keep = false;
	if (!x->keep)
		return HTTP_CLOSE;
	return x->http10 ? HTTP_KEEP_SAID : HTTP_KEEP;
}

static void put_response(struct exchange *x, const struct http_response *resp,
			 enum http_framing framing, enum http_after after)
{
	struct buf *out = &x->side[CLIENT].out;
	size_t room = buf_room(out);
	struct wirebuf w = wirebuf_of(out->data + out->end, room);

	http_write_response(&w, resp, framing, after);
	if (w.full) {
		exchange_fail(x, REASON_PROTOCOL, 502,
			      "the response's head is too long");
		return;
	}
	out->end += w.len;
	buf_drop(&x->side[SERVER].in, resp->head_len);
	x->answered = true;
	flow_status(x->flow, resp->status);
	x->since = clock_ms(CLOCK_MONOTONIC);
}

static bool interim(struct exchange *x, const struct http_response *resp)
{
	if (resp->status == 101) {
		if (!x->websocket || !resp->websocket) {
			exchange_fail(x, REASON_PROTOCOL, 502,
				      "the server switched protocols unasked");
			return true;
		}
		put_response(x, resp, HTTP_NO_BODY, HTTP_SWITCH);
		if (x->answered) {
			flow_classified(x->flow, "websocket", NULL);
			exchange_phase(x, EXCHANGE_SWITCH);
		}
		return true;
	}
	buf_drop(&x->side[SERVER].in, resp->head_len);
	x->since = clock_ms(CLOCK_MONOTONIC);
	if (++x->interim > EXCHANGE_INTERIM)
		exchange_fail(x, REASON_PROTOCOL, 502,
			      "too many interim responses");
	return true;
}

/* Bytes past a response whose end is known are a second one, which nobody
 * asked for. */
static bool excess(const struct exchange *x, const struct http_response *resp)
{
	size_t rest = buf_len(&x->side[SERVER].in) - resp->head_len;

	return (resp->framing == HTTP_NO_BODY && rest > 0) ||
	       (resp->framing == HTTP_LENGTH && rest > resp->length);
}

static bool read_response(struct exchange *x)
{
	struct side *server = &x->side[SERVER];
	struct http_response resp;
	enum http_after after;
	const char *detail;

	if (buf_room(&x->side[CLIENT].out) < EXCHANGE_BUF - CHUNK_OVERHEAD)
		return false;
	switch (http_response_parse(server->in.data + server->in.start,
				    buf_len(&server->in), x->head, &resp,
				    &detail)) {
	case SNIFF_MORE:
		return server->eof ? no_response(x) : false;
	case SNIFF_BAD:
		exchange_fail(x, REASON_PROTOCOL, 502, detail);
		return true;
	case SNIFF_DONE:
		break;
	}
	if (resp.status < 200)
		return interim(x, &resp);
	if (excess(x, &resp)) {
		exchange_fail(x, REASON_PROTOCOL, 502,
			      "bytes after the end of the response");
		return true;
	}
	http_body_init(&x->down_body, resp.framing, resp.length);
	after = choose_framing(x, &resp);
	put_response(x, &resp, x->down_framing, after);
	return true;
}

/* The server's connection ended with the body still open. */
static bool end_of_server(struct exchange *x)
{
	if (x->down_body.framing != HTTP_UNTIL_CLOSE ||
	    x->side[SERVER].broken) {
		exchange_cut(x, "the server left within its response");
		return true;
	}
	if (buf_room(&x->side[CLIENT].out) <= CHUNK_OVERHEAD)
		return false;
	put_end(&x->side[CLIENT].out, x->down_framing);
	x->down_done = true;
	return true;
}

static bool move_response(struct exchange *x)
{
	struct side *server = &x->side[SERVER];
	size_t before = buf_len(&server->in);

	switch (move_body(&x->down_body, &server->in, &x->side[CLIENT].out,
			  x->down_framing)) {
	case SNIFF_BAD:
		exchange_fail(x, REASON_PROTOCOL, 502, x->down_body.error);
		return true;
	case SNIFF_DONE:
		x->down_done = true;
		return true;
	case SNIFF_MORE:
		break;
	}
	if (server->eof && buf_len(&server->in) == 0)
		return end_of_server(x);
	return buf_len(&server->in) != before;
}

/* The response is out. The upstream connection was for it alone. */
static bool finish(struct exchange *x)
{
	bool keep = x->keep && x->up_done;
	const char *how = "eof";

	if (buf_len(&x->side[SERVER].in)) {
		how = "bytes after the end of the response";
		keep = false;
	}
	exchange_end_flow(x, how);
	if (keep) {
		exchange_phase(x, EXCHANGE_HEAD);
		return true;
	}
	buf_clear(&x->side[CLIENT].in);
	exchange_phase(x, EXCHANGE_LINGER);
	return true;
}

bool exchange_step_relay(struct exchange *x)
{
	bool moved = false;

	if (!x->up_done)
		moved |= move_request(x);
	if (x->phase == EXCHANGE_RELAY && !x->answered)
		moved |= read_response(x);
	if (x->phase == EXCHANGE_RELAY && x->answered && !x->down_done)
		moved |= move_response(x);
	if (x->phase == EXCHANGE_RELAY && x->down_done &&
	    buf_len(&x->side[CLIENT].out) == 0)
		moved |= finish(x);
	return moved;
}
