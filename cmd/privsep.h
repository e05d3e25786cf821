/* SPDX-License-Identifier: Apache-2.0
 *
 * privsep.h - what our processes say to each other: typed messages over
 * SOCK_SEQPACKET, with the length and the number of file descriptors of each
 * type fixed in one table. A message that does not fit ends the receiver.
 */
#ifndef CMD_PRIVSEP_H
#define CMD_PRIVSEP_H

#include "audit/checkpoint.h"
#include "audit/receipt.h"
#include "audit/tally.h"
#include "base/addr.h"
#include "base/sock.h"
#include "policy/services.h"

enum msg_type {
	/* warden -> ledger. ISOLATE, START, FILE..., [EARLIER,] GO; then any.
	 */
	MSG_LEDGER_ISOLATE = 1, /* struct msg_isolate */
	MSG_LEDGER_START,	/* struct msg_ledger_start; fd: the log */
	MSG_LEDGER_FILE,	/* struct msg_ledger_file; fd: that file */
	MSG_LEDGER_EARLIER, /* struct msg_ledger_earlier, if there was one */
	MSG_LEDGER_GO,	    /* everything is there: open the log */
	MSG_LEDGER_LINK,    /* struct msg_ledger_link; fd: records come by it */
	MSG_LEDGER_PART,    /* struct msg_ledger_part; fd: go on in this file */
	MSG_LEDGER_END,	    /* struct msg_ledger_end: before the record that
			       closes the session */
	MSG_LEDGER_FINISH,  /* write everything, answer with the tally, exit */
	/* ledger -> warden */
	MSG_LEDGER_READY,
	MSG_LEDGER_ROTATE, /* struct msg_ledger_part: give me that part */
	MSG_TALLY_ROW,	   /* struct tally_row, one for each */
	MSG_TALLY_DONE,	   /* struct msg_tally_done: the receipt is written */
	/* warden -> gate */
	MSG_GATE_START,	  /* struct msg_gate_start; first of all: it isolates
			     itself */
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
	MSG_GATE_FORWARD,   /* struct msg_keep_forward; fd: a listening socket;
			       also while it serves */
	MSG_GATE_DIAL,	    /* fd: a socket to connect to the sandbox with */
	MSG_GATE_DIALS,	    /* struct msg_dials: so much for WANT_DIALS */
	/* gate -> warden */
	MSG_GATE_READY,
	MSG_GATE_PUBLISH,  /* struct msg_publish */
	MSG_GATE_WITHDRAW, /* struct msg_publish: let in no longer; no answer */
	MSG_GATE_RELOADED, /* struct msg_reloaded: to a policy while it served
			    */
	MSG_GATE_WANT_DIALS, /* some MSG_GATE_DIAL, where ports are published */
	/* daemon -> keeper. [PREPARE,] START, LEASES, [NETNS,] GO; then any. */
	MSG_KEEP_START,	 /* struct msg_keep_start; fd: sealed memfd, a bundle */
	MSG_KEEP_LEASES, /* fd: the file of cmd/sandbox_file.h */
	MSG_KEEP_NETNS,	 /* fd: the sandbox's network namespace. Before GO: we
			    put the link into it; after: it is there now */
	MSG_KEEP_GO,
	MSG_KEEP_POLICY,  /* struct msg_gate_policy; fd: sealed memfd */
	MSG_KEEP_FORWARD, /* struct msg_keep_forward; fd: a listening socket */
	MSG_KEEP_STATS,	  /* struct msg_keep_stats; its answer is COUNTS */
	MSG_KEEP_FINDING, /* struct msg_keep_finding: for the log */
	MSG_KEEP_END,	  /* struct msg_keep_end */
	MSG_KEEP_EXEC,	  /* struct msg_keep_exec: a record of it */
	MSG_KEEP_ATTACKS, /* struct attacks: a report, for log and receipt */
	MSG_KEEP_PREPARE, /* fd: the network namespace of a sandbox that nobody
			     has asked for yet. Do what you can, say PREPARED,
			     and wait for START */
	/* keeper -> daemon */
	MSG_KEEP_READY,	   /* struct msg_keep_ready: to GO */
	MSG_KEEP_DONE,	   /* struct msg_keep_done: to NETNS after GO, POLICY,
			      FORWARD, EXEC, ATTACKS, in the order they came */
	MSG_KEEP_COUNTS,   /* struct msg_keep_counts: to STATS */
	MSG_KEEP_FAILED,   /* struct msg_keep_failed: it is about to end */
	MSG_KEEP_SUMMARY,  /* fd: what it came to, members of JSON; before ENDED
			    */
	MSG_KEEP_PREPARED, /* to PREPARE */
	MSG_KEEP_ENDED,	   /* struct msg_keep_ended: the last word */
	/* warden -> ledger, at any time, and its answer */
	MSG_LEDGER_SUMS,
	MSG_LEDGER_ATTACKS,  /* struct attacks: what `prove` found, or one more
				report of it; no answer */
	MSG_LEDGER_SUMS_ARE, /* struct msg_ledger_sums */
	MSG_TYPE_COUNT
};

/* First of all, and without a word of the session: it may be long until that
 * comes. */
struct msg_isolate {
	uint32_t uid, gid; /* to become; 0: keep */
};

struct msg_ledger_start {
	char session[64];
	char sandbox_name[64];
	char policy_digest[65];
	char policy_name[64];
	char boundary[16]; /* "netns", "external", "in-container" */
	/* What is said of the session in its receipt. */
	char separation[16];	 /* "uid", "uid-chroot", "namespace" */
	char files[16];		 /* "private", "host"; "": not ours to say */
	uint8_t nest;		 /* with "private", "host" only */
	char ruleset_digest[65]; /* as read back; "" under `serve` */
	char command[128];	 /* cut; "" under `serve` */
	char policy_files[512];	 /* for people */
	/* How it is written. */
	uint8_t sign_every;    /* a checkpoint after each record */
	uint8_t durable;       /* acknowledged is on the disk */
	uint64_t rotate_bytes; /* 0: never */
	uint32_t rotate_s;
	/* What the log of all sessions says of it. */
	uint8_t host;	      /* there should be one */
	char directory[1024]; /* where the log is; "" if that is longer */
};

enum ledger_file {
	LEDGER_CHECKPOINTS, /* for appending */
	LEDGER_RECEIPT,	    /* empty */
	LEDGER_KEY,	    /* to be read, then closed */
	LEDGER_VKEY,	    /* empty: the public key of the session */
	LEDGER_HOST_LOG,    /* the log of all sessions: see audit/hostlog.h */
	LEDGER_HOST_CHECKPOINTS,
	LEDGER_HOST_TREE,
	LEDGER_FILE_COUNT
};

struct msg_ledger_file {
	uint32_t file;	   /* enum ledger_file */
	char name[256];	   /* of the key; else "" */
	uint8_t ephemeral; /* the key: made for this session, and kept nowhere
			    */
};

struct msg_ledger_earlier {
	char checkpoint[CHECKPOINT_NOTE_MAX];
	uint64_t lines, bytes;
	uint8_t receipt;
};

/* Part @number is the one that is full: it has got that number in its name, and
 * the file that comes is the next. */
struct msg_ledger_part {
	uint32_t number;
};

enum ended_by { ENDED_EXIT, ENDED_TIMEOUT, ENDED_SIGNAL, ENDED_FAILED };

/* Did the kernel hold what was loaded, from the first to the last moment? */
enum boundary_held {
	BOUNDARY_UNKNOWN,  /* `serve`: it is somebody else's */
	BOUNDARY_HELD,	   /* nobody touched it */
	BOUNDARY_RESTORED, /* it was touched; the gate stood still until it was
			      put back */
	BOUNDARY_BROKEN,   /* it was touched, and the session ended of it */
};

struct msg_ledger_end {
	int32_t status;		 /* exit status of `run` */
	uint8_t ended;		 /* enum ended_by */
	uint8_t held;		 /* enum boundary_held */
	uint8_t counted;	 /* the counters could be read: */
	char ruleset_digest[65]; /* at the end; "" if it can't be read */
	uint64_t spoofed, refused, ipv6, forwarded; /* packets */
};

/* Only the warden opens and closes a session, whatever a gate says. */
struct msg_ledger_link {
	uint8_t warden;
};

struct msg_tally_done {
	uint64_t records;
	uint8_t receipt; /* there is one */
	uint8_t root[MERKLE_HASH];
};

/* What it came to so far: as struct tally_sums. */
struct msg_ledger_sums {
	uint64_t records, checkpoint_ms; /* when the last was signed; epoch */
	uint64_t allowed, refused, by_reason[REASON_COUNT];
	uint64_t up, down; /* bytes */
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
	GATE_DNS6_UDP, /* once more: on ::1, under `guard` */
	GATE_DNS6_TCP,
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

struct msg_dials {
	int32_t status; /* 0 or -errno */
};

enum keep_link {
	KEEP_LINK_OWN,	/* the keeper puts the sandbox's end into its namespace
			   and gives it address and route */
	KEEP_LINK_JOIN, /* the end stays in our own namespace under .ifname, for
			   an engine that moves it; then comes NETNS */
};

struct msg_keep_start {
	char name[64];	       /* of the sandbox */
	char boundary[16];     /* "netns", "docker" */
	char command[128];     /* what it is for, for people */
	char policy_text[512]; /* what the policy is made of, for people */
	char log_dir[1024];    /* "": the usual place */
	char key[1024];	       /* "": the usual one */
	uint8_t link;	       /* enum keep_link */
	char ifname[16];       /* of the sandbox's end */
	struct ip ip, gateway;
	uint8_t bits;	 /* of the link's prefix */
	uint32_t look_s; /* how often the boundary is looked at */
	uint8_t tables;	 /* the namespace gets firewall/lock.h's tables */
	uint8_t quiet;
	uint8_t summary; /* MSG_KEEP_SUMMARY is wanted */
	uint32_t reader; /* uid that may read the log; 0: root alone */
};

struct msg_keep_forward {
	struct endpoint at; /* where the socket listens, for the log */
	uint16_t port;	    /* of the sandbox */
};

struct msg_keep_stats {
	uint32_t look_s; /* as .look_s of the start, from now on */
};

struct msg_keep_finding {
	uint8_t broken; /* and the boundary did not hold */
	char text[512];
};

struct msg_keep_end {
	uint8_t ended; /* enum ended_by */
	int32_t status;
};

#define MSG_EXEC_MAX 512

struct msg_keep_exec {
	uint32_t uid;
	char command[MSG_EXEC_MAX]; /* as its user says, for people */
};

struct msg_keep_ready {
	char session[64];
	char log_dir[1024];
	char policy_digest[65], ruleset_digest[65];
};

struct msg_keep_done {
	int32_t status; /* 0 or -errno */
	char text[512]; /* what is wrong, for people */
};

struct msg_keep_counts {
	uint64_t records, checkpoint_ms; /* when the last was signed; epoch */
	uint64_t allowed, refused, by_reason[REASON_COUNT];
	uint64_t up, down;   /* bytes */
	uint64_t packets[4]; /* as struct ruleset_counters */
	uint32_t foreign_changes, gate_restarts;
	uint8_t held; /* enum boundary_held */
};

struct msg_keep_failed {
	char text[512];
};

struct msg_keep_ended {
	uint8_t held;	 /* enum boundary_held */
	uint8_t receipt; /* there is one */
	uint8_t whole;	 /* all was recorded */
};

struct msg {
	enum msg_type type;
	int fd; /* -1, or the one that came with it: the receiver's */
	size_t len;
	union {
		struct msg_isolate isolate;
		struct msg_ledger_start ledger_start;
		struct msg_ledger_file ledger_file;
		struct msg_ledger_earlier ledger_earlier;
		struct msg_ledger_link ledger_link;
		struct msg_ledger_part ledger_part;
		struct msg_ledger_end ledger_end;
		struct attacks attacks;
		struct tally_row tally_row;
		struct msg_tally_done tally_done;
		struct msg_ledger_sums ledger_sums;
		struct msg_gate_start gate_start;
		struct msg_gate_policy gate_policy;
		struct msg_gate_sandbox gate_sandbox;
		struct msg_gate_socket gate_socket;
		struct msg_gate_servers gate_servers;
		struct msg_gate_uplink gate_uplink;
		struct msg_publish publish;
		struct msg_published published;
		struct msg_reloaded reloaded;
		struct msg_dials dials;
		struct msg_keep_start keep_start;
		struct msg_keep_forward keep_forward;
		struct msg_keep_stats keep_stats;
		struct msg_keep_finding keep_finding;
		struct msg_keep_end keep_end;
		struct msg_keep_exec keep_exec;
		struct msg_keep_ready keep_ready;
		struct msg_keep_done keep_done;
		struct msg_keep_counts keep_counts;
		struct msg_keep_failed keep_failed;
		struct msg_keep_ended keep_ended;
	};
};

/* Sends @payload (of the type's fixed size, or NULL if it has none) and @fd (-1
 * if the type has none; stays the caller's). 0 or -errno. */
int msg_send(int sock, enum msg_type type, const void *payload, int fd);

/* Receives one. 1, 0 at the end (peer gone), -EAGAIN with MSG_DONTWAIT in
 * @flags, -EBADMSG for what does not fit the table, or -errno. Where we had no
 * descriptor left for what came, -EMFILE, or .fd is -1 in the types that the
 * gate can do without: it must not end for what others hold open. */
int msg_recv(int sock, struct msg *ret_msg, int flags);

#endif
