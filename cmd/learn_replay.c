/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_replay.c - the policy that was written is built like any other, and
 * asked about all that the logs are about.
 *
 * What the planner thought is not looked at: a wildcard or preset that opens
 * too much, or a rule that another one overrides, shows here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/learn_plan.h"
#include "policy/bundle.h"
#include "policy/policy.h"

#define POLICY_TEXT_MAX ((size_t)10 << 20) /* bundle_add_file() */

static struct verdict ask(const struct policy *policy,
			  const struct learn_host *host, uint16_t port)
{
	struct question question = { .port = port, .door = DOOR_CONNECT };

	if (!host->literal)
		question.host = host->name;
	else if (!ip_parse(host->name, &question.address))
		return (struct verdict){ .reason = REASON_MALFORMED };
	return policy_decide(policy, &question);
}

static bool addresses_pass(const struct policy *policy, const struct rule *rule,
			   const struct learn_port *port)
{
	for (size_t i = 0; i < port->specials; i++)
		if (!policy_check_address(policy, rule, &port->special[i], NULL,
					  0)
			     .allow)
			return false;
	return true;
}

/* NULL, or what is wrong with the verdict. */
static const char *check_port(const struct policy *policy,
			      const struct learn_host *host,
			      const struct learn_port *port)
{
	struct verdict verdict = ask(policy, host, port->port);

	if (!learn_is_rule(port))
		return learn_is_closed(port) && port->port && verdict.allow
			       ? "would be allowed"
			       : NULL;
	if (!verdict.allow || !addresses_pass(policy, verdict.rule, port))
		return "would be refused";
	return NULL;
}

static int check_host(const struct policy *policy,
		      const struct learn_host *host, char *reterr, size_t cap)
{
	const char *wrong;

	for (size_t i = 0; i < host->ports; i++) {
		wrong = check_port(policy, host, &host->port[i]);
		if (!wrong)
			continue;
		snprintf(reterr, cap, "%s port %u %s", host->name,
			 host->port[i].port, wrong);
		return -EINVAL;
	}
	if (!host->literal && learn_name_is_closed(host) &&
	    ask(policy, host, 0).allow) {
		snprintf(reterr, cap, "%s would be allowed", host->name);
		return -EINVAL;
	}
	return 0;
}

int learn_replay(const struct learn_table *table, const char *yaml, size_t len,
		 char *reterr, size_t cap)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error error = { .text = "" };
	int r;

	if (len > POLICY_TEXT_MAX) {
		snprintf(reterr, cap, "the policy has %zu bytes, too many",
			 len);
		return -EINVAL;
	}
	r = bundle_add(&bundle, BUNDLE_FILE, "learned.yaml", yaml, len);

	if (r == 0)
		r = policy_build(bundle.data, bundle.len, &policy, &error);
	bundle_free(&bundle);
	if (r < 0) {
		snprintf(reterr, cap, "%s",
			 *error.text ? error.text : strerror(-r));
		return r == -ENOMEM ? r : -EINVAL;
	}
	for (size_t i = 0; i < table->hosts && r == 0; i++)
		r = check_host(policy, table->host[i], reterr, cap);
	policy_unref(policy);
	return r;
}
