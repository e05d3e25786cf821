/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway.h - the topology: a gateway namespace without an uplink, a sandbox's
 * namespace whose only link leads there, the rules between, and the sockets
 * that are the only way on.
 */
#ifndef CMD_GATEWAY_H
#define CMD_GATEWAY_H

#include "cmd/privsep.h"
#include "firewall/lock.h"
#include "firewall/ruleset.h"
#include "launch/netns.h"

#define GATEWAY_PROXY_PORT 3128

/* The /30s between gateway and sandboxes: the upper half of 198.18.0.0/15
 * (benchmarking, RFC 2544), whose lower half are the leases. */
#define GATEWAY_LINK_BASE 0xc6130000u

struct gateway_flows {
	struct ruleset_flow *at;
	size_t n, cap;
};

/* Where there are links to be watched. */
enum gateway_side { GATEWAY_SIDE, SANDBOX_SIDE, GATEWAY_SIDES };

struct link_view;
struct guard_spec;
struct xdp_hold;

/* Where the sandbox is, or will be. NULL, or zeroes with .sandbox -1: a
 * namespace of its own, and the usual addresses. */
struct gateway_place {
	int sandbox;	 /* its namespace, which stays the caller's; or -1 */
	bool join;	 /* there is none yet: the sandbox's end of the link is
			    in our own, until gateway_join() */
	bool tables;	 /* firewall/lock.h's keep it in: what else there is in
			    its namespace is told, and no more */
	char ifname[16]; /* of the sandbox's end; "": eth0 */
	struct ip ip, gateway; /* .len 0: the usual */
	uint8_t bits;	       /* of the link's prefix */
};

struct gateway {
	/* NULL, or: there is no namespace, but these rules in our own; see
	 * cmd/guard_gateway.h. */
	struct guard_spec *guard;
	struct xdp_hold *xdp; /* and what keeps AF_XDP from others */
	struct gateway_place place;
	struct netns ns, sandbox; /* .sandbox.fd -1: none yet */
	struct nft *nft;
	struct ruleset_spec spec;
	struct ruleset_link link; /* to the one sandbox of a session */
	uint32_t ifindex;
	int socket[GATE_SOCKET_COUNT]; /* -1: none */
	char digest[65];	       /* of the ruleset as read back */
	/* To hear of changes by others (firewall/watch.h, launch/link_view.h),
	 * and what is compared. */
	int rules_watch, link_watch[GATEWAY_SIDES];
	struct link_view *view[GATEWAY_SIDES];
	/* An engine is at work on the sandbox's side: until it is done, or so
	 * long (monotonic), nothing is compared there. */
	bool settling;
	int64_t settle_end_ms;
	size_t others; /* interfaces there that are not ours */
	/* .place.tables: what they are, and what they shut; .lock NULL: none,
	 * or none yet. */
	struct nft *lock;
	struct lock_spec locked;
	char shut[LOCK_OTHERS_MAX][16];
	size_t shut_n;
	/* What counters that are gone have counted, and what those that are
	 * there had at the last look. */
	struct ruleset_counters before, last;
	/* Changes that are put off. */
	struct gateway_flows gone, want;
	uint32_t dialled; /* sockets made so far, to take ports in turn */
	bool passes;	  /* the sandbox's namespace goes right after ours, and
			     the link with both: nobody has to wait for the
			     kernel, which needs some 10 ms to take one away */
};

/* The sandbox's namespace alone, with nothing in it that leads out: there its
 * first process can be prepared. @place may be NULL. 0, or -errno and a
 * sentence in @reterr. */
int gateway_begin(struct gateway *ret, const struct gateway_place *place,
		  char *reterr, size_t cap);
/* Makes the rest, in this order: the gateway's namespace, rules, then the link,
 * so that no packet ever meets a gateway without rules; watches the links. 0,
 * or -errno and a sentence in @reterr. */
int gateway_build(struct gateway *gateway, char *reterr, size_t cap);
/* Lets @policy's addresses through, watches the rules, reads all of them back
 * and compares them. Builds first, if that was not done; if it was, nobody may
 * have touched the links since. 0, or -errno and a sentence in @reterr. */
int gateway_open(const struct policy *policy, struct gateway *gateway,
		 char *reterr, size_t cap);
/* Takes the link away from a namespace that is not ours, too. */
void gateway_close(struct gateway *gateway);

/* The link's other end is in @ns (the caller's) now, or an engine is about to
 * move it there. From here on that side is watched. 0, or -errno and a sentence
 * in @reterr: nothing is watched there. */
int gateway_join(struct gateway *gateway, int ns, char *reterr, size_t cap);

/* The gate asks to let TCP to @n leases through; in one batch, as the kernel
 * copies all that there is for each. Only synthetic addresses may be opened so,
 * unless @policy has real answers. @fresh: nothing can be there that an earlier
 * gate has opened. 0 or -errno: then none may be, or all but one. */
int gateway_publish(struct gateway *gateway, const struct policy *policy,
		    const struct msg_publish *msg, size_t n, bool fresh);

/* The same, and the opposite, but by gateway_flush(): after a change of policy
 * there are many. What @policy allows literally stays. 0 or -errno. */
int gateway_publish_later(struct gateway *gateway, const struct policy *policy,
			  const struct msg_publish *msg);
int gateway_withdraw_later(struct gateway *gateway,
			   const struct msg_publish *msg);
/* Makes the changes: what is let through, all of it; what no longer, for some
 * time (the kernel is slow at that, and what comes to the gate is judged there
 * all the same). 1 if there is more to do, 0, or -errno. */
int gateway_flush(struct gateway *gateway, const struct policy *policy);

/* Forgets them. */
void gateway_drop_changes(struct gateway *gateway);

/* The literal ranges of @policy are let through, those of @old (may be NULL)
 * no longer; what is to be opened stays open there, without a gap for the first
 * 256. 0 or -errno. */
int gateway_literals(struct gateway *gateway, const struct policy *old,
		     const struct policy *policy);

/* Closes everything but the literal ranges of @policy: what a gate had opened
 * that can't be asked any more. 0 or -errno. */
int gateway_sweep(struct gateway *gateway, const struct policy *policy);

/* The packets that the rules have counted since the session began, also where
 * the rules (and with them the counters) were put back meanwhile. What was
 * counted between the last look and the moment somebody took them away is lost.
 * 0, or -errno: @ret then has what is known. */
int gateway_counters(struct gateway *gateway, struct ruleset_counters *ret);

/* At most as many as a child hands over at once (launch/netns.h). */
#define GATEWAY_DIALS 8

/* Before ports of the sandbox are published: what answers the sockets of
 * gateway_dials() reaches them. 0 or -errno; twice is once. */
int gateway_let_answers_in(struct gateway *gateway);
/* Sockets that can be connected to the sandbox, and to nothing beyond. 0 or
 * -errno. */
int gateway_dials(struct gateway *gateway, int ret_fd[GATEWAY_DIALS],
		  size_t *ret_n);

/* Are links, addresses and routes of both namespaces as they were, and nobody
 * forwards? 0; 1 and what differs, in @reterr, where that is only to be told,
 * once; or -errno and what differs. */
int gateway_verify_links(struct gateway *gateway, char *reterr, size_t cap);

/* Are the tables of the sandbox's namespace there, if it has any? 0; 1 and what
 * differed, in @reterr: they were put back; or -errno and why they could not
 * be. */
int gateway_verify_lock(struct gateway *gateway, char *reterr, size_t cap);

/* Takes the news of a .link_watch, which is @fd. 0 if there are none; 1 if
 * there is reason to verify; -EBADMSG and what somebody did, in @reterr, though
 * it may be undone by now; 2 and the same where that is only to be told; or
 * -errno. */
int gateway_link_news(struct gateway *gateway, int fd, char *reterr,
		      size_t cap);

/* Puts the rules back, as they are at a start: link and literal ranges of
 * @policy, no addresses of names. Verified. @ret_generation: all commits up to
 * that one are done away with. 0, or -errno and why in @reterr. */
int gateway_restore(struct gateway *gateway, const struct policy *policy,
		    uint32_t *ret_generation, char *reterr, size_t cap);

/* Reads the rules back. 0, or -errno and what differs in @reterr. */
int gateway_verify(struct gateway *gateway, char *reterr, size_t cap);

#endif
