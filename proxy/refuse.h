/* SPDX-License-Identifier: Apache-2.0
 *
 * refuse.h - refusals that explain themselves, in each protocol's form. All
 * come from the table in policy/reason.h.
 */
#ifndef PROXY_REFUSE_H
#define PROXY_REFUSE_H

#include <stddef.h>
#include <stdint.h>

#include "policy/reason.h"

#define REFUSE_MAX 2048

/* A whole HTTP/1.1 response: status, Proxy-Status (RFC 9209), X-Proxy-Error,
 * Content-Length, Connection: close, and two lines of text: what was refused
 * and why; how to allow it. @status overrides the table's (400, 431 ...); 0: as
 * the table says. @detail may be NULL. Returns the length. */
size_t refuse_http(enum reason reason, uint16_t status, const char *host,
		   uint16_t port, const char *detail, char buf[REFUSE_MAX]);

/* A fatal TLS alert record (7 bytes; RFC 8446 section 6). */
size_t refuse_tls(enum reason reason, uint8_t buf[7]);

#endif
