/* SPDX-License-Identifier: Apache-2.0
 *
 * name.c - RFC 1035 section 3.1 and 4.1.4.
 *
 * A pointer has to lead to before the start of the run of labels that it ends,
 * so that every jump goes backwards and none can loop (RFC 9267); the number of
 * jumps is limited too, so that many names can't make one message slow.
 */
#include "dns/name.h"

#include <stdio.h>

#include "policy/hostname.h"

#define LABEL_MAX	63
#define JUMPS_MAX	32
#define HEADER_LEN	12
#define POINTER_BITS	0xc0u
#define POINTER_OFFSETS 0x3fffu

static uint8_t fold(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* Appends the label of @len bytes at @w. */
static bool take_label(struct wire *w, uint8_t len, bool keep_case,
		       struct name *name)
{
	const uint8_t *from = wire_take(w, len);

	if (!from || len > LABEL_MAX || name->len + 1 + len > NAME_MAX_WIRE)
		return false;
	name->wire[name->len++] = len;
	for (uint8_t i = 0; i < len; i++)
		name->wire[name->len++] = keep_case ? from[i] : fold(from[i]);
	return true;
}

/* Moves @at to where the pointer with first byte @high leads. */
static bool jump(struct wire *at, uint8_t high, const struct wire *message,
		 const uint8_t **floor)
{
	size_t offset = ((size_t)high << 8 | wire_u8(at)) & POINTER_OFFSETS;
	const uint8_t *target = message->at + offset;

	if (!wire_ok(at) || offset < HEADER_LEN || offset >= message->left ||
	    target >= *floor)
		return false;
	*floor = target;
	*at = wire_of(target, message->left - offset);
	return true;
}

bool name_read(struct wire *w, const struct wire *message,
	       struct name *ret_name)
{
	struct name name = { .len = 0 };
	const uint8_t *floor = w->at;
	struct wire at = *w;
	unsigned jumps = 0;

	for (;;) {
		uint8_t len = wire_u8(&at);

		if (len >= POINTER_BITS) {
			struct wire after = at;

			wire_u8(&after);
			if (!jumps)
				*w = after;
			if (++jumps > JUMPS_MAX ||
			    !jump(&at, len, message, &floor))
				break;
			continue;
		}
		if (!wire_ok(&at) || !take_label(&at, len, false, &name))
			break;
		if (!len) {
			if (!jumps)
				*w = at;
			*ret_name = name;
			return wire_ok(w);
		}
	}
	w->bad = true;
	return false;
}

bool name_read_plain(struct wire *w, struct name *ret_name)
{
	struct name name = { .len = 0 };
	uint8_t len;

	do {
		len = wire_u8(w);
		if (!wire_ok(w) || !take_label(w, len, true, &name)) {
			w->bad = true;
			return false;
		}
	} while (len);
	*ret_name = name;
	return true;
}

void name_from_host(const char *host, struct name *ret_name)
{
	uint8_t *length = ret_name->wire;
	uint8_t *to = ret_name->wire + 1;

	/* At most HOST_MAX bytes, so two more always fit. */
	*length = 0;
	for (const char *c = host; *c; c++) {
		if (*c == '.') {
			length = to++;
			*length = 0;
			continue;
		}
		*to++ = (uint8_t)*c;
		++*length;
	}
	*to++ = 0;
	ret_name->len = (uint8_t)(to - ret_name->wire);
}

bool name_to_host(const struct name *name, char *ret_host)
{
	char text[NAME_MAX_WIRE];
	size_t len = 0;

	for (size_t at = 0; name->wire[at]; at += 1u + name->wire[at]) {
		const uint8_t *label = &name->wire[at + 1];

		if (memchr(label, '.', name->wire[at]))
			return false;
		if (len)
			text[len++] = '.';
		memcpy(text + len, label, name->wire[at]);
		len += name->wire[at];
	}
	return host_canonical(text, len, ret_host);
}

bool name_equal(const struct name *a, const struct name *b)
{
	return a->len == b->len && memcmp(a->wire, b->wire, a->len) == 0;
}

char *name_format(const struct name *name, char *buf)
{
	char *to = buf;

	for (size_t at = 0; name->wire[at]; at += 1u + name->wire[at]) {
		const uint8_t *label = &name->wire[at + 1];

		if (to != buf)
			*to++ = '.';
		for (uint8_t i = 0; i < name->wire[at]; i++) {
			uint8_t c = label[i];

			if (c > 0x20 && c < 0x7f && c != '.' && c != '\\' &&
			    c != '"')
				*to++ = (char)c;
			else
				to += snprintf(to, 5, "\\%03u", c);
		}
	}
	if (to == buf)
		*to++ = '.';
	*to = '\0';
	return buf;
}
