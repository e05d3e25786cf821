/* SPDX-License-Identifier: Apache-2.0
 *
 * privsep.c - the one table of what our processes may say to each other.
 *
 * The peer of a warden is a gate that a sandbox may have taken over. So each
 * type has its exact length and number of descriptors, and a check of what the
 * length does not show: strings that end, counts within their arrays,
 * addresses in their one spelling. Both ends are the same binary: structs
 * travel as they are.
 */
#include "cmd/privsep.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

static bool text_ok(const char *text, size_t cap)
{
	return memchr(text, '\0', cap) != NULL;
}
#define TEXT_OK(array) text_ok(array, sizeof(array))

static bool ip_ok(const struct ip *ip)
{
	if (ip->len != 0 && ip->len != 4 && ip->len != 16)
		return false;
	for (size_t i = ip->len; i < sizeof(ip->byte); i++)
		if (ip->byte[i])
			return false;
	return true;
}

static bool cidr_ok(const struct cidr *cidr)
{
	return ip_ok(&cidr->ip) && cidr->ip.len &&
	       cidr->bits <= cidr->ip.len * 8;
}

static bool ledger_start_ok(const struct msg *msg)
{
	const struct msg_ledger_start *start = &msg->ledger_start;

	return TEXT_OK(start->session) && TEXT_OK(start->sandbox_name) &&
	       TEXT_OK(start->policy_digest) && TEXT_OK(start->policy_name) &&
	       TEXT_OK(start->boundary) && TEXT_OK(start->separation) &&
	       TEXT_OK(start->ruleset_digest) && TEXT_OK(start->command) &&
	       TEXT_OK(start->policy_files) && start->sign_every <= 1 &&
	       start->durable <= 1 && start->host <= 1 &&
	       TEXT_OK(start->directory);
}

static bool ledger_file_ok(const struct msg *msg)
{
	return msg->ledger_file.file < LEDGER_FILE_COUNT &&
	       TEXT_OK(msg->ledger_file.name) &&
	       msg->ledger_file.ephemeral <= 1;
}

static bool ledger_earlier_ok(const struct msg *msg)
{
	return TEXT_OK(msg->ledger_earlier.checkpoint) &&
	       msg->ledger_earlier.receipt <= 1;
}

static bool ledger_end_ok(const struct msg *msg)
{
	const struct msg_ledger_end *end = &msg->ledger_end;

	return end->ended <= ENDED_FAILED && end->held <= BOUNDARY_BROKEN &&
	       end->counted <= 1 && TEXT_OK(end->ruleset_digest);
}

static bool tally_row_ok(const struct msg *msg)
{
	const struct tally_row *row = &msg->tally_row;

	return TEXT_OK(row->host) && TEXT_OK(row->rule) &&
	       TEXT_OK(row->protocol) && row->allow <= 1 &&
	       row->door < DOOR_COUNT && row->reason < REASON_COUNT &&
	       row->observed < REASON_COUNT;
}

static bool gate_start_ok(const struct msg *msg)
{
	return ip_ok(&msg->gate_start.answer);
}

static bool gate_sandbox_ok(const struct msg *msg)
{
	const struct msg_gate_sandbox *sandbox = &msg->gate_sandbox;

	return ip_ok(&sandbox->ip) && ip_ok(&sandbox->gateway) &&
	       sandbox->leased <= 1;
}

static bool gate_socket_ok(const struct msg *msg)
{
	return msg->gate_socket.socket < GATE_SOCKET_COUNT &&
	       ip_ok(&msg->gate_socket.bound.ip);
}

static bool gate_servers_ok(const struct msg *msg)
{
	const struct msg_gate_servers *servers = &msg->gate_servers;

	if (servers->count > MSG_SERVERS_MAX)
		return false;
	for (uint32_t i = 0; i < servers->count; i++)
		if (!ip_ok(&servers->server[i].ip) ||
		    !servers->server[i].ip.len)
			return false;
	return true;
}

static bool gate_uplink_ok(const struct msg *msg)
{
	const struct msg_gate_uplink *uplink = &msg->gate_uplink;

	if (uplink->count > MSG_UPLINK_MAX)
		return false;
	for (uint32_t i = 0; i < uplink->count; i++)
		if (!cidr_ok(&uplink->prefix[i]))
			return false;
	return true;
}

static bool publish_ok(const struct msg *msg)
{
	const struct msg_publish *publish = &msg->publish;

	if (publish->count > MSG_PORTS_MAX || !cidr_ok(&publish->dst))
		return false;
	for (uint32_t i = 0; i < publish->count; i++)
		if (publish->port[i].first > publish->port[i].last)
			return false;
	return true;
}

static bool reloaded_ok(const struct msg *msg)
{
	return msg->reloaded.status <= 0 && TEXT_OK(msg->reloaded.text);
}

static bool dials_ok(const struct msg *msg)
{
	return msg->dials.status <= 0;
}

static bool keep_start_ok(const struct msg *msg)
{
	const struct msg_keep_start *start = &msg->keep_start;

	return TEXT_OK(start->name) && TEXT_OK(start->boundary) &&
	       TEXT_OK(start->command) && TEXT_OK(start->policy_text) &&
	       TEXT_OK(start->log_dir) && TEXT_OK(start->key) &&
	       start->link <= KEEP_LINK_JOIN && TEXT_OK(start->ifname) &&
	       ip_ok(&start->ip) && start->ip.len == 4 &&
	       ip_ok(&start->gateway) && start->gateway.len == 4 &&
	       start->bits <= 32 && start->tables <= 1 && start->quiet <= 1 &&
	       start->summary <= 1;
}

static bool keep_forward_ok(const struct msg *msg)
{
	return ip_ok(&msg->keep_forward.at.ip) && msg->keep_forward.port;
}

static bool keep_finding_ok(const struct msg *msg)
{
	return msg->keep_finding.broken <= 1 && TEXT_OK(msg->keep_finding.text);
}

static bool keep_end_ok(const struct msg *msg)
{
	return msg->keep_end.ended <= ENDED_FAILED;
}

static bool keep_exec_ok(const struct msg *msg)
{
	return TEXT_OK(msg->keep_exec.command);
}

static bool keep_ready_ok(const struct msg *msg)
{
	const struct msg_keep_ready *ready = &msg->keep_ready;

	return TEXT_OK(ready->session) && TEXT_OK(ready->log_dir) &&
	       TEXT_OK(ready->policy_digest) && TEXT_OK(ready->ruleset_digest);
}

static bool keep_done_ok(const struct msg *msg)
{
	return msg->keep_done.status <= 0 && TEXT_OK(msg->keep_done.text);
}

static bool keep_counts_ok(const struct msg *msg)
{
	return msg->keep_counts.held <= BOUNDARY_BROKEN;
}

static bool keep_failed_ok(const struct msg *msg)
{
	return TEXT_OK(msg->keep_failed.text);
}

static bool keep_ended_ok(const struct msg *msg)
{
	return msg->keep_ended.held <= BOUNDARY_BROKEN &&
	       msg->keep_ended.receipt <= 1 && msg->keep_ended.whole <= 1;
}

static bool attacks_msg_ok(const struct msg *msg)
{
	return attacks_ok(&msg->attacks);
}

static const struct msg_spec {
	bool known;
	bool fd;
	size_t len;
	bool (*ok)(const struct msg *msg);
} specs[MSG_TYPE_COUNT] = {
	[MSG_LEDGER_ISOLATE] = { true, false, sizeof(struct msg_isolate),
				 NULL },
	[MSG_LEDGER_START] = { true, true, sizeof(struct msg_ledger_start),
			       ledger_start_ok },
	[MSG_LEDGER_FILE] = { true, true, sizeof(struct msg_ledger_file),
			      ledger_file_ok },
	[MSG_LEDGER_EARLIER] = { true, false, sizeof(struct msg_ledger_earlier),
				 ledger_earlier_ok },
	[MSG_LEDGER_GO] = { true, false, 0, NULL },
	[MSG_LEDGER_PART] = { true, true, sizeof(struct msg_ledger_part),
			      NULL },
	[MSG_LEDGER_END] = { true, false, sizeof(struct msg_ledger_end),
			     ledger_end_ok },
	[MSG_LEDGER_ROTATE] = { true, false, sizeof(struct msg_ledger_part),
				NULL },
	[MSG_LEDGER_LINK] = { true, true, sizeof(struct msg_ledger_link),
			      NULL },
	[MSG_LEDGER_FINISH] = { true, false, 0, NULL },
	[MSG_LEDGER_READY] = { true, false, 0, NULL },
	[MSG_TALLY_ROW] = { true, false, sizeof(struct tally_row),
			    tally_row_ok },
	[MSG_LEDGER_ATTACKS] = { true, false, sizeof(struct attacks),
				 attacks_msg_ok },
	[MSG_LEDGER_SUMS] = { true, false, 0, NULL },
	[MSG_LEDGER_SUMS_ARE] = { true, false, sizeof(struct msg_ledger_sums),
				  NULL },
	[MSG_TALLY_DONE] = { true, false, sizeof(struct msg_tally_done), NULL },
	[MSG_GATE_START] = { true, false, sizeof(struct msg_gate_start),
			     gate_start_ok },
	[MSG_GATE_LEDGER] = { true, true, 0, NULL },
	[MSG_GATE_POLICY] = { true, true, sizeof(struct msg_gate_policy),
			      NULL },
	[MSG_GATE_SANDBOX] = { true, true, sizeof(struct msg_gate_sandbox),
			       gate_sandbox_ok },
	[MSG_GATE_SOCKET] = { true, true, sizeof(struct msg_gate_socket),
			      gate_socket_ok },
	[MSG_GATE_SERVERS] = { true, false, sizeof(struct msg_gate_servers),
			       gate_servers_ok },
	[MSG_GATE_UPLINK] = { true, false, sizeof(struct msg_gate_uplink),
			      gate_uplink_ok },
	[MSG_GATE_CLIENTS] = { true, false, sizeof(struct msg_gate_uplink),
			       gate_uplink_ok },
	[MSG_GATE_GO] = { true, false, 0, NULL },
	[MSG_GATE_PUBLISHED] = { true, false, sizeof(struct msg_published),
				 NULL },
	[MSG_GATE_READY] = { true, false, 0, NULL },
	[MSG_GATE_PUBLISH] = { true, false, sizeof(struct msg_publish),
			       publish_ok },
	[MSG_GATE_WITHDRAW] = { true, false, sizeof(struct msg_publish),
				publish_ok },
	[MSG_GATE_RELOADED] = { true, false, sizeof(struct msg_reloaded),
				reloaded_ok },
	[MSG_GATE_FORWARD] = { true, true, sizeof(struct msg_keep_forward),
			       keep_forward_ok },
	[MSG_GATE_DIAL] = { true, true, 0, NULL },
	[MSG_GATE_DIALS] = { true, false, sizeof(struct msg_dials), dials_ok },
	[MSG_GATE_WANT_DIALS] = { true, false, 0, NULL },
	[MSG_KEEP_START] = { true, true, sizeof(struct msg_keep_start),
			     keep_start_ok },
	[MSG_KEEP_LEASES] = { true, true, 0, NULL },
	[MSG_KEEP_NETNS] = { true, true, 0, NULL },
	[MSG_KEEP_GO] = { true, false, 0, NULL },
	[MSG_KEEP_POLICY] = { true, true, sizeof(struct msg_gate_policy),
			      NULL },
	[MSG_KEEP_FORWARD] = { true, true, sizeof(struct msg_keep_forward),
			       keep_forward_ok },
	[MSG_KEEP_STATS] = { true, false, sizeof(struct msg_keep_stats), NULL },
	[MSG_KEEP_FINDING] = { true, false, sizeof(struct msg_keep_finding),
			       keep_finding_ok },
	[MSG_KEEP_END] = { true, false, sizeof(struct msg_keep_end),
			   keep_end_ok },
	[MSG_KEEP_EXEC] = { true, false, sizeof(struct msg_keep_exec),
			    keep_exec_ok },
	[MSG_KEEP_READY] = { true, false, sizeof(struct msg_keep_ready),
			     keep_ready_ok },
	[MSG_KEEP_ATTACKS] = { true, false, sizeof(struct attacks),
			       attacks_msg_ok },
	[MSG_KEEP_DONE] = { true, false, sizeof(struct msg_keep_done),
			    keep_done_ok },
	[MSG_KEEP_COUNTS] = { true, false, sizeof(struct msg_keep_counts),
			      keep_counts_ok },
	[MSG_KEEP_FAILED] = { true, false, sizeof(struct msg_keep_failed),
			      keep_failed_ok },
	[MSG_KEEP_SUMMARY] = { true, true, 0, NULL },
	[MSG_KEEP_PREPARE] = { true, true, 0, NULL },
	[MSG_KEEP_PREPARED] = { true, false, 0, NULL },
	[MSG_KEEP_ENDED] = { true, false, sizeof(struct msg_keep_ended),
			     keep_ended_ok },
};

/* On the wire: the type, then the payload. */
#define PAYLOAD_AT  offsetof(struct msg, isolate)
#define PAYLOAD_MAX (sizeof(struct msg) - PAYLOAD_AT)

struct frame {
	uint32_t type;
	uint8_t payload[PAYLOAD_MAX];
};
#define HEAD_LEN offsetof(struct frame, payload)

static const struct msg_spec *spec_of(uint32_t type)
{
	if (type >= MSG_TYPE_COUNT || !specs[type].known)
		return NULL;
	return &specs[type];
}

int msg_send(int sock, enum msg_type type, const void *payload, int fd)
{
	const struct msg_spec *spec = spec_of((uint32_t)type);
	struct frame frame = { .type = (uint32_t)type };

	if (!spec || spec->fd != (fd >= 0) || (spec->len > 0) != !!payload)
		return -EINVAL;
	if (payload)
		memcpy(frame.payload, payload, spec->len);
	return fdpass_send(sock, &frame, HEAD_LEN + spec->len, &fd, spec->fd);
}

/* Fills @msg from @len bytes of @frame that came with @nfds descriptors. */
static int msg_parse(const struct frame *frame, size_t len, size_t nfds,
		     struct msg *msg)
{
	const struct msg_spec *spec;

	if (len < HEAD_LEN)
		return -EBADMSG;
	spec = spec_of(frame->type);
	if (!spec || len != HEAD_LEN + spec->len || nfds != spec->fd)
		return -EBADMSG;
	memset(msg, 0, sizeof(*msg));
	msg->type = (enum msg_type)frame->type;
	msg->fd = -1;
	msg->len = spec->len;
	memcpy((char *)msg + PAYLOAD_AT, frame->payload, spec->len);
	if (spec->ok && !spec->ok(msg))
		return -EBADMSG;
	return 0;
}

/* Its receiver goes on without the descriptor: -1. */
static bool may_come_without(uint32_t type)
{
	return type == MSG_GATE_POLICY || type == MSG_GATE_DIAL;
}

/* What came for a receiver that had no descriptor left. */
static int msg_lost(const struct frame *frame, struct msg *msg)
{
	const struct msg_spec *spec = spec_of(frame->type);

	if (!spec || !may_come_without(frame->type))
		return -EMFILE;
	return msg_parse(frame, HEAD_LEN + spec->len, 1, msg);
}

int msg_recv(int sock, struct msg *ret_msg, int flags)
{
	struct frame frame = { 0 };
	int fds[FDPASS_MAX];
	size_t nfds = 0;
	struct msg msg;
	ssize_t len;
	int r;

	do {
		/* A peer that died with messages of ours unread: what it had
		 * sent is still to be read, then comes the end. */
		len = fdpass_recv(sock, &frame, sizeof(frame), fds, &nfds,
				  flags);
	} while (len == -ECONNRESET);
	if (len == -EMSGSIZE)
		return -EBADMSG;
	if (len < 0 && len != -EMFILE)
		return (int)len;
	if (len == 0 && nfds == 0)
		return 0;
	r = len < 0 ? msg_lost(&frame, &msg)
		    : msg_parse(&frame, (size_t)len, nfds, &msg);
	if (r < 0) {
		while (nfds)
			close(fds[--nfds]);
		return r;
	}
	if (nfds)
		msg.fd = fds[0];
	*ret_msg = msg;
	return 1;
}
