/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_bounds.c - the ceiling's `sandbox:`, for those who run commands below
 * it: the daemon starts none.
 */
#include <errno.h>

#include "base/json.h"
#include "cmd/daemon_impl.h"
#include "policy/cell.h"
#include "policy/policy.h"

int daemon_config_bounds(struct daemon_config *config)
{
	struct json j =
		json_of(config->ceiling_sandbox, DAEMON_CEILING_TEXT_MAX - 1);
	struct policy_error why;
	struct policy *policy;
	int ret;

	ret = policy_build(config->ceiling.data, config->ceiling.len, &policy,
			   &why);
	if (ret < 0)
		return ret;
	if (!cell_is_empty(policy_cell(policy)))
		cell_json(policy_cell(policy), &j);
	policy_unref(policy);
	if (j.full)
		return -E2BIG;
	config->ceiling_sandbox[j.len] = '\0';
	return 0;
}

const char *daemon_ceiling_sandbox(const struct daemon_sandbox *sandbox)
{
	const struct box *box = (const struct box *)(const void *)sandbox;
	const char *text = box->daemon->config->ceiling_sandbox;

	return *text && !*sandbox->spec.policy_name ? text : NULL;
}
