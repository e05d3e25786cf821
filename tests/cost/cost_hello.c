/* SPDX-License-Identifier: Apache-2.0
 *
 * cost_hello.c - a ClientHello of a browser, from its bytes to its name.
 */
#include <string.h>

#include "base/wire.h"
#include "proxy/sniff/tls_hello.h"
#include "tests/cost/cost.h"

#define OPS	   1000
#define KEY_SHARES (5 + 4 + 1216 + 4 + 32)

static void extension(struct wirebuf *b, unsigned type, const void *data,
		      size_t len)
{
	wirebuf_u16(b, (uint16_t)type);
	wirebuf_u16(b, (uint16_t)len);
	wirebuf_put(b, data, len);
}

#define EXTENSION(b, type, s) extension(b, type, s, sizeof(s) - 1)

static void server_name(struct wirebuf *b, const char *name)
{
	size_t len = strlen(name);

	wirebuf_u16(b, 0);
	wirebuf_u16(b, (uint16_t)(len + 5));
	wirebuf_u16(b, (uint16_t)(len + 3));
	wirebuf_u8(b, 0);
	wirebuf_u16(b, (uint16_t)len);
	wirebuf_put(b, name, len);
}

/* GREASE, X25519MLKEM768, X25519. */
static void key_shares(struct wirebuf *b)
{
	static const uint8_t key[1216] = { 3 };

	wirebuf_u16(b, 51);
	wirebuf_u16(b, KEY_SHARES + 2);
	wirebuf_u16(b, KEY_SHARES);
	wirebuf_put(b, "\x2a\x2a\0\1\0", 5);
	extension(b, 0x11ec, key, sizeof(key));
	extension(b, 0x001d, key, 32);
}

/* As long as that of a small inner hello. */
static void grease_ech(struct wirebuf *b)
{
	static const uint8_t body[10 + 32 + 144] = { 0, 0,	    1,	     0,
						     1, 7,	    0,	     32,
						     9, [41] = 144, [42] = 5 };

	extension(b, 0xfe0d, body, sizeof(body));
}

static void extensions(struct wirebuf *b, const char *name)
{
	static const char versions[] = "\6\x7a\x7a\3\4\3\3";
	static const char ciphers[] = "\0\x10\4\3\x08\4\4\1\5\3\x08\5\5\1"
				      "\x08\6\6\1";

	EXTENSION(b, 0x3a3a, "");
	EXTENSION(b, 35, "");
	EXTENSION(b, 13, ciphers);
	EXTENSION(b, 27, "\2\0\2");
	EXTENSION(b, 0xff01, "\0");
	EXTENSION(b, 23, "");
	EXTENSION(b, 45, "\1\1");
	key_shares(b);
	EXTENSION(b, 18, "");
	server_name(b, name);
	EXTENSION(b, 11, "\1\0");
	EXTENSION(b, 10, "\0\x0a\x2a\x2a\x11\xec\0\x1d\0\x17\0\x18");
	EXTENSION(b, 43, versions);
	EXTENSION(b, 17613, "\0\3\2h2");
	EXTENSION(b, 5, "\1\0\0\0\0");
	EXTENSION(b, 16, "\0\x0c\2h2\x08http/1.1");
	grease_ech(b);
	EXTENSION(b, 0x4a4a, "\0");
}

static void length_at(const struct wirebuf *b, uint8_t *buf, size_t at)
{
	size_t len = b->len - at - 2;

	buf[at] = (uint8_t)(len >> 8);
	buf[at + 1] = (uint8_t)len;
}

size_t cost_browser_hello(const char *name, uint8_t buf[COST_HELLO_MAX])
{
	static const uint8_t random[32] = { 7 };
	struct wirebuf b = wirebuf_of(buf, COST_HELLO_MAX);
	size_t at;

	wirebuf_put(&b, "\x16\3\1\0\0\1\0\0\0\3\3", 11);
	wirebuf_put(&b, random, sizeof(random));
	wirebuf_u8(&b, sizeof(random));
	wirebuf_put(&b, random, sizeof(random));
	wirebuf_put(&b,
		    "\0\x20\x1a\x1a\x13\1\x13\2\x13\3\xc0\x2b\xc0\x2f\xc0\x2c"
		    "\xc0\x30\xcc\xa9\xcc\xa8\xc0\x13\xc0\x14\0\x9c\0\x9d\0\x2f"
		    "\0\x35\1\0",
		    36);
	at = b.len;
	wirebuf_u16(&b, 0);
	extensions(&b, name);
	cost_check(!b.full, "a hello's room");
	length_at(&b, buf, at);
	length_at(&b, buf, 7);
	length_at(&b, buf, 3);
	return b.len;
}

struct hello {
	uint8_t data[COST_HELLO_MAX];
	size_t len;
};

static void parse(void *arg, unsigned i)
{
	const struct hello *hello = arg;
	struct tls_hello seen;
	enum reason reason;
	enum sniff sniff;

	(void)i;
	cost_on();
	sniff = tls_hello_parse(hello->data, hello->len, &seen, &reason);
	cost_off();
	cost_check(sniff == SNIFF_DONE && seen.ech &&
			   strcmp(seen.host, "www.some.cost.test") == 0,
		   "a browser's hello");
}

void cost_hello(void)
{
	struct hello hello;
	const struct cost cost = { "hello-browser", parse, &hello, 10, OPS, 1 };

	hello.len = cost_browser_hello("www.some.cost.test", hello.data);
	cost_measure(&cost);
}
