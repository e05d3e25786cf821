/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.h - what a session comes to, kept by the ledger while it writes: counts
 * by host, verdict and reason for the summary, sums for the receipt.
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

#define TALLY_RULE_MAX 127

struct tally_row {
	char host[HOST_MAX + 1]; /* name, or address of a dropped packet */
	char rule[TALLY_RULE_MAX + 1]; /* origin of the rule, or "" */
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

/* What a receipt quotes: the first TALLY_NOTES of a kind; of them at most so
 * many that a gate told, which must not crowd out what is told of it. */
#define TALLY_NOTES	 64
#define TALLY_GATE_NOTES 32

struct tally_note {
	uint64_t sequence, time_ms;
	uint32_t pid;	  /* 0: not known */
	bool by_gate;	  /* it told it */
	char process[32]; /* "" too */
	char text[256];	  /* cut */
};

struct tally_notes {
	uint64_t total;
	unsigned kept, by_gate; /* how many of .note; how many of those */
	struct tally_note note[TALLY_NOTES];
};

/* Of all records. Allowed are the verdicts of dns_query, flow_open and
 * http_request records that let pass; refused are those that did not, and what
 * took one back later: dns_answer and flow_dial records that are refusals, and
 * flow_close records of flows that we cut. Packets are counted for themselves.
 */
struct tally_sums {
	uint64_t allowed, refused;
	uint64_t by_reason[REASON_COUNT]; /* of @refused */
	uint64_t up, down;		  /* of flow_close records */
	uint64_t packets;		  /* in packet records */
	struct tally_notes finding;	  /* all findings */
	struct tally_notes policy;	  /* text: the new digest, hex */
	/* EVENT_RULESET, and those findings that name a process. */
	struct tally_notes ruleset;
};

struct tally {
	size_t rows;
	uint64_t records;
	struct tally_sums sums; /* stays with the ledger */
	struct tally_row row[TALLY_MAX];
	uint32_t host[TALLY_MAX];    /* hash of the host of each row */
	uint16_t index[TALLY_INDEX]; /* hash of a row's key: its number + 1 */
};

/* The next record: its sequence number is the number of those before. */
void tally_add(struct tally *tally, const struct audit_event *event);

#endif
