/* SPDX-License-Identifier: Apache-2.0
 *
 * target.h - what a person writes to mean a destination: a host pattern or an
 * address range, with or without ports. Inside policy/ only.
 */
#ifndef POLICY_TARGET_H
#define POLICY_TARGET_H

#include "policy/policy.h"

struct target {
	char host[HOST_MAX + 1]; /* without "*."; "": a literal */
	bool wildcard;
	struct cidr literal;
	struct port_range ports;
	bool has_ports;
};

/* "example.com" or "*.example.com". NULL, or why not. */
const char *target_parse_host(const char *text, struct target *ret);

/* HOST, HOST:PORT, ADDR, ADDR:PORT, CIDR, CIDR:PORT, with brackets around IPv6
 * where a port follows; PORT may be a range. NULL, or why not. */
const char *target_parse(const char *text, struct target *ret);

/* An address range; why @text is none, otherwise. */
const char *target_parse_cidr(const char *text, struct cidr *ret_cidr);

#endif
