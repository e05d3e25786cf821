/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_tls.c - the gate's own doors: what is asked for there, and what is said
 * then under the name of something that is allowed.
 *
 * Those that need an allowed name begin with an ordinary connection to it. The
 * gate must end it before a byte goes on; a server's answer says that it did
 * not.
 */
#include <arpa/inet.h>
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

/* --- the explicit proxy ----------------------------------------------------
 */

/* Sends a request; -1 where there is no proxy. Its answer, terminated. */
static int ask(struct prove_try *t, const void *data, size_t len, char *reply,
	       size_t cap)
{
	int fd;
	size_t n = 0;

	if (!t->task->proxy.len) {
		prove_saw(t, PROVE_SKIPPED, "no proxy is known");
		return -1;
	}
	fd = prove_connect(&t->task->proxy, t->task->proxy_port, CONNECT_MS);
	if (fd < 0) {
		prove_saw(t, PROVE_SKIPPED, "the proxy does not answer: %s",
			  strerror(-fd));
		return -1;
	}
	if (send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len)
		n = prove_read(fd, reply, cap - 1, REPLY_MS);
	reply[n] = '\0';
	return fd;
}

/* "HTTP/1.1 403 Forbidden": 403; 0 if there is none. */
static int status_of(const char *reply)
{
	int status = 0;

	(void)sscanf(reply, "HTTP/1.%*d %d", &status);
	return status;
}

static void judge_status(struct prove_try *t, const char *reply)
{
	int status = status_of(reply);

	if (status >= 200 && status < 400)
		prove_saw(t, PROVE_OUT, "the proxy answered %.60s",
			  reply + strcspn(reply, " ") + 1);
	else if (status)
		prove_saw(t, PROVE_REFUSED, "%d", status);
	else
		prove_saw(t, PROVE_REFUSED, "the connection was closed");
}

static void try_connect(struct prove_try *t, const char *host, uint16_t port)
{
	char request[1024], reply[2048];
	int len = snprintf(request, sizeof(request),
			   "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n",
			   host, port, host, port);
	AUTO_FD int fd = ask(t, request, (size_t)len, reply, sizeof(reply));

	if (fd >= 0)
		judge_status(t, reply);
}

static void connect_name(struct prove_try *t)
{
	char name[HOST_MAX + 1];

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, name, "");
	try_connect(t, name, (uint16_t)t->attack->number);
}

static void connect_address(struct prove_try *t)
{
	struct ip ip = prove_ip(t->attack->text);
	char text[IP_TEXT_MAX + 2];

	prove_expect(t, &ip, (uint16_t)t->attack->number);
	ip_format(&ip, text);
	if (ip.len == 16)
		snprintf(text, sizeof(text), "[%.45s]", t->attack->text);
	try_connect(t, text, (uint16_t)t->attack->number);
}

/* Loopback of the machine, where we listen, in another spelling. */
static void connect_spelling(struct prove_try *t)
{
	uint16_t port = t->task->witnesses ? t->task->witness[0].port : 8400;
	const char *text = t->attack->text;
	char host[80];
	struct ip ip;

	/* What is no plain address is recorded as it came. */
	snprintf(host, sizeof(host), "%s", text + (*text == '['));
	host[strcspn(host, "]")] = '\0';
	if (ip_parse(host, &ip)) {
		prove_expect(t, &ip, port);
	} else {
		if (strcmp(host, "localhost") != 0)
			snprintf(host, sizeof(host), "%s:%u", text, port);
		prove_expect_host(t, host, "");
	}
	try_connect(t, text, port);
}

static void connect_machine(struct prove_try *t)
{
	const struct prove_task *task = t->task;
	char text[IP_TEXT_MAX + 2], ip[IP_TEXT_MAX];

	if (!task->witnesses)
		prove_saw(t, PROVE_SKIPPED, "nobody listens there");
	for (uint32_t i = 0; i < task->witnesses; i++) {
		const struct endpoint *at = &task->witness[i];

		prove_expect(t, &at->ip, at->port);
		ip_format(&at->ip, ip);
		snprintf(text, sizeof(text), at->ip.len == 16 ? "[%s]" : "%s",
			 ip);
		try_connect(t, text, at->port);
	}
}

/* The proxy through the proxy. */
static void connect_self(struct prove_try *t)
{
	char text[IP_TEXT_MAX];

	prove_expect(t, &t->task->proxy, t->task->proxy_port);
	try_connect(t, ip_format(&t->task->proxy, text), t->task->proxy_port);
}

/* A name that one reader ends where another goes on. */
static void connect_nul(struct prove_try *t)
{
	static const char request[] =
		"CONNECT 127.0.0.1\0.prove.example:443 HTTP/1.1\r\n"
		"Host: 127.0.0.1\0.prove.example:443\r\n\r\n";
	char reply[2048];
	AUTO_FD int fd =
		ask(t, request, sizeof(request) - 1, reply, sizeof(reply));

	if (fd >= 0)
		judge_status(t, reply);
	prove_expect_host(t, "", "malformed");
}

static void http_get(struct prove_try *t)
{
	char name[HOST_MAX + 1], request[1024], reply[2048];
	int len;

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, name, "");
	len = snprintf(request, sizeof(request),
		       "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n"
		       "Connection: close\r\n\r\n",
		       name, name);
	AUTO_FD int fd = ask(t, request, (size_t)len, reply, sizeof(reply));
	if (fd >= 0)
		judge_status(t, reply);
}

static void http_metadata(struct prove_try *t)
{
	static const char request[] =
		"GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\n"
		"Host: 169.254.169.254\r\nConnection: close\r\n\r\n";
	struct ip ip = prove_ip("169.254.169.254");
	char reply[2048];
	AUTO_FD int fd =
		ask(t, request, sizeof(request) - 1, reply, sizeof(reply));

	prove_expect(t, &ip, 80);
	if (fd >= 0)
		judge_status(t, reply);
}

/* SOCKS5: @target is the request from its command on. */
static void socks(struct prove_try *t, const uint8_t *target, size_t len)
{
	uint8_t request[512] = { 5, 1, 0, 5 };
	char reply[512];
	AUTO_FD int fd = -1;

	memcpy(request + 4, target, len);
	fd = ask(t, request, len + 4, reply, sizeof(reply));
	if (fd < 0)
		return;
	/* Two bytes for the method, then version and reply. */
	if (reply[0] == 5 && reply[1] == 0 && reply[2] == 5 && reply[3] == 0)
		prove_saw(t, PROVE_OUT, "SOCKS: granted");
	else
		prove_saw(t, PROVE_REFUSED, "SOCKS: reply %u",
			  (unsigned)(uint8_t)reply[3]);
}

static void socks_name(struct prove_try *t)
{
	char name[HOST_MAX + 1];
	uint8_t target[300] = { 1, 0, 3 };
	size_t len;

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, name, "");
	len = strlen(name);
	target[3] = (uint8_t)len;
	memcpy(target + 4, name, len);
	target[4 + len] = 1;
	target[5 + len] = 187;
	socks(t, target, len + 6);
}

static void socks_address(struct prove_try *t)
{
	static const uint8_t target[] = { 1, 0, 1, 9, 9, 9, 9, 32, 210 };
	struct ip ip = prove_ip("9.9.9.9");

	prove_expect(t, &ip, 32 << 8 | 210);
	socks(t, target, sizeof(target));
}

/* .number: BIND, UDP ASSOCIATE. */
static void socks_command(struct prove_try *t)
{
	const uint16_t port = (uint16_t)(8401 + t->attack->number);
	const uint8_t target[] = { (uint8_t)t->attack->number,
				   0,
				   1,
				   9,
				   9,
				   9,
				   9,
				   (uint8_t)(port >> 8),
				   (uint8_t)port };
	struct ip ip = prove_ip("9.9.9.9");

	prove_expect(t, &ip, port);
	socks(t, target, sizeof(target));
}

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

/* A connection to the allowed name: .number 0: by CONNECT, else by its lease.
 * -1 if there can be none, which is no result. */
static int open_allowed(struct prove_try *t)
{
	const char *name = t->task->allowed;
	char request[600], reply[1024];
	struct ip ip;
	int len, fd;

	if (!*name) {
		prove_saw(t, PROVE_SKIPPED,
			  "the policy allows no plain name on 443");
		return -1;
	}
	if (t->attack->number) {
		if (!lease(t, &ip)) {
			prove_saw(t, PROVE_SKIPPED, "%.60s does not resolve",
				  name);
			return -1;
		}
		fd = prove_connect(&ip, TLS_PORT, CONNECT_MS);
		if (fd < 0)
			prove_saw(t, PROVE_SKIPPED, "%.60s: %s", name,
				  strerror(-fd));
		return fd < 0 ? -1 : fd;
	}
	len = snprintf(request, sizeof(request),
		       "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", name,
		       name);
	fd = prove_connect(&t->task->proxy, t->task->proxy_port, CONNECT_MS);
	if (fd < 0 || send(fd, request, (size_t)len, MSG_NOSIGNAL) < 0) {
		prove_saw(t, PROVE_SKIPPED, "the proxy does not answer");
		return -1;
	}
	reply[0] = '\0';
	for (size_t n = 0; n < sizeof(reply) - 1 && !strstr(reply, "\r\n\r\n");
	     n++) {
		if (prove_read(fd, reply + n, 1, REPLY_MS) != 1)
			break;
		reply[n + 1] = '\0';
	}
	if (status_of(reply) == 200)
		return fd;
	prove_saw(t, PROVE_SKIPPED, "%.60s can't be reached: %d", name,
		  status_of(reply));
	close(fd);
	return -1;
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
	make_hello(&h, t->attack->text ? t->attack->text : name,
		   t->attack->text != NULL);
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
	{ "connect", "N1", "CONNECT to a name", connect_name, NULL, 443, 0 },
	{ "connect-address", "N9", "CONNECT to an address", connect_address,
	  "9.9.9.9", 8401, 0 },
	{ "connect-ipv6", "D8", "CONNECT to an IPv6 address", connect_address,
	  "2620:fe::fe", 8402, 0 },
	{ "connect-metadata", "L12", "CONNECT to cloud metadata",
	  connect_address, "169.254.169.254", 80, 0 },
	{ "connect-mapped", "D8", "loopback as ::ffff:127.0.0.1",
	  connect_spelling, "[::ffff:127.0.0.1]", 0, 0 },
	{ "connect-integer", "N9", "loopback as 2130706433", connect_spelling,
	  "2130706433", 0, 0 },
	{ "connect-hex", "N9", "loopback as 0x7f.1", connect_spelling, "0x7f.1",
	  0, 0 },
	{ "connect-octal", "N9", "loopback as 0177.0.0.1", connect_spelling,
	  "0177.0.0.1", 0, 0 },
	{ "connect-short", "N9", "loopback as 127.1", connect_spelling, "127.1",
	  0, 0 },
	{ "connect-zero", "N9", "loopback as 0.0.0.0", connect_spelling,
	  "0.0.0.0", 0, 0 },
	{ "connect-local", "N9", "loopback as localhost", connect_spelling,
	  "localhost", 0, 0 },
	{ "connect-machine", "L11", "CONNECT to this machine", connect_machine,
	  NULL, 0, 0 },
	{ "connect-self", "H14", "CONNECT to the proxy", connect_self, NULL, 0,
	  0 },
	{ "connect-nul", "N2", "a name with NUL", connect_nul, NULL, 0, 0 },
	{ "http", "N1", "an HTTP request for a name", http_get, NULL, 0, 0 },
	{ "http-metadata", "L12", "an HTTP request for metadata", http_metadata,
	  NULL, 0, 0 },
	{ "socks", "S4", "SOCKS to a name", socks_name, NULL, 0, 0 },
	{ "socks-address", "N9", "SOCKS to an address", socks_address, NULL, 0,
	  0 },
	{ "socks-bind", "S1", "SOCKS BIND", socks_command, NULL, 2, 0 },
	{ "socks-udp", "S1", "SOCKS UDP ASSOCIATE", socks_command, NULL, 3, 0 },
	{ "sni-connect", "T1", "CONNECT to one name, SNI of another", other_sni,
	  NULL, 0, 0 },
	{ "sni-direct", "T9", "SNI of another name at a lease", other_sni, NULL,
	  1, 0 },
	{ "sni-none", "T5", "no SNI", no_sni, NULL, 0, 0 },
	{ "sni-segments", "T2", "a hello a byte at a time", split_segments,
	  NULL, 0, 0 },
	{ "sni-records", "T3", "a hello in two records", split_records, NULL, 0,
	  0 },
	{ "ech", "T8", "ECH, another outer name", other_sni,
	  "cloudflare-ech.com", 0, 0 },
	{ "not-tls", "T11", "SSH on port 443", not_tls, "SSH-2.0-prove\r\n", 0,
	  0 },
	{ "http-on-443", "T11", "HTTP on port 443", not_tls,
	  "GET / HTTP/1.1\r\nHost: prove.example\r\n\r\n", 1, 0 },
};

const struct prove_group prove_tls = { attacks, ARRAY_SIZE(attacks) };
