/* SPDX-License-Identifier: Apache-2.0
 *
 * cost_relay.c - a connection from its accept to its last record: a hello of a
 * browser up, ANSWER bytes down, and the origin ends it. By CONNECT, and
 * transparently, to the address that its name was leased.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "proxy/tunnel.h"
#include "tests/cost/rig.h"

#define OPS    60
#define ANSWER 1024
#define NAME   "once.cost.test"
#define DOOR   "127.0.0.1"
#define PROXY  3128

static const char yaml[] =
	"version: 1\n"
	"limits: {connections_per_second: 100000, dns_per_second: 100000}\n"
	"allow:\n"
	"  - {host: once.cost.test, ports: [443], addresses: [127.0.0.0/8]}\n";

static const char ask[] = "CONNECT " NAME ":443 HTTP/1.1\r\n"
			  "Host: " NAME ":443\r\n\r\n";

struct relay {
	struct rig *rig;
	struct ip lease;
	bool connects; /* to the proxy, by CONNECT */
	int listener, client, origin;
	uint8_t hello[COST_HELLO_MAX], answer[ANSWER];
	size_t hello_len, up, down;
	bool ended; /* the client saw the end */
};

/* A ServerHello, and what is encrypted then. */
static void make_answer(uint8_t answer[ANSWER])
{
	static const uint8_t head[] = { 0x16, 3, 3, 0, 90, 2, 0, 0, 86, 3, 3 };
	static const uint8_t data[] = { 0x17, 3, 3, (ANSWER - 100) >> 8,
					(ANSWER - 100) & 255 };

	memset(answer, 5, ANSWER);
	memcpy(answer, head, sizeof(head));
	memcpy(answer + 95, data, sizeof(data));
}

static bool client_heard(void *arg)
{
	const struct relay *relay = arg;

	return rig_readable(relay->client);
}

static bool came(void *arg)
{
	const struct relay *relay = arg;

	return rig_readable(relay->listener);
}

/* Takes what there is at the origin. */
static bool all_up(void *arg)
{
	struct relay *relay = arg;
	uint8_t buf[COST_HELLO_MAX];
	ssize_t n = recv(relay->origin, buf, sizeof(buf), MSG_DONTWAIT);

	cost_check(n > 0 || (n < 0 && errno == EAGAIN), "at the origin");
	relay->up += n > 0 ? (size_t)n : 0;
	return relay->up >= relay->hello_len;
}

static bool all_down(void *arg)
{
	struct relay *relay = arg;
	uint8_t buf[2 * ANSWER];
	ssize_t n = recv(relay->client, buf, sizeof(buf), MSG_DONTWAIT);

	cost_check(n >= 0 || errno == EAGAIN, "at the client");
	relay->down += n > 0 ? (size_t)n : 0;
	relay->ended = n == 0;
	return relay->ended;
}

static void open_by_proxy(struct relay *relay)
{
	const struct ip door = rig_ip(DOOR);
	char buf[512] = "";

	relay->client = rig_connect(SOCK_STREAM, &door, PROXY);
	cost_check(send(relay->client, ask, sizeof(ask) - 1, 0) ==
			   sizeof(ask) - 1,
		   "CONNECT");
	rig_until(relay->rig, client_heard, relay);
	cost_check(recv(relay->client, buf, sizeof(buf) - 1, 0) > 12 &&
			   memcmp(buf + 8, " 200", 4) == 0,
		   buf);
}

static void tunnel(void *arg, unsigned i)
{
	struct relay *relay = arg;

	(void)i;
	relay->up = relay->down = 0;
	if (relay->connects)
		open_by_proxy(relay);
	else
		relay->client = rig_connect(SOCK_STREAM, &relay->lease, 443);
	cost_check(send(relay->client, relay->hello, relay->hello_len, 0) ==
			   (ssize_t)relay->hello_len,
		   "a hello");
	rig_until(relay->rig, came, relay);
	relay->origin = accept(relay->listener, NULL, NULL);
	cost_check(relay->origin >= 0, "accept");
	rig_until(relay->rig, all_up, relay);
	cost_check(send(relay->origin, relay->answer, ANSWER, 0) == ANSWER,
		   "an answer");
	close_fd(&relay->origin);
	rig_until(relay->rig, all_down, relay);
	cost_check(relay->up == relay->hello_len && relay->down == ANSWER,
		   "what was relayed");
	close_fd(&relay->client);
	rig_settle(relay->rig);
}

/* The address of our name, which is known from here on. */
static struct ip leased(struct rig *rig)
{
	const struct ip door = rig_ip(DOOR);
	AUTO_FD int fd = rig_connect(SOCK_DGRAM, &door, 53);
	struct ip ip;

	cost_check(rig_ask(rig, fd, NAME, &ip) == 0 && ip.len == 4, "a lease");
	rig_settle(rig);
	return ip;
}

void cost_relay(void)
{
	const struct ip origin = rig_ip(RIG_ORIGIN);
	struct relay relay = { .rig = rig_new(yaml), .client = -1 };
	const struct cost leased_to = {
		"relay-transparent", tunnel, &relay, 20, OPS, 1
	};
	const struct cost by_proxy = {
		"relay-connect", tunnel, &relay, 20, OPS, 1
	};
	char text[IP_TEXT_MAX];

	relay.hello_len = cost_browser_hello(NAME, relay.hello);
	make_answer(relay.answer);
	relay.listener = sock_listen_tcp(&origin, 443, false);
	cost_check(relay.listener >= 0, "an origin");
	rig_serve_dns(relay.rig, DOOR);
	relay.lease = leased(relay.rig);
	rig_serve_tcp(relay.rig, LISTENER_EXPLICIT, DOOR, PROXY);
	rig_serve_tcp(relay.rig, LISTENER_TRANSPARENT,
		      ip_format(&relay.lease, text), 443);
	cost_measure(&leased_to);
	relay.connects = true;
	cost_measure(&by_proxy);
	close_fd(&relay.listener);
	rig_free(relay.rig);
	tunnel_pool_free();
}
