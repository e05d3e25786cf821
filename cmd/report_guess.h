/* SPDX-License-Identifier: Apache-2.0
 *
 * report_guess.h - what somebody may have meant who was refused: a guess, for a
 * person to judge.
 */
#ifndef CMD_REPORT_GUESS_H
#define CMD_REPORT_GUESS_H

#include <stdbool.h>

#include "policy/reason.h"

/* Static texts; NULL: no guess. */
struct report_guess {
	const char *word; /* for programs: "dns_tunnel", "direct_ip", ... */
	const char *text; /* for people */
};

/* About a host name or address. @reason: why it was refused, or REASON_RULE.
 * @tunnel: names below its zone look like data. @strange: it is no host name.
 */
struct report_guess report_guess_host(const char *host, enum reason reason,
				      bool tunnel, bool strange);
/* About a dropped packet, by what the gate said of it; @host may be an address
 * or the name that it stood for. */
struct report_guess report_guess_packet(const char *detail, const char *host);

#endif
