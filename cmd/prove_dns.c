/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_dns.c - names as a way out: what is asked, of whom, and by what.
 *
 * A question for a name that nobody allows may be answered with "no such name"
 * by us as well as by a stranger to whom it got. Ours says so: the SOA record
 * of a refusal is that of sallyport.invalid. And the log has the question.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

#define CONNECT_MS 700
#define READ_MS	   700
#define ANSWER_MAX 4096

enum { OPCODE_QUERY = 0, OPCODE_UPDATE = 5 };
enum { TYPE_A = 1, CLASS_IN = 1, CLASS_CHAOS = 3 };

/* A question, or 0 if @name does not fit. */
static size_t make_query(const char *name, unsigned type, unsigned class,
			 unsigned opcode, uint8_t buf[512])
{
	const uint8_t head[12] = { 0x5a, 0x11, (uint8_t)(opcode << 3 | 1),
				   0,	 0,    1 };
	size_t at = sizeof(head);

	memcpy(buf, head, sizeof(head));
	while (*name) {
		size_t len = strcspn(name, ".");

		if (len == 0 || len > 63 || at + len + 6 > 512)
			return 0;
		buf[at++] = (uint8_t)len;
		memcpy(buf + at, name, len);
		at += len;
		name += len + (name[len] == '.');
	}
	buf[at++] = 0;
	buf[at++] = (uint8_t)(type >> 8);
	buf[at++] = (uint8_t)type;
	buf[at++] = (uint8_t)(class >> 8);
	buf[at++] = (uint8_t) class;
	return at;
}

static bool is_ours(const uint8_t *answer, size_t len)
{
	static const char name[] = "\011sallyport\007invalid";

	return memmem(answer, len, name, sizeof(name)) != NULL;
}

/* Anything but a refusal of ours came from somebody who was asked. */
static void judge(struct prove_try *t, const char *who, const uint8_t *answer,
		  size_t len)
{
	unsigned code = len > 3 ? answer[3] & 15 : 0;
	unsigned records = len > 7 ? (unsigned)answer[6] << 8 | answer[7] : 0;

	if (len < 12)
		prove_saw(t, PROVE_OUT, "%s answered what is no DNS", who);
	else if (records)
		prove_saw(t, PROVE_OUT, "%s answered with %u records", who,
			  records);
	else if (code == 3 && !is_ours(answer, len))
		prove_saw(t, PROVE_OUT,
			  "%s knows that there is no such name, and is not the "
			  "gate",
			  who);
	else
		prove_saw(t, PROVE_REFUSED, "answered %s",
			  code == 3   ? "NXDOMAIN, by the gate"
			  : code == 5 ? "REFUSED"
			  : code == 1 ? "FORMERR"
			  : code == 4 ? "NOTIMP"
			  : code == 2 ? "SERVFAIL"
				      : "without a record");
}

static void ask_udp(struct prove_try *t, const struct ip *at, uint16_t port,
		    const uint8_t *query, size_t len)
{
	char who[IP_TEXT_MAX];
	uint8_t answer[ANSWER_MAX];
	ssize_t n =
		prove_exchange(at, port, 0, query, len, answer, sizeof(answer));

	ip_format(at, who);
	if (n < 0)
		prove_saw_error(t, who, (int)n);
	else
		judge(t, who, answer, (size_t)n);
}

static void ask_tcp(struct prove_try *t, const struct ip *at, uint16_t port,
		    const uint8_t *query, size_t len)
{
	char who[IP_TEXT_MAX];
	uint8_t data[514], answer[ANSWER_MAX];
	AUTO_FD int fd = prove_connect(at, port, CONNECT_MS);
	size_t n;

	ip_format(at, who);
	if (fd < 0) {
		prove_saw_error(t, who, fd);
		return;
	}
	/* The gate takes connections to anybody's port 53, and to no other. */
	if (port != 53)
		prove_saw(t, PROVE_OUT, "connected to %s port %u", who, port);
	data[0] = (uint8_t)(len >> 8);
	data[1] = (uint8_t)len;
	memcpy(data + 2, query, len);
	if (send(fd, data, len + 2, MSG_NOSIGNAL) < 0) {
		prove_saw_error(t, who, -errno);
		return;
	}
	n = prove_read(fd, answer, sizeof(answer), READ_MS);
	if (n > 2)
		judge(t, who, answer + 2, n - 2);
	else
		prove_saw(t, PROVE_REFUSED, "%s closed the connection", who);
}

/* --- of the gate ---------------------------------------------------------- */

static bool has_gateway(struct prove_try *t)
{
	if (!t->task->gateway.len)
		prove_saw(t, PROVE_SKIPPED, "no name server is known");
	return t->task->gateway.len != 0;
}

/* Data in the labels of a name: .number is the type. */
static void label(struct prove_try *t)
{
	char name[HOST_MAX + 1];
	uint8_t query[512];

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, name, "");
	if (has_gateway(t))
		ask_udp(t, &t->task->gateway, 53, query,
			make_query(name, (unsigned)t->attack->number, CLASS_IN,
				   OPCODE_QUERY, query));
}

static void label_tcp(struct prove_try *t)
{
	char name[HOST_MAX + 1];
	uint8_t query[512];

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, name, "");
	if (has_gateway(t))
		ask_tcp(t, &t->task->gateway, 53, query,
			make_query(name, (unsigned)t->attack->number, CLASS_IN,
				   OPCODE_QUERY, query));
}

/* As much as a name can hold. */
static void long_label(struct prove_try *t)
{
	char part[64], name[HOST_MAX + 1], labels[200];
	uint8_t query[512];

	memset(part, 'x', 60);
	part[60] = '\0';
	snprintf(labels, sizeof(labels), "%s.%s.%s", part, part, part);
	prove_name(t, labels, name);
	prove_expect_host(t, name, "");
	if (has_gateway(t))
		ask_udp(t, &t->task->gateway, 53, query,
			make_query(name, TYPE_A, CLASS_IN, OPCODE_QUERY,
				   query));
}

/* What only the name server itself is asked for. */
static void chaos(struct prove_try *t)
{
	uint8_t query[512];

	prove_expect_host(t, "version.bind", "");
	if (has_gateway(t))
		ask_udp(t, &t->task->gateway, 53, query,
			make_query("version.bind", 16, CLASS_CHAOS,
				   OPCODE_QUERY, query));
}

static void reverse(struct prove_try *t)
{
	uint8_t query[512];

	prove_expect_host(t, "9.9.9.9.in-addr.arpa", "");
	if (has_gateway(t))
		ask_udp(t, &t->task->gateway, 53, query,
			make_query("9.9.9.9.in-addr.arpa", 12, CLASS_IN,
				   OPCODE_QUERY, query));
}

/* A dynamic update carries data, too. */
static void update(struct prove_try *t)
{
	char name[HOST_MAX + 1];
	uint8_t query[512];

	prove_name(t, t->attack->id, name);
	prove_expect_host(t, ".", "malformed");
	if (has_gateway(t))
		ask_udp(t, &t->task->gateway, 53, query,
			make_query(name, 6, CLASS_IN, OPCODE_UPDATE, query));
}

/* A name that is allowed, but for what no rule allows. */
static void allowed_type(struct prove_try *t)
{
	uint8_t query[512];

	if (!*t->task->allowed) {
		prove_saw(t, PROVE_SKIPPED, "no allowed name is known");
		return;
	}
	prove_expect_host(t, t->task->allowed, "record_type");
	if (has_gateway(t))
		ask_udp(t, &t->task->gateway, 53, query,
			make_query(t->task->allowed,
				   (unsigned)t->attack->number, CLASS_IN,
				   OPCODE_QUERY, query));
}

/* --- of others ------------------------------------------------------------ */

/* Their answer, or the gate's in their name: it takes questions to anybody. */
static void other(struct prove_try *t,
		  void (*ask)(struct prove_try *t, const struct ip *at,
			      uint16_t port, const uint8_t *query, size_t len))
{
	struct ip at = prove_ip(t->attack->text);
	const uint16_t port = (uint16_t)t->attack->number;
	char name[HOST_MAX + 1];
	uint8_t query[512];

	prove_name(t, t->attack->id, name);
	if (port == 53)
		prove_expect_host(t, name, "");
	else
		prove_expect(t, &at, port);
	ask(t, &at, port, query,
	    make_query(name, TYPE_A, CLASS_IN, OPCODE_QUERY, query));
}

static void other_udp(struct prove_try *t)
{
	other(t, ask_udp);
}

static void other_tcp(struct prove_try *t)
{
	other(t, ask_tcp);
}

/* Of this side's loopback: an engine's resolver, systemd's. What refuses there
 * is our own kernel, and nobody records it. */
static void loopback(struct prove_try *t)
{
	struct ip at = prove_ip(t->attack->text);
	char name[HOST_MAX + 1], who[IP_TEXT_MAX];
	uint8_t query[512], answer[ANSWER_MAX];
	ssize_t n;

	prove_name(t, t->attack->id, name);
	n = prove_exchange(
		&at, 53, 0, query,
		make_query(name, TYPE_A, CLASS_IN, OPCODE_QUERY, query), answer,
		sizeof(answer));
	if (n >= 0) {
		judge(t, ip_format(&at, who), answer, (size_t)n);
		prove_expect_host(t, name, "");
	} else {
		prove_saw(t, PROVE_UNABLE, "%s: nobody is there",
			  ip_format(&at, who));
	}
}

static const struct prove_attack attacks[] = {
	{ "dns-label", "D1", "data in a name", label, NULL, 1, 0 },
	{ "dns-label-aaaa", "D1", "the same, AAAA", label, NULL, 28, 0 },
	{ "dns-label-tcp", "D1", "the same, by TCP", label_tcp, NULL, 1, 0 },
	{ "dns-label-long", "D1", "as much as a name holds", long_label, NULL,
	  0, 0 },
	{ "dns-txt", "D12", "a TXT question", label, NULL, 16, 0 },
	{ "dns-null", "D12", "a NULL question", label, NULL, 10, 0 },
	{ "dns-any", "D12", "an ANY question", label, NULL, 255, 0 },
	{ "dns-cname", "D12", "a CNAME question", label, NULL, 5, 0 },
	{ "dns-mx", "D12", "an MX question", label, NULL, 15, 0 },
	{ "dns-https", "D10", "an HTTPS question", label, NULL, 65, 0 },
	{ "dns-axfr", "D12", "a zone transfer", label_tcp, NULL, 252, 0 },
	{ "dns-ptr", "D12", "a reverse question", reverse, NULL, 0, 0 },
	{ "dns-chaos", "D12", "a CHAOS question", chaos, NULL, 0, 0 },
	{ "dns-update", "D12", "a dynamic update", update, NULL, 0, 0 },
	{ "dns-allowed-txt", "D5", "TXT of an allowed name", allowed_type, NULL,
	  16, 0 },
	{ "dns-other-udp", "D3", "another resolver", other_udp, "8.8.8.8", 53,
	  0 },
	{ "dns-other-tcp", "D3", "another resolver, by TCP", other_tcp,
	  "1.1.1.1", 53, 0 },
	{ "dns-other-port", "D3", "another resolver's other port", other_udp,
	  "208.67.222.222", 5353, 0 },
	{ "dot", "D3", "DNS over TLS", other_tcp, "1.1.1.1", 853, 0 },
	{ "doq", "D3", "DNS over QUIC", other_udp, "9.9.9.9", 853, 0 },
	{ "dns-docker", "D3", "an engine's resolver", loopback, "127.0.0.11", 0,
	  0 },
	{ "dns-systemd", "D3", "systemd's resolver", loopback, "127.0.0.53", 0,
	  0 },
};

const struct prove_group prove_dns = { attacks, ARRAY_SIZE(attacks) };
