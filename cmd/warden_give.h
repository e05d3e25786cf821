/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_give.h - what the children are given before they serve. For
 * cmd/warden.c only.
 */
#ifndef CMD_WARDEN_GIVE_H
#define CMD_WARDEN_GIVE_H

#include "cmd/privsep.h"

struct child;
struct warden;

/* The ledger: who it writes for, the log, and our own line to it. 0 or
 * -errno. */
int warden_give_ledger(struct warden *warden);

/* The gate, also one that was started again: a line to the ledger, policy,
 * sandbox, sockets, name servers and prefixes. 0 or -errno. */
int warden_give_gate(struct warden *warden);

/* Waits until @child says @type, and nothing else. 0 or -errno. */
int warden_await(const struct child *child, enum msg_type type);

#endif
