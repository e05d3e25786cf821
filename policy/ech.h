/* SPDX-License-Identifier: Apache-2.0
 *
 * ech.h - what a rule says of an encrypted ClientHello (ECH, RFC 9849): a hello
 * that names one host outside, and may name another inside, unseen.
 */
#ifndef POLICY_ECH_H
#define POLICY_ECH_H

#include "policy/policy.h"

/* `tls.ech`. Browsers send the extension to everybody (GREASE): so by default
 * it may be there, but not where it is certain to hide a name. */
enum ech { ECH_DEFAULT, ECH_ALLOW, ECH_DENY };

/* A name by which a provider's servers take in the hellos for all of its
 * customers; so do those below it. */
struct ech_front {
	const char *domain, *source;
};
/* NULL: @host, which is canonical, is none that is known. */
const struct ech_front *ech_front(const char *host);
/* Is there one that the wildcard above @apex covers? */
bool ech_front_below(const char *apex);

/* The one that lets less pass. */
enum ech ech_stricter(enum ech a, enum ech b);

enum ech rule_ech(const struct rule *rule);

/* Why a hello with ECH must not pass (REASON_ECH) to where @verdict, which
 * allows, lets the connection go; NULL: it may. @sni: its outer name, or "".
 * @host: the one that the connection is for; NULL: an address. That the names
 * agree is asked for elsewhere as well: `tls.ech: allow` does not change it. */
const char *policy_ech_fault(const struct verdict *verdict, const char *sni,
			     const char *host);

#endif
