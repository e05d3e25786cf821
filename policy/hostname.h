/* SPDX-License-Identifier: Apache-2.0
 *
 * hostname.h - the one meaning of a host name, for every door and every rule.
 *
 * The canonical form is lower-case ASCII LDH labels (A-labels for
 * internationalised names), without a trailing dot. It is what is matched,
 * logged and resolved. Names are rejected, never repaired: only case and one
 * trailing dot are folded.
 */
#ifndef POLICY_HOSTNAME_H
#define POLICY_HOSTNAME_H

#include <stdbool.h>
#include <stddef.h>

#define HOST_MAX 253

/* From the wire. @text is @len bytes, neither terminated nor trusted. Accepts
 * LDH labels of 1-63 octets (also '_', which SRV and service names use), at
 * most HOST_MAX in all. Refuses NUL, non-ASCII, '%', brackets, spaces, empty
 * labels, labels that start or end with '-', and every spelling of an IP
 * address (a last label that is all digits or 0x...: WHATWG URL's "ends in a
 * number").
 * @ret_host holds HOST_MAX + 1 bytes, untouched on failure. */
bool host_canonical(const char *text, size_t len, char *ret_host);

/* The same for text that a person wrote in a policy: U-labels are accepted
 * too, and converted by IDNA2008 (libidn2, non-transitional). */
bool host_from_policy(const char *text, char *ret_host);

/* The same, but says what is wrong with @text: NULL, or a clause for people
 * ("a label is longer than 63 characters"). */
const char *host_fault(const char *text, char *ret_host);

/* Is @name below @apex, by whole labels? Both canonical; a name is not below
 * itself. */
bool host_below(const char *name, const char *apex);

#endif
