/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h - POLICY on a command line that is about policies: a file, "-" for
 * standard input, or "preset:NAME".
 */
#ifndef CMD_SOURCE_H
#define CMD_SOURCE_H

#include "policy/bundle.h"

struct policy;

/* 0, or -EINVAL and @reterr, or -ENOMEM. */
int source_add(struct bundle *bundle, const char *what,
	       struct policy_error *reterr);

/* Puts @bundle below the policy of @what. As above. */
int source_add_ceiling(struct bundle *bundle, const char *what,
		       struct policy_error *reterr);

/* The policy of @what, below that of @ceiling, which may be NULL. @ret_bundle
 * may be NULL. As above. */
int source_load(const char *what, const char *ceiling,
		struct bundle *ret_bundle, struct policy **ret_policy,
		struct policy_error *reterr);

/* The same, or says what is wrong and exits EXIT_SALLYPORT. */
struct policy *source_must_load(const char *what);
struct policy *source_must_build(const struct bundle *bundle);

#endif
