/* SPDX-License-Identifier: Apache-2.0
 *
 * services.h - what dns/ and proxy/ are given when they are made: the sandbox
 * they serve, and callbacks to record, resolve, admit and lease. They never
 * call each other, nor audit/ or firewall/.
 */
#ifndef POLICY_SERVICES_H
#define POLICY_SERVICES_H

#include "policy/counters.h"
#include "policy/event.h"

struct lease_table;

/* One sandbox as the gate sees it. */
struct sandbox {
	uint32_t id;
	uint32_t ifindex; /* of its veth in the gateway namespace: its identity;
			     0 under `serve`: any */
	struct ip ip;	  /* its address */
	struct ip gateway; /* ours, towards it */
	struct policy *policy;
	struct lease_table
		*leases;      /* NULL under `serve`: names come by SNI/Host */
	unsigned connections; /* now open; proxy/ counts */
};

#define LOOKUP_MAX 16

/* Waits for addresses of a name: embedded in the waiter's struct. Status in
 * wait.done(): 0 (@count may be 0: NODATA), -ENOENT (NXDOMAIN), -ETIMEDOUT or
 * -EIO (SERVFAIL, no server, bad answers). */
struct lookup {
	struct wait wait;
	struct ip ip[LOOKUP_MAX]; /* unchecked: policy_check_address() each */
	size_t count;
	uint32_t ttl; /* seconds, clamped */
};

#define LOOKUP_RECORDS_MAX 24
#define LOOKUP_RDATA_MAX   512

/* Waits for records other than addresses. Status as in struct lookup. Their
 * data is uncompressed, and was parsed: names in it are host names (lower
 * case), TXT is as it came. */
struct record_lookup {
	struct wait wait;
	uint16_t type;
	struct rdata {
		uint16_t len;
		uint8_t data[LOOKUP_RDATA_MAX];
	} record[LOOKUP_RECORDS_MAX];
	size_t count;
	uint32_t ttl; /* seconds, clamped */
};

struct services {
	void *ctx;

	/* Hands @event to the ledger. @wait (may be NULL: nobody waits, e.g.
	 * for a close record) is done with 0 once it was accepted, or with -EIO
	 * if it can't be: then nothing may leave (REASON_LEDGER_UNAVAILABLE).
	 */
	void (*record)(void *ctx, const struct audit_event *event,
		       struct wait *wait);

	/* Stops waiting for a record. The record itself is still written. */
	void (*record_cancel)(void *ctx, struct wait *wait);

	/* May something begin that will be recorded: a connection be taken, a
	 * first message, a request or a question be read? If not, because the
	 * ledger is far behind, @wait is done with 0 when it is time to ask
	 * again. Whoever waits already may ask. NULL: always. */
	bool (*room)(void *ctx, struct wait *wait);
	void (*room_cancel)(void *ctx, struct wait *wait);

	/* Looks up A and AAAA of @host upstream or in the cache. Only after the
	 * record of its verdict was accepted. */
	void (*resolve)(void *ctx, const char *host, struct lookup *lookup);
	void (*resolve_cancel)(void *ctx, struct lookup *lookup);

	/* Counts @host against the limits on names, before any upstream query.
	 * REASON_RULE, or REASON_LIMIT_NAMES. Known names are free. */
	enum reason (*admit)(void *ctx, struct sandbox *sandbox,
			     const char *host, const struct rule *rule);

	/* Makes TCP to @lease reach us on the ports on which @host is allowed;
	 * done with 0 when the kernel has taken it, or -errno. */
	void (*publish)(void *ctx, struct sandbox *sandbox, const char *host,
			const struct ip *lease, struct wait *wait);
	void (*publish_cancel)(void *ctx, struct wait *wait);

	/* May @sandbox make one more connection, or ask one more question, this
	 * second? Counts it. Else REASON_LIMIT_RATE. */
	bool (*rate)(void *ctx, struct sandbox *sandbox, enum rate rate);

	/* The budgets of a flow allowed by @rule (may be NULL): good until the
	 * sandbox ends. REASON_RULE, or REASON_LIMIT_BYTES if they can't be
	 * kept or are used up. */
	enum reason (*meters)(void *ctx, struct sandbox *sandbox,
			      const struct rule *rule,
			      struct meters *ret_meters);

	/* `dns.answers: real`: @host was answered with @ip (checked). 0, or
	 * -ENOSPC. And the names that were: at most @max, returns how many;
	 * the sandbox's table owns them. */
	int (*bind)(void *ctx, struct sandbox *sandbox, const char *host,
		    const struct ip *ip);
	size_t (*names_at)(void *ctx, struct sandbox *sandbox,
			   const struct ip *ip, const char *ret_name[],
			   size_t max);

	/* Looks up records of type @type (16 TXT, 15 MX, 33 SRV) of @host; see
	 * struct record_lookup. Only after the record of its verdict. */
	void (*resolve_records)(void *ctx, const char *host, uint16_t type,
				struct record_lookup *lookup);
	void (*resolve_records_cancel)(void *ctx, struct record_lookup *lookup);

	/* The name leased at @ip (the sandbox's table owns it), or NULL. */
	const char *(*lease_of)(void *ctx, struct sandbox *sandbox,
				const struct ip *ip);

	/* The sandbox behind interface @ifindex and source @ip, or NULL. */
	struct sandbox *(*sandbox_of)(void *ctx, uint32_t ifindex,
				      const struct ip *ip);

	/* A number for a new flow, never used before in this session. */
	uint64_t (*flow_id)(void *ctx);

	/* Prefixes the machine is on and its own addresses (P4). */
	const struct cidr *(*uplink)(void *ctx, size_t *ret_count);

	/* Where we listen ourselves: never dialled (REASON_SELF). */
	const struct endpoint *(*self)(void *ctx, size_t *ret_count);

	/* Under `serve`: the address that names are answered with; .len 0:
	 * leases are used. */
	struct ip answer;
};

static inline bool services_room(const struct services *services,
				 struct wait *wait)
{
	return !services->room || services->room(services->ctx, wait);
}

/* Fine if it does not wait. */
static inline void services_room_cancel(const struct services *services,
					struct wait *wait)
{
	if (services->room_cancel)
		services->room_cancel(services->ctx, wait);
}

#endif
