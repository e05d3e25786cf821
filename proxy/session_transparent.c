/* SPDX-License-Identifier: Apache-2.0
 *
 * session_transparent.c - connections that do not know of us. The address they
 * went to is a lease, which gives the name; a real one (`dns.answers: real`),
 * which one name or several were answered with; a literal address, if the
 * policy has it; or, under `serve`, our own. Where that gives no name, or
 * several, the first message has to.
 */
#include <stdio.h>
#include <string.h>

#include "proxy/session_door.h"
#include "proxy/vet.h"

const char session_nameless[] = "several names have this address";

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

/* The name that only the first message gives. What it is for could not be
 * known before: that it is TLS has to fit. */
static bool take_name(struct session *s)
{
	if (s->several && !vet_name_at(s->c.services, s->c.sandbox,
				       &s->c.dst_ip, s->first->agree.sni)) {
		session_deny(s, REASON_NAME_MISMATCH, 0,
			     "TLS names a host that does not have this "
			     "address");
		return false;
	}
	memcpy(s->first->host, s->first->agree.sni, sizeof(s->first->host));
	s->first->agree.host = s->first->host;
	if (session_ahead(s) != WANTED_HTTP)
		return true;
	session_deny(s, REASON_PROTOCOL, 0, "TLS where HTTP/1 is wanted");
	return false;
}

/* Nothing leaves before the hello is complete and agrees. */
static void on_hello(struct session *s)
{
	switch (agree_check(&s->first->agree, s->buf, s->len)) {
	case SNIFF_MORE:
		return;
	case SNIFF_BAD:
		session_deny(s, s->first->agree.reason, 0,
			     s->first->agree.detail);
		return;
	case SNIFF_DONE:
		break;
	}
	if (!*s->first->host && !s->address.len && !take_name(s))
		return;
	session_ask(s, "tls",
		    *s->first->agree.sni ? s->first->agree.sni : NULL);
}

/* One of several names: nothing leaves before it is said which. */
static void on_named(struct session *s)
{
	switch (sniff_protocol(s->buf, s->len)) {
	case PROTOCOL_UNKNOWN:
		return;
	case PROTOCOL_TLS:
		s->first->agree.wanted = WANTED_TLS;
		s->form = &form_tls;
		s->first->input = on_hello;
		s->first->input(s);
		return;
	case PROTOCOL_HTTP:
		session_exchange(s, true);
		return;
	case PROTOCOL_HTTP2:
	case PROTOCOL_SOCKS5:
	case PROTOCOL_OTHER:
		session_deny(s, REASON_NO_NAME, 0, session_nameless);
	}
}

/* The name of the lease, or of a real answer; else the address has to be in the
 * policy. */
static const char *name_of(struct session *s)
{
	const struct services *services = s->c.services;
	struct sandbox *sandbox = s->c.sandbox;
	const char *name[2] = { NULL, NULL };
	size_t n;

	if (sandbox->leases)
		name[0] = services->lease_of(services->ctx, sandbox,
					     &s->c.dst_ip);
	if (name[0] || !s->policy || !policy_answers_real(s->policy))
		return name[0];
	n = services->names_at(services->ctx, sandbox, &s->c.dst_ip, name, 2);
	s->several = n > 1;
	return n == 1 ? name[0] : NULL;
}

static void destination(struct session *s)
{
	const char *host;

	s->port = s->c.dst_port;
	if (s->c.kind == LISTENER_TLS)
		s->port = 443;
	if (s->c.kind == LISTENER_HTTP)
		s->port = 80;
	if (s->c.kind != LISTENER_TRANSPARENT)
		return;
	host = name_of(s);
	if (host)
		snprintf(s->first->host, sizeof(s->first->host), "%s", host);
	else if (!s->several)
		s->address = s->c.dst_ip;
}

void session_transparent(struct session *s)
{
	s->door = DOOR_TRANSPARENT;
	s->form = &form_raw;
	destination(s);
	session_agree(s);
	if (s->several) {
		s->first->input = on_named;
		return;
	}
	switch (s->first->agree.wanted) {
	case WANTED_TLS:
		s->form = &form_tls;
		s->first->input = on_hello;
		break;
	case WANTED_HTTP:
		session_exchange(s, true);
		break;
	case WANTED_ANY:
	case WANTED_DEFAULT:
		session_ask(s, "tcp", NULL);
	}
}
