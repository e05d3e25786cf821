/* SPDX-License-Identifier: Apache-2.0
 *
 * rig.h - a gate and a ledger as they are, in one process, and what is around
 * them: a warden that says yes, a name server, and a sandbox behind the
 * loopback interface, whose addresses are 127.0.0.1 and the leases.
 *
 * Only turns of the gate's loop count.
 */
#ifndef TESTS_COST_RIG_H
#define TESTS_COST_RIG_H

#include "cmd/gate.h"
#include "proxy/listener.h"
#include "tests/cost/cost.h"

#define RIG_SANDBOX "127.0.0.1"
#define RIG_ORIGIN  "127.0.0.9" /* each name is there */

struct rig {
	struct gate gate;
	struct ledger *ledger;
	int warden;	    /* its end of the control socket */
	int names;	    /* the name server's socket */
	struct event *tick; /* ends a turn in which nothing comes */
};

/* A log with a key, as a session's; the caller gives it links. */
struct ledger *rig_ledger_new(void);
void rig_ledger_free(struct ledger *ledger);

struct rig *rig_new(const char *yaml);
void rig_free(struct rig *rig);

/* Taken by the gate. */
void rig_serve_dns(struct rig *rig, const char *ip);
void rig_serve_tcp(struct rig *rig, enum listener_kind kind, const char *ip,
		   uint16_t port);

/* Turns of the gate's loop until @done says so; between them all others do what
 * they have to. */
void rig_until(struct rig *rig, bool (*done)(void *arg), void *arg);
/* Until there is nothing more to do. */
void rig_settle(struct rig *rig);

/* Asks for the A of @name by @fd, a UDP socket connected to the gate. Its
 * rcode; and the address, .len 0 if there was none. */
unsigned rig_ask(struct rig *rig, int fd, const char *name, struct ip *ret_ip);

/* A socket of the sandbox's, connected. */
int rig_connect(int type, const struct ip *ip, uint16_t port);
struct ip rig_ip(const char *text);
bool rig_readable(int fd);

#endif
