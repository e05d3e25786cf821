/* SPDX-License-Identifier: Apache-2.0
 *
 * cell_notice.c - see cell_notice.h.
 */
#include "cmd/cell_notice.h"

#include <string.h>

#include "base/log.h"
#include "policy/bundle.h"
#include "policy/cell.h"
#include "policy/policy.h"

void cell_notice(const struct bundle *bundle, const char *where)
{
	struct policy_error ignored;
	struct policy *policy;

	/* Most have none, and need no second reading. */
	if (!bundle->len ||
	    !memmem(bundle->data, bundle->len, "sandbox", strlen("sandbox")) ||
	    policy_build(bundle->data, bundle->len, &policy, &ignored))
		return;
	if (!cell_is_empty(policy_cell(policy)))
		log_warn("'sandbox' of the policy is for `sallyport run`: it "
			 "bounds nothing %s",
			 where);
	policy_unref(policy);
}
