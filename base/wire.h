/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h - the bounded cursor. All bytes from outside go through it.
 *
 * An error sticks: after the first read past the end every read gives 0 or
 * NULL, so a parser checks wire_ok() once, at its end. Integers are in network
 * byte order. The same holds for the writer: a full buffer sticks.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wire {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static inline struct wire wire_of(const void *data, size_t len)
{
	return (struct wire){ .at = data, .left = len };
}

static inline bool wire_ok(const struct wire *w)
{
	return !w->bad;
}

/* Takes @n bytes; NULL and sticky error when there are fewer. */
static inline const uint8_t *wire_take(struct wire *w, size_t n)
{
	const uint8_t *p = w->at;

	if (w->bad || n > w->left) {
		w->bad = true;
		return NULL;
	}
	w->at += n;
	w->left -= n;
	return p;
}

static inline uint8_t wire_u8(struct wire *w)
{
	const uint8_t *p = wire_take(w, 1);

	return p ? p[0] : 0;
}

static inline uint16_t wire_u16(struct wire *w)
{
	const uint8_t *p = wire_take(w, 2);

	return (uint16_t)(p ? p[0] << 8 | p[1] : 0);
}

static inline uint32_t wire_u24(struct wire *w)
{
	const uint8_t *p = wire_take(w, 3);

	return p ? (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2] : 0;
}

static inline uint32_t wire_u32(struct wire *w)
{
	const uint8_t *p = wire_take(w, 4);

	return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
			       (uint32_t)p[2] << 8 | p[3]
		 : 0;
}

static inline uint64_t wire_u64(struct wire *w)
{
	struct wire eight = { .at = wire_take(w, 8), .left = 8 };
	uint64_t high;

	if (!eight.at)
		return 0;
	high = wire_u32(&eight);
	return high << 32 | wire_u32(&eight);
}

/* A cursor over the next @n bytes, which are taken from @w. */
static inline struct wire wire_sub(struct wire *w, size_t n)
{
	const uint8_t *p = wire_take(w, n);

	return (struct wire){ .at = p, .left = p ? n : 0, .bad = !p };
}

struct wirebuf {
	uint8_t *base;
	size_t len, cap;
	bool full;
};

static inline struct wirebuf wirebuf_of(void *buf, size_t cap)
{
	return (struct wirebuf){ .base = buf, .cap = cap };
}

/* Reserves @n bytes to fill in; NULL and sticky error without room. */
static inline uint8_t *wirebuf_reserve(struct wirebuf *b, size_t n)
{
	uint8_t *p = b->base + b->len;

	if (b->full || n > b->cap - b->len) {
		b->full = true;
		return NULL;
	}
	b->len += n;
	return p;
}

static inline void wirebuf_put(struct wirebuf *b, const void *data, size_t n)
{
	uint8_t *p = wirebuf_reserve(b, n);

	if (p && n)
		memcpy(p, data, n);
}

static inline void wirebuf_u8(struct wirebuf *b, uint8_t v)
{
	wirebuf_put(b, &v, 1);
}

static inline void wirebuf_u16(struct wirebuf *b, uint16_t v)
{
	uint8_t p[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	wirebuf_put(b, p, sizeof(p));
}

static inline void wirebuf_u32(struct wirebuf *b, uint32_t v)
{
	wirebuf_u16(b, (uint16_t)(v >> 16));
	wirebuf_u16(b, (uint16_t)v);
}

static inline void wirebuf_u64(struct wirebuf *b, uint64_t v)
{
	wirebuf_u32(b, (uint32_t)(v >> 32));
	wirebuf_u32(b, (uint32_t)v);
}

#endif
