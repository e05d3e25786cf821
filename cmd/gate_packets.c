/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_packets.c - dropped packets, from NFLOG to records.
 *
 * The first packet of a kind (sandbox, rule, protocol, address, port) is
 * recorded at once, what follows as a count a second: a flood neither hides
 * anything nor fills the disk. Kinds beyond the table share one row.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sock.h"
#include "cmd/gate.h"
#include "firewall/nflog.h"

#define KINDS_MAX    256
#define KIND_IDLE_S  10
#define PER_TURN_MAX 64
#define LAST_MAX     16384

struct kind {
	struct nflog_packet packet; /* the first, src_port cleared */
	uint32_t sandbox;
	uint32_t more;	/* since the last record */
	uint8_t idle_s; /* seconds without any */
	bool used;
};

struct packets {
	struct gate *gate;
	int fd;
	struct event *readable, *second;
	struct kind kind[KINDS_MAX + 1]; /* the last: all others */
};

/* A leased address says which name was meant, and the policy why not: it may
 * have changed since the name was leased. */
static void name(const struct sandbox *sandbox, const struct nflog_packet *p,
		 struct audit_event *event)
{
	struct question question = { .port = p->dst_port,
				     .door = DOOR_TRANSPARENT,
				     .now_s = time(NULL) };
	struct verdict verdict;

	event->host = lease_name(sandbox->leases, &p->dst);
	if (!event->host)
		return;
	event->verdict.reason = REASON_PROTOCOL;
	if (p->l4 != IPPROTO_TCP)
		return;
	event->verdict.reason = REASON_PORT;
	if (!sandbox->policy)
		return;
	question.host = event->host;
	verdict = policy_decide(sandbox->policy, &question);
	if (verdict.allow) /* left over of a connection that ended */
		return;
	event->verdict = verdict;
	event->rule = verdict.rule ? rule_origin(verdict.rule) : NULL;
	event->rule_text = verdict.rule ? rule_text(verdict.rule) : NULL;
}

static bool is_rest(const struct packets *packets, const struct kind *kind)
{
	return kind == &packets->kind[KINDS_MAX];
}

static void record(struct packets *packets, const struct kind *kind,
		   uint32_t count)
{
	struct gate *gate = packets->gate;
	const struct nflog_packet *p = &kind->packet;
	char protocol[16];
	struct audit_event event = {
		.kind = EVENT_PACKET,
		.sandbox = kind->sandbox,
		.verdict = { .reason = REASON_BYPASS },
		.door = DOOR_TRANSPARENT,
		.src_ip = p->src,
		.dst_ip = p->dst,
		.src_port = p->src_port,
		.dst_port = p->dst_port,
		.protocol = nflog_protocol(p->l4, protocol),
		.count = count,
		.detail = nflog_intent(p, count),
	};

	if (is_rest(packets, kind)) {
		/* Their addresses are as many. */
		event = (struct audit_event){
			.kind = EVENT_PACKET,
			.sandbox = kind->sandbox,
			.verdict = { .reason = REASON_BYPASS },
			.door = DOOR_TRANSPARENT,
			.src_ip = p->src,
			.count = count,
			.detail = "many kinds of packet",
		};
	} else if (strcmp(p->prefix, "spoofed") == 0) {
		event.detail = "spoofed source address";
	}
	for (size_t i = 0; i < gate->sandboxes; i++) {
		struct sandbox *sandbox = &gate->sandbox[i]->pub;

		if (sandbox->id == kind->sandbox && sandbox->leases &&
		    event.dst_ip.len)
			name(sandbox, p, &event);
	}
	gate->services.record(gate, &event, NULL);
}

static bool same(const struct kind *kind, const struct nflog_packet *p)
{
	const struct nflog_packet *q = &kind->packet;

	return kind->used && q->ifindex == p->ifindex && q->l4 == p->l4 &&
	       q->dst_port == p->dst_port && ip_equal(&q->dst, &p->dst) &&
	       ip_equal(&q->src, &p->src) && strcmp(q->prefix, p->prefix) == 0;
}

/* Under the guard there is one, whatever a packet came in by. */
static uint32_t sandbox_of(struct gate *gate, uint32_t ifindex)
{
	const struct gate_sandbox *sandbox =
		gate_sandbox_by_ifindex(gate, ifindex);

	if (!sandbox)
		sandbox = gate_sandbox_by_ifindex(gate, 0);
	return sandbox ? sandbox->pub.id : 0;
}

static void on_packet(void *arg, const struct nflog_packet *packet)
{
	struct packets *packets = arg;
	const uint32_t sandbox = sandbox_of(packets->gate, packet->ifindex);
	struct kind *slot = NULL;

	for (size_t i = 0; i < KINDS_MAX; i++) {
		struct kind *kind = &packets->kind[i];

		if (same(kind, packet)) {
			kind->more++;
			kind->idle_s = 0;
			return;
		}
		if (!kind->used && !slot)
			slot = kind;
	}
	if (!slot) {
		slot = &packets->kind[KINDS_MAX];
		slot->sandbox = sandbox;
		slot->packet = *packet;
		slot->more++;
		return;
	}
	*slot = (struct kind){ .packet = *packet,
			       .sandbox = sandbox,
			       .used = true };
	if (gate_is_behind(packets->gate))
		slot->more = 1;
	else
		record(packets, slot, 1);
}

static void flush(struct packets *packets)
{
	for (size_t i = 0; i <= KINDS_MAX; i++) {
		struct kind *kind = &packets->kind[i];

		if (kind->more) {
			record(packets, kind, kind->more);
			kind->more = 0;
		} else if (kind->used && ++kind->idle_s > KIND_IDLE_S) {
			kind->used = false;
		}
	}
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct packets *packets = arg;

	(void)fd;
	(void)what;
	/* What is not told now is counted. */
	if (!gate_is_behind(packets->gate))
		flush(packets);
}

/* Returns false when there is nothing more to read. */
static bool read_one(struct packets *packets)
{
	uint8_t buf[16384] __attribute__((aligned(8)));
	ssize_t len = recv(packets->fd, buf, sizeof(buf), MSG_DONTWAIT);

	/* ENOBUFS: the kernel counted more than it could say. How many, its
	 * counters tell the ledger at the end. */
	if (len < 0)
		return errno == EINTR || errno == ENOBUFS;
	nflog_parse(buf, (size_t)len, on_packet, packets);
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	for (int i = 0; i < PER_TURN_MAX && read_one(arg); i++)
		;
}

int packets_new(struct gate *gate, int fd, struct packets **ret_packets)
{
	struct packets *packets = calloc(1, sizeof(*packets));
	const struct timeval second = { .tv_sec = 1 };

	if (!packets) {
		close(fd);
		return -ENOMEM;
	}
	packets->gate = gate;
	packets->fd = fd;
	packets->readable = event_new(gate->base, fd, EV_READ | EV_PERSIST,
				      on_readable, packets);
	packets->second =
		event_new(gate->base, -1, EV_PERSIST, on_second, packets);
	if (!packets->readable || !packets->second || sock_nonblock(fd) ||
	    event_add(packets->readable, NULL) ||
	    event_add(packets->second, &second)) {
		packets_free(packets);
		return -ENOMEM;
	}
	*ret_packets = packets;
	return 0;
}

void packets_free(struct packets *packets)
{
	if (!packets)
		return;
	/* All that the socket can hold. */
	for (int i = 0; i < LAST_MAX && read_one(packets); i++)
		;
	flush(packets);
	if (packets->readable)
		event_free(packets->readable);
	if (packets->second)
		event_free(packets->second);
	close(packets->fd);
	free(packets);
}
