/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_look.h - where a session's log is by now, and with which receipt. For
 * hostlog_check.c.
 */
#ifndef AUDIT_HOSTLOG_LOOK_H
#define AUDIT_HOSTLOG_LOOK_H

#include "audit/hostlog_check.h"

/* The directory of the log that has @vkey beside it: below @home under the
 * session's name, or @directory, where it began, or what was put aside there.
 * Returns a descriptor, or -1 if there is none. */
int hostlog_find_session(int home, const char *session, const char *directory,
			 const char *vkey);

/* Is it the one of @digest, "sha256:HEX"? HOSTLOG_FINE, RECEIPT_GONE or
 * RECEIPT_OTHER. */
enum hostlog_trouble hostlog_look_at_receipt(int dir, const char *digest);

#endif
