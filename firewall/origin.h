/* SPDX-License-Identifier: Apache-2.0
 *
 * origin.h - whom does a name server on loopback ask, and from where?
 *
 * That of a container engine listens in the container and may ask from in
 * there, as root. Behind rules that send every question to our gate, which
 * would ask it in turn, that is a circle.
 */
#ifndef FIREWALL_ORIGIN_H
#define FIREWALL_ORIGIN_H

#include <stddef.h>
#include <sys/types.h>

#include "base/addr.h"

/* Asks @resolver (IPv4, port 53) for a random name, as @uid, which existing
 * rules let ask, and sees who sends that name on from this network namespace;
 * what is seen does not leave. Takes milliseconds where an answer comes, else
 * three seconds.
 *
 * *@ret_count of the up to @cap in @ret: where it asks from in here. None: it
 * asks elsewhere, or nobody. 0 or -errno (-ETIMEDOUT: it neither answers nor
 * asks from in here). Needs CAP_NET_ADMIN and CAP_SETUID. */
int origin_find(const struct ip *resolver, uid_t uid, struct endpoint *ret,
		size_t cap, size_t *ret_count);

#endif
