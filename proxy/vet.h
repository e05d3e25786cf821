/* SPDX-License-Identifier: Apache-2.0
 *
 * vet.h - which addresses may be dialled at all (P4, and never ourselves).
 */
#ifndef PROXY_VET_H
#define PROXY_VET_H

#include "policy/services.h"

/* Is @ip:@port one of our own listeners? */
bool vet_is_self(const struct services *services, const struct ip *ip,
		 uint16_t port);

/* Copies those of the @n answers that may be dialled to @ret_ip (room for @n)
 * and returns how many. If none may: why the first may not, in @reterr, and
 * which it was, in @reterr_ip. */
size_t vet_answers(const struct services *services, const struct policy *policy,
		   const struct rule *rule, const struct ip *answer, size_t n,
		   uint16_t port, struct ip *ret_ip, enum reason *reterr,
		   struct ip *reterr_ip);

/* Was @host answered with @ip, among others (`dns.answers: real`)? */
bool vet_name_at(const struct services *services, struct sandbox *sandbox,
		 const struct ip *ip, const char *host);

#endif
