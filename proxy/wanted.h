/* SPDX-License-Identifier: Apache-2.0
 *
 * wanted.h - what a connection has to speak: what its rule says, or else what
 * its port is for. 443 is for TLS and 80 for HTTP/1.
 */
#ifndef PROXY_WANTED_H
#define PROXY_WANTED_H

#include "policy/policy.h"

/* @wanted, with WANTED_DEFAULT replaced by what @port is for. It remains on a
 * port that is for anything. */
enum wanted wanted_on(enum wanted wanted, uint16_t port);

/* What a connection to @port with this verdict must speak. A rule that refused
 * and was only observed has no say in what it does not cover. */
enum wanted wanted_of(const struct verdict *verdict, uint16_t port);

/* The same before there is a verdict: nothing is recorded, nothing allowed. For
 * doors that look at the first message before they ask. */
enum wanted wanted_ahead(const struct policy *policy,
			 const struct question *question);

#endif
