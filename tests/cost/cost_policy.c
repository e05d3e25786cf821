/* SPDX-License-Identifier: Apache-2.0
 *
 * cost_policy.c - a verdict: of a policy as people write it, and of one with
 * thousands of rules and tens of thousands of denied names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/bundle.h"
#include "policy/policy.h"
#include "tests/cost/cost.h"
#include "tests/policy/list_text.h"

#define RULES  5000
#define DENIED 30000
#define OPS    2000

static const char small[] =
	"version: 1\n"
	"extends: [anthropic, github, npm]\n"
	"allow:\n"
	"  - docs.cost.test\n"
	"  - '*.team.cost.test'\n"
	"  - {host: git.team.cost.test, ports: [22, 443]}\n"
	"  - {host: db.cost.test, ports: [5432], addresses: [10.0.0.0/8]}\n"
	"deny: ['*.paste.test']\n";

static struct policy *build(const char *yaml, const char *list, size_t len)
{
	struct bundle bundle = { 0 };
	struct policy_error error = { "" };
	struct policy *policy = NULL;
	int r = bundle_add(&bundle, BUNDLE_FILE, "p.yaml", yaml, strlen(yaml));

	if (r == 0 && list)
		r = bundle_add(&bundle, BUNDLE_LIST, "list.txt", list, len);
	if (r == 0)
		r = policy_build(bundle.data, bundle.len, &policy, &error);
	bundle_free(&bundle);
	cost_check(r == 0, error.text);
	return policy;
}

static struct policy *build_large(void)
{
	const size_t cap = RULES * LIST_NAME_MAX + 256;
	AUTO_FREE char *yaml = malloc(cap);
	size_t at, len;
	AUTO_FREE char *list = list_text(DENIED, &len);

	cost_check(yaml && list, "memory");
	at = (size_t)snprintf(yaml, cap,
			      "version: 1\ndeny:\n- file: list.txt\nallow:\n");
	for (unsigned i = 0; i < RULES; i++)
		at += (size_t)snprintf(yaml + at, cap - at,
				       i % 10 ? "- a%1$u.cost%1$u.t%1$u\n"
					      : "- '*.a%1$u.cost%1$u.t%1$u'\n",
				       i);
	return build(yaml, list, len);
}

struct asked {
	const struct policy *policy;
	bool allow;
	/* Of a name, with a number in it. In each part, where a list has a key
	 * of its own each time: what all names share would weigh too much. */
	const char *form;
	unsigned from, step;
};

static void decide(void *arg, unsigned i)
{
	const struct asked *asked = arg;
	struct question question = { .port = 443,
				     .door = DOOR_CONNECT,
				     .now_s = 1800000000 };
	struct verdict verdict;
	char host[LIST_NAME_MAX];

	if (asked->form)
		snprintf(host, sizeof(host), asked->form,
			 asked->from + i * asked->step);
	else
		list_name(asked->from + i * asked->step, host);
	question.host = host;
	cost_on();
	verdict = policy_decide(asked->policy, &question);
	cost_off();
	cost_check(verdict.allow == asked->allow, host);
}

static void measure(const char *name, const struct policy *policy, bool allow,
		    const char *form, unsigned from, unsigned step)
{
	struct asked asked = { policy, allow, form, from, step };
	const struct cost cost = { name, decide, &asked, 10, OPS, 1 };

	cost_measure(&cost);
}

void cost_policy(void)
{
	struct policy *few = build(small, NULL, 0), *many = build_large();

	measure("policy-small-allowed", few, true, "host%u.team.cost.test", 0,
		7);
	measure("policy-small-denied", few, false, "api%u.elsewhere.test", 0,
		7);
	measure("policy-large-allowed", many, true, "a%1$u.cost%1$u.t%1$u", 1,
		2);
	measure("policy-large-listed", many, false, NULL, 0, 14);
	measure("policy-large-denied", many, false, "b%1$u.elsewhere%1$u.t%1$u",
		0, 7);
	policy_unref(few);
	policy_unref(many);
}
