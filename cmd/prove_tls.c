/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_tls.c - what is said under the name of something that is allowed.
 *
 * Each begins with an ordinary connection to an allowed name. The gate must end
 * it before a byte goes on; a server's answer says that it did not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

#define CONNECT_MS 700
#define REPLY_MS   3000
#define TLS_PORT   443

/* --- TLS under an allowed name ----------------------------------------------
 */

struct hello {
	uint8_t data[700];
	size_t len;
};

static void put(struct hello *h, const void *data, size_t len)
{
	if (h->len + len > sizeof(h->data))
		return;
	memcpy(h->data + h->len, data, len);
	h->len += len;
}

static void put16(struct hello *h, size_t value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	put(h, bytes, 2);
}

static void put_name(struct hello *h, const char *name)
{
	size_t len = strlen(name);

	put16(h, 0);
	put16(h, len + 5);
	put16(h, len + 3);
	put(h, "", 1);
	put16(h, len);
	put(h, name, len);
}

/* Looks like GREASE, which is how the real one looks. */
static void put_ech(struct hello *h)
{
	uint8_t body[80] = { 0, 0, 1, 0, 1, 7, 0, 32 };

	memset(body + 8, 0x5a, sizeof(body) - 8);
	body[40] = 0;
	body[41] = sizeof(body) - 42;
	put16(h, 0xfe0d);
	put16(h, sizeof(body));
	put(h, body, sizeof(body));
}

/* A ClientHello of TLS 1.2, in one record; @name NULL: without SNI. */
static void make_hello(struct hello *h, const char *name, bool ech)
{
	static const uint8_t random[32] = "sallyport prove: not a real one";
	static const uint8_t suites[] = { 0, 4, 0xc0, 0x2f, 0xc0, 0x2b, 1, 0 };
	static const uint8_t groups[] = { 0, 10, 0, 4, 0, 2, 0, 23 };
	static const uint8_t schemes[] = { 0, 13, 0, 6, 0, 4, 4, 3, 8, 4 };
	size_t extensions;

	*h = (struct hello){ 0 };
	put(h, "\x16\3\1\0\0\1\0\0\0\3\3", 11);
	put(h, random, sizeof(random));
	put(h, "", 1);
	put(h, suites, sizeof(suites));
	extensions = h->len;
	put16(h, 0);
	if (name)
		put_name(h, name);
	if (ech)
		put_ech(h);
	put(h, groups, sizeof(groups));
	put(h, schemes, sizeof(schemes));
	h->data[extensions] = (uint8_t)((h->len - extensions - 2) >> 8);
	h->data[extensions + 1] = (uint8_t)(h->len - extensions - 2);
	h->data[3] = (uint8_t)((h->len - 5) >> 8);
	h->data[4] = (uint8_t)(h->len - 5);
	h->data[7] = (uint8_t)((h->len - 9) >> 8);
	h->data[8] = (uint8_t)(h->len - 9);
}

/* Asks the resolver for the allowed name's lease. */
static bool lease(struct prove_try *t, struct ip *ret)
{
	uint8_t query[512] = { 0x5a, 0x12, 1, 0, 0, 1 }, answer[1500];
	size_t at = 12;
	ssize_t n;

	for (const char *name = t->task->allowed; *name;) {
		size_t len = strcspn(name, ".");

		query[at++] = (uint8_t)len;
		memcpy(query + at, name, len);
		at += len;
		name += len + (name[len] == '.');
	}
	memcpy(query + at, "\0\0\1\0\1", 5);
	at += 5;
	n = prove_exchange(&t->task->gateway, 53, 0, query, at, answer,
			   sizeof(answer));
	/* The address follows the question, behind a name of two bytes. */
	if (n < (ssize_t)at + 16 || answer[7] == 0 || answer[at + 3] != 1)
		return false;
	*ret = (struct ip){ .len = 4 };
	memcpy(ret->byte, answer + at + 12, 4);
	return true;
}

static int open_lease(struct prove_try *t)
{
	struct ip ip;
	int fd;

	if (!lease(t, &ip)) {
		prove_saw(t, PROVE_SKIPPED, "%.60s does not resolve",
			  t->task->allowed);
		return -1;
	}
	fd = prove_connect(&ip, TLS_PORT, CONNECT_MS);
	if (fd < 0)
		prove_saw(t, PROVE_SKIPPED, "%.60s: %s", t->task->allowed,
			  strerror(-fd));
	return fd < 0 ? -1 : fd;
}

static int open_by_connect(struct prove_try *t)
{
	const char *name = t->task->allowed;
	char request[600], reply[1024] = "";
	int len = snprintf(request, sizeof(request),
			   "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n",
			   name, name);
	AUTO_FD int fd =
		prove_connect(&t->task->proxy, t->task->proxy_port, CONNECT_MS);

	if (fd < 0 || send(fd, request, (size_t)len, MSG_NOSIGNAL) < 0) {
		prove_saw(t, PROVE_SKIPPED, "the proxy does not answer");
		return -1;
	}
	/* Not a byte of what follows the head. */
	for (size_t n = 0; n < sizeof(reply) - 1 && !strstr(reply, "\r\n\r\n");
	     n++)
		if (prove_read(fd, reply + n, 1, REPLY_MS) != 1)
			break;
	if (prove_http_status(reply) == 200)
		return steal_fd(&fd);
	prove_saw(t, PROVE_SKIPPED, "%.60s can't be reached: %d", name,
		  prove_http_status(reply));
	return -1;
}

/* A connection to the allowed name: .number 0: by CONNECT, else by its lease.
 * -1 if there can be none, which is no result. */
static int open_allowed(struct prove_try *t)
{
	if (!*t->task->allowed) {
		prove_saw(t, PROVE_SKIPPED,
			  "the policy allows no plain name on 443");
		return -1;
	}
	return t->attack->number ? open_lease(t) : open_by_connect(t);
}

/* Sends, in pieces of @piece bytes (0: at once), and looks who answers. */
static void say(struct prove_try *t, const void *data, size_t len, size_t piece)
{
	AUTO_FD int fd = open_allowed(t);
	const uint8_t *at = data;
	uint8_t reply[256];
	size_t n;

	if (fd < 0)
		return;
	for (size_t sent = 0; sent < len; sent += n) {
		n = piece && piece < len - sent ? piece : len - sent;
		if (send(fd, at + sent, n, MSG_NOSIGNAL) < 0)
			break;
		if (piece)
			usleep(200);
	}
	n = prove_read(fd, reply, sizeof(reply), REPLY_MS);
	if (n == 0)
		prove_saw(t, PROVE_REFUSED, "the connection was closed");
	else if (reply[0] == 0x15)
		prove_saw(t, PROVE_REFUSED, "TLS alert %u",
			  n > 6 ? reply[6] : 0);
	else if (n > 9 && memcmp(reply, "HTTP/1.", 7) == 0 && reply[9] == '4')
		prove_saw(t, PROVE_REFUSED, "%.3s", (char *)reply + 9);
	else
		prove_saw(t, PROVE_OUT, "a server answered");
}

static void other_sni(struct prove_try *t)
{
	char name[HOST_MAX + 1];
	struct hello h;

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, t->task->allowed, "name_mismatch");
	make_hello(&h, name, false);
	say(t, h.data, h.len, 0);
}

/* .text is the outer name. */
static void ech(struct prove_try *t)
{
	struct hello h;

	prove_expect_host(t, t->task->allowed, "ech");
	make_hello(&h, t->attack->text, true);
	say(t, h.data, h.len, 0);
}

static void no_sni(struct prove_try *t)
{
	struct hello h;

	prove_expect_host(t, t->task->allowed, "no_name");
	make_hello(&h, NULL, false);
	say(t, h.data, h.len, 0);
}

/* A byte a segment. */
static void split_segments(struct prove_try *t)
{
	char name[HOST_MAX + 1];
	struct hello h;

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, t->task->allowed, "name_mismatch");
	make_hello(&h, name, false);
	say(t, h.data, h.len, 1);
}

/* The name in a second record. */
static void split_records(struct prove_try *t)
{
	char name[HOST_MAX + 1];
	struct hello h, two = { 0 };

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, t->task->allowed, "name_mismatch");
	make_hello(&h, name, false);
	put(&two, "\x16\3\1", 3);
	put16(&two, 40);
	put(&two, h.data + 5, 40);
	put(&two, "\x16\3\1", 3);
	put16(&two, h.len - 45);
	put(&two, h.data + 45, h.len - 45);
	say(t, two.data, two.len, 0);
}

/* .text instead of TLS. */
static void not_tls(struct prove_try *t)
{
	prove_expect_host(t, t->task->allowed, "protocol");
	say(t, t->attack->text, strlen(t->attack->text), 0);
}

static const struct prove_attack attacks[] = {
	{ "sni-connect", "T1", "CONNECT to one name, SNI of another", other_sni,
	  NULL, 0, 0 },
	{ "sni-direct", "T9", "SNI of another name at a lease", other_sni, NULL,
	  1, 0 },
	{ "sni-none", "T5", "no SNI", no_sni, NULL, 0, 0 },
	{ "sni-segments", "T2", "a hello a byte at a time", split_segments,
	  NULL, 0, 0 },
	{ "sni-records", "T3", "a hello in two records", split_records, NULL, 0,
	  0 },
	{ "ech", "T8", "ECH, another outer name", ech, "cloudflare-ech.com", 0,
	  0 },
	{ "not-tls", "T11", "SSH on port 443", not_tls, "SSH-2.0-prove\r\n", 0,
	  0 },
	{ "http-on-443", "T11", "HTTP on port 443", not_tls,
	  "GET / HTTP/1.1\r\nHost: prove.example\r\n\r\n", 1, 0 },
};

const struct prove_group prove_tls = { attacks, ARRAY_SIZE(attacks) };
