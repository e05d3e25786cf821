/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_proxy.c - what the explicit proxy is asked for: names that nobody
 * allows, addresses in all spellings, this machine, itself.
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

static void judge_status(struct prove_try *t, const char *reply)
{
	int status = prove_http_status(reply);

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
};

const struct prove_group prove_proxy = { attacks, ARRAY_SIZE(attacks) };
