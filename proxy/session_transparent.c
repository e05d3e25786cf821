/* SPDX-License-Identifier: Apache-2.0
 *
 * session_transparent.c - connections that do not know of us. The address they
 * went to is a lease, which gives the name; a literal address, if the policy
 * has it; or, under `serve`, our own, and the first message gives the name.
 */
#include <stdio.h>
#include <string.h>

#include "proxy/session_door.h"

static size_t tls_refuse(const struct session *s, enum reason reason,
			 uint16_t status, const char *detail,
			 char buf[REFUSE_MAX])
{
	(void)s;
	(void)status;
	(void)detail;
	return refuse_tls(reason, (uint8_t *)buf);
}

/* TLS hears no yes from us: the server's hello is one. */
const struct session_form form_tls = { tls_refuse, NULL };

static size_t raw_refuse(const struct session *s, enum reason reason,
			 uint16_t status, const char *detail,
			 char buf[REFUSE_MAX])
{
	(void)s;
	(void)reason;
	(void)status;
	(void)detail;
	(void)buf;
	return 0;
}

/* We do not know what the client would understand, but for RST. */
const struct session_form form_raw = { raw_refuse, NULL };

/* Port 443: nothing leaves before the hello is complete and agrees. */
static void on_hello(struct session *s)
{
	switch (agree_check(&s->agree, s->buf, s->len)) {
	case SNIFF_MORE:
		return;
	case SNIFF_BAD:
		session_deny(s, s->agree.reason, 0, s->agree.detail);
		return;
	case SNIFF_DONE:
		break;
	}
	if (!*s->host && !s->address.len) {
		memcpy(s->host, s->agree.sni, sizeof(s->host));
		s->agree.host = s->host;
	}
	session_ask(s, "tls", *s->agree.sni ? s->agree.sni : NULL);
}

/* The name of the lease; else the address has to be in the policy. */
static void destination(struct session *s)
{
	const struct services *services = s->c.services;
	struct sandbox *sandbox = s->c.sandbox;
	const char *host = NULL;

	s->port = s->c.dst_port;
	if (s->c.kind == LISTENER_TLS)
		s->port = 443;
	if (s->c.kind == LISTENER_HTTP)
		s->port = 80;
	if (s->c.kind != LISTENER_TRANSPARENT)
		return;
	if (sandbox->leases)
		host = services->lease_of(services->ctx, sandbox, &s->c.dst_ip);
	if (host)
		snprintf(s->host, sizeof(s->host), "%s", host);
	else
		s->address = s->c.dst_ip;
}

void session_transparent(struct session *s)
{
	s->door = DOOR_TRANSPARENT;
	s->form = &form_raw;
	destination(s);
	s->agree = (struct agree){
		.policy = s->policy,
		.host = *s->host ? s->host : NULL,
		.address = s->address,
		.port = s->port,
		.door = s->door,
	};
	if (s->port == 443) {
		s->form = &form_tls;
		s->input = on_hello;
	} else if (s->port == 80) {
		session_exchange(s, true);
	} else {
		session_ask(s, "tcp", NULL);
	}
}
