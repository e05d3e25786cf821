/* SPDX-License-Identifier: Apache-2.0
 *
 * dial.h - one TCP connection to one of several addresses: happy eyeballs (RFC
 * 8305: families interleaved, IPv6 first, 250 ms apart, the first to connect
 * wins). Addresses must have been checked: this is the only connect(2).
 */
#ifndef PROXY_DIAL_H
#define PROXY_DIAL_H

#include "base/addr.h"

struct dial;
struct watch;
struct wheel;

/* @server: connected, owned by the callee; or NULL and @error (errno of the
 * last failure, ETIMEDOUT). @ip is the one used. Not called from within
 * dial_start(). The dial is freed after it returns. */
typedef void dial_done(void *arg, struct watch *server, int error,
		       const struct ip *ip);

/* Copies @ip. @timeout_ms is for all of it. NULL without memory. */
struct dial *dial_start(struct wheel *wheel, const struct ip *ip, size_t n,
			uint16_t port, unsigned timeout_ms, dial_done *done,
			void *arg);
/* NULL is fine. Nothing is called any more. */
void dial_cancel(struct dial *dial);

#endif
