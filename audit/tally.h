/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.h - what a session comes to: counts by host, verdict and reason, kept
 * by the ledger while it writes, for the summary (and the receipt).
 */
#ifndef AUDIT_TALLY_H
#define AUDIT_TALLY_H

#include <stddef.h>

#include "policy/event.h"

#define TALLY_MAX   512 /* rows; more hosts fold into two rows TALLY_OTHERS */
#define TALLY_INDEX 1024

#define TALLY_OTHERS  "(others)"
#define TALLY_FINDING "finding" /* protocol of a finding; host: what it is */
#define TALLY_POLICY  "policy"	/* of a change of policy; host: its detail */
#define TALLY_RULESET "ruleset" /* of rules put back; host: its detail */

struct tally_row {
	char host[HOST_MAX + 1]; /* name, or address of a dropped packet */
	char rule[128];		 /* origin of the rule, or "" */
	char protocol[16];
	uint16_t port; /* the last one seen */
	uint8_t allow;
	uint8_t door;
	uint8_t mixed;	   /* there were several ports */
	uint16_t reason;   /* enum reason */
	uint16_t observed; /* with REASON_OBSERVE: why it would be refused */
	uint32_t count;	   /* connections, requests, packets, findings */
	uint32_t dns;	   /* DNS questions, not in @count */
	uint32_t cut;	   /* of @count: connections cut while they went on */
	uint64_t up, down;
};

struct tally {
	size_t rows;
	uint64_t records;
	struct tally_row row[TALLY_MAX];
	uint16_t index[TALLY_INDEX]; /* hash of a row's key: its number + 1 */
};

void tally_add(struct tally *tally, const struct audit_event *event);

#endif
