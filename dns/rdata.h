/* SPDX-License-Identifier: Apache-2.0
 *
 * rdata.h - the records beside addresses that a policy may allow to be asked
 * for: TXT, MX, SRV. Pure.
 */
#ifndef DNS_RDATA_H
#define DNS_RDATA_H

#include "dns/message.h"
#include "policy/services.h"

struct dns_records {
	struct rdata at[LOOKUP_RECORDS_MAX];
	size_t count;
};

enum rdata_parse {
	RDATA_OK,
	RDATA_ODD, /* well-formed, and not for us: too long, or no host name */
	RDATA_BAD,
};

/* Is @type one of them? */
bool rdata_known(uint16_t type);

/* Reads the data of a record of a known type at @rdata, which is all of it and
 * lies in @message. *@ret_rdata is uncompressed; its names are host names or
 * the root ("no such service": RFC 7505, RFC 2782), in lower case. */
enum rdata_parse rdata_parse(uint16_t type, struct wire rdata,
			     const struct wire *message,
			     struct rdata *ret_rdata);

#endif
