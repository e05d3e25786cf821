/* SPDX-License-Identifier: Apache-2.0
 *
 * special.h - names that are answered here, whatever the policy says, because
 * their meaning is local: they are never asked upstream.
 */
#ifndef DNS_SPECIAL_H
#define DNS_SPECIAL_H

#include "base/addr.h"

enum special {
	SPECIAL_NONE,	  /* an ordinary name: the policy decides */
	SPECIAL_LOOPBACK, /* localhost and below (RFC 6761) */
	SPECIAL_NODATA,	  /* exists, and says nothing */
	SPECIAL_NXDOMAIN,
	SPECIAL_REVERSE, /* PTR of an address */
};

/* @host is canonical. For SPECIAL_REVERSE *@ret_ip is the address, or has .len
 * 0 if the name stands for no whole IPv4 address. */
enum special special_name(const char *host, uint16_t type, struct ip *ret_ip);

#endif
