/* SPDX-License-Identifier: Apache-2.0
 *
 * hello.h - hand-made ClientHellos for tests: what OpenSSL would not send.
 */
#ifndef TESTS_PROXY_HELLO_H
#define TESTS_PROXY_HELLO_H

#include <stdint.h>
#include <string.h>

#include "base/wire.h"

struct hello_spec {
	const char *name;    /* NULL: no server_name extension */
	size_t name_len;     /* 0: strlen() */
	size_t padding;	     /* an extension of so many bytes first */
	uint16_t extra;	     /* type of one more extension; 0: none */
	const uint8_t *body; /* of that one, NULL: see hello_extra() */
	size_t body_len;
	uint8_t name_type;
	int names;    /* how often the name is in the list; 0: once */
	int repeat;   /* how many server_name extensions; 0: one */
	int trailing; /* bytes after the extensions */
};

static inline void hello_sni(struct wirebuf *b, const struct hello_spec *spec)
{
	size_t len = spec->name_len ? spec->name_len : strlen(spec->name);
	int names = spec->names ? spec->names : 1;
	size_t list = (len + 3) * (size_t)names;

	wirebuf_u16(b, 0);
	wirebuf_u16(b, (uint16_t)(list + 2));
	wirebuf_u16(b, (uint16_t)list);
	for (int i = 0; i < names; i++) {
		wirebuf_u8(b, spec->name_type);
		wirebuf_u16(b, (uint16_t)len);
		wirebuf_put(b, spec->name, len);
	}
}

/* Empty where its body is not given; but ECH as short as it can be. */
static inline void hello_extra(struct wirebuf *b, const struct hello_spec *spec)
{
	static const uint8_t ech[] = { 0, 0, 1, 0, 1, 7, 0, 0, 0, 1, 42 };
	const uint8_t *body = spec->body;
	size_t len = body ? spec->body_len : 0;

	if (!body && spec->extra == 0xfe0d) {
		body = ech;
		len = sizeof(ech);
	}
	wirebuf_u16(b, spec->extra);
	wirebuf_u16(b, (uint16_t)len);
	if (len)
		wirebuf_put(b, body, len);
}

static inline void hello_extensions(struct wirebuf *b,
				    const struct hello_spec *spec)
{
	if (spec->padding) {
		uint8_t *zero;

		wirebuf_u16(b, 21);
		wirebuf_u16(b, (uint16_t)spec->padding);
		zero = wirebuf_reserve(b, spec->padding);
		if (zero)
			memset(zero, 0, spec->padding);
	}
	for (int i = 0; spec->name && i < (spec->repeat ? spec->repeat : 1);
	     i++)
		hello_sni(b, spec);
	if (spec->extra)
		hello_extra(b, spec);
}

/* The handshake message, without record headers. */
static inline size_t hello_message(const struct hello_spec *spec, uint8_t *buf,
				   size_t cap)
{
	static const uint8_t random[32] = { 7 };
	struct wirebuf b = wirebuf_of(buf, cap);
	size_t at, body;

	wirebuf_u32(&b, 0x01000000);
	wirebuf_u16(&b, 0x0303);
	wirebuf_put(&b, random, sizeof(random));
	wirebuf_u8(&b, 0);
	wirebuf_u16(&b, 2);
	wirebuf_u16(&b, 0x1301);
	wirebuf_u16(&b, 0x0100);
	at = b.len;
	wirebuf_u16(&b, 0);
	hello_extensions(&b, spec);
	body = b.len - at - 2;
	buf[at] = (uint8_t)(body >> 8);
	buf[at + 1] = (uint8_t)body;
	for (int i = 0; i < spec->trailing; i++)
		wirebuf_u8(&b, 0);
	body = b.len - 4;
	buf[1] = (uint8_t)(body >> 16);
	buf[2] = (uint8_t)(body >> 8);
	buf[3] = (uint8_t)body;
	return b.full ? 0 : b.len;
}

/* Cuts a message into records of at most @cut bytes. */
static inline size_t hello_records(const uint8_t *message, size_t len,
				   size_t cut, uint8_t *buf, size_t cap)
{
	struct wirebuf b = wirebuf_of(buf, cap);

	while (len) {
		size_t n = len < cut ? len : cut;

		wirebuf_u8(&b, 0x16);
		wirebuf_u16(&b, 0x0301);
		wirebuf_u16(&b, (uint16_t)n);
		wirebuf_put(&b, message, n);
		message += n;
		len -= n;
	}
	return b.full ? 0 : b.len;
}

/* A plain hello in one record. */
static inline size_t hello_make(const struct hello_spec *spec, uint8_t *buf,
				size_t cap)
{
	uint8_t message[32 * 1024];
	size_t len = hello_message(spec, message, sizeof(message));

	return hello_records(message, len, 16384, buf, cap);
}

#endif
