/* SPDX-License-Identifier: Apache-2.0
 *
 * session_explicit.c - the explicit proxy: one port, told apart by the first
 * byte. SOCKS5 starts with 0x05; all else has to be an HTTP/1 request.
 */
#include <stdio.h>
#include <string.h>

#include "proxy/session_door.h"
#include "proxy/sniff/http.h"
#include "proxy/sniff/socks.h"

static size_t http_refuse(const struct session *s, enum reason reason,
			  uint16_t status, const char *detail,
			  char buf[REFUSE_MAX])
{
	char address[IP_TEXT_MAX];
	const char *host = s->first->host;

	if (*s->first->shown)
		host = s->first->shown;
	else if (s->address.len)
		host = ip_format(&s->address, address);
	return refuse_http(reason, status, *host ? host : NULL, s->port, detail,
			   buf);
}

static size_t http_accept(char buf[REFUSE_MAX])
{
	static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";

	memcpy(buf, yes, sizeof(yes) - 1);
	return sizeof(yes) - 1;
}

const struct session_form form_http = { http_refuse, http_accept };

static size_t socks_refuse(const struct session *s, enum reason reason,
			   uint16_t status, const char *detail,
			   char buf[REFUSE_MAX])
{
	(void)s;
	(void)status;
	(void)detail;
	socks_reply(reason_info(reason)->socks, (uint8_t *)buf);
	return SOCKS_REPLY_LEN;
}

static size_t socks_accept(char buf[REFUSE_MAX])
{
	socks_reply(0, (uint8_t *)buf);
	return SOCKS_REPLY_LEN;
}

const struct session_form form_socks = { socks_refuse, socks_accept };

/* Host or address is known: from here on every door is the same. */
static void ask(struct session *s)
{
	session_agree(s);
	session_ask(s, s->first->agree.wanted == WANTED_HTTP ? "http" : "tcp",
		    NULL);
}

static void on_http(struct session *s)
{
	struct http_request req;
	struct http_error error = { .reason = REASON_MALFORMED };

	switch (http_request_parse((const char *)s->buf, s->len, &req,
				   &error)) {
	case SNIFF_MORE:
		return;
	case SNIFF_BAD:
		snprintf(s->first->shown, sizeof(s->first->shown), "%s",
			 req.shown);
		session_deny(s, error.reason, error.status, error.detail);
		return;
	case SNIFF_DONE:
		break;
	}
	if (!req.connect) {
		s->door = DOOR_HTTP;
		session_exchange(s, false);
		return;
	}
	memcpy(s->first->host, req.host, sizeof(s->first->host));
	s->address = req.address;
	s->port = req.port;
	s->used = req.head_len;
	ask(s);
}

/* The client is told with the reply that the parser chose. */
static void socks_deny(struct session *s, uint8_t reply, enum reason reason,
		       const char *detail)
{
	uint8_t no[SOCKS_REPLY_LEN];

	socks_reply(reply, no);
	session_deny_with(s, reason, detail, no, sizeof(no));
}

static void on_socks_request(struct session *s)
{
	struct socks_request req;
	enum reason reason = REASON_MALFORMED;
	uint8_t reply = 1;

	switch (socks_request_parse(s->buf + s->used, s->len - s->used, &req,
				    &reply, &reason)) {
	case SNIFF_MORE:
		return;
	case SNIFF_BAD:
		memcpy(s->first->shown, req.shown, sizeof(s->first->shown));
		s->address = req.address;
		s->port = req.port;
		socks_deny(s, reply, reason,
			   reply == 7	? "only CONNECT is served"
			   : reply == 8 ? "unknown address type"
					: "bad SOCKS request");
		return;
	case SNIFF_DONE:
		break;
	}
	memcpy(s->first->host, req.host, sizeof(s->first->host));
	s->address = req.address;
	s->port = req.port;
	s->used += req.len;
	ask(s);
}

static void on_socks_greeting(struct session *s)
{
	uint8_t answer[2] = { 5, 0xff };

	switch (socks_greeting(s->buf, s->len, &s->used, &answer[1])) {
	case SNIFF_MORE:
		return;
	case SNIFF_BAD:
		session_deny_with(s, REASON_MALFORMED, "bad SOCKS greeting",
				  answer, sizeof(answer));
		return;
	case SNIFF_DONE:
		break;
	}
	if (answer[1] == 0xff) {
		session_deny_with(s, REASON_PROTOCOL,
				  "SOCKS client insists on authentication",
				  answer, sizeof(answer));
		return;
	}
	if (!session_say(s, answer, sizeof(answer))) {
		session_reset(s);
		return;
	}
	s->first->input = on_socks_request;
	s->first->input(s);
}

static void on_first(struct session *s)
{
	if (s->buf[0] == 5) {
		s->door = DOOR_SOCKS;
		s->form = &form_socks;
		s->first->input = on_socks_greeting;
	} else if (sniff_protocol(s->buf, s->len) == PROTOCOL_TLS) {
		s->form = &form_tls;
		session_deny(s, REASON_PROTOCOL, 0,
			     "the proxy itself does not speak TLS");
		return;
	} else {
		s->first->input = on_http;
	}
	s->first->input(s);
}

void session_explicit(struct session *s)
{
	s->door = DOOR_CONNECT;
	s->form = &form_http;
	s->first->input = on_first;
}
