/* SPDX-License-Identifier: Apache-2.0
 *
 * lab.h - a gateway namespace with two sandboxes on veths, our rules in it, and
 * listeners where the gate's would be. Everything vanishes with the process.
 */
#ifndef TESTS_FIREWALL_LAB_H
#define TESTS_FIREWALL_LAB_H

#include <sys/types.h>

#include "firewall/ruleset.h"
#include "launch/netns.h"

#define LAB_PROXY	3128
#define LAB_TRANSPARENT 4000
#define LAB_GROUP	7

struct lab {
	struct netns gateway;
	struct netns box[2]; /* 198.19.0.2 and 198.19.0.6, /30 */
	struct nft *nft;
	struct ruleset_spec spec;
	struct ruleset_link link[2]; /* "spA", "spB" */
	/* In the gateway namespace. */
	int dns_udp, dns_tcp, transparent, proxy, nflog;
};

/* Fails the test itself when something does not work. */
void lab_make(struct lab *lab);
void lab_free(struct lab *lab);

/* Runs @fn in a child inside namespace @ns_fd; its result, 0 to 255. */
int lab_in(int ns_fd, int (*fn)(void *arg), void *arg);

/* Runs `nft @command` in the gateway; its exit status. */
int lab_nft(struct lab *lab, const char *command);
/* The output of a program inside @ns_fd, at most @cap - 1 bytes. */
void lab_output(int ns_fd, char *const argv[], char *ret, size_t cap);

/* ruleset_flow_add() of one address, at most 8 ranges of ports. */
int lab_add_flow(struct nft *nft, const char *ifname, const struct cidr *dst,
		 const struct port_range *ports, size_t n);

/* ruleset_flow_add() for one port of one address, asserted. */
void lab_flow(struct lab *lab, const char *ifname, const char *address,
	      uint16_t port);

#endif
