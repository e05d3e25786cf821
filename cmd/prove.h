/* SPDX-License-Identifier: Apache-2.0
 *
 * prove.h - `sallyport prove`: attacks on a boundary from inside it, and what
 * came of them.
 *
 *	prove.c		the command line, the modes, the exit status
 *	prove_box.c	the sandbox: a session of our own, or a guarded machine
 *	prove_netns.c	or a namespace that is there
 *	prove_docker.c	or a container that an engine makes
 *	prove_engine.c, prove_image.c: of what, and by whom
 *	prove_report.c	tells that one's session, for its receipt
 *	prove_witness.c	what listens outside, and must not be reached
 *	prove_judge.c	what the attacks say, against what the log says
 *	prove_print.c	the table, and JSON
 *	prove_inside.c	runs the attacks
 *	prove_try.c	what they are made of
 *	prove_net.c, prove_route.c, prove_dns.c, prove_proxy.c, prove_tls.c,
 *	prove_unix.c, prove_local.c: the attacks
 *
 * The attacker is this same binary, executed in the place of a command, before
 * anything that is not ours has run there. What it finds goes into a sheet of
 * memory that both share (its descriptor 1), and from there by the warden's
 * own line to the ledger. So the result is as good as the binary: nobody else
 * can write to the sheet, and what the sandbox could send to the ledger by way
 * of the gate is no such message. It is read as if it were hostile all the
 * same.
 *
 * How is it known that something got out, without a helper outside? Nothing is
 * taken for held because it was silent:
 *
 *	answered	a connection, a datagram or an answer came back: out
 *	way		something was sent by another interface than the link to
 *			the gateway: out
 *	witness		a listener of ours, on this machine's own addresses and
 *			names of unix sockets, heard something: out
 *	unseen		something was sent, and the session's log has no record
 *			that it was refused: out, for all that we know
 *	held		it could not even be sent; or it was refused, or went
 *			unanswered, and the log says so
 *
 * Where no log is known (of a sandbox that is somebody else's) what was refused
 * is held, and what was sent and never answered is skipped, with that reason.
 */
#ifndef CMD_PROVE_H
#define CMD_PROVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "audit/attacks.h"
#include "base/addr.h"
#include "policy/hostname.h"

#define PROVE_MAX	  ATTACKS_MAX
#define PROVE_WITNESS_MAX 8
#define PROVE_DETAIL_MAX  160
#define PROVE_NAMESPACES  6

/* What the attacker has to know. */
struct prove_task {
	uint32_t suite; /* PROVE_SUITE: it is this binary */
	bool box;	/* a view of files and namespaces of its own, too */
	bool alone;	/* the network namespace has one link, and no other */
	bool log;	/* somebody looks whether it was recorded */
	uint16_t proxy_port;
	struct ip gateway, proxy; /* .len 0: not known, there is none */
	char token[17];		  /* random, in names that nobody allows */
	/* A name that is allowed for TLS on 443; "": none is known. */
	char allowed[HOST_MAX + 1];
	/* This machine's own addresses, where listeners of ours wait, TCP and
	 * UDP by the same port; the first is loopback. */
	struct endpoint witness[PROVE_WITNESS_MAX];
	uint32_t witnesses;
	char abstract[64], path[108]; /* of unix sockets that wait; "": none */
	char secret[PATH_MAX];	      /* where logs are */
	pid_t outsider;		      /* a process outside */
	uint64_t ns[PROVE_NAMESPACES];
};
#define PROVE_SUITE 1u

extern const char *const prove_namespaces[PROVE_NAMESPACES];

/* What it saw, from the least. */
enum prove_seen {
	PROVE_NOTHING, /* it never said: the attacker came to an end */
	PROVE_SKIPPED,
	PROVE_UNABLE, /* it could not even be sent */
	PROVE_REFUSED,
	PROVE_SILENT, /* it was sent, and nobody answered */
	PROVE_OUT,
	PROVE_SEEN_COUNT
};

/* A record that there must be. All that is set must fit. */
struct prove_trace {
	uint8_t set; /* not 0; no bool, as anything may be written to it */
	struct ip ip;
	uint16_t port;
	char host[HOST_MAX + 1];
	char reason[24];
};

struct prove_result {
	uint8_t seen; /* enum prove_seen */
	uint32_t us;
	struct prove_trace trace;
	char detail[PROVE_DETAIL_MAX];
};

/* The shared memory. */
struct prove_sheet {
	struct prove_task task;
	uint32_t done; /* the attacker came to its end */
	struct prove_result result[PROVE_MAX];
};

/* --- attacks ------------------------------------------------------------- */

struct prove_try {
	const struct prove_task *task;
	const struct prove_attack *attack;
	struct prove_result *result;
};

struct prove_attack {
	const char *id;	    /* of at most ATTACK_NAME_MAX - 1 */
	const char *threat; /* what it is called in the catalogue, or "-" */
	const char *title;
	void (*run)(struct prove_try *t);
	const char *text; /* for .run */
	int number;
	enum prove_where {
		PROVE_ANYWHERE,
		PROVE_BOX,   /* only where task.box */
		PROVE_ALONE, /* only where task.alone */
	} where;
};

struct prove_group {
	const struct prove_attack *at;
	size_t n;
};
extern const struct prove_group prove_net, prove_route, prove_dns, prove_proxy,
	prove_tls, prove_unix, prove_local;

/* The @i-th of all of them; NULL past the end. */
const struct prove_attack *prove_attack(size_t i);

/* --- prove_try.c: inside -------------------------------------------------- */

/* Notes what was seen; the worst counts. */
void prove_saw(struct prove_try *t, enum prove_seen seen, const char *format,
	       ...) __attribute__((format(printf, 3, 4)));
/* The same for a socket call that failed with -@err. */
void prove_saw_error(struct prove_try *t, const char *what, int err);
/* The record that a refusal leaves. The first one counts. */
void prove_expect(struct prove_try *t, const struct ip *ip, uint16_t port);
void prove_expect_host(struct prove_try *t, const char *host,
		       const char *reason);

struct ip prove_ip(const char *text);
/* "LABEL.TOKEN.prove.example": nobody allows it. */
void prove_name(const struct prove_try *t, const char *label,
		char buf[HOST_MAX + 1]);

/* A connected socket that does not block for longer than @ms, or -errno. */
int prove_connect(const struct ip *ip, uint16_t port, int ms);
/* Sends @len bytes by UDP, from port @from unless 0, and waits for an answer:
 * its length, or -errno (-EAGAIN: none came). */
ssize_t prove_exchange(const struct ip *ip, uint16_t port, uint16_t from,
		       const void *data, size_t len, void *answer, size_t cap);
/* What comes within @ms, and what follows it at once, at most @cap. A reset is
 * an end. */
size_t prove_read(int fd, void *buf, size_t cap, int ms);

/* A connection, and a datagram of @len bytes, that must not get there: from
 * port
 * @from unless 0. Both expect a record. */
void prove_tcp(struct prove_try *t, const struct ip *ip, uint16_t port);
void prove_udp(struct prove_try *t, const struct ip *ip, uint16_t port,
	       uint16_t from, size_t len);
#define PROVE_MESSAGE_LEN 38
extern const char prove_message[PROVE_MESSAGE_LEN];
/* "HTTP/1.1 403 Forbidden": 403; 0 if @reply is no such thing. */
int prove_http_status(const char *reply);

/* --- outside -------------------------------------------------------------- */

struct options;
struct policy;

struct prove_witness {
	int tcp[PROVE_WITNESS_MAX], udp[PROVE_WITNESS_MAX];
	int abstract, path;
	char path_name[108], shm[64];
};

/* Starts listeners and tells @task of them; @network: on addresses, too. Those
 * that can't be made are left out. */
void prove_witness_open(struct prove_witness *witness, struct prove_task *task,
			bool network);
/* What has heard something, as a text in @buf; false if nothing did. */
bool prove_witness_heard(struct prove_witness *witness,
			 const struct prove_task *task, char *buf, size_t cap);
void prove_witness_close(struct prove_witness *witness);

struct prove_judged {
	enum attack_result result;
	bool recorded; /* and the log says so */
	uint32_t us;
	char detail[PROVE_DETAIL_MAX + 80];
};

struct prove_verdict {
	size_t n;
	unsigned count[ATTACK_RESULTS];
	uint32_t duration_ms;
	struct prove_judged at[PROVE_MAX];
};

/* What there is beside the sheet. */
struct prove_evidence {
	const char *log;	     /* of the session, all parts; or NULL */
	uint64_t since_ms;	     /* only records since then; epoch */
	const struct policy *policy; /* what it allows is no attack; or NULL */
	const char *heard;	     /* by a witness, or NULL */
};

/* Judges @sheet, which may be anybody's. Waits a moment for the log. */
void prove_judge(const struct prove_sheet *sheet,
		 const struct prove_evidence *evidence,
		 struct prove_verdict *ret);
/* Of the @i-th that was judged: the last is what the witnesses say. */
const struct prove_attack *prove_judged_attack(size_t i);
/* As the receipt has it. */
void prove_attacks(const struct prove_verdict *verdict, struct attacks *ret);

struct prove_about {
	const char *what;     /* was attacked */
	const char *log;      /* that was looked at; or "" */
	const char *receipt;  /* that tells of it; or "" */
	const char *reported; /* to whom, whose receipt will; or "" */
};
/* @quiet: only what got out, and the last line. */
void prove_print(FILE *out, const struct prove_verdict *verdict,
		 const struct prove_about *about, bool quiet);
void prove_print_json(FILE *out, const struct prove_verdict *verdict,
		      const struct prove_about *about);

/* --- what the modes share: prove_box.c ------------------------------------ */

/* The attacks need a few seconds. */
#define PROVE_ALL_MS   120000
#define PROVE_RESOLVER "9.9.9.11" /* where questions go, if to no gateway */

struct prove {
	struct options *options; /* of the session, or what the view asks for */
	struct policy *policy;
	const char *netns, *watch, *socket; /* --netns, --watch...; or NULL */
	/* --docker, --container, --docker-host; or NULL */
	const char *docker, *container, *engine;
	const char *statement; /* --receipt, or NULL */
	int statement_fd;
	bool guard, quiet, json;

	FILE *out; /* where our own standard output goes */
	int sheet_fd;
	struct prove_sheet *sheet;
	struct prove_witness witness;
	uint64_t since_ms;
	struct prove_verdict verdict;
	char log[PATH_MAX + 16], receipt[PATH_MAX + 32];
	char reported[PATH_MAX]; /* to whom; or "" */
};

/* What runs the attacks: this program as descriptor 0, the sheet as 1. */
extern char *const prove_argv[];
/* Instead of descriptor 1, in an image (prove_image.c): its argument. */
#define PROVE_INSIDE_SHEET "/prove/sheet"
#define PROVE_INSIDE_WAIT  "wait" /* be a container's first process */
/* Makes both, and the witnesses, and opens .out. @box, @network: see struct
 * prove_task, prove_witness_open(). The task, for what only the mode knows. */
struct prove_task *prove_prepare(struct prove *prove, bool box, bool network);
/* After the attacks: fills in .verdict. 0, 1 if something got out, or
 * EXIT_SALLYPORT. */
int prove_settle(struct prove *prove);

/* Each runs the attacks in such a place, judges them, and returns 0, or what to
 * exit with. They die with a message where they can't. */
int prove_own(struct prove *prove);
int prove_guarded(struct prove *prove);
/* prove_netns.c */
int prove_netns(struct prove *prove);
/* The attacks in the network namespace @ns, with a view of files and other
 * namespaces as `run` makes them: the exit status. */
int prove_attack_in(struct prove *prove, int ns);
/* prove_docker.c */
int prove_docker(struct prove *prove);

/* --- prove_report.c ------------------------------------------------------- */

/* The result, to the session in @dir, to that of .log, or to the daemon's of
 * that name: .reported, or a warning. */
void prove_tell_session(struct prove *prove, const char *dir);
void prove_tell_log(struct prove *prove);
void prove_tell_daemon(struct prove *prove, const char *socket,
		       const char *name);

#endif
