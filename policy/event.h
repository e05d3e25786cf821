/* SPDX-License-Identifier: Apache-2.0
 *
 * event.h - what happened, as plain data: the vocabulary that dns/ and proxy/
 * use to say it, and audit/ to write it down. Strings need not outlive the
 * call they are given to.
 */
#ifndef POLICY_EVENT_H
#define POLICY_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/addr.h"
#include "policy/policy.h"

enum event_kind {
	EVENT_SESSION_OPEN = 1,
	EVENT_SESSION_CLOSE,
	EVENT_DNS_QUERY, /* a verdict about a name; before any upstream query */
	EVENT_DNS_ANSWER, /* what was answered to an allowed question */
	EVENT_FLOW_OPEN,  /* a verdict about a connection; before any SYN */
	EVENT_FLOW_DIAL,  /* the address used (or that none worked) */
	EVENT_FLOW_PROGRESS,
	EVENT_FLOW_CLOSE,
	EVENT_HTTP_REQUEST, /* a verdict about one plain HTTP request */
	EVENT_PACKET,	    /* dropped by the kernel, or a burst of them */
	EVENT_FINDING,	    /* something that should not be */
	EVENT_POLICY, /* another policy is in force now; its digest in detail */
	EVENT_RULESET, /* the kernel's rules were put back in order by us */
	EVENT_EXEC, /* one command more is about to start in it, said a user */
	EVENT_ATTACKS, /* what `prove` found in it, said a user */
	EVENT_KIND_COUNT
};

#define EVENT_ANSWERS_MAX 8

struct audit_event {
	enum event_kind kind;
	uint32_t sandbox;
	uint64_t flow;	  /* joins the events of one connection; 0: none */
	uint64_t time_ms; /* since the epoch; 0: the recorder sets it */
	struct verdict verdict;
	enum door door;
	const char *rule;      /* rule_origin() and */
	const char *rule_text; /* rule_text(), or NULL */
	const char *host; /* canonical, or as seen if malformed (escaped) */
	struct ip src_ip,
		dst_ip; /* dst: dialled, or meant for a dropped packet */
	uint16_t src_port, dst_port;
	const char *protocol; /* "tls", "http", "tcp", "udp", "icmp", ... */
	const char *sni;      /* as seen, if any */
	bool ech;	      /* TLS: it may name another host, unseen */
	const char *method;   /* HTTP */
	const char *target;   /* HTTP: path and query */
	uint16_t status;      /* HTTP: response status, at the end */
	uint16_t qtype;	      /* DNS */
	uint8_t rcode;
	struct ip answer[EVENT_ANSWERS_MAX];
	uint8_t answers;
	uint64_t bytes_up, bytes_down; /* up: out of the sandbox */
	uint64_t duration_ms;
	uint32_t count;	     /* of a fold; 0 means 1 */
	const char *detail;  /* free text: why, or how it ended */
	uint32_t pid;	     /* finding: the process that did it; 0: unknown */
	const char *process; /* and its name */
	bool by_gate; /* finding: of a gate, which may have been taken over;
			 the recorder sets it */
};

/* Somebody who waits for something that the event loop will bring. It lives in
 * the waiter's own struct. @done is called exactly once, from the loop or from
 * the call that started the wait, unless the wait was cancelled before. */
struct wait {
	void (*done)(struct wait *wait, int status);
	TAILQ_ENTRY(wait) entry;
	uint64_t seq; /* 0: not waiting */
	void *owner;  /* the queue's, while waiting */
};
TAILQ_HEAD(wait_list, wait);

#endif
