/* SPDX-License-Identifier: Apache-2.0
 *
 * privsep.h - what our processes say to each other: typed messages over
 * SOCK_SEQPACKET, with the length and the number of file descriptors of each
 * type fixed in one table. A message that does not fit ends the receiver.
 */
#ifndef CMD_PRIVSEP_H
#define CMD_PRIVSEP_H

#include "audit/tally.h"
#include "base/addr.h"
#include "base/sock.h"
#include "policy/services.h"

enum msg_type {
	/* warden -> ledger */
	MSG_LEDGER_START = 1, /* struct msg_ledger_start; fd: the log */
	MSG_LEDGER_LINK,   /* struct msg_ledger_link; fd: records come by it */
	MSG_LEDGER_FINISH, /* write everything, answer with the tally, exit */
	/* ledger -> warden */
	MSG_LEDGER_READY,
	MSG_TALLY_ROW,	/* struct tally_row, one for each */
	MSG_TALLY_DONE, /* struct msg_tally_done */
	/* warden -> gate */
	MSG_GATE_START,	  /* struct msg_gate_start */
	MSG_GATE_LEDGER,  /* fd: socket to the ledger */
	MSG_GATE_POLICY,  /* struct msg_gate_policy; fd: sealed memfd, a bundle;
			     again while it serves: another policy */
	MSG_GATE_SANDBOX, /* struct msg_gate_sandbox; fd: lease table */
	MSG_GATE_SOCKET,  /* struct msg_gate_socket; fd: a socket */
	MSG_GATE_SERVERS, /* struct msg_gate_servers */
	MSG_GATE_UPLINK,  /* struct msg_gate_uplink: where we are */
	MSG_GATE_CLIENTS, /* struct msg_gate_uplink: `serve`: who may use it */
	MSG_GATE_GO,	  /* everything is there: serve */
	MSG_GATE_PUBLISHED, /* struct msg_published */
	/* gate -> warden */
	MSG_GATE_READY,
	MSG_GATE_PUBLISH,  /* struct msg_publish */
	MSG_GATE_WITHDRAW, /* struct msg_publish: let in no longer; no answer */
	MSG_GATE_RELOADED, /* struct msg_reloaded: to a policy while it served
			    */
	MSG_TYPE_COUNT
};

struct msg_ledger_start {
	char session[64];
	char sandbox_name[64];
	char policy_digest[65];
	char policy_name[64];
	char boundary[16];
	uint32_t uid, gid; /* to become; 0: keep */
};

/* Only the warden opens and closes a session, whatever a gate says. */
struct msg_ledger_link {
	uint8_t warden;
};

struct msg_tally_done {
	uint64_t records;
};

struct msg_gate_start {
	uint32_t uid, gid;
	uint64_t flow_base; /* flow ids start here */
	struct ip answer;   /* `serve`: names are answered with it */
};

struct msg_gate_policy {
	uint64_t len;
};

struct msg_gate_sandbox {
	uint32_t id, ifindex;
	struct ip ip, gateway;
	uint8_t leased; /* names get addresses of the table; else the table
			   only counts them (`serve`) */
};

enum gate_socket {
	GATE_DNS_UDP,
	GATE_DNS_TCP,
	GATE_EXPLICIT,
	GATE_TRANSPARENT,
	GATE_TLS,
	GATE_HTTP,
	GATE_NFLOG,
	GATE_SOCKET_COUNT
};

struct msg_gate_socket {
	uint32_t socket; /* enum gate_socket */
	struct endpoint bound;
};

#define MSG_SERVERS_MAX 8
#define MSG_UPLINK_MAX	256

struct msg_gate_servers {
	uint32_t count;
	struct endpoint server[MSG_SERVERS_MAX];
};

struct msg_gate_uplink {
	uint32_t count;
	struct cidr prefix[MSG_UPLINK_MAX];
};

#define MSG_PORTS_MAX 64

struct msg_publish {
	uint64_t id; /* 0: no answer is wanted */
	uint32_t sandbox;
	struct cidr dst;
	uint32_t count;
	struct port_range port[MSG_PORTS_MAX];
};

struct msg_published {
	uint64_t id;
	int32_t status;
};

struct msg_reloaded {
	int32_t status; /* 0: it is in force; -errno: the old one still is */
	char text[512]; /* and why */
};

struct msg {
	enum msg_type type;
	int fd; /* -1, or the one that came with it: the receiver's */
	size_t len;
	union {
		struct msg_ledger_start ledger_start;
		struct msg_ledger_link ledger_link;
		struct tally_row tally_row;
		struct msg_tally_done tally_done;
		struct msg_gate_start gate_start;
		struct msg_gate_policy gate_policy;
		struct msg_gate_sandbox gate_sandbox;
		struct msg_gate_socket gate_socket;
		struct msg_gate_servers gate_servers;
		struct msg_gate_uplink gate_uplink;
		struct msg_publish publish;
		struct msg_published published;
		struct msg_reloaded reloaded;
	};
};

/* Sends @payload (of the type's fixed size, or NULL if it has none) and @fd (-1
 * if the type has none; stays the caller's). 0 or -errno. */
int msg_send(int sock, enum msg_type type, const void *payload, int fd);

/* Receives one. 1, 0 at the end (peer gone), -EAGAIN with MSG_DONTWAIT in
 * @flags, -EBADMSG for what does not fit the table, or -errno. */
int msg_recv(int sock, struct msg *ret_msg, int flags);

#endif
